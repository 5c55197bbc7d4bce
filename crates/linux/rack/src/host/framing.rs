//! Frames of a host on its cable: messages to the switch and from it, marks before a frame's own type.

use reserve::RackFrame;
use standin::{FramePool, PoolFrame};
use wire::ethernet::{ETHERNET, TYPE};
use wire::reserve::{DataMark, HostKey, MARK_LEN, OUI_EXTENDED, ReserveHeader, ReserveMessage};

use crate::switch::reserving::SWITCH_ADDRESS;

/// Bytes that the frame check adds.
const CHECK: u32 = 4;

/// A frame in the pool, and between whom it is.
#[derive(Debug)]
pub(super) struct HostFrame {
    pub frame: PoolFrame,
    to: Option<HostKey>,
    from: HostKey,
}

impl HostFrame {
    pub(super) fn new(frame: PoolFrame, pool: &FramePool) -> Self {
        let bytes = pool.get(&frame);
        Self { to: destination(bytes), from: address(&bytes[6..]).unwrap_or_default(), frame }
    }

    /// A second handle on the same bytes.
    pub(super) fn again(&self, pool: &mut FramePool) -> Self {
        Self { frame: pool.keep(&self.frame), to: self.to, from: self.from }
    }
}

impl RackFrame for HostFrame {
    fn len(&self) -> u32 {
        self.frame.bytes() as u32 + MARK_LEN as u32 + CHECK
    }

    fn destination(&self) -> Option<HostKey> {
        self.to
    }

    fn source(&self) -> HostKey {
        self.from
    }

    fn class(&self) -> u8 {
        0
    }
}

fn address(bytes: &[u8]) -> Option<HostKey> {
    bytes.first_chunk().map(|mac| HostKey::from_mac(*mac))
}

/// The one host that a frame is for; none for groups.
pub(super) fn destination(frame: &[u8]) -> Option<HostKey> {
    frame.first().filter(|first| *first & 1 == 0)?;
    address(frame)
}

/// A frame off the cable.
pub(super) enum FrameFromSwitch<'a> {
    /// Message for this host, from the switch.
    Message(ReserveMessage),
    /// The addresses, and what stands behind the mark.
    Marked(DataMark, [&'a [u8]; 2]),
    Unmarked(&'a [u8]),
    /// Message between others that was flooded.
    Foreign,
    /// A message for this host that does not come from the switch.
    Stranger,
    Malformed,
}

/// Reads a frame. What is of another version passes as it is.
pub(super) fn read(frame: &[u8], own: [u8; 6]) -> FrameFromSwitch<'_> {
    if frame.len() < ETHERNET {
        return FrameFromSwitch::Malformed;
    }
    if frame[TYPE..ETHERNET] != OUI_EXTENDED.to_be_bytes() {
        return FrameFromSwitch::Unmarked(frame);
    }
    match ReserveHeader::parse(&frame[ETHERNET..]) {
        Ok((ReserveHeader::Mark(mark), rest)) => FrameFromSwitch::Marked(mark, [&frame[..TYPE], rest]),
        Ok((ReserveHeader::Message(message), _)) if frame[..6] == own && frame[6..TYPE] == SWITCH_ADDRESS => {
            FrameFromSwitch::Message(message)
        }
        Ok((ReserveHeader::Message(_), _)) if frame[..6] == own => FrameFromSwitch::Stranger,
        Ok((ReserveHeader::Message(_), _)) => FrameFromSwitch::Foreign,
        Err(_) => FrameFromSwitch::Unmarked(frame),
    }
}

/// A message to the switch, into an empty buffer.
pub(super) fn write_message(own: [u8; 6], message: &ReserveMessage, frame: &mut Vec<u8>) {
    frame.extend(SWITCH_ADDRESS.iter().chain(&own).chain(&OUI_EXTENDED.to_be_bytes()));
    ReserveHeader::Message(*message).emit(frame);
}

/// Writes the bytes of a marked frame up to its own EtherType into an empty buffer.
pub(super) fn write_mark(frame: &[u8], mark: DataMark, head: &mut Vec<u8>) {
    head.extend(frame[..TYPE].iter().chain(&OUI_EXTENDED.to_be_bytes()));
    ReserveHeader::Mark(mark).emit(head);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wire::reserve::ReserveVerb;

    use super::*;
    use crate::presence::presence;

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];

    #[test]
    fn a_mark_stands_before_the_type_and_comes_off_again() {
        let frame = [&[2, 0, 0, 0, 0, 9][..], &OWN, &[8, 0, 1, 2, 3]].concat();
        let mark = DataMark { index: 3, of: 4, ..DataMark::default() };
        let mut marked = Vec::new();
        write_mark(&frame, mark, &mut marked);
        marked.extend_from_slice(&frame[TYPE..]);
        assert_eq!(marked.len(), frame.len() + MARK_LEN);
        match read(&marked, OWN) {
            FrameFromSwitch::Marked(read, parts) => assert_eq!((read, parts.concat()), (mark, frame)),
            _ => panic!("a mark"),
        }
    }

    #[test]
    fn a_message_is_read_by_the_host_that_it_is_for_and_only_from_the_switch() {
        let mut frame = Vec::new();
        write_message(OWN, &presence(7, true), &mut frame);
        assert!(matches!(read(&frame, OWN), FrameFromSwitch::Foreign));
        frame[..6].copy_from_slice(&OWN);
        frame[6..TYPE].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        assert!(matches!(read(&frame, OWN), FrameFromSwitch::Stranger));
        frame[6..TYPE].copy_from_slice(&SWITCH_ADDRESS);
        assert!(matches!(read(&frame, OWN), FrameFromSwitch::Message(message) if message.verb == ReserveVerb::Release));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_as_something(bytes in prop::collection::vec(any::<u8>(), 0..100), ours: bool) {
            let mut bytes = bytes;
            if ours && bytes.len() >= ETHERNET {
                bytes[TYPE..ETHERNET].copy_from_slice(&OUI_EXTENDED.to_be_bytes());
            }
            let parts = match read(&bytes, OWN) {
                FrameFromSwitch::Marked(_, [addresses, rest]) => addresses.len() + rest.len(),
                FrameFromSwitch::Unmarked(frame) => frame.len(),
                _ => 0,
            };
            prop_assert!(parts <= bytes.len());
        }
    }
}
