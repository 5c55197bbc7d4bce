//! Segments of scripts against those of our TCP, whose streams begin at 0 and whose windows are bytes.

use tcp::{Sack, SegmentFlags, TcpSegment};
use wire::ip::Ecn;

use super::handshake::ticks;
use crate::segment::{DrillSegment, EcnField, HeaderOption, TcpFlags};
use units::Time;

/// Agreement of both sides, as far as it shows in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentMap {
    /// Sequence number of the other side's SYN.
    pub(super) peer_first: u32,
    pub(super) own_shift: u8,
    pub(super) peer_shift: u8,
    pub(super) timestamps: bool,
}

/// Position of a script's number in a stream; a number before the stream's start wraps.
fn position(number: u32, first: u32) -> u64 {
    i64::from(number.wrapping_sub(first).wrapping_sub(1) as i32) as u64
}

impl SegmentMap {
    pub(super) fn arriving(&self, segment: &DrillSegment) -> TcpSegment {
        let mut flags = SegmentFlags::NONE;
        for (letter, flag) in
            [(TcpFlags::PSH, SegmentFlags::PSH), (TcpFlags::FIN, SegmentFlags::FIN), (TcpFlags::RST, SegmentFlags::RST)]
        {
            flags = if segment.is(letter) { flags.with(flag) } else { flags };
        }
        if !segment.is(TcpFlags::ACK) {
            flags = flags.with(SegmentFlags::NO_ACK);
        }
        let ack = position(segment.ack, 0);
        let (timestamp, echo) = segment.timestamp().unwrap_or_default();
        if segment.timestamp().is_none() {
            flags = flags.with(SegmentFlags::NO_TIMESTAMP);
        }
        let mut sack = Sack::default();
        for option in segment.options.iter().flatten() {
            if let HeaderOption::Sack(blocks) = option {
                for (from, to) in blocks {
                    let offset = |number: u32| number.wrapping_sub(segment.ack) as i32;
                    if offset(*from) < offset(*to) {
                        sack.push(offset(*from), offset(*to));
                    }
                }
            }
        }
        TcpSegment {
            seq: position(segment.seq, self.peer_first),
            ack,
            len: segment.len,
            window: u32::from(segment.window.unwrap_or_default()) << self.peer_shift,
            timestamp,
            // The end of the millisecond, so that what left within it counts as left before.
            echo: echo.wrapping_mul(1_000).wrapping_add(999),
            sack,
            ecn: match segment.ecn.unwrap_or_default() {
                EcnField::NotCapable => Ecn::NotCapable,
                EcnField::Ect0 | EcnField::Ect1 => Ecn::Capable,
                EcnField::Experienced => Ecn::Experienced,
            },
            ece: segment.is(TcpFlags::ECE),
            cwr: segment.is(TcpFlags::CWR),
            flags,
        }
    }

    pub(super) fn leaving(&self, segment: &TcpSegment, now: Time) -> DrillSegment {
        let has = |flag| segment.flags.has(flag);
        let acknowledges = !has(SegmentFlags::NO_ACK);
        let mut flags = TcpFlags::default();
        for (letter, on) in [
            (TcpFlags::PSH, has(SegmentFlags::PSH)),
            (TcpFlags::FIN, has(SegmentFlags::FIN)),
            (TcpFlags::RST, has(SegmentFlags::RST)),
            (TcpFlags::ACK, acknowledges),
            (TcpFlags::ECE, segment.ece),
            (TcpFlags::CWR, segment.cwr),
        ] {
            flags = flags.with(letter, on);
        }
        let ack = (segment.ack as u32).wrapping_add(1).wrapping_add(self.peer_first);
        DrillSegment {
            flags,
            seq: (segment.seq as u32).wrapping_add(1),
            len: segment.len,
            ack: if acknowledges { ack } else { 0 },
            window: Some(u16::try_from(segment.window >> self.own_shift).unwrap_or(u16::MAX)),
            options: Some(self.options(segment, ack, now)),
            ecn: Some(match segment.ecn {
                Ecn::NotCapable => EcnField::NotCapable,
                Ecn::Capable => EcnField::Ect0,
                Ecn::Experienced => EcnField::Experienced,
            }),
        }
    }

    fn options(&self, segment: &TcpSegment, ack: u32, now: Time) -> Vec<HeaderOption> {
        let mut options = Vec::new();
        if self.timestamps && !segment.flags.has(SegmentFlags::NO_TIMESTAMP) {
            let timestamp = HeaderOption::Timestamp { value: ticks(now), echo: segment.echo };
            options.extend([HeaderOption::Nop, HeaderOption::Nop, timestamp]);
        }
        if !segment.sack.is_empty() {
            let number = |offset: i32| ack.wrapping_add(offset as u32);
            let blocks = segment.sack.blocks().iter().map(|(from, to)| (number(*from), number(*to))).collect();
            options.extend([HeaderOption::Nop, HeaderOption::Nop, HeaderOption::Sack(blocks)]);
        }
        options
    }

    /// The last segment of a handshake, which answers the SYN-ACK `segment`.
    pub(super) fn acknowledgement(&self, segment: &DrillSegment, window: u16, now: Time) -> DrillSegment {
        let echo = segment.timestamp().map(|(value, _)| value).unwrap_or_default();
        let last = TcpSegment {
            window: u32::from(window),
            echo,
            flags: if self.timestamps { SegmentFlags::NONE } else { SegmentFlags::NO_TIMESTAMP },
            ..TcpSegment::default()
        };
        self.leaving(&last, now)
    }

    /// The RST that answers a segment of a connection that does not exist (RFC 9293 §3.10.7.1).
    pub(super) fn refusal(segment: &DrillSegment) -> DrillSegment {
        let mut reset = DrillSegment {
            flags: TcpFlags::RST,
            window: Some(0),
            options: Some(Vec::new()),
            ..DrillSegment::default()
        };
        if segment.is(TcpFlags::ACK) {
            reset.seq = segment.ack;
        } else {
            let counts = u32::from(segment.is(TcpFlags::SYN)) + u32::from(segment.is(TcpFlags::FIN));
            reset.flags = reset.flags.with(TcpFlags::ACK, true);
            reset.ack = segment.end().wrapping_add(counts);
        }
        reset
    }
}
