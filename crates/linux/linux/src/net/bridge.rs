//! Bridges: making one, what it has learnt, and its forgetting.

use super::Result;
use super::link::header;
use super::netlink::{Netlink, NetlinkRequest, attribute, u16_at, u32_at};

/// `IFLA_BR_GROUP_FWD_MASK`, and all of the reserved addresses that it may name.
const GROUP_FORWARD_MASK: u16 = 9;
const ALL_RESERVED: u16 = 0xfff8;
/// `IFLA_BR_FDB_FLUSH`.
const FLUSH: u16 = 21;
/// `IFLA_BRPORT_LEARNING`.
const LEARNING: u16 = 8;
/// Length of `ndmsg`.
const NEIGHBOUR_HEADER: usize = 12;

impl Netlink {
    /// Makes a bridge without ports; its index. `passes_reserved` if it is to pass on, against the standard, frames to the
    /// addresses that bridges keep to themselves.
    pub fn add_bridge(&self, name: &str, passes_reserved: bool) -> Result<u32> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mask = if passes_reserved { ALL_RESERVED } else { 0 };
        let request = NetlinkRequest::new(libc::RTM_NEWLINK, flags, &header(0, 0, 0))
            .string(libc::IFLA_IFNAME, name)
            .nested(libc::IFLA_LINKINFO, |info| {
                info.string(libc::IFLA_INFO_KIND, "bridge")
                    .nested(libc::IFLA_INFO_DATA, |data| data.attribute(GROUP_FORWARD_MASK, &mask.to_ne_bytes()))
            });
        self.execute(format_args!("add bridge {name}"), request)?;
        Ok(self.existing_link(name)?.index)
    }

    /// Makes an interface the port of a bridge that learns no address there and so passes on to all what comes for it.
    pub fn make_hub_port(&self, index: u32, bridge: u32) -> Result<()> {
        self.make_port(index, bridge, &[(LEARNING, vec![0])])
    }

    /// Makes a bridge forget what it has learnt, as a change of topology does.
    pub fn flush_bridge(&self, bridge: u32) -> Result<()> {
        let request =
            NetlinkRequest::new(libc::RTM_NEWLINK, 0, &header(bridge, 0, 0)).nested(libc::IFLA_LINKINFO, |info| {
                info.string(libc::IFLA_INFO_KIND, "bridge")
                    .nested(libc::IFLA_INFO_DATA, |data| data.attribute(FLUSH, &[]))
            });
        self.execute_on(bridge, format_args!("flush the table of"), request)
    }

    /// The addresses that a bridge has learnt.
    pub fn learnt(&self, bridge: u32) -> Result<Vec<[u8; 6]>> {
        let mut wanted = [0; NEIGHBOUR_HEADER];
        wanted[0] = libc::AF_BRIDGE as u8;
        let request = NetlinkRequest::new(libc::RTM_GETNEIGH, libc::NLM_F_DUMP, &wanted);
        let answers = self.execute(format_args!("list what interface {bridge} has learnt"), request)?;
        let entry = |message: &Vec<u8>| {
            let is_own = u16_at(message, 8)? & libc::NUD_PERMANENT != 0;
            let rest = message.get(NEIGHBOUR_HEADER..).filter(|_| !is_own)?;
            let master = u32_at(attribute(rest, libc::NDA_MASTER)?, 0)?;
            (master == bridge).then_some(attribute(rest, libc::NDA_LLADDR)?.try_into().ok()?)
        };
        Ok(answers.iter().filter_map(entry).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use crate::net::testing::{in_own_namespace, quiet_pair};
    use crate::packet::{PacketSocket, PacketSocketOptions};

    #[test]
    fn a_bridge_learns_where_a_frame_came_from_and_forgets_it_and_a_hub_does_not_learn() {
        in_own_namespace(|netlink| {
            let ([port, host], [hub_port, hub_host]) =
                (quiet_pair(netlink, "p0", "h0"), quiet_pair(netlink, "p1", "h1"));
            let bridges = [netlink.add_bridge("br0", false).unwrap(), netlink.add_bridge("br1", true).unwrap()];
            netlink.set_master(port, Some(bridges[0])).unwrap();
            netlink.make_hub_port(hub_port, bridges[1]).unwrap();
            for bridge in bridges {
                netlink.no_ipv6_autoconf(bridge).unwrap();
                netlink.set_up(bridge, true).unwrap();
            }
            let frame = [&[2, 0, 0, 0, 0, 9][..], &[2, 0, 0, 0, 0, 1], &[0x12, 0x34], &[0; 46]].concat();
            let options = PacketSocketOptions {
                vnet: false,
                longest: 1_514,
                frames: 8,
                send_buffer: 4_096,
                promiscuous: false,
                outgoing_too: false,
            };
            for host in [host, hub_host] {
                netlink.wait_until_running(host).unwrap();
                let mut socket = PacketSocket::open(host, &options).unwrap();
                socket.send_one(&[IoSlice::new(&frame)]).unwrap();
            }
            let learnt = || bridges.map(|bridge| netlink.learnt(bridge).unwrap());
            let nothing = Vec::<[u8; 6]>::new;
            assert_eq!(learnt(), [vec![[2, 0, 0, 0, 0, 1]], nothing()]);
            netlink.flush_bridge(bridges[0]).unwrap();
            assert_eq!(learnt(), [nothing(), nothing()]);
        });
    }
}
