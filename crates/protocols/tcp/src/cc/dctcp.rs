//! DCTCP: fall in proportion to the fraction of marks.
//!
//! RFC 8257 §3 with the defaults of Linux 5.4 (`tcp_dctcp.c`). [`MarkShare`] estimates the fraction of bytes that were marked, α;
//! with the first mark seen outside of a reduction the window falls by α/2, to stay there until all that was in
//! flight is delivered (`window` beside this file). α begins at 1: an early mark halves. Losses halve it for any α
//! (§3.5), even while the window is down for marks. Growth is Reno's.
//!
//! RFC 8257 §3.2, which marks the receiver echoes, is the connection's business.

use congestion::MarkShare;
use machine::Out;

use super::window::{CongestionWindow, Windowed};
use super::{AckSample, CcConfig, reno};
use crate::connection::TcpConnection;

#[derive(Clone, Debug)]
pub(crate) struct Dctcp {
    window: CongestionWindow,
    marks: MarkShare,
}

impl Dctcp {
    pub(crate) fn new(config: &CcConfig) -> Self {
        Self { window: CongestionWindow::new(config), marks: MarkShare::default() }
    }

    /// The running estimate of the fraction of marks, 0 to 1.
    #[cfg(test)]
    fn alpha(&self) -> f64 {
        self.marks.alpha()
    }

    /// Counts an acknowledgement. At a round's start, what it covers was sent in the next round and counts there.
    fn count(&mut self, ack: &AckSample) {
        if ack.round_start {
            self.marks.end_round();
        }
        self.marks.count(ack.delivered, ack.marked);
    }
}

impl Windowed for Dctcp {
    const LOSS_BEATS_MARK: bool = true;
    const HEEDS_ECHOES: bool = false;

    #[inline]
    fn shared(&self) -> &CongestionWindow {
        &self.window
    }

    #[inline]
    fn shared_mut(&mut self) -> &mut CongestionWindow {
        &mut self.window
    }

    #[inline]
    fn grow<O: Out<TcpConnection>>(&mut self, ack: &AckSample, _out: &mut O) {
        self.count(ack);
        let may_grow = self.window.may_grow(ack);
        if ack.marked > 0 && self.window.heeds_marks() {
            self.window.enter_cwr(self.marks.reduced(self.window.size()), ack.flight);
        } else if may_grow {
            reno::grow(&mut self.window, ack.delivered);
        }
    }

    /// Window after a loss.
    fn reduction(&mut self) -> u64 {
        reno::half(&self.window)
    }
}

#[cfg(test)]
mod tests {
    use units::{Rate, Span};

    use super::super::CongestionControl;
    use super::super::pipe::{Path, Pipe};
    use super::super::rounds::{MSS, Rounds, ack, config};
    use super::*;

    const RTT: Span = Span::from_us(100);

    fn dctcp(segments: u64) -> Rounds<Dctcp> {
        Rounds::new(Dctcp::new(&config(segments)), RTT)
    }

    #[test]
    fn alpha_begins_at_one_and_fades_by_a_sixteenth_each_round() {
        let mut dctcp = dctcp(10);
        assert_eq!(dctcp.control.alpha(), 1.0);
        let mut expected = 1.0;
        for round in 1..20 {
            dctcp.round_of(100, |_| false);
            expected *= 15.0 / 16.0;
            let alpha = dctcp.control.alpha();
            assert!((alpha - expected).abs() < 0.02, "{alpha}, not {expected} after {round}");
        }
        dctcp.control.marks = MarkShare::default().starting_at(15);
        dctcp.round_of(100, |_| false);
        assert_eq!(dctcp.control.marks.units(), 0, "and in the end it is gone");
    }

    #[test]
    fn alpha_converges_to_the_fraction_of_marks() {
        for percent in [2, 10, 30, 70, 100] {
            let mut dctcp = dctcp(10);
            (0..200).for_each(|_| dctcp.round_of(100, |n| n < percent));
            let fraction = percent as f64 / 100.0;
            let alpha = dctcp.control.alpha();
            assert!((alpha - fraction).abs() <= 1.0 / 64.0, "{alpha}, not {fraction}");
        }
    }

    #[test]
    fn marks_count_again_when_more_than_was_in_flight_is_delivered() {
        let mut dctcp = dctcp(100);
        let marked = AckSample { marked: MSS, ..ack(dctcp.now, RTT, 101 * MSS) };
        let windows: Vec<u64> = (0..203)
            .map(|_| {
                dctcp.control.acked(&marked);
                dctcp.segments()
            })
            .collect();
        assert!(windows[..101].iter().all(|window| *window == 50), "{windows:?}");
        assert!(windows[101..202].iter().all(|window| *window == 25), "{windows:?}");
        assert_eq!(windows[202], 12);
    }

    #[test]
    fn a_mark_takes_half_of_alpha() {
        let mut dctcp = dctcp(100);
        dctcp.control.marks = MarkShare::default().starting_at(205);
        dctcp.control.acked(&AckSample { marked: MSS, ..ack(dctcp.now, RTT, 100 * MSS) });
        assert_eq!(dctcp.control.window(), 100 * MSS - 100 * MSS * 205 / 2_048);
        assert_eq!(dctcp.control.threshold(), dctcp.control.window());
    }

    #[test]
    fn a_loss_halves_whatever_alpha_is() {
        let mut dctcp = dctcp(100);
        dctcp.control.marks = MarkShare::default().starting_at(16);
        dctcp.lose();
        assert_eq!(dctcp.segments(), 50);
        dctcp.recover();
        dctcp.control.undo(dctcp.now);
        assert_eq!(dctcp.segments(), 100);
    }

    #[test]
    fn a_loss_after_a_mark_halves_what_is_left() {
        let mut dctcp = dctcp(100);
        dctcp.control.acked(&AckSample { marked: MSS, ..ack(dctcp.now, RTT, 100 * MSS) });
        dctcp.lose();
        assert_eq!(dctcp.segments(), 25);
    }

    #[test]
    fn a_timeout_starts_over_and_heeds_no_marks_until_it_is_repaired() {
        let mut dctcp = dctcp(100);
        dctcp.control.on_timeout(dctcp.now, 0);
        assert_eq!((dctcp.control.window(), dctcp.control.threshold()), (MSS, 50 * MSS));
        dctcp.round_of(3, |_| true);
        assert_eq!(dctcp.segments(), 4);
    }

    /// M. Alizadeh et al.: "Data Center TCP (DCTCP)" (2010), §3.3: one flow keeps the queue between
    /// K + 1 − ½√(2 (C·RTT + K)) and K + 1 segments.
    #[test]
    fn the_queue_stays_at_the_marking_threshold_and_the_link_busy() {
        let threshold = 40 * MSS;
        let path = Path { rate: Rate::gbps(10), delay: RTT, mark_at: threshold, lose_one_in: 0, app_gap: Span::ZERO };
        let mut pipe = Pipe::new(Dctcp::new(&config(10)), path);
        pipe.run(Span::from_ms(50), |_| ());
        let before = pipe.delivered;
        let (mut lowest, mut highest) = (u64::MAX, 0);
        pipe.run(Span::from_ms(50), |pipe| {
            lowest = lowest.min(pipe.queue);
            highest = highest.max(pipe.queue);
        });
        let used = (pipe.delivered - before) as f64 / path.rate.bytes_in(Span::from_ms(50)).get() as f64;
        assert!(used > 0.999, "{used}");
        assert!(highest <= threshold + 4 * MSS, "{highest}");
        assert!(lowest >= threshold - 16 * MSS, "{lowest}");
    }
}
