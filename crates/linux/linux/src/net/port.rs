//! Ports of bridges: their settings, and the move of a port from one interface to another.

use super::Result;
use super::link::header;
use super::netlink::{Netlink, NetlinkRequest, attribute, attributes, text};

/// The settings of a port, by `IFLA_BRPORT` number. The other attributes are state that the bridge found out.
const SETTINGS: [u16; 21] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 25, 27, 28, 29, 30, 31, 32, 33, 39, 40];

/// A setting's number and value.
pub type PortSetting = (u16, Vec<u8>);

impl Netlink {
    /// Settings of an interface as the port of a bridge; empty if it is none.
    pub fn port_settings(&self, index: u32) -> Result<Vec<PortSetting>> {
        let message = self.describe(index)?;
        let info = message.get(16..).and_then(|rest| attribute(rest, libc::IFLA_LINKINFO)).unwrap_or_default();
        if attribute(info, libc::IFLA_INFO_SLAVE_KIND).map(text).as_deref() != Some("bridge") {
            return Ok(Vec::new());
        }
        let data = attribute(info, libc::IFLA_INFO_SLAVE_DATA).unwrap_or_default();
        let settable = attributes(data).filter(|(kind, _)| SETTINGS.contains(kind));
        Ok(settable.map(|(kind, value)| (kind, value.to_vec())).collect())
    }

    /// Makes an interface the port of a bridge, with these settings.
    pub fn make_port(&self, index: u32, bridge: u32, settings: &[PortSetting]) -> Result<()> {
        self.set_master(index, Some(bridge))?;
        for (kind, value) in settings {
            let request =
                NetlinkRequest::new(libc::RTM_NEWLINK, 0, &header(index, 0, 0)).nested(libc::IFLA_LINKINFO, |info| {
                    info.string(libc::IFLA_INFO_SLAVE_KIND, "bridge")
                        .nested(libc::IFLA_INFO_SLAVE_DATA, |data| data.attribute(*kind, value))
                });
            // A setting that this kernel or this bridge refuses is as it was before, if it was never changed.
            let set = self.execute_on(index, format_args!("set attribute {kind} of bridge port"), request);
            let is_set = || Ok(self.port_settings(index)?.contains(&(*kind, value.clone())));
            if set.is_err() && !is_set()? {
                return set;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing::{in_own_namespace, quiet_pair};

    const COST: u16 = 3;
    const ISOLATED: u16 = 33;

    fn bridge(netlink: &Netlink) -> u32 {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let request = NetlinkRequest::new(libc::RTM_NEWLINK, flags, &header(0, 0, 0))
            .string(libc::IFLA_IFNAME, "br0")
            .nested(libc::IFLA_LINKINFO, |info| info.string(libc::IFLA_INFO_KIND, "bridge"));
        netlink.execute(format_args!("add bridge br0"), request).unwrap();
        netlink.existing_link("br0").unwrap().index
    }

    #[test]
    fn a_port_moves_with_what_was_set_on_it() {
        in_own_namespace(|netlink| {
            let ([old, _], [new, _]) = (quiet_pair(netlink, "old", "o"), quiet_pair(netlink, "new", "n"));
            let bridge = bridge(netlink);
            assert_eq!(netlink.port_settings(old).unwrap(), []);
            let set = [(COST, 77_u32.to_ne_bytes().to_vec()), (ISOLATED, vec![1])];
            netlink.make_port(old, bridge, &set).unwrap();
            let settings = netlink.port_settings(old).unwrap();
            assert!(set.iter().all(|setting| settings.contains(setting)), "{settings:?}");
            netlink.set_master(old, None).unwrap();
            netlink.make_port(new, bridge, &settings).unwrap();
            assert_eq!(netlink.port_settings(new).unwrap(), settings);
            let masters = ["old", "new"].map(|name| netlink.existing_link(name).unwrap().master);
            assert_eq!(masters, [None, Some(bridge)]);
        });
    }
}
