//! The congestion window that Reno, CUBIC and DCTCP share.
//!
//! RFC 5681 §3.1 (slow start, congestion avoidance, timeouts), RFC 3465 (growth by bytes acknowledged), RFC 3168 §6.1.2
//! (one reduction a window), and where these leave a choice, what Linux 5.4 does (`tcp_cong.c`, `tcp_input.c`).
//!
//! ```text
//!                 mark                      all in flight at the mark, and more, is delivered
//!         Open ─────────▶ Cwr     Cwr  ──────────────────────────────────────────────────────▶ Open
//!   Open, Cwr ──losses──▶ Recovery ──repaired──▶ Open
//!         any ──timeout─▶ Loss     ──repaired──▶ Open
//! ```
//!
//! A reduction lasts until its stage is left: in Cwr and Recovery the window does not grow, and is not reduced a second
//! time. In Loss the window grows by slow start, from one segment beside what is still in
//! flight. The window falls at once. To let the flight glide down to it over a round trip (RFC 6937) is the
//! connection's business, in Recovery; in Cwr nothing leaves until the flight has fallen.

mod adopt;

use machine::Out;
use units::{Span, Time};

use super::{AckSample, CcConfig, CongestionControl, MAX_MSS, MAX_WINDOW, PacingRate};
use crate::connection::TcpConnection;

/// A control whose window is a [`CongestionWindow`]: how that grows, and what it falls to.
pub(super) trait Windowed {
    /// A loss reduces the window even while it is down for a mark.
    const LOSS_BEATS_MARK: bool = false;
    /// ECN echoes reduce the window; otherwise marks are counted in [`Windowed::grow`].
    const HEEDS_ECHOES: bool = true;

    fn shared(&self) -> &CongestionWindow;
    fn shared_mut(&mut self) -> &mut CongestionWindow;
    /// Changes the window for an acknowledgement.
    fn grow<O: Out<TcpConnection>>(&mut self, ack: &AckSample, out: &mut O);
    /// Size to which the window falls.
    fn reduction(&mut self) -> u64;
    fn after_timeout(&mut self, _now: Time) {}
    fn after_undo(&mut self) {}
    fn after_restart(&mut self, _now: Time) {}
    fn after_pause(&mut self, _now: Time, _idle: Span) {}
}

impl<W: Windowed> CongestionControl for W {
    #[inline]
    fn on_ack<O: Out<TcpConnection>>(&mut self, ack: &AckSample, out: &mut O) {
        self.grow(ack, out);
    }

    fn on_loss(&mut self, _now: Time, _flight: u64) {
        if W::LOSS_BEATS_MARK || self.shared().heeds_losses() || self.shared().is_timed_out() {
            let target = self.reduction();
            self.shared_mut().enter_recovery(target);
        } else {
            self.shared_mut().prolong();
        }
    }

    fn on_recovered(&mut self, _now: Time) {
        self.shared_mut().recovered();
    }

    fn on_timeout(&mut self, now: Time, flight: u64) {
        let target = self.shared().heeds_losses().then(|| self.reduction());
        self.shared_mut().enter_loss(target, flight);
        self.after_timeout(now);
    }

    fn on_echo(&mut self, _now: Time, flight: u64) {
        if W::HEEDS_ECHOES && self.shared().heeds_marks() {
            let target = self.reduction();
            self.shared_mut().enter_cwr(target, flight);
        }
    }

    fn undo(&mut self, _now: Time) {
        if self.shared_mut().undo() {
            self.after_undo();
        }
    }

    fn on_idle_restart(&mut self, now: Time) {
        self.shared_mut().restart();
        self.after_restart(now);
    }

    fn on_first_sent(&mut self, now: Time, idle: Span) {
        self.after_pause(now, idle);
    }

    fn on_mark_answered(&mut self) {
        self.shared_mut().end_cwr();
    }

    fn forbid_undo(&mut self) {
        self.shared_mut().prior = None;
    }

    fn on_reduction_stopped(&mut self, window: u64) {
        let least = self.shared().mss();
        self.shared_mut().size = window.max(least);
    }

    #[inline]
    fn window(&self) -> u64 {
        self.shared().size
    }

    fn threshold(&self) -> u64 {
        self.shared().threshold
    }

    fn pacing(&self) -> Option<PacingRate> {
        None
    }
}

/// Linux's names for what the window is recovering from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CongestionState {
    Open,
    /// Reduced for a mark; `left` bytes were in flight then and are not delivered yet.
    Cwr {
        left: u64,
    },
    Recovery,
    /// `advanced` says whether anything was acknowledged since the timer went off.
    Loss {
        advanced: bool,
    },
}

/// Window to return to if a reduction turns out to be unnecessary.
#[derive(Clone, Copy, Debug)]
struct PriorWindow {
    size: u64,
    threshold: u64,
}

#[derive(Clone, Debug)]
pub(super) struct CongestionWindow {
    mss: u32,
    /// Thresholds are whole segments.
    whole: bool,
    initial: u64,
    size: u64,
    threshold: u64,
    /// Acknowledged in congestion avoidance and not yet turned into growth.
    credit: u64,
    stage: CongestionState,
    prior: Option<PriorWindow>,
}

impl CongestionWindow {
    pub(super) fn new(config: &CcConfig) -> Self {
        let mss = config.mss.clamp(1, MAX_MSS);
        let initial = config.initial_window.clamp(u64::from(mss), MAX_WINDOW);
        Self {
            mss,
            whole: config.whole_segments,
            initial,
            size: initial,
            threshold: MAX_WINDOW,
            credit: 0,
            stage: CongestionState::Open,
            prior: None,
        }
    }

    #[inline]
    pub(super) fn mss(&self) -> u64 {
        u64::from(self.mss)
    }

    /// Counts as a kernel does.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Unit of a threshold.
    fn unit(&self) -> u64 {
        if self.whole { self.mss() } else { 1 }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// True if this acknowledgement may make the window grow; to be asked once for each. A window that was not used to the
    /// full shows nothing about the path (RFC 9438 §5.8).
    pub(super) fn may_grow(&mut self, ack: &AckSample) -> bool {
        let open = match &mut self.stage {
            CongestionState::Open => !ack.in_recovery,
            CongestionState::Cwr { left } => {
                // Segments sent before the reduction may be acknowledged with a mark that was answered already.
                let over = ack.delivered > *left;
                *left = left.saturating_sub(ack.delivered);
                over
            }
            CongestionState::Recovery => false,
            CongestionState::Loss { advanced } => {
                *advanced |= ack.advanced > 0;
                true
            }
        };
        if open && matches!(self.stage, CongestionState::Cwr { .. }) {
            self.stage = CongestionState::Open;
        }
        open && ack.window_limited
    }

    /// Grows by what was acknowledged up to the threshold; returns what remains for congestion avoidance.
    pub(super) fn slow_start(&mut self, acked: u64) -> u64 {
        let grown = self.size.saturating_add(acked).min(self.threshold);
        let rest = acked - (grown - self.size);
        self.size = grown;
        rest
    }

    /// Congestion avoidance: grows by a segment for every `per` bytes acknowledged.
    pub(super) fn avoid(&mut self, acked: u64, per: u64) {
        let per = per.max(1);
        // Credit saved for a slower growth becomes one segment, not many at once.
        if self.credit >= per {
            self.credit = 0;
            self.size += self.mss();
        }
        self.credit = self.credit.saturating_add(acked);
        if self.credit >= per {
            self.size = self.size.saturating_add((self.credit / per).saturating_mul(self.mss()));
            self.credit %= per;
        }
        self.size = self.size.min(MAX_WINDOW);
    }

    /// Ends slow start where it is.
    pub(super) fn end_slow_start(&mut self) {
        self.threshold = self.size;
    }

    /// True if a mark is news: no reduction is under way that may have come too late for it.
    pub(super) fn heeds_marks(&self) -> bool {
        self.stage == CongestionState::Open
    }

    /// True if a loss is news. After a timeout it is as soon as anything was acknowledged (RFC 5681 §3.1).
    pub(super) fn heeds_losses(&self) -> bool {
        matches!(self.stage, CongestionState::Open | CongestionState::Loss { advanced: true })
    }

    /// The retransmission timer went off.
    pub(super) fn is_timed_out(&self) -> bool {
        matches!(self.stage, CongestionState::Loss { .. })
    }

    /// Losses were found: down to `target`, to be held until [`CongestionWindow::recovered`].
    pub(super) fn enter_recovery(&mut self, target: u64) {
        self.save();
        self.reduce(target);
        self.stage = CongestionState::Recovery;
    }

    /// Losses were found while the window is down already: it stays, for as long as they take to repair.
    pub(super) fn prolong(&mut self) {
        if let CongestionState::Cwr { .. } = self.stage {
            self.stage = CongestionState::Recovery;
        }
    }

    /// Marks were seen: down to `target`, to be held until more than `flight` is delivered. A mark is never a mistake:
    /// nothing to undo.
    pub(super) fn enter_cwr(&mut self, target: u64, flight: u64) {
        self.prior = None;
        self.reduce(target);
        self.stage = CongestionState::Cwr { left: flight };
    }

    fn end_cwr(&mut self) {
        if let CongestionState::Cwr { .. } = self.stage {
            self.stage = CongestionState::Open;
            self.arrive();
        }
    }

    /// A reduction is over: a kernel's window is what it was to fall to, even if it was below (`tcp_end_cwnd_reduction`).
    fn arrive(&mut self) {
        if self.whole {
            self.size = self.threshold;
        }
    }

    /// The timer went off: one segment beside the `flight` that is not taken for lost (`tcp_enter_loss`), and slow start
    /// up to `target` if that is news.
    pub(super) fn enter_loss(&mut self, target: Option<u64>, flight: u64) {
        if let Some(target) = target {
            self.save();
            self.reduce(target);
        }
        self.size = flight.saturating_add(self.mss()).min(MAX_WINDOW);
        self.credit = 0;
        self.stage = CongestionState::Loss { advanced: false };
    }

    pub(super) fn recovered(&mut self) {
        if self.stage == CongestionState::Recovery {
            self.arrive();
        }
        if matches!(self.stage, CongestionState::Recovery | CongestionState::Loss { .. }) {
            self.stage = CongestionState::Open;
        }
    }

    /// Undoes the last reduction; true if there was one.
    pub(super) fn undo(&mut self) -> bool {
        let Some(prior) = self.prior.take() else { return false };
        self.size = self.size.max(prior.size);
        self.threshold = self.threshold.max(prior.threshold);
        self.stage = CongestionState::Open;
        true
    }

    /// RFC 5681 §4.1: nothing is known of the path any more, except that a quarter less than the window was safe.
    pub(super) fn restart(&mut self) {
        self.threshold = self.safe_threshold();
        self.size = self.size.min(self.initial);
        self.credit = 0;
    }

    fn save(&mut self) {
        self.prior = Some(PriorWindow { size: self.size, threshold: self.safe_threshold() });
    }

    fn reduce(&mut self, target: u64) {
        self.threshold = (target / self.unit() * self.unit()).clamp(2 * self.mss(), MAX_WINDOW);
        self.size = self.size.min(self.threshold);
        self.credit = 0;
    }

    /// Threshold up to which slow start would not overshoot.
    fn safe_threshold(&self) -> u64 {
        let segments = self.size / self.mss();
        let safe = if self.whole { (segments / 2 + segments / 4) * self.mss() } else { self.size / 4 * 3 };
        self.threshold.max(safe)
    }
}
