//! Hosts that are joined by cables as a graph says.
//!
//! ```text
//!   host 0: l0a ──── l0b :host 1: l1a ──── l1b :host 2
//!           l2a ────────────────────────── l2b
//! ```

use linux::net::{self, Namespace, Netlink};

/// Hosts and the cables between them. All of it ends with the program.
#[derive(Debug)]
pub struct GraphStage {
    hosts: Vec<Namespace>,
    cables: Vec<[usize; 2]>,
}

/// The interface at an end of a cable.
pub fn cable_end(cable: usize, end: usize) -> String {
    format!("l{cable}{}", if end == 0 { 'a' } else { 'b' })
}

impl GraphStage {
    /// Call it in a namespace that may be changed.
    pub fn new(hosts: usize, cables: &[[usize; 2]]) -> net::Result<Self> {
        let hosts = (0..hosts).map(|_| Namespace::new()).collect::<net::Result<Vec<_>>>()?;
        let stage = Self { hosts, cables: cables.to_vec() };
        let between = Namespace::new()?;
        between.with(|| -> net::Result<()> {
            let netlink = Netlink::open()?;
            (0..cables.len()).try_for_each(|cable| stage.lay(&netlink, cable))
        })??;
        for host in &stage.hosts {
            host.with(|| Netlink::open()?.set_loopback_up())??;
        }
        (0..cables.len()).try_for_each(|cable| stage.wait_until_running(cable))?;
        Ok(stage)
    }

    fn lay(&self, netlink: &Netlink, cable: usize) -> net::Result<()> {
        netlink.add_veth(&cable_end(cable, 0), &cable_end(cable, 1))?;
        for (end, host) in self.cables[cable].into_iter().enumerate() {
            let index = netlink.existing_link(&cable_end(cable, end))?.index;
            netlink.set_namespace(index, &self.hosts[host])?;
        }
        (0..2).try_for_each(|end| {
            self.at(cable, end, |netlink, index| {
                // Addresses of its own would greet the neighbours.
                let _ = netlink.no_ipv6_autoconf(index);
                netlink.set_up(index, true)
            })
        })
    }

    /// Does something to the interface at an end of a cable, by its index.
    fn at(
        &self,
        cable: usize,
        end: usize,
        act: impl FnOnce(&Netlink, u32) -> net::Result<()> + Send,
    ) -> net::Result<()> {
        self.hosts[self.cables[cable][end]].with(|| {
            let netlink = Netlink::open()?;
            act(&netlink, netlink.existing_link(&cable_end(cable, end))?.index)
        })?
    }

    /// Frames can pass when this returns.
    pub fn wait_until_running(&self, cable: usize) -> net::Result<()> {
        (0..2).try_for_each(|end| self.at(cable, end, |netlink, index| netlink.wait_until_running(index)))
    }

    /// Namespace of a host's interfaces.
    pub fn host(&self, host: usize) -> &Namespace {
        &self.hosts[host]
    }

    /// Cuts a cable, or joins it again: the first end is down then, the other has no carrier.
    pub fn set_cable(&self, cable: usize, joined: bool) -> net::Result<()> {
        self.at(cable, 0, |netlink, index| netlink.set_up(index, joined))
    }

    /// Takes a cable away with both its interfaces, as a driver that is unloaded does.
    pub fn remove_cable(&self, cable: usize) -> net::Result<()> {
        self.at(cable, 0, |netlink, index| netlink.delete_link(index))
    }

    /// Puts a cable back that was taken away.
    pub fn replace_cable(&self, cable: usize) -> net::Result<()> {
        Namespace::new()?.with(|| self.lay(&Netlink::open()?, cable))??;
        self.wait_until_running(cable)
    }
}
