//! Reno: additive increase, halving at a loss. RFC 5681.

use machine::Out;

use super::window::{CongestionWindow, Windowed};
use super::{AckSample, CcConfig};
use crate::connection::TcpConnection;

#[derive(Clone, Debug)]
pub(crate) struct Reno {
    window: CongestionWindow,
}

impl Reno {
    pub(crate) fn new(config: &CcConfig) -> Self {
        Self { window: CongestionWindow::new(config) }
    }
}

/// One segment for each one acknowledged below the threshold, one for each window above it.
pub(super) fn grow(window: &mut CongestionWindow, acked: u64) {
    let rest = if window.in_slow_start() { window.slow_start(acked) } else { acked };
    if rest > 0 {
        window.avoid(rest, window.size());
    }
}

/// Eq. 4, with the window in place of what is in flight, as Linux has it: growth happens only when they agree.
pub(super) fn half(window: &CongestionWindow) -> u64 {
    window.size() / 2
}

impl Windowed for Reno {
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
        if self.window.may_grow(ack) {
            grow(&mut self.window, ack.delivered);
        }
    }

    fn reduction(&mut self) -> u64 {
        half(&self.window)
    }
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::super::CongestionControl;
    use super::super::rounds::{MSS, Rounds, ack, config};
    use super::*;

    const RTT: Span = Span::from_us(100);

    fn reno(segments: u64) -> Rounds<Reno> {
        Rounds::new(Reno::new(&config(segments)), RTT)
    }

    /// Past slow start, with a window and threshold of this many segments.
    fn avoiding(segments: u64) -> Rounds<Reno> {
        let mut reno = reno(2 * segments);
        reno.lose();
        reno.recover();
        reno
    }

    #[test]
    fn slow_start_doubles_each_round() {
        let mut reno = reno(10);
        let windows = [0; 5].map(|_| {
            reno.round();
            reno.segments()
        });
        assert_eq!(windows, [20, 40, 80, 160, 320]);
    }

    #[test]
    fn congestion_avoidance_adds_a_segment_each_round() {
        let mut reno = avoiding(10);
        let windows = [0; 4].map(|_| {
            reno.round();
            reno.control.window()
        });
        assert_eq!(windows, [11, 12, 13, 14].map(|segments| segments * MSS));
    }

    #[test]
    fn an_acknowledgement_across_the_threshold_counts_on_both_sides() {
        let mut reno = avoiding(10);
        reno.control.on_timeout(reno.now, 0);
        reno.recover();
        assert_eq!((reno.control.window(), reno.control.threshold()), (MSS, 5 * MSS));
        let stretched = AckSample { delivered: 9 * MSS, ..ack(reno.now, RTT, MSS) };
        reno.control.acked(&stretched);
        assert_eq!(reno.control.window(), 6 * MSS, "four by slow start, one for the other five");
    }

    #[test]
    fn a_loss_halves_and_the_window_holds_until_it_is_repaired() {
        let mut reno = reno(100);
        reno.lose();
        assert_eq!((reno.control.window(), reno.control.threshold()), (50 * MSS, 50 * MSS));
        reno.round();
        assert_eq!(reno.segments(), 50);
        reno.recover();
        reno.round();
        assert_eq!(reno.segments(), 51);
    }

    #[test]
    fn a_timeout_starts_over_from_one_segment_up_to_half() {
        let mut reno = reno(64);
        reno.control.on_timeout(reno.now, 0);
        let windows = [0; 7].map(|_| {
            reno.round();
            reno.segments()
        });
        assert_eq!(windows, [2, 4, 8, 16, 32, 33, 34]);
    }

    #[test]
    fn a_timeout_leaves_room_for_what_is_still_in_flight_and_a_segment() {
        let mut reno = reno(64);
        reno.control.on_timeout(reno.now, 3 * MSS);
        assert_eq!((reno.control.window(), reno.control.threshold()), (4 * MSS, 32 * MSS));
    }

    #[test]
    fn the_threshold_falls_once_for_a_segment_that_times_out_again_and_again() {
        let mut reno = reno(64);
        for _ in 0..3 {
            reno.control.on_timeout(reno.now, 0);
            assert_eq!((reno.control.window(), reno.control.threshold()), (MSS, 32 * MSS));
        }
        reno.rounds(2);
        reno.control.on_timeout(reno.now, 0);
        assert_eq!(reno.control.threshold(), 2 * MSS, "progress was made: this is another loss");
    }

    #[test]
    fn a_timeout_during_recovery_does_not_reduce_the_threshold_again() {
        let mut reno = reno(64);
        reno.lose();
        reno.control.on_timeout(reno.now, 0);
        assert_eq!((reno.control.window(), reno.control.threshold()), (MSS, 32 * MSS));
    }

    #[test]
    fn undo_returns_to_the_window_before_the_loss_or_timeout() {
        let mut reno = avoiding(40);
        reno.lose();
        reno.round();
        reno.control.undo(reno.now);
        assert_eq!((reno.control.window(), reno.control.threshold()), (40 * MSS, 40 * MSS));
        reno.control.on_timeout(reno.now, 0);
        reno.round();
        reno.control.undo(reno.now);
        assert_eq!((reno.control.window(), reno.control.threshold()), (40 * MSS, 40 * MSS));
        reno.control.undo(reno.now);
        reno.round();
        assert_eq!(reno.segments(), 41, "nothing left to undo, and growth goes on");
    }

    #[test]
    fn an_echo_halves_once_for_what_is_in_flight() {
        let mut reno = reno(40);
        reno.control.on_echo(reno.now, 40 * MSS);
        assert_eq!(reno.segments(), 20);
        reno.control.on_echo(reno.now, 40 * MSS);
        reno.round_of(39, |_| false);
        assert_eq!(reno.segments(), 20, "still held");
        reno.control.undo(reno.now);
        assert_eq!(reno.segments(), 20, "a mark is never a mistake");
        reno.round_of(21, |_| false);
        assert_eq!(reno.segments(), 21);
        reno.control.on_echo(reno.now, 20 * MSS);
        assert_eq!(reno.control.window(), 21 * MSS / 2);
    }

    #[test]
    fn losses_in_the_round_after_an_echo_do_not_reduce_again() {
        let mut reno = reno(40);
        reno.control.on_echo(reno.now, 40 * MSS);
        reno.lose();
        reno.rounds(3);
        assert_eq!(reno.segments(), 20, "but it is held until they are repaired");
        reno.recover();
        reno.round();
        assert_eq!(reno.segments(), 21);
    }

    #[test]
    fn never_below_two_segments_but_after_a_timeout() {
        let mut reno = reno(3);
        for _ in 0..5 {
            reno.lose();
            reno.recover();
        }
        assert_eq!(reno.segments(), 2);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut reno = reno(10);
        for _ in 0..100 {
            reno.control.acked(&AckSample { window_limited: false, ..ack(reno.now, RTT, 3 * MSS) });
        }
        assert_eq!(reno.segments(), 10);
    }

    #[test]
    fn after_idle_time_the_window_starts_again_but_knows_the_way() {
        let mut reno = reno(10);
        reno.rounds(4);
        reno.lose();
        reno.recover();
        assert_eq!(reno.segments(), 80);
        reno.control.on_idle_restart(reno.now);
        assert_eq!((reno.control.window(), reno.control.threshold()), (10 * MSS, 80 * MSS));
    }

    /// M. Mathis et al.: "The macroscopic behavior of the TCP congestion avoidance algorithm" (1997), §2.1.
    #[test]
    fn the_average_window_is_the_inverse_root_of_the_losses() {
        for period in [1_000, 10_000, 100_000] {
            let expected = (1.5 * period as f64).sqrt();
            let average = avoiding(expected as u64).average_with_losses(period, 20_000);
            assert!((average / expected - 1.0).abs() < 0.05, "one in {period}: {average}, not {expected}");
        }
    }
}
