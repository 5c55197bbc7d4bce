//! Configuration of a link simulation.

use std::fmt;

use faults::{FaultSchedule, LossModel};
use guard::dummies::DummyPace;
use guard::reorder::ReorderBuild;
use guard::{LinkTiming, Params, copies_for};
use units::{Bytes, Prob, Rate, Span};
use wire::Seq;
use wire::ethernet::{MAX_FRAME, MIN_FRAME};
use wire::link::Class;

/// Protection that the link has against loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSimMode {
    /// No protection.
    None,
    Ordered,
    NonBlocking,
    /// Half of the frames in order, half as they come, on one link.
    Both,
    /// Follows the measured loss: in order, out of order or unprotected.
    Auto,
    UecLlr,
}

impl LinkSimMode {
    /// Modes, in the order in which they are listed.
    pub const ALL: [Self; 6] = [Self::Ordered, Self::NonBlocking, Self::Both, Self::Auto, Self::UecLlr, Self::None];

    /// Name of the mode, as options and files spell it.
    pub fn name(self) -> &'static str {
        self.described().0
    }

    /// Description of the mode in a few words.
    pub fn about(self) -> &'static str {
        self.described().1
    }

    fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Ordered => ("ordered", "Send again and keep the order"),
            Self::NonBlocking => ("nonblocking", "Send again, deliver as it comes"),
            Self::Both => ("both", "Half of the frames in either mode, on one link"),
            Self::Auto => ("auto", "In order, non-blocking or unprotected, as the measured loss demands"),
            Self::UecLlr => ("uec-llr", "Go-back-N in the manner of Ultra Ethernet's link-layer retry"),
            Self::None => ("none", "No protection"),
        }
    }

    /// True if lost frames are sent again in copies.
    pub fn has_copies(self) -> bool {
        !matches!(self, Self::None | Self::UecLlr)
    }
}

/// Hardware that the nodes are modelled on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardwareProfile {
    /// The paper's switch: rotating reorder buffer, measured latencies, its authors' parameters.
    Tofino,
    /// A sorted reorder buffer, no recirculation, computed parameters; any rate.
    Ideal,
}

/// Lengths of frames, check included.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameSizes {
    Fixed(u32),
    /// Sizes, each with its weight.
    Mix(Vec<(u32, f64)>),
}

impl FrameSizes {
    pub fn longest(&self) -> u32 {
        self.lengths().into_iter().max().unwrap_or(MIN_FRAME)
    }

    fn lengths(&self) -> Vec<u32> {
        match self {
            Self::Fixed(len) => vec![*len],
            Self::Mix(parts) => parts.iter().map(|(len, _)| *len).collect(),
        }
    }
}

/// Arrival process of frames at the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OfferedLoad {
    /// A frame always waits.
    Saturated,
    /// Sends at random, filling this share of the link.
    Poisson(f64),
    /// Sends at a fixed interval, as a packet generator does, filling this share of the link.
    Periodic(f64),
}

impl OfferedLoad {
    /// The share of the link that is offered, of 1.
    pub fn share(self) -> f64 {
        match self {
            Self::Saturated => 1.0,
            Self::Poisson(share) | Self::Periodic(share) => share,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct LinkSimConfig {
    pub rate: Rate,
    pub delay: Span,
    /// Time from the last bit of a frame until the node acts on it.
    pub pipeline: Span,
    pub profile: HardwareProfile,
    pub mode: LinkSimMode,
    pub sizes: FrameSizes,
    /// Frames from A to B on each link.
    pub frames: u64,
    pub load: OfferedLoad,
    /// Share of the link that frames from B to A fill.
    pub reverse_load: f64,
    /// Protects the frames of the reverse direction too.
    pub protect_reverse: bool,
    pub forward: FaultSchedule,
    pub reverse: FaultSchedule,
    pub target: Prob,
    /// Copies of a retransmission; from the loss and the target if not given, and then at most 8.
    pub copies: Option<u8>,
    pub control_copies: u8,
    /// Number of dummies sent together; without it, computed from the length of bursts.
    pub dummy_copies: Option<u8>,
    pub asks: u8,
    pub backpressure: bool,
    pub paper_acks: bool,
    pub endless_dummies: bool,
    /// Sends dummies, which find a loss that nothing follows.
    pub tail: bool,
    pub max_consecutive: Option<u32>,
    /// Instead of the profile's reorder buffer.
    pub reorder: Option<ReorderBuild>,
    pub first_seq: Seq,
    /// Links into one switch, all alike.
    pub links: u32,
    /// Memory that the reorder buffers of all links share.
    pub shared_reorder: Option<Bytes>,
    /// Simulate every frame.
    pub exact: bool,
    pub seed: u64,
}

impl Default for LinkSimConfig {
    fn default() -> Self {
        Self {
            rate: Rate::gbps(100),
            delay: Span::from_ns(50),
            pipeline: Span::from_ns(400),
            profile: HardwareProfile::Ideal,
            mode: LinkSimMode::Ordered,
            sizes: FrameSizes::Fixed(1_518),
            frames: 1_000_000_000,
            load: OfferedLoad::Saturated,
            reverse_load: 0.0,
            protect_reverse: false,
            forward: FaultSchedule::always(LossModel::PerFrame(Prob::literal(1e-3))),
            reverse: FaultSchedule::default(),
            target: Prob::literal(1e-8),
            copies: None,
            control_copies: 1,
            dummy_copies: None,
            asks: 1,
            backpressure: true,
            paper_acks: false,
            endless_dummies: false,
            tail: true,
            max_consecutive: None,
            reorder: None,
            first_seq: Seq::default(),
            links: 1,
            shared_reorder: None,
            exact: false,
            seed: 1,
        }
    }
}

/// Reports settings that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// Longest delay of a link: no cable on earth has more.
const LONGEST_DELAY: Span = Span::from_ms(1_000);

const MOST_DUMMIES: u8 = 16;

/// Longer than anything that is simulated frame by frame.
const NO_DUMMIES: Span = Span::from_ms(3_600_000);

/// More copies than this take more from a link than they give.
const MOST_COPIES: u8 = 8;

/// A 64-bit clock cannot distinguish runs longer than this from endless ones.
const LONGEST_RUN_SECS: f64 = 1.5e7;

impl LinkSimConfig {
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: String| Err(ConfigError(what));
        for len in self.sizes.lengths() {
            if !(MIN_FRAME..=MAX_FRAME).contains(&len) {
                return wrong(format!("frame size {len}: expected {MIN_FRAME} to {MAX_FRAME} bytes"));
            }
        }
        let load = self.load.share();
        if !(load > 0.0 && load <= 1.0) {
            return wrong(format!("load {load}: expected more than 0 and at most 1"));
        }
        if self.is_dead() && (self.mode == LinkSimMode::UecLlr || self.endless_dummies) {
            return wrong("loss 1: expected less with uec-llr or endless dummies, which never give up".into());
        }
        if !(0.0..=1.0).contains(&self.reverse_load) {
            return wrong(format!("reverse load {}: expected 0 to 1", self.reverse_load));
        }
        if self.profile == HardwareProfile::Tofino && !(Rate::gbps(10)..=Rate::gbps(100)).contains(&self.rate) {
            return wrong(format!("rate {}: the tofino profile knows 10G to 100G", self.rate));
        }
        if self.mode == LinkSimMode::UecLlr && self.profile == HardwareProfile::Tofino {
            return wrong("mode uec-llr: expected the ideal profile; nobody has built it on a Tofino".into());
        }
        if self.delay > LONGEST_DELAY {
            return wrong(format!("delay {}: expected at most {LONGEST_DELAY}", self.delay));
        }
        if self.links == 0 || self.links > 1_024 {
            return wrong(format!("links {}: expected 1 to 1024", self.links));
        }
        if let Some(shared) = self.shared_reorder {
            let least = (self.headroom() + Bytes::new(u64::from(self.sizes.longest()))) * u64::from(self.links);
            if shared < least {
                return wrong(format!(
                    "shared reorder buffer {shared}: expected at least {least} for {} links",
                    self.links
                ));
            }
        }
        let slowest = self.rate.span_of(Bytes::new(u64::from(self.sizes.longest()))).as_secs() * self.frames as f64;
        if slowest / load > LONGEST_RUN_SECS {
            return wrong(format!("{} frames at {}: expected less than 170 days of link time", self.frames, self.rate));
        }
        Ok(())
    }

    pub fn path(&self) -> LinkTiming {
        LinkTiming { rate: self.rate, delay: self.delay, pipeline: self.pipeline, mtu: self.sizes.longest(), burst: 5 }
    }

    /// Copies that the worst loss of the forward direction asks for.
    pub fn copies(&self) -> u8 {
        if let Some(copies) = self.copies {
            return copies;
        }
        let len = self.sizes.longest();
        let loss = self.forward.steps().iter().map(|(_, model)| model.mean_loss(len)).fold(0.0, f64::max);
        Prob::new(loss)
            .and_then(|loss| copies_for(loss, self.target))
            .map_or(MOST_COPIES, |(n, _)| n.clamp(1, MOST_COPIES))
    }

    /// Gives one dummy more than the average length of a burst, so that one of them gets through.
    fn dummies_for_bursts(&self) -> u8 {
        let length = |model: &LossModel| match model {
            LossModel::Bursts { leave, .. } if !leave.is_zero() => 1.0 / leave.get(),
            _ => 0.0,
        };
        let longest = self.forward.steps().iter().map(|(_, model)| length(model)).fold(0.0, f64::max);
        (longest.ceil() as u8).saturating_add(1).min(MOST_DUMMIES)
    }

    pub(super) fn params(&self) -> Params {
        let class = if self.mode == LinkSimMode::NonBlocking { Class::NonBlocking } else { Class::Ordered };
        let path = self.path();
        let mut params = match self.profile {
            HardwareProfile::Ideal => Params::ideal(&path, class, self.copies()),
            HardwareProfile::Tofino => Params::tofino(&path, class, self.copies()),
        };
        match self.mode {
            LinkSimMode::Both => params.classes = Class::ALL.to_vec(),
            LinkSimMode::Auto => params = params.automatic(&path, self.target),
            LinkSimMode::None | LinkSimMode::Ordered | LinkSimMode::NonBlocking | LinkSimMode::UecLlr => {}
        }
        params.control_copies = self.control_copies;
        params.dummies.copies = self.dummy_copies.unwrap_or_else(|| self.dummies_for_bursts());
        params.dummies.endless = self.endless_dummies;
        if !self.tail {
            params.dummies = DummyPace { copies: 0, after: Span::ZERO, every: NO_DUMMIES, endless: false };
        }
        params.asks = self.asks;
        params.paper_acks = self.paper_acks;
        params.max_consecutive = self.max_consecutive;
        params.first_seq = self.first_seq;
        if !self.backpressure {
            params.ordering.backpressure = None;
        }
        if let Some(build) = self.reorder {
            params.ordering.build = build;
        }
        params
    }

    /// True if a direction loses everything.
    fn is_dead(&self) -> bool {
        let models = self.forward.steps().iter().chain(self.reverse.steps());
        models.into_iter().any(|(_, model)| model.mean_loss(self.sizes.longest()) >= 1.0)
    }

    /// Part of a shared reorder buffer that each link needs for itself.
    pub(super) fn headroom(&self) -> Bytes {
        self.params().ordering.backpressure.map_or(Bytes::ZERO, |thresholds| thresholds.headroom)
    }

    /// Parameters of node A and of node B.
    pub(crate) fn both_params(&self) -> [Params; 2] {
        let sender = self.params();
        let mut receiver = Params { protects: self.protect_reverse, ..sender.clone() };
        receiver.dummies.endless &= self.protect_reverse;
        [sender, receiver]
    }
}
