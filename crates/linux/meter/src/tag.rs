//! Frames of a protected link (`link::frame`), as somebody sees them who stands beside it.
//!
//! The number of a frame shows two meters how far the other has seen, without clocks. The seal is not checked, only
//! passed over: what lies behind it shows which of the three it is.

use wire::ethernet::{ETHERNET, TYPE};
use wire::layers::Layers;
use wire::link::{Class, Epoch, FrameKind, LinkHeader, OWN, SEALED_BARE, WHOLE};

/// Lengths of the seals that there are.
const SEALS: [usize; 3] = [0, 4, 16];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TaggedFrame<'a> {
    /// Number of a frame that is sent in the order of its numbers; `None` for one that is sent again.
    pub number: Option<FrameNumber>,
    /// Packet from the IP header on; `None` if the frame carries no IP packet.
    pub packet: Option<&'a [u8]>,
}

/// A place in the sequence of one class, in one incarnation of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameNumber {
    class: Class,
    epoch: Epoch,
    /// The number and its era.
    value: u32,
}

/// `None` for a frame that is no protected link's. `len` is how long it was, of which `bytes` may be the beginning.
pub(crate) fn inside(bytes: &[u8], len: usize) -> Option<TaggedFrame<'_>> {
    let kind = u16::from_be_bytes(*bytes.get(12..)?.first_chunk()?);
    if kind != OWN && kind != WHOLE {
        return None;
    }
    let rest = &bytes[ETHERNET..];
    let cut = len.saturating_sub(bytes.len());
    if rest.first() == Some(&SEALED_BARE) {
        return Some(TaggedFrame { number: None, packet: packet(kind, rest, 17, cut) });
    }
    let (header, at) = LinkHeader::parse(rest).ok()?;
    let number = match header.kind() {
        FrameKind::Data(class, seq) | FrameKind::Dummy(class, seq) => {
            let value = u32::from(seq.number()) | u32::from(seq.era()) << 16;
            Some(FrameNumber { class, epoch: header.epoch(), value })
        }
        FrameKind::Retransmission(..)
        | FrameKind::Plain
        | FrameKind::Ack
        | FrameKind::Notice
        | FrameKind::Session
        | FrameKind::Bare => None,
    };
    let mut places = SEALS.iter().map(|seal| packet(kind, rest, at + seal, cut));
    let packet = if header.has_body() { places.find_map(|found| found) } else { None };
    Some(TaggedFrame { number, packet })
}

/// The IP packet of a frame that would begin there; `None` if there is none.
fn packet(kind: u16, rest: &[u8], at: usize, cut: usize) -> Option<&[u8]> {
    let frame = rest.get(at..)?;
    let ip = Layers::from_type(frame, if kind == WHOLE { TYPE } else { 0 })?.ip?;
    (ip.end() <= frame.len() + cut).then(|| &frame[ip.at..])
}

/// The latest numbers of the two batches that are open. A frame of the second may be looked at before the first is over, and
/// its number does not belong there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchNumbers {
    first: LatestNumber,
    second: Option<LatestNumber>,
}

impl BatchNumbers {
    /// Number of the second batch if `is_second`, else of the first.
    pub(crate) fn of(&mut self, is_second: bool) -> &mut LatestNumber {
        let Self { first, second } = self;
        if is_second { second.get_or_insert(LatestNumber { broken: false, ..*first }) } else { first }
    }

    /// The first is over: what it ends with.
    pub(crate) fn over(&mut self) -> Option<u32> {
        let number = self.first.of_batch();
        self.first = self.second.take().unwrap_or(self.first);
        number
    }
}

/// The latest number that passed, as long as it speaks for every packet before it: a packet without one, or one that is
/// sent again, may still be on its way when the number has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LatestNumber {
    number: Option<FrameNumber>,
    /// Numbers began anew in this batch, by another incarnation or another class.
    broken: bool,
}

impl LatestNumber {
    pub(crate) fn on_number(&mut self, number: FrameNumber) {
        let is_next = |before: FrameNumber| (before.class, before.epoch) == (number.class, number.epoch);
        self.broken |= !self.number.is_none_or(is_next);
        self.number = Some(number);
    }

    /// A packet without a number of its own.
    pub(crate) fn on_other(&mut self) {
        self.number = None;
    }

    /// Number with which a batch ends.
    fn of_batch(&mut self) -> Option<u32> {
        let broken = std::mem::take(&mut self.broken);
        self.number.filter(|_| !broken).map(|number| number.value)
    }
}

#[cfg(test)]
mod tests {
    use wire::Seq;

    use super::*;
    use link::frame::{Framing, Mac};
    use link::seal::Seal;

    const HERE: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const THERE: Mac = Mac([2, 0, 0, 0, 0, 2]);

    fn header(kind: FrameKind) -> LinkHeader {
        LinkHeader::new(Epoch::new(1), kind, None)
    }

    fn data(number: u16) -> FrameKind {
        FrameKind::Data(Class::Ordered, Seq::new(number, false))
    }

    /// An IPv4 packet in a frame, with an identification of its own.
    fn frame(from: Mac) -> Vec<u8> {
        let packet = [&[0x45, 0, 0, 60, 0x12, 0x34, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2][..], &[7; 40]];
        [&THERE.0[..], &from.0, &[8, 0], &packet.concat()].concat()
    }

    fn on_wire(seal: Seal, kind: FrameKind, body: &[u8]) -> Vec<u8> {
        let emitted = Framing::new(HERE, Some(THERE), seal).emit(&header(kind), Some(body));
        [&emitted.head[..emitted.head_len], &body[emitted.skip..], &vec![0; emitted.padding]].concat()
    }

    #[test]
    fn the_packet_is_found_behind_any_seal_whoever_sent_it_and_also_in_a_beginning() {
        for seal in [Seal::None, Seal::Crc, Seal::keyed([3; 16], 1)] {
            for from in [HERE, Mac([2, 9, 9, 9, 9, 9])] {
                let body = frame(from);
                let sent = on_wire(seal.clone(), data(7), &body);
                for kept in [sent.len(), sent.len() - 20] {
                    let tagged = inside(&sent[..kept], sent.len()).unwrap();
                    assert_eq!(tagged.number.unwrap().value, 7);
                    assert_eq!(tagged.packet.unwrap()[..20], body[14..34]);
                }
            }
        }
        let bare = on_wire(Seal::keyed([3; 16], 1), FrameKind::Bare, &frame(HERE));
        assert_eq!(inside(&bare, bare.len()).unwrap().packet.unwrap()[..20], frame(HERE)[14..34]);
    }

    #[test]
    fn a_frame_of_another_kind_is_no_links() {
        let plain = frame(HERE);
        assert_eq!(inside(&plain, plain.len()), None);
        let sent = on_wire(Seal::None, data(7), &plain);
        assert!((0..15).all(|len| inside(&sent[..len], len).is_none()));
        assert!((15..sent.len()).all(|len| inside(&sent[..len], len).is_none_or(|tagged| tagged.packet.is_none())));
    }

    #[test]
    fn a_number_belongs_to_its_batch_though_the_one_before_is_still_open() {
        let number = |value| FrameNumber { class: Class::Ordered, epoch: Epoch::new(1), value };
        let mut numbers = BatchNumbers::default();
        numbers.of(false).on_number(number(5));
        numbers.of(true).on_number(number(6));
        assert_eq!([(); 3].map(|()| numbers.over()), [Some(5), Some(6), Some(6)]);
        numbers.of(true).on_other();
        assert_eq!([(); 2].map(|()| numbers.over()), [Some(6), None]);
    }

    #[test]
    fn a_number_speaks_only_for_what_came_before_it_in_the_same_life() {
        let mut latest = LatestNumber::default();
        let number = |epoch, value| FrameNumber { class: Class::Ordered, epoch: Epoch::new(epoch), value };
        latest.on_number(number(1, 5));
        assert_eq!((latest.of_batch(), latest.of_batch()), (Some(5), Some(5)), "a quiet batch repeats it");
        latest.on_other();
        assert_eq!(latest.of_batch(), None);
        latest.on_number(number(1, 6));
        latest.on_number(number(2, 0));
        assert_eq!((latest.of_batch(), latest.of_batch()), (None, Some(0)));
    }
}
