//! Counters of ports: the statistics that every driver gives the same names (IEEE 802.3 clause 30, through the `ethtool`
//! family of generic netlink), and those that every interface has.
//!
//! A driver that does not keep a counter leaves it out of the answer; here it is `None`, which is not zero. Parsing is
//! apart from asking, so that it can be tried on any bytes.

use super::link::InterfaceInfo;
use super::netlink::{GENERIC_HEADER, Netlink, NetlinkRequest, attribute, attributes, text, u16_at, u32_at, u64_at};
use super::{Result, StandInMark};

/// Standard statistics of one port, as far as its driver keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StandardStatistics {
    /// aFramesReceivedOK: good ones alone.
    pub frames_received_ok: Option<u64>,
    /// aFrameCheckSequenceErrors.
    pub frame_check_sequence_errors: Option<u64>,
    /// aSymbolErrorDuringCarrier.
    pub symbol_errors_during_carrier: Option<u64>,
    /// Blocks that forward error correction repaired, and those that it could not.
    pub fec_corrected: Option<u64>,
    pub fec_uncorrectable: Option<u64>,
}

/// A connection to the kernel's `ethtool` family, in the namespace in which it was opened.
#[derive(Debug)]
pub struct EthtoolSocket {
    connection: Netlink,
    family: u16,
}

const VERSION: u8 = 1;
/// Commands since Linux 5.13, both.
const GET_STATISTICS: u8 = 32;
const GET_FEC: u8 = 29;

/// `ETHTOOL_A_HEADER_*`.
const HEADER_INDEX: u16 = 1;
const HEADER_FLAGS: u16 = 3;
const WITH_STATISTICS: u32 = 1 << 2;

/// `ETHTOOL_A_BITSET_*`.
const BITSET_NO_MASK: u16 = 1;
const BITSET_SIZE: u16 = 2;
const BITSET_VALUE: u16 = 4;

/// `ETHTOOL_A_STATS_*`: the request's header, the groups asked for, and a group in the answer.
const STATISTICS_HEADER: u16 = 2;
const GROUPS: u16 = 3;
const GROUP: u16 = 4;
const GROUP_ID: u16 = 2;
const GROUP_COUNTER: u16 = 4;

const ETH_PHY: u32 = 0;
const ETH_MAC: u32 = 1;
const ALL_GROUPS: u32 = 1 << ETH_PHY | 1 << ETH_MAC;
const PHY_SYMBOL_ERRORS: u16 = 0;
const MAC_FRAMES_RECEIVED_OK: u16 = 3;
const MAC_FRAME_CHECK_SEQUENCE_ERRORS: u16 = 4;

/// `ETHTOOL_A_FEC_*`.
const FEC_HEADER: u16 = 1;
const FEC_STATISTICS: u16 = 5;
const FEC_CORRECTED: u16 = 2;
const FEC_UNCORRECTABLE: u16 = 3;

impl EthtoolSocket {
    /// Opens the socket. `None` if the kernel is older than the family, which came with Linux 5.6.
    pub fn open() -> Result<Option<Self>> {
        let connection = Netlink::open_for(libc::NETLINK_GENERIC)?;
        Ok(connection.family("ethtool")?.map(|family| Self { connection, family }))
    }

    pub fn standard(&self, index: u32) -> Result<StandardStatistics> {
        let groups = self.request(GET_STATISTICS, STATISTICS_HEADER, index, 0).nested(GROUPS, |set| {
            set.attribute(BITSET_NO_MASK, &[])
                .number(BITSET_SIZE, ALL_GROUPS.ilog2() + 1)
                .number(BITSET_VALUE, ALL_GROUPS)
        });
        let fec = self.request(GET_FEC, FEC_HEADER, index, WITH_STATISTICS);
        let mut standard = StandardStatistics::default();
        self.answers(index, groups)?.iter().for_each(|answer| standard.add_groups(answer));
        self.answers(index, fec)?.iter().for_each(|answer| standard.add_fec(answer));
        Ok(standard)
    }

    fn request(&self, command: u8, header: u16, index: u32, flags: u32) -> NetlinkRequest {
        NetlinkRequest::generic(self.family, command, VERSION)
            .nested(header, |header| header.number(HEADER_INDEX, index).number(HEADER_FLAGS, flags))
    }

    /// An interface, or a kernel, that cannot say this has said nothing.
    fn answers(&self, index: u32, request: NetlinkRequest) -> Result<Vec<Vec<u8>>> {
        match self.connection.execute(format_args!("read the statistics of interface {index}"), request) {
            Err(error) if error.is_any_of(&[libc::EOPNOTSUPP]) => Ok(Vec::new()),
            result => result,
        }
    }
}

impl StandardStatistics {
    /// Takes in an answer to a request for groups of statistics, without its netlink header.
    fn add_groups(&mut self, answer: &[u8]) {
        let groups = attributes(answer.get(GENERIC_HEADER..).unwrap_or_default()).filter(|(kind, _)| *kind == GROUP);
        for (_, group) in groups {
            let Some(id) = attribute(group, GROUP_ID).and_then(|id| u32_at(id, 0)) else { continue };
            // Each counter is nested in an attribute of its own.
            for (_, counter) in attributes(group).filter(|(kind, _)| *kind == GROUP_COUNTER) {
                for (kind, value) in attributes(counter) {
                    let place = match (id, kind) {
                        (ETH_PHY, PHY_SYMBOL_ERRORS) => &mut self.symbol_errors_during_carrier,
                        (ETH_MAC, MAC_FRAMES_RECEIVED_OK) => &mut self.frames_received_ok,
                        (ETH_MAC, MAC_FRAME_CHECK_SEQUENCE_ERRORS) => &mut self.frame_check_sequence_errors,
                        _ => continue,
                    };
                    *place = u64_at(value, 0);
                }
            }
        }
    }

    /// Takes in an answer to a request for error correction, without its netlink header.
    fn add_fec(&mut self, answer: &[u8]) {
        let found = attribute(answer.get(GENERIC_HEADER..).unwrap_or_default(), FEC_STATISTICS);
        let statistics = found.unwrap_or_default();
        // The total comes first, what each lane had behind it.
        let total = |kind| attribute(statistics, kind).and_then(|values| u64_at(values, 0));
        (self.fec_corrected, self.fec_uncorrectable) = (total(FEC_CORRECTED), total(FEC_UNCORRECTABLE));
    }
}

/// An interface as one who watches ports wants to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInfo {
    pub index: u32,
    /// The port's own name, also while a stand-in has it.
    pub name: String,
    /// Name of the interface in the kernel.
    pub device: String,
    /// True if frames go in and out through a connector of its own: no loopback, no bridge, no tunnel, no veth.
    pub physical: bool,
    /// Switched on by a person.
    pub up: bool,
    pub carrier: bool,
    /// Good frames, and those with a wrong check sum, as `/sys/class/net` shows them too.
    pub rx_packets: Option<u64>,
    pub rx_crc_errors: Option<u64>,
}

/// Length of `ifinfomsg`.
const LINK_HEADER: usize = 16;
/// Places in `rtnl_link_stats64`.
const RX_PACKETS: usize = 0;
const RX_CRC_ERRORS: usize = 12;

impl Netlink {
    /// All interfaces, with what every interface counts. One that lent its name to a stand-in has it here, and the stand-in its
    /// own.
    pub fn ports(&self) -> Result<Vec<PortInfo>> {
        let request = NetlinkRequest::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &[0; LINK_HEADER]);
        let answers = self.execute(format_args!("list interfaces"), request)?;
        let mut ports: Vec<PortInfo> = answers.iter().filter_map(|message| PortInfo::parse(message)).collect();
        let links = answers.iter().filter_map(|message| InterfaceInfo::parse(message));
        for (stand_in, mark) in links.filter_map(|link| Some((link.index, StandInMark::of(&link)?))) {
            for port in &mut ports {
                if Some(port.index) == mark.wire {
                    port.name.clone_from(&mark.interface);
                } else if let Some(own_name) = mark.own_name.as_ref().filter(|_| port.index == stand_in) {
                    port.name.clone_from(own_name);
                }
            }
        }
        Ok(ports)
    }
}

impl PortInfo {
    fn parse(message: &[u8]) -> Option<Self> {
        let (hardware, flags, rest) = (u16_at(message, 2)?, u32_at(message, 8)?, message.get(LINK_HEADER..)?);
        let info = attribute(rest, libc::IFLA_LINKINFO).unwrap_or_default();
        let made_of_software = match attribute(info, libc::IFLA_INFO_KIND).map(text) {
            // Ports of a switch chip: connectors, though the interfaces are made by a driver in their stead.
            Some(kind) => kind != "dsa",
            None => flags & libc::IFF_LOOPBACK as u32 != 0,
        };
        let counters = attribute(rest, libc::IFLA_STATS64);
        let counter = |position: usize| counters.and_then(|counters| u64_at(counters, 8 * position));
        let device = text(attribute(rest, libc::IFLA_IFNAME)?);
        Some(Self {
            index: u32_at(message, 4)?,
            name: device.clone(),
            device,
            physical: hardware == libc::ARPHRD_ETHER && !made_of_software,
            up: flags & libc::IFF_UP as u32 != 0,
            carrier: attribute(rest, libc::IFLA_CARRIER) == Some(&[1]),
            rx_packets: counter(RX_PACKETS),
            rx_crc_errors: counter(RX_CRC_ERRORS),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::netlink::push;
    use super::*;
    use crate::net::testing::{in_own_namespace, quiet_pair};

    fn nested(parts: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        parts.iter().for_each(|(kind, value)| push(&mut bytes, *kind, value));
        bytes
    }

    fn counter(kind: u16, value: u64) -> (u16, Vec<u8>) {
        (GROUP_COUNTER, nested(&[(kind, value.to_ne_bytes().to_vec())]))
    }

    fn group(id: u32, counters: &[(u16, Vec<u8>)]) -> (u16, Vec<u8>) {
        let head = [(GROUP_ID, id.to_ne_bytes().to_vec()), (3, 17_u32.to_ne_bytes().to_vec())];
        (GROUP, nested(&[&head, counters].concat()))
    }

    fn answer(command: u8, parts: &[(u16, Vec<u8>)]) -> Vec<u8> {
        [vec![command, VERSION, 0, 0], nested(parts)].concat()
    }

    fn header() -> Vec<u8> {
        nested(&[(HEADER_INDEX, 2_u32.to_ne_bytes().to_vec()), (2, b"eth0\0".to_vec())])
    }

    /// Answer of a card that has all of them, with counters that nobody asked for in between.
    fn full() -> Vec<u8> {
        let mac = [
            counter(0, 77),
            counter(MAC_FRAMES_RECEIVED_OK, 123_456_789_012),
            counter(MAC_FRAME_CHECK_SEQUENCE_ERRORS, 42),
        ];
        let groups = [group(ETH_PHY, &[counter(PHY_SYMBOL_ERRORS, 7)]), group(ETH_MAC, &mac)];
        answer(GET_STATISTICS, &[&[(STATISTICS_HEADER, header())], &groups[..]].concat())
    }

    fn fec() -> Vec<u8> {
        let lanes = |values: &[u64]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>();
        let statistics = nested(&[(FEC_CORRECTED, lanes(&[30, 10, 20])), (FEC_UNCORRECTABLE, lanes(&[3]))]);
        answer(GET_FEC, &[(FEC_HEADER, header()), (4, vec![0; 4]), (FEC_STATISTICS, statistics)])
    }

    #[test]
    fn every_counter_of_a_full_answer_finds_its_place() {
        let mut standard = StandardStatistics::default();
        standard.add_groups(&full());
        standard.add_fec(&fec());
        let expected = StandardStatistics {
            frames_received_ok: Some(123_456_789_012),
            frame_check_sequence_errors: Some(42),
            symbol_errors_during_carrier: Some(7),
            fec_corrected: Some(30),
            fec_uncorrectable: Some(3),
        };
        assert_eq!(standard, expected);
    }

    #[test]
    fn a_counter_that_is_left_out_is_none_and_not_zero() {
        let mut standard = StandardStatistics::default();
        let mac = group(ETH_MAC, &[counter(MAC_FRAME_CHECK_SEQUENCE_ERRORS, 0)]);
        standard.add_groups(&answer(GET_STATISTICS, &[group(ETH_PHY, &[]), mac]));
        standard.add_fec(&answer(GET_FEC, &[(FEC_HEADER, header())]));
        assert_eq!(
            standard,
            StandardStatistics { frame_check_sequence_errors: Some(0), ..StandardStatistics::default() }
        );
    }

    #[test]
    fn an_answer_cut_short_anywhere_never_panics_and_invents_nothing() {
        let (full, fec) = (full(), fec());
        for len in 0..full.len().max(fec.len()) {
            let mut standard = StandardStatistics::default();
            standard.add_groups(&full[..len.min(full.len())]);
            standard.add_fec(&fec[..len.min(fec.len())]);
            assert!(standard.frames_received_ok.is_none_or(|frames| frames == 123_456_789_012));
            assert!(standard.fec_corrected.is_none_or(|blocks| blocks == 30));
        }
        let mut standard = StandardStatistics::default();
        standard.add_groups(&[0xff; 64]);
        standard.add_fec(&[0xff; 64]);
        assert_eq!(standard, StandardStatistics::default());
    }

    #[test]
    fn a_veth_keeps_no_standard_statistics_and_a_missing_interface_is_an_error() {
        in_own_namespace(|netlink| {
            netlink.add_veth("w0", "x0").unwrap();
            let ethtool = EthtoolSocket::open().unwrap().expect("the family ethtool, which kernels since 5.6 have");
            let index = netlink.existing_link("w0").unwrap().index;
            assert_eq!(ethtool.standard(index).unwrap(), StandardStatistics::default());
            assert_eq!(ethtool.standard(77).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        });
    }

    #[test]
    fn a_family_that_the_kernel_does_not_have_is_none() {
        in_own_namespace(|_| {
            let connection = Netlink::open_for(libc::NETLINK_GENERIC).unwrap();
            assert_eq!(connection.family("no-such-family").unwrap(), None);
        });
    }

    #[test]
    fn a_port_that_lent_its_name_has_its_own_and_so_has_the_stand_in() {
        in_own_namespace(|netlink| {
            let [wire, _] = quiet_pair(netlink, "w0", "x0");
            let [stand_in, _] = quiet_pair(netlink, "hit0", "far");
            netlink.rename(wire, "w0w").unwrap();
            netlink.rename(stand_in, "w0").unwrap();
            netlink.set_alias(stand_in, &format!("hitless stand-in for w0 (interface {wire}, own name hit0)")).unwrap();
            let ports = netlink.ports().unwrap();
            let of = |index: u32| ports.iter().find(|port| port.index == index).unwrap();
            assert_eq!((of(wire).name.as_str(), of(wire).device.as_str()), ("w0", "w0w"));
            assert_eq!((of(stand_in).name.as_str(), of(stand_in).device.as_str()), ("hit0", "w0"));
        });
    }

    #[test]
    fn neither_a_veth_nor_the_loopback_is_a_physical_port() {
        in_own_namespace(|netlink| {
            quiet_pair(netlink, "w0", "x0");
            let ports = netlink.ports().unwrap();
            let find = |name: &str| ports.iter().find(|port| port.name == name).unwrap();
            assert!(!find("w0").physical && !find("lo").physical);
            assert!(find("w0").up && find("w0").carrier && !find("lo").up);
            assert_eq!((find("w0").rx_packets, find("w0").rx_crc_errors), (Some(0), Some(0)));
        });
    }

    #[test]
    fn a_card_is_a_port_and_so_is_one_of_a_switch_chip() {
        let message = |hardware: u16, flags: i32, kind: Option<&str>| {
            let mut header = [0; LINK_HEADER];
            header[2..4].copy_from_slice(&hardware.to_ne_bytes());
            header[8..12].copy_from_slice(&(flags as u32).to_ne_bytes());
            let info = kind.map(|kind| (libc::IFLA_LINKINFO, nested(&[(libc::IFLA_INFO_KIND, kind.into())])));
            let parts = [vec![(libc::IFLA_IFNAME, b"p1\0".to_vec())], info.into_iter().collect()].concat();
            PortInfo::parse(&[header.to_vec(), nested(&parts)].concat()).unwrap()
        };
        let ether = libc::ARPHRD_ETHER;
        assert!(message(ether, libc::IFF_UP, None).physical);
        assert!(message(ether, 0, Some("dsa")).physical);
        assert!(!message(ether, 0, Some("bridge")).physical);
        assert!(!message(ether, libc::IFF_LOOPBACK, None).physical);
        assert!(!message(libc::ARPHRD_TUNNEL, 0, None).physical);
        assert_eq!(message(ether, 0, None).rx_crc_errors, None);
    }
}
