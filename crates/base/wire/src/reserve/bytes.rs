//! The same as bytes.

use units::Span;

use super::{
    ATTEMPTS, BurstId, DataMark, Demand, Grant, HostKey, MESSAGE_LEN, RESERVE_CLASSES, RESERVE_VERSION, Refusal,
    Reservation, ReserveHeader, ReserveMessage, ReserveVerb,
};

/// Bytes that are no message and no mark of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedReserve;

/// A locally administered OUI and a protocol of it.
const PREFIX: [u8; 5] = [0x02, 0x68, 0x69, 0x00, 0x02];
const LONGEST: u64 = (1 << 48) - 1;

const RSV: u8 = 0;
const GRT: u8 = 1;
const COPY: u8 = 2;
const REFUSED: u8 = 3;
const CUT: u8 = 4;
const RESET: u8 = 5;
const RELEASE: u8 = 6;
const MARK: u8 = 7;

const UNSOLICITED: u8 = 1 << 4;

impl ReserveHeader {
    /// Appends the header to `to`.
    ///
    /// # Panics
    /// If a class or an attempt has a number that does not exist.
    pub fn emit(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&PREFIX);
        match self {
            Self::Message(message) => emit_message(message, to),
            Self::Mark(mark) => emit_mark(mark, to),
        }
    }

    /// The header, and what follows it: a marked frame from its own EtherType on, or nothing.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), MalformedReserve> {
        let mut rest = bytes.strip_prefix(&PREFIX).ok_or(MalformedReserve)?;
        let [first] = take(&mut rest)?;
        if first >> 4 != RESERVE_VERSION {
            return Err(MalformedReserve);
        }
        match first & 15 {
            MARK => parse_mark(rest),
            kind if bytes.len() == MESSAGE_LEN => Ok((Self::Message(parse_message(kind, rest)?), &[])),
            _ => Err(MalformedReserve),
        }
    }
}

fn emit_message(message: &ReserveMessage, to: &mut Vec<u8>) {
    let about = &message.about;
    assert!(about.class < RESERVE_CLASSES && about.attempt < ATTEMPTS);
    let (kind, body) = match message.verb {
        ReserveVerb::Rsv => (RSV, [0; 18]),
        ReserveVerb::Grt(grant) => (GRT, emit_grant(&grant)),
        ReserveVerb::Copy(grant) => (COPY, emit_grant(&grant)),
        ReserveVerb::Refused(reason) => (REFUSED, body_of(reason as u8)),
        ReserveVerb::Cut(index) => (CUT, body_of(index)),
        ReserveVerb::Reset => (RESET, [0; 18]),
        ReserveVerb::Release => (RELEASE, [0; 18]),
    };
    to.extend_from_slice(&[RESERVE_VERSION << 4 | kind, about.class << 5 | about.attempt]);
    emit_id(about.id, about.switch_epoch, to);
    to.extend_from_slice(&about.peer.mac());
    to.push(about.demand.frames);
    to.extend_from_slice(&about.demand.bytes.to_be_bytes());
    to.extend_from_slice(&body);
}

fn emit_mark(mark: &DataMark, to: &mut Vec<u8>) {
    assert!(mark.class < RESERVE_CLASSES);
    let flags = if mark.unsolicited { UNSOLICITED } else { 0 };
    to.extend_from_slice(&[RESERVE_VERSION << 4 | MARK, mark.class << 5 | flags]);
    emit_id(mark.id, mark.switch_epoch, to);
    to.extend_from_slice(&[mark.index, mark.of]);
}

fn emit_id(id: BurstId, switch_epoch: u16, to: &mut Vec<u8>) {
    to.extend_from_slice(&id.host_epoch.to_be_bytes());
    to.extend_from_slice(&switch_epoch.to_be_bytes());
    to.extend_from_slice(&id.context.to_be_bytes());
    to.extend_from_slice(&id.burst.to_be_bytes());
}

fn emit_grant(grant: &Grant) -> [u8; 18] {
    let mut body = [0; 18];
    for (place, span) in body.chunks_exact_mut(6).zip([grant.send, grant.recv, grant.kept]) {
        place.copy_from_slice(&span.as_ps().min(LONGEST).to_be_bytes()[2..]);
    }
    body
}

fn body_of(first: u8) -> [u8; 18] {
    let mut body = [0; 18];
    body[0] = first;
    body
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], MalformedReserve> {
    let (taken, left) = rest.split_first_chunk::<N>().ok_or(MalformedReserve)?;
    *rest = left;
    Ok(*taken)
}

fn parse_id(rest: &mut &[u8]) -> Result<(BurstId, u16), MalformedReserve> {
    let host_epoch = u16::from_be_bytes(take(rest)?);
    let switch_epoch = u16::from_be_bytes(take(rest)?);
    let context = u16::from_be_bytes(take(rest)?);
    let burst = u32::from_be_bytes(take(rest)?);
    Ok((BurstId { host_epoch, context, burst }, switch_epoch))
}

fn parse_message(kind: u8, mut rest: &[u8]) -> Result<ReserveMessage, MalformedReserve> {
    let [class] = take(&mut rest)?;
    let (id, switch_epoch) = parse_id(&mut rest)?;
    let peer = HostKey::from_mac(take(&mut rest)?);
    let [frames] = take(&mut rest)?;
    let bytes = u32::from_be_bytes(take(&mut rest)?);
    let verb = parse_verb(kind, take(&mut rest)?)?;
    let demand = Demand { frames, bytes };
    let about = Reservation { id, attempt: class & 31, class: class >> 5, switch_epoch, peer, demand };
    Ok(ReserveMessage { verb, about })
}

fn parse_verb(kind: u8, body: [u8; 18]) -> Result<ReserveVerb, MalformedReserve> {
    let grant = || {
        let span = |at: usize| {
            let mut wide = [0; 8];
            wide[2..].copy_from_slice(&body[at..at + 6]);
            Span::from_ps(u64::from_be_bytes(wide))
        };
        Grant { send: span(0), recv: span(6), kept: span(12) }
    };
    let alone = body[1..] == [0; 17];
    match kind {
        GRT => Ok(ReserveVerb::Grt(grant())),
        COPY => Ok(ReserveVerb::Copy(grant())),
        CUT if alone => Ok(ReserveVerb::Cut(body[0])),
        REFUSED if alone => {
            Refusal::ALL.get(usize::from(body[0])).map(|&reason| ReserveVerb::Refused(reason)).ok_or(MalformedReserve)
        }
        RSV if body == [0; 18] => Ok(ReserveVerb::Rsv),
        RESET if body == [0; 18] => Ok(ReserveVerb::Reset),
        RELEASE if body == [0; 18] => Ok(ReserveVerb::Release),
        _ => Err(MalformedReserve),
    }
}

fn parse_mark(mut rest: &[u8]) -> Result<(ReserveHeader, &[u8]), MalformedReserve> {
    let [flags] = take(&mut rest)?;
    let (id, switch_epoch) = parse_id(&mut rest)?;
    let [index, of] = take(&mut rest)?;
    if flags & 15 != 0 {
        return Err(MalformedReserve);
    }
    let unsolicited = flags & UNSOLICITED != 0;
    Ok((ReserveHeader::Mark(DataMark { id, switch_epoch, class: flags >> 5, unsolicited, index, of }), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn about() -> Reservation {
        Reservation {
            id: BurstId { host_epoch: 0x1234, context: 11, burst: 0x89ab_cdef },
            attempt: 3,
            class: 1,
            switch_epoch: 0x4321,
            peer: HostKey::from_mac([2, 0, 0, 0, 0, 9]),
            demand: Demand { frames: 4, bytes: 6_152 },
        }
    }

    fn emitted(header: ReserveHeader) -> Vec<u8> {
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        bytes
    }

    #[test]
    fn every_message_fills_the_shortest_frame_and_reads_as_written() {
        let grant = Grant { send: Span::from_ns(5), recv: Span::from_us(7), kept: Span::from_ps(1) };
        let plain = [ReserveVerb::Rsv, ReserveVerb::Grt(grant), ReserveVerb::Copy(grant), ReserveVerb::Cut(2)];
        let others = [ReserveVerb::Reset, ReserveVerb::Release];
        let refusals = Refusal::ALL.map(ReserveVerb::Refused);
        for verb in plain.into_iter().chain(others).chain(refusals) {
            let header = ReserveHeader::Message(ReserveMessage { verb, about: about() });
            let bytes = emitted(header);
            assert_eq!(bytes.len(), MESSAGE_LEN, "{verb:?}");
            assert_eq!(ReserveHeader::parse(&bytes), Ok((header, &[][..])), "{verb:?}");
            assert_eq!(ReserveHeader::parse(&bytes[..45]), Err(MalformedReserve), "{verb:?} cut short");
        }
    }

    #[test]
    fn a_mark_stands_before_the_frames_own_type() {
        let about = about();
        let mark = DataMark { id: about.id, switch_epoch: 9, class: 7, unsolicited: true, index: 1, of: 3 };
        let mut bytes = emitted(ReserveHeader::Mark(mark));
        assert_eq!(bytes.len() + 2, super::super::MARK_LEN);
        bytes.extend_from_slice(&[0x08, 0x00, 0x45]);
        assert_eq!(ReserveHeader::parse(&bytes), Ok((ReserveHeader::Mark(mark), &[0x08, 0x00, 0x45][..])));
    }

    #[test]
    fn a_wait_beyond_four_minutes_is_written_as_the_longest_one() {
        let grant = Grant { send: Span::from_ps(u64::MAX), ..Grant::default() };
        let bytes = emitted(ReserveHeader::Message(ReserveMessage { verb: ReserveVerb::Grt(grant), about: about() }));
        let Ok((ReserveHeader::Message(read), _)) = ReserveHeader::parse(&bytes) else { panic!("unreadable") };
        assert_eq!(read.verb, ReserveVerb::Grt(Grant { send: Span::from_ps(LONGEST), ..Grant::default() }));
    }

    proptest! {
        /// Whatever is accepted is what would be written; nothing panics.
        #[test]
        fn accepted_bytes_are_those_that_would_be_written(tail in prop::collection::vec(any::<u8>(), 0..64), kind in 0u8..9) {
            let mut bytes = PREFIX.to_vec();
            bytes.push(RESERVE_VERSION << 4 | kind);
            bytes.extend(tail);
            for bytes in [&bytes[..], &bytes[..bytes.len().min(MESSAGE_LEN)], &bytes[5..]] {
                if let Ok((header, rest)) = ReserveHeader::parse(bytes) {
                    let mut again = emitted(header);
                    again.extend_from_slice(rest);
                    prop_assert_eq!(&again, bytes);
                }
            }
        }
    }
}
