//! One neighbour of a node: what it has said of the time, and what it is told.

use clock::bound::DriftBound;
use wire::exchange::{ExchangeFrame, FrameTime};
use wire::sync::{SyncEpoch, SyncMessage};

use crate::bounds::{NeighbourBounds, TimeBound};
use crate::duties::name_digest;

/// A neighbour, as frames on the link to it tell.
#[derive(Clone, Debug)]
pub(crate) struct NeighbourState {
    pub(crate) name: String,
    digest: u32,
    /// This node listens to it, or may have to.
    pub(crate) is_heard: bool,
    /// It listens to this node, or may have to.
    pub(crate) listens: bool,
    pub(crate) bounds: NeighbourBounds,
    /// The run of its daemon.
    instance: Option<u32>,
    scale: u32,
    epoch: SyncEpoch,
    handover_ns: u64,
    /// Of the last frame sent to it.
    number: u32,
    left: Option<FrameTime>,
    arrived: Option<FrameTime>,
    /// The last wave that came and was not looked at yet, and whose time it has.
    pub(crate) pending: Option<(SyncMessage, u32)>,
    /// On the oscillator, when a wave came last.
    pub(crate) wave_at: Option<u64>,
    /// And when the first one came in this run of its daemon.
    pub(crate) first_wave_at: Option<u64>,
    /// It was said that it has another plan.
    pub(crate) told_of_plan: bool,
    /// It was said that somebody else is on the link to it.
    pub(crate) told_of_stranger: bool,
}

impl NeighbourState {
    pub(crate) fn new(name: &str, drift: DriftBound) -> Self {
        Self {
            name: name.to_owned(),
            digest: name_digest(name),
            is_heard: false,
            listens: false,
            bounds: NeighbourBounds::new(drift),
            instance: None,
            scale: 0,
            epoch: SyncEpoch::default(),
            handover_ns: 0,
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

    /// Whether the frame is of this neighbour and not of somebody else on its link.
    pub(crate) fn sent(&self, frame: &ExchangeFrame) -> bool {
        frame.sender == self.digest
    }

    /// A frame came, not after `arrived_ns` on the oscillator, in a daemon's run of this `instance`.
    pub(crate) fn on_frame(&mut self, frame: &ExchangeFrame, arrived_ns: u64, instance: u32) {
        if self.instance != Some(frame.instance) {
            self.instance = Some(frame.instance);
            self.bounds.forget();
            (self.left, self.arrived, self.scale) = (None, None, 0);
            (self.wave_at, self.first_wave_at) = (None, None);
        }
        if let Some(wave) = &frame.wave {
            self.change_time(frame, wave);
        }
        self.bounds.wave_received(frame.number, arrived_ns);
        if let Some(wave) = frame.wave {
            let sent_ns = wave.timestamp.as_ps().saturating_add(wave.correction.as_ps());
            self.bounds.wave_left(frame.number, sent_ns.saturating_sub(wave.uncertainty.as_ps()));
            self.pending = Some((wave, frame.scale));
            self.wave_at = Some(arrived_ns);
            self.first_wave_at.get_or_insert(arrived_ns);
        }
        // What a request says is about the time that its sender has, which may be another one.
        if frame.scale != self.scale || frame.epoch != self.epoch {
            return;
        }
        if let Some(left) = frame.left {
            self.bounds.wave_left(left.number, left.time_ns);
        }
        if let Some(arrived) = frame.arrived.filter(|_| frame.to == instance) {
            self.bounds.request_arrived(arrived.number, arrived.time_ns);
        }
    }

    /// With another root the time has moved by what its waves say; it may also be another time altogether.
    fn change_time(&mut self, frame: &ExchangeFrame, wave: &SyncMessage) {
        let handover_ns = wave.handover.as_ps();
        if frame.scale != self.scale || handover_ns < self.handover_ns {
            self.bounds.forget();
        } else {
            self.bounds.widen(handover_ns - self.handover_ns);
        }
        (self.scale, self.epoch, self.handover_ns) = (frame.scale, frame.epoch, handover_ns);
    }

    /// What it is told next of its frame that came at `arrived_ns`, when the time is not after this.
    pub(crate) fn note_arrival(&mut self, number: u32, arrived_ns: u64, most: TimeBound, drift: DriftBound) {
        self.arrived = Some(FrameTime { number, time_ns: most.most_at(arrived_ns, drift) }).filter(|_| number != 0);
    }

    /// What it is told next of a frame that left, not before `left_ns`, when the time is not before this.
    pub(crate) fn note_departure(&mut self, number: u32, left_ns: u64, least: Option<TimeBound>, drift: DriftBound) {
        self.bounds.request_sent(number, left_ns);
        if let Some(least) = least {
            self.left = Some(FrameTime { number, time_ns: least.least_at(left_ns, drift) });
        }
    }

    /// What this node has said so far was about another root's time.
    pub(crate) fn forget_told(&mut self) {
        (self.left, self.arrived) = (None, None);
    }

    /// The next frame to it: what only the neighbour decides is filled in.
    pub(crate) fn next_frame(&mut self, frame: ExchangeFrame, now_ns: u64) -> ExchangeFrame {
        self.number = self.number.checked_add(1).unwrap_or(1);
        self.bounds.request_sent(self.number, now_ns);
        let to = self.instance.unwrap_or(0);
        ExchangeFrame { to, number: self.number, left: self.left, arrived: self.arrived, ..frame }
    }
}
