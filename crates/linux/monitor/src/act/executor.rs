//! The hands of the monitor: what it can do to this host. A trait, so that tests can watch them.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io;

use daemon::RunDirectory;
use link::control::{LinkReply, LinkRequest};
use linux::net::Netlink;
use units::Prob;

/// A protected link's daemon, as far as it matters whether to act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonInfo {
    pub link: String,
    /// Tells a daemon from one that was started later under the same name.
    pub pid: u32,
    /// Protection is asked for, by whomever.
    pub wanted: bool,
    /// Copies of each retransmission.
    pub copies: u8,
}

/// Errors are one line for people.
pub trait Executor: fmt::Debug + Send {
    /// The daemon that stands in for `port`; of this name, where one is given.
    fn daemon(&mut self, port: &str, link: Option<&str>) -> Result<Option<DaemonInfo>, String>;

    /// Asks for protection, having measured `loss`.
    fn protect(&mut self, link: &str, loss: Prob) -> Result<(), String>;

    fn unprotect(&mut self, link: &str) -> Result<(), String>;

    /// Switches a port on or off.
    fn switch(&mut self, port: &str, on: bool) -> Result<(), String>;

    /// The interfaces that hold a default route.
    fn default_routes(&mut self) -> Result<BTreeSet<String>, String>;
}

impl<E: Executor + ?Sized> Executor for Box<E> {
    fn daemon(&mut self, port: &str, link: Option<&str>) -> Result<Option<DaemonInfo>, String> {
        (**self).daemon(port, link)
    }

    fn protect(&mut self, link: &str, loss: Prob) -> Result<(), String> {
        (**self).protect(link, loss)
    }

    fn unprotect(&mut self, link: &str) -> Result<(), String> {
        (**self).unprotect(link)
    }

    fn switch(&mut self, port: &str, on: bool) -> Result<(), String> {
        (**self).switch(port, on)
    }

    fn default_routes(&mut self) -> Result<BTreeSet<String>, String> {
        (**self).default_routes()
    }
}

/// This host, in the network namespace of the process.
#[derive(Debug)]
pub struct ThisHost {
    directory: RunDirectory,
}

impl ThisHost {
    pub fn new(directory: RunDirectory) -> Self {
        Self { directory }
    }

    fn ask(&self, link: &str, ask: LinkRequest) -> Result<(), String> {
        match self.directory.ask(link, ask) {
            Ok(LinkReply::Refused(why)) => Err(format!("{link} refused: {why}")),
            Ok(LinkReply::Done | LinkReply::Status(_)) => Ok(()),
            Err(error) => Err(format!("{link}: {error} ({})", self.directory.socket(link).display())),
        }
    }

    /// `None` if there is no such daemon, or it stands in for another interface.
    fn status(&self, link: &str, port: Option<&str>) -> Result<Option<DaemonInfo>, String> {
        use io::ErrorKind::{ConnectionRefused, NotFound};
        match self.directory.ask(link, LinkRequest::Status) {
            Ok(LinkReply::Status(status)) => {
                let fits = port.is_none_or(|port| status.interface == port);
                let daemon =
                    DaemonInfo { link: link.to_owned(), pid: status.pid, wanted: status.wanted, copies: status.copies };
                Ok(fits.then_some(daemon))
            }
            Ok(LinkReply::Refused(why)) => Err(format!("{link} refused: {why}")),
            Ok(LinkReply::Done) => Err(format!("{link} gave no status")),
            Err(error) if matches!(error.kind(), NotFound | ConnectionRefused) => Ok(None),
            Err(error) => Err(format!("{link}: {error} ({})", self.directory.socket(link).display())),
        }
    }
}

impl Executor for ThisHost {
    fn daemon(&mut self, port: &str, link: Option<&str>) -> Result<Option<DaemonInfo>, String> {
        // One that is named may stand in for an interface that the counters know by another name.
        if let Some(link) = link {
            return self.status(link, None);
        }
        let mut trouble = Ok(None);
        for link in self.directory.names().map_err(|error| error.to_string())? {
            match self.status(&link, Some(port)) {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                // Another one may be meant.
                failed => trouble = failed,
            }
        }
        trouble
    }

    fn protect(&mut self, link: &str, loss: Prob) -> Result<(), String> {
        self.ask(link, LinkRequest::Protect { loss: loss.get() })
    }

    fn unprotect(&mut self, link: &str) -> Result<(), String> {
        self.ask(link, LinkRequest::Deactivate)
    }

    fn switch(&mut self, port: &str, on: bool) -> Result<(), String> {
        let netlink = Netlink::open().map_err(|error| error.to_string())?;
        let link = netlink.existing_wire_of(port).map_err(|error| error.to_string())?;
        netlink.set_up(link.index, on).map_err(|error| error.to_string())
    }

    fn default_routes(&mut self) -> Result<BTreeSet<String>, String> {
        let read = |path: &str| match fs::read_to_string(path) {
            // A kernel without IPv6 has no such routes.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|error| format!("{path}: {error}")),
        };
        Ok(holders(&read("/proc/self/net/route")?, &read("/proc/self/net/ipv6_route")?))
    }
}

/// Interfaces that hold a default route, by the kernel's two tables.
fn holders(ipv4: &str, ipv6: &str) -> BTreeSet<String> {
    const REJECT: u32 = 0x200;
    let rejects = |flags: &str| u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & REJECT != 0);
    let mut holders = BTreeSet::new();
    for line in ipv4.lines().skip(1) {
        // Iface Destination Gateway Flags RefCnt Use Metric Mask ...
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [interface, "00000000", _, flags, _, _, _, "00000000", ..] = fields[..]
            && !rejects(flags)
        {
            holders.insert(interface.to_owned());
        }
    }
    for line in ipv6.lines() {
        // Destination Length Source Length Next Metric RefCnt Use Flags Iface
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [destination, "00", _, _, _, _, _, _, flags, interface] = fields[..]
            && destination.bytes().all(|digit| digit == b'0')
            && !rejects(flags)
        {
            holders.insert(interface.to_owned());
        }
    }
    holders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_holds_a_default_route_is_found_in_the_kernels_tables() {
        let ipv4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                    eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                    eth1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
                    eth3\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0\n";
        let zeros = "0".repeat(32);
        let ipv6 = format!(
            "{zeros} 00 {zeros} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth2\n\
             {zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200       lo\n\
             fe800000000000000000000000000000 40 {zeros} 00 {zeros} 00000100 00000001 00000000 00000001     eth1\n"
        );
        assert_eq!(Vec::from_iter(holders(ipv4, &ipv6)), ["eth0", "eth2"]);
        assert!(holders("", "nonsense\n\n").is_empty());
    }

    #[test]
    fn a_run_directory_without_daemons_has_no_link_for_any_port() {
        let folder = std::env::temp_dir().join(format!("hitless-executor-{}", std::process::id()));
        let mut host = ThisHost::new(RunDirectory::at(&folder));
        assert_eq!(host.daemon("eth1", None), Ok(None));
        assert_eq!(host.daemon("eth1", Some("hit0")), Ok(None));
        assert!(host.protect("hit0", Prob::literal(1e-3)).unwrap_err().contains("hit0"));
    }
}
