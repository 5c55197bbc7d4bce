//! State of one neighbour of a node: its statements about the time, and the answers to it.

use clock::bound::DriftBound;
use wire::exchange::{ExchangeFrame, FrameTime};
use wire::sync::{SyncMessage, SyncTerm};

use crate::bounds::{NeighbourBounds, TimeBound};
use crate::duties::name_digest;

/// A frame that left or came: what the neighbour is told of it, and when it was on the oscillator.
#[derive(Clone, Copy, Debug)]
struct LocalFrame {
    local_ns: u64,
    told: FrameTime,
}

impl LocalFrame {
    fn new(number: u32, local_ns: u64, time_ns: u64) -> Self {
        Self { local_ns, told: FrameTime { number, time_ns } }
    }
}

/// Number of agreeing frames, and their time span in half intervals, before a later root is believed. A frame that disagrees
/// restarts the count.
const LATER_FRAMES: u32 = 3;
const LATER_HALVES: u64 = 3;

/// State of a neighbour, from the frames on the link to it.
#[derive(Clone, Debug)]
pub(crate) struct NeighbourState {
    pub(crate) name: String,
    digest: u32,
    /// This node listens to it, or may have to.
    pub(crate) is_heard: bool,
    /// The neighbour has asked for waves lately.
    pub(crate) listens: bool,
    /// Time of its last request, on the oscillator.
    asked_ns: u64,
    /// The neighbour has the time of an earlier root than this node, and is to hear of it.
    pub(crate) is_behind: bool,
    pub(crate) bounds: NeighbourBounds,
    /// The run of its daemon.
    instance: Option<u32>,
    /// Term of its time, to which its bounds refer.
    term: SyncTerm,
    /// Frames that said that it has a later root's time: when the first came, and how many.
    later: Option<(u64, u32)>,
    /// Number of the last frame sent to it.
    number: u32,
    left: Option<LocalFrame>,
    arrived: Option<LocalFrame>,
    /// The last wave that came and was not looked at yet.
    pub(crate) pending: Option<SyncMessage>,
    /// Time of the neighbour's last wave, on our oscillator.
    pub(crate) wave_at: Option<u64>,
    /// Time of its first wave in this run of its daemon.
    pub(crate) first_wave_at: Option<u64>,
    /// A report said that the neighbour has another plan.
    pub(crate) told_of_plan: bool,
    /// A report said that another node is on the link to it.
    pub(crate) told_of_stranger: bool,
}

impl NeighbourState {
    pub(crate) fn new(name: &str, drift: DriftBound) -> Self {
        Self {
            name: name.to_owned(),
            digest: name_digest(name),
            is_heard: false,
            listens: false,
            asked_ns: 0,
            is_behind: false,
            bounds: NeighbourBounds::new(drift),
            instance: None,
            term: SyncTerm::default(),
            later: None,
            number: 0,
            left: None,
            arrived: None,
            pending: None,
            wave_at: None,
            first_wave_at: None,
            told_of_plan: false,
            told_of_stranger: false,
        }
    }

    /// True if the frame is from this neighbour and not from another node on its link.
    pub(crate) fn sent(&self, frame: &ExchangeFrame) -> bool {
        frame.sender == self.digest
    }

    /// A frame came, not after `arrived_ns` on the oscillator, in a daemon's run of this `instance`.
    pub(crate) fn on_frame(&mut self, frame: &ExchangeFrame, arrived_ns: u64, instance: u32) {
        if self.instance != Some(frame.instance) {
            self.instance = Some(frame.instance);
            self.bounds.forget();
            (self.left, self.arrived, self.later) = (None, None, None);
            (self.wave_at, self.first_wave_at) = (None, None);
        }
        if self.term != frame.term {
            // The earlier bounds were about another time.
            self.bounds.forget();
            self.term = frame.term;
        }
        if frame.asks {
            (self.listens, self.asked_ns) = (true, arrived_ns);
        }
        self.bounds.wave_received(frame.number, arrived_ns);
        if let Some(wave) = frame.wave.filter(|wave| wave.term == frame.term) {
            let sent_ns = wave.timestamp.as_ps().saturating_add(wave.correction.as_ps());
            self.bounds.wave_left(frame.number, sent_ns.saturating_sub(wave.uncertainty.as_ps()));
            // If waves of two roots arrive at once, the earlier root's counts: a forged one does not hide a true one.
            if self.pending.is_none_or(|pending| pending.term >= wave.term) {
                self.pending = Some(wave);
            }
            self.wave_at = Some(arrived_ns);
            self.first_wave_at.get_or_insert(arrived_ns);
        }
        if let Some(left) = frame.left {
            self.bounds.wave_left(left.number, left.time_ns);
        }
        if let Some(arrived) = frame.arrived.filter(|_| frame.to == instance) {
            self.bounds.request_arrived(arrived.number, arrived.time_ns);
        }
    }

    /// Marks the neighbour as not listening if it has not asked for so long.
    pub(crate) fn forget_request(&mut self, now_ns: u64, lately_ns: u64) {
        self.listens &= now_ns.saturating_sub(self.asked_ns) <= lately_ns;
    }

    /// Bounds on its time, if it is that of this term.
    pub(crate) fn bounds_in(&self, term: SyncTerm, now_ns: u64) -> Option<(u64, u64)> {
        self.bounds.at(now_ns).filter(|_| self.term == term)
    }

    /// True if it has said often enough that it has the time of a later root than `own`'s; `None` if it does not say so.
    pub(crate) fn has_later(
        &mut self,
        frame: &ExchangeFrame,
        own: SyncTerm,
        arrived_ns: u64,
        interval_ns: u64,
    ) -> Option<bool> {
        if !frame.synchronized || frame.term <= own {
            self.later = None;
            return None;
        }
        let (first_ns, frames) = self.later.map_or((arrived_ns, 1), |(first_ns, frames)| (first_ns, frames + 1));
        self.later = Some((first_ns, frames));
        let passed_ns = arrived_ns.saturating_sub(first_ns);
        Some(frames >= LATER_FRAMES && passed_ns >= interval_ns * LATER_HALVES / 2)
    }

    /// True if the last thing that it said is that it has the time of a later root.
    pub(crate) fn says_later(&self) -> bool {
        self.later.is_some()
    }

    /// Records the echo for its frame that came at `arrived_ns`, when the time is not after `most`. The next frame to it
    /// carries the echo.
    pub(crate) fn note_arrival(&mut self, number: u32, arrived_ns: u64, most: TimeBound, drift: DriftBound) {
        let time_ns = most.most_at(arrived_ns, drift);
        self.arrived = Some(LocalFrame::new(number, arrived_ns, time_ns)).filter(|_| number != 0);
    }

    /// Records a statement about a frame that left, not before `left_ns`, when the time is not before `least`. The next
    /// frame to it carries the statement.
    pub(crate) fn note_departure(&mut self, number: u32, left_ns: u64, least: Option<TimeBound>, drift: DriftBound) {
        self.bounds.request_sent(number, left_ns);
        if let Some(least) = least {
            self.left = Some(LocalFrame::new(number, left_ns, least.least_at(left_ns, drift)));
        }
    }

    /// The node has another root's time, which was in this interval: what the neighbour is told of frames is said in that time.
    pub(crate) fn restate(&mut self, interval: Option<[TimeBound; 2]>, drift: DriftBound) {
        let Some([least, most]) = interval else {
            (self.left, self.arrived) = (None, None);
            return;
        };
        if let Some(left) = &mut self.left {
            left.told.time_ns = least.least_at(left.local_ns, drift);
        }
        if let Some(arrived) = &mut self.arrived {
            arrived.told.time_ns = most.most_at(arrived.local_ns, drift);
        }
    }

    /// The next frame to it: what only the neighbour decides is filled in.
    pub(crate) fn next_frame(&mut self, frame: ExchangeFrame, now_ns: u64) -> ExchangeFrame {
        self.number = self.number.checked_add(1).unwrap_or(1);
        self.bounds.request_sent(self.number, now_ns);
        let to = self.instance.unwrap_or(0);
        let told = |frame: Option<LocalFrame>| frame.map(|frame| frame.told);
        ExchangeFrame { to, number: self.number, left: told(self.left), arrived: told(self.arrived), ..frame }
    }

    /// Number of the last frame sent to it.
    #[cfg(test)]
    pub(crate) fn sent_number(&self) -> u32 {
        self.number
    }
}
