//! Classification of a frame by a switch: its destination, its source and its urgency.

use wire::ethernet::{ETHERNET, TYPE, is_tag};

/// An Ethernet address.
pub(super) type HostAddress = [u8; 6];

/// Pause frames and other messages between a card and its port (IEEE 802.3, 31): they end at the port.
const MAC_CONTROL: u16 = 0x8808;
/// 802.1p priorities from this one on are the urgent class: voice, video and control as IEEE 802.1Q names them.
const URGENT_FROM: u8 = 4;

/// The two classes that a port serves, the urgent one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrafficClass {
    Urgent = 0,
    Bulk = 1,
}

/// The parts of a frame's header that a switch decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SwitchHeader {
    pub to: HostAddress,
    pub from: HostAddress,
    pub class: TrafficClass,
    /// True if the frame ends at the port that received it.
    pub is_port_control: bool,
}

impl SwitchHeader {
    /// Reads the header. `None` if the bytes are no Ethernet frame: too short, or from a group address. A frame of a port whose
    /// priorities are not trusted is bulk.
    pub(super) fn of(frame: &[u8], trusts_priority: bool) -> Option<Self> {
        let (to, rest) = frame.get(..ETHERNET)?.split_first_chunk()?;
        let (from, _) = rest.split_first_chunk()?;
        if is_group(from) || *from == [0; 6] {
            return None;
        }
        let ethertype = u16::from_be_bytes([frame[TYPE], frame[TYPE + 1]]);
        let priority = frame.get(ETHERNET).filter(|_| trusts_priority && is_tag(ethertype)).map_or(0, |tag| tag >> 5);
        let class = if priority >= URGENT_FROM { TrafficClass::Urgent } else { TrafficClass::Bulk };
        Some(Self { to: *to, from: *from, class, is_port_control: ethertype == MAC_CONTROL })
    }

    /// True for a frame to more than one host: broadcast and multicast.
    pub(super) fn is_to_group(&self) -> bool {
        is_group(&self.to)
    }
}

fn is_group(address: &HostAddress) -> bool {
    address[0] & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(from: u8, rest: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 9, from, 0, 0, 0, 0, 1], rest].concat()
    }

    fn class(rest: &[u8]) -> TrafficClass {
        SwitchHeader::of(&frame(2, rest), true).unwrap().class
    }

    #[test]
    fn a_priority_counts_only_where_it_is_trusted() {
        let tagged = frame(2, &[0x81, 0x00, 7 << 5, 7]);
        assert_eq!(SwitchHeader::of(&tagged, false).unwrap().class, TrafficClass::Bulk);
        assert_eq!(SwitchHeader::of(&tagged, true).unwrap().class, TrafficClass::Urgent);
    }

    #[test]
    fn the_class_is_that_of_the_outer_tag() {
        assert_eq!(class(&[0x08, 0x00, 0xff, 0xff]), TrafficClass::Bulk);
        assert_eq!(class(&[0x81, 0x00, 3 << 5, 7]), TrafficClass::Bulk);
        assert_eq!(class(&[0x81, 0x00, 4 << 5, 7]), TrafficClass::Urgent);
        assert_eq!(class(&[0x88, 0xa8, 7 << 5, 7]), TrafficClass::Urgent);
        assert_eq!(class(&[0x81, 0x00]), TrafficClass::Bulk, "a tag that is cut off");
    }

    #[test]
    fn a_frame_without_a_header_or_from_a_group_is_none() {
        assert_eq!(SwitchHeader::of(&frame(2, &[8]), true), None);
        assert_eq!(SwitchHeader::of(&frame(3, &[8, 0]), true), None);
        assert_eq!(SwitchHeader::of(&[0; 60], true), None);
        assert!(SwitchHeader::of(&frame(2, &[0x88, 0x08]), true).unwrap().is_port_control);
    }
}
