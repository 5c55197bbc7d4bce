//! Losses found by counting what arrived behind them: RFC 6675 with SACK, RFC 6582 (NewReno) without.
//!
//! With SACK, a segment is lost once `reordering` segments above it have arrived (FACK: once the highest that arrived is
//! further away than that). Without, every acknowledgement that says nothing new (RFC 5681 §2: same number, same window,
//! no payload) stands for a segment that arrived; the first segment is lost after `reordering` of them, and after each
//! partial acknowledgement of a repair. As in Linux 4.4 (`tcp_time_to_recover`, `tcp_mark_head_lost`) and, for NewReno,
//! in all (`tcp_newreno_mark_lost`).

use machine::Out;
use units::{Span, Time};

use super::super::config::TcpConfig;
use super::super::connection::TcpConnection;
use super::super::detection::RackUse;
use super::super::rack::Rack;
use super::super::segment::TcpSegment;
use super::{Phase, TcpSender};

/// Least time that an early retransmit waits.
const EARLY_MIN: Span = Span::from_ms(2);
/// Flights from this many segments on have enough duplicate acknowledgements of their own.
const EARLY_BELOW: u64 = 4;

#[derive(Debug)]
pub(super) struct DupackCounter {
    sack: bool,
    socket: bool,
    fack: bool,
    early_retransmit: bool,
    pub(super) rack: RackUse,
    /// Segments that arrived behind the first, by duplicate acknowledgements; used without SACK.
    dupacks: u64,
    /// Window that the last acknowledgement offered.
    window: u64,
    /// The last one acknowledged something new.
    advanced: bool,
}

impl DupackCounter {
    /// `None` if RACK finds all losses.
    pub(super) fn new(config: &TcpConfig) -> Option<Box<Self>> {
        let detection = config.detection;
        (!config.sack || detection.rack != RackUse::Always).then(|| {
            Box::new(Self {
                sack: config.sack,
                socket: config.socket.is_some(),
                fack: detection.fack,
                early_retransmit: detection.early_retransmit,
                rack: if config.sack { detection.rack } else { RackUse::Off },
                dupacks: 0,
                window: config.socket.map_or(config.receive_buffer, |socket| socket.peer_window),
                advanced: false,
            })
        })
    }

    /// Segments known to have arrived by duplicate acknowledgements.
    pub(super) fn arrived(&self) -> u64 {
        self.dupacks
    }

    pub(super) fn is_newreno(&self) -> bool {
        !self.sack
    }

    /// Decides whether an acknowledgement is a duplicate of the one before, on a connection without SACK with something
    /// `outstanding`. A socket knows whether it was an update of the window: a smaller window is none (`FLAG_WIN_UPDATE`).
    pub(super) fn on_ack(
        &mut self,
        segment: &TcpSegment,
        advanced: u64,
        reopened: Option<bool>,
        outstanding: bool,
    ) -> bool {
        let offered = u64::from(segment.window);
        let same_window = std::mem::replace(&mut self.window, offered) == offered;
        let same_window = reopened.map_or(same_window, |reopened| !reopened);
        self.advanced = advanced > 0;
        let duplicate = !self.sack && outstanding && advanced == 0 && same_window && segment.len == 0;
        self.dupacks += u64::from(duplicate);
        duplicate
    }

    /// More cannot have arrived than is outstanding, beside those that are missing; if more duplicates come, they were out
    /// of order (`tcp_limit_reno_sacked`).
    /// Returns whether they are as many as were counted.
    pub(super) fn limit(&mut self, outstanding: u64, holes: u64, acknowledged: u64, rack: &mut Rack) -> bool {
        let most = outstanding.saturating_sub(holes.max(1));
        let counts = self.dupacks <= most;
        if !counts {
            self.dupacks = most;
            let degree = rack.degree_mut();
            degree.grow(outstanding + acknowledged);
            // A kernel takes it as it is, even if it is less (`tcp_check_reno_reordering`).
            if self.socket {
                degree.segments = degree.segments.min(u32::try_from(outstanding + acknowledged).unwrap_or(u32::MAX));
            }
        }
        counts
    }

    /// Takes `segments` acknowledged ones off the count: one filled the hole, the others had been counted. Returns how many had been.
    pub(super) fn forget(&mut self, segments: u32) -> u64 {
        let counted = self.dupacks.min(u64::from(segments.saturating_sub(1)));
        self.dupacks -= counted;
        counted
    }

    pub(super) fn reset(&mut self) {
        self.dupacks = 0;
    }
}

impl TcpSender {
    /// Instead of [`TcpSender::detect_losses`], if something counts.
    pub(super) fn detect_by_count<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        let Some(counter) = &self.counting else { return };
        let (sack, rack, advanced) = (counter.sack, counter.rack, counter.advanced);
        if rack == RackUse::InRepair && self.phase != Phase::Open {
            self.detect_lost_copies(now, out);
        }
        match (sack, self.phase) {
            (false, Phase::Open) => {
                if counter_reaches(self.counting.as_deref(), &self.rack) {
                    self.board.mark_head_lost();
                }
            }
            (false, Phase::Recovery { until }) if advanced && (self.una < until || self.socket.is_none()) => {
                self.board.mark_head_lost();
            }
            (false, _) => {}
            (true, Phase::Open) => self.count_to_recovery(now, out),
            (true, Phase::Recovery { .. }) => {
                // A partial acknowledgement alone says nothing of what is behind it.
                if !advanced || self.socket.is_none() || self.counted() > u64::from(self.rack.degree().segments) {
                    self.mark_counted();
                }
            }
            (true, Phase::Loss { .. }) => {}
        }
        if self.board.lost() > 0 && self.phase == Phase::Open {
            self.enter_recovery(now, out);
        }
    }

    /// RACK of Linux 4.4, which looks only during a repair, with a fixed reordering window of at least a millisecond.
    fn detect_lost_copies<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        let quarter = if self.rack.degree().events > 0 { self.rtt.min() / 4 } else { Span::ZERO };
        let mut judge = self.rack.judge(now, Span::ZERO);
        // A later one arrived: lost if that left this much later, whatever the time is now.
        judge.now = judge.sent_at;
        judge.patience = quarter.max(Span::from_ms(1)) + Span::from_ps(1);
        self.board.detect(&judge, out);
    }

    /// `tcp_time_to_recover`.
    fn count_to_recovery<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        let threshold = u64::from(self.rack.degree().segments);
        let sacked = u64::from(self.board.sacked_segments());
        if sacked == 0 {
            return;
        }
        let outstanding = self.board.segments();
        let held_back = self.unsent() == 0 || !self.has_room();
        let few = outstanding <= threshold && sacked >= (outstanding / 2).max(3) && held_back;
        if self.counted() > threshold || few {
            self.mark_counted();
            if self.board.lost() == 0 {
                self.board.mark_head_lost();
            }
        } else if self.is_early(outstanding, sacked) && held_back {
            self.retransmit_early(now, out);
        }
    }

    fn is_early(&self, outstanding: u64, sacked: u64) -> bool {
        let early = self.counting.as_ref().is_some_and(|counter| counter.early_retransmit);
        early && self.rack.degree().events == 0 && outstanding > sacked && outstanding < EARLY_BELOW
    }

    /// Retransmits after a quarter of a round trip, since missing segments may only be late; at once if no time is left for
    /// that wait (`tcp_pause_early_retransmit`).
    fn retransmit_early<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        match self.rtt.srtt() {
            Some(srtt) => self.wait_for_early_retransmit(now, (srtt / 4).max(EARLY_MIN), out),
            None => self.board.mark_head_lost(),
        }
    }

    /// The early retransmit is due.
    pub(super) fn on_early_retransmit<O: Out<TcpConnection>>(&mut self, now: Time, out: &mut O) {
        if self.phase == Phase::Open && self.board.sacked_segments() > 0 {
            self.board.mark_head_lost();
            self.enter_recovery(now, out);
        }
    }

    /// Distance of arrivals from the first segment (`tcp_dupack_heuristics`).
    fn counted(&self) -> u64 {
        if self.uses_fack() {
            self.board.segments_below_sacked_end()
        } else {
            u64::from(self.board.sacked_segments()) + 1
        }
    }

    /// FACK ends with the first reordering.
    fn uses_fack(&self) -> bool {
        self.counting.as_ref().is_some_and(|counter| counter.fack) && self.rack.degree().events == 0
    }

    fn mark_counted(&mut self) {
        let threshold = u64::from(self.rack.degree().segments);
        if self.uses_fack() {
            let lost = self.board.segments_below_sacked_end().saturating_sub(threshold).max(1);
            self.board.mark_first_lost(lost);
        } else {
            self.board.mark_lost_below(threshold);
        }
    }
}

impl TcpSender {
    /// A repair after a timeout is over: what was counted during it still says that the first segment is lost.
    pub(super) fn judge_counted(&mut self) {
        if self.socket.is_some() && counter_reaches(self.counting.as_deref(), &self.rack) {
            self.board.mark_head_lost();
        }
    }
}

fn counter_reaches(counter: Option<&DupackCounter>, rack: &Rack) -> bool {
    counter.is_some_and(|counter| counter.dupacks >= u64::from(rack.degree().segments))
}
