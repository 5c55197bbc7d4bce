//! Offloads, speed and driver of an interface, through `SIOCETHTOOL`.
//!
//! The per-offload commands are used, not the newer feature masks: every driver answers them, and the
//! kernel itself keeps what depends on an offload consistent (segmentation needs checksums).

use super::netlink::{Netlink, text};
use super::sys::{self, EthtoolNumber};
use super::{Error, Result};

/// Work that an interface may do in the kernel's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    RxChecksum,
    TxChecksum,
    ScatterGather,
    /// TCP segmentation by the interface.
    Tso,
    /// Segmentation just before the interface.
    Gso,
    /// Coalescing just after the interface.
    Gro,
}

impl Offload {
    /// What others need comes before them.
    pub const ALL: [Self; 6] =
        [Self::RxChecksum, Self::TxChecksum, Self::ScatterGather, Self::Gso, Self::Tso, Self::Gro];

    fn commands(self) -> (EthtoolNumber, EthtoolNumber) {
        match self {
            Self::RxChecksum => (EthtoolNumber::GetRxChecksum, EthtoolNumber::SetRxChecksum),
            Self::TxChecksum => (EthtoolNumber::GetTxChecksum, EthtoolNumber::SetTxChecksum),
            Self::ScatterGather => (EthtoolNumber::GetScatterGather, EthtoolNumber::SetScatterGather),
            Self::Tso => (EthtoolNumber::GetTso, EthtoolNumber::SetTso),
            Self::Gso => (EthtoolNumber::GetGso, EthtoolNumber::SetGso),
            Self::Gro => (EthtoolNumber::GetGro, EthtoolNumber::SetGro),
        }
    }
}

/// The kernel's `SPEED_UNKNOWN`.
const UNKNOWN: u32 = u32::MAX;

impl Netlink {
    pub fn offload(&self, name: &str, offload: Offload) -> Result<bool> {
        let value = sys::ethtool_number(self.socket(), name, offload.commands().0, 0);
        value.map(|value| value != 0).map_err(|error| Error::new(format!("read offload {offload:?} of {name}"), error))
    }

    /// An interface that cannot switch the offload is no error if it is as wanted already.
    pub fn set_offload(&self, name: &str, offload: Offload, on: bool) -> Result<()> {
        let Err(error) = sys::ethtool_number(self.socket(), name, offload.commands().1, u32::from(on)) else {
            return Ok(());
        };
        if error.raw_os_error() == Some(libc::EOPNOTSUPP) && self.offload(name, offload)? == on {
            return Ok(());
        }
        let state = if on { "on" } else { "off" };
        Err(Error::new(format!("turn offload {offload:?} of {name} {state}"), error))
    }

    /// Switches all offloads, as far as the interface has them.
    pub fn set_offloads(&self, name: &str, on: bool) -> Result<()> {
        let mut order = Offload::ALL;
        if !on {
            order.reverse();
        }
        for offload in order {
            match self.set_offload(name, offload, on) {
                Err(error) if on && error.is_any_of(&[libc::EOPNOTSUPP]) => {}
                result => result?,
            }
        }
        Ok(())
    }

    /// Mbit/s; none while the link is down, or if it has no speed.
    pub fn speed(&self, name: &str) -> Result<Option<u64>> {
        match sys::ethtool_speed(self.socket(), name) {
            Ok(0 | UNKNOWN) => Ok(None),
            Ok(speed) => Ok(Some(u64::from(speed))),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(Error::new(format!("read the speed of {name}"), error)),
        }
    }

    pub fn driver(&self, name: &str) -> Result<String> {
        let driver = sys::ethtool_driver(self.socket(), name);
        driver.map(|driver| text(&driver)).map_err(|error| Error::new(format!("read the driver of {name}"), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing::in_own_namespace;

    fn states(netlink: &Netlink) -> Vec<Offload> {
        Offload::ALL.into_iter().filter(|offload| netlink.offload("w0", *offload).unwrap()).collect()
    }

    #[test]
    fn all_offloads_go_off_and_on_and_one_goes_alone() {
        in_own_namespace(|netlink| {
            netlink.add_veth("w0", "x0").unwrap();
            netlink.set_offloads("w0", false).unwrap();
            assert_eq!(states(netlink), []);
            netlink.set_offloads("w0", true).unwrap();
            assert_eq!(states(netlink), Offload::ALL);
            netlink.set_offload("w0", Offload::Gro, false).unwrap();
            assert_eq!(states(netlink), Offload::ALL[..5]);
            netlink.set_offload("w0", Offload::TxChecksum, false).unwrap();
            assert!(!netlink.offload("w0", Offload::Tso).unwrap(), "segments need checksums");
        });
    }

    #[test]
    fn a_veth_knows_its_driver_and_a_speed_and_the_loopback_has_none() {
        in_own_namespace(|netlink| {
            netlink.add_veth("w0", "x0").unwrap();
            assert_eq!(netlink.driver("w0").unwrap(), "veth");
            assert_eq!(netlink.speed("w0").unwrap(), Some(10_000));
            assert_eq!(netlink.speed("lo").unwrap(), None);
        });
    }

    #[test]
    fn a_missing_interface_is_named() {
        in_own_namespace(|netlink| {
            let error = netlink.set_offloads("nope", false).unwrap_err();
            assert_eq!(error.to_string(), "turn offload Gro of nope off: No such device");
            assert!(netlink.driver("a-name-that-is-far-too-long").is_err());
        });
    }
}
