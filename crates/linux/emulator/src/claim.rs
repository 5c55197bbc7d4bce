//! One wire per interface: two on the same would each forward every frame.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// The wire that is plugged into an interface holds this claim as long as it exists.
///
/// It is an abstract Unix socket, which nobody ever connects to: the kernel keeps a name of that kind per network
/// namespace, for one process at a time, and frees it however that process ends.
#[derive(Debug)]
pub struct InterfaceClaim(#[expect(dead_code, reason = "held, never used")] UnixListener);

impl InterfaceClaim {
    /// Claims the interface of this index in the calling thread's namespace; `None` if another wire has it.
    pub fn of(index: u32) -> io::Result<Option<Self>> {
        let name = SocketAddr::from_abstract_name(format!("hitless-wire-{index}"))?;
        match UnixListener::bind_addr(&name) {
            Ok(listener) => Ok(Some(Self(listener))),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux::net::testing::in_namespaces;

    #[test]
    fn an_interface_is_claimed_once_per_namespace_until_the_claim_is_dropped() {
        in_namespaces(|[here, there]| {
            let claim = || InterfaceClaim::of(7).unwrap();
            let first = here.with(claim).unwrap();
            assert!(first.is_some());
            assert!(here.with(claim).unwrap().is_none());
            assert!(here.with(|| InterfaceClaim::of(8).unwrap()).unwrap().is_some());
            assert!(there.with(claim).unwrap().is_some());
            drop(first);
            assert!(here.with(claim).unwrap().is_some());
        });
    }
}
