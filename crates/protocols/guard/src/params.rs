//! Parameters: computed from what the link is, not guessed.
//!
//! LinkGuardian (SIGCOMM'23) App. B.1. A recovery takes a notice one way and the copies the other; the
//! timeout lies a quarter above the longest one expected, as the paper's does. The reorder buffer must
//! not run dry between the decision to resume and the first frame that follows from it; pausing comes
//! two frames above that, and what is still in flight then must fit on top.
//!
//! [`Params::ideal`] computes all of it for any rate; [`Params::tofino`] has the values that the
//! paper's authors measured on their switch; [`Params::host`] suits a program that is not always running.

use units::{Bytes, Prob, Rate, Span};
use wire::Seq;
use wire::ethernet::on_wire;
use wire::link::{Class, Gap, LinkAgreement, VERSION};

use crate::backpressure::PauseThresholds;
use crate::dummies::DummyPace;
use crate::reorder::ReorderBuild;
use crate::session::SessionTiming;

/// The link and the two nodes at its ends, as far as timing goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTiming {
    /// Rate of the wire.
    pub rate: Rate,
    /// Propagation, one way.
    pub delay: Span,
    /// Time from the last bit of a frame until the node acts on it.
    pub pipeline: Span,
    /// The longest frame.
    pub mtu: u32,
    /// Losses in a row that should still be recovered in time.
    pub burst: u32,
}

impl LinkTiming {
    fn frame(&self) -> Span {
        // Header and acknowledgement come on top of the longest frame.
        self.rate.span_of(Bytes::new(u64::from(on_wire(self.mtu + 6))))
    }

    fn control(&self) -> Span {
        self.rate.span_of(Bytes::new(u64::from(on_wire(0))))
    }

    fn one_way(&self) -> Span {
        self.delay + self.pipeline
    }

    /// A control frame that finds a full frame just begun before it.
    fn notice(&self) -> Span {
        self.frame() + self.control() + self.one_way()
    }

    /// Longest time from the detection of a loss to the last of its copies, if a whole burst must be sent again.
    pub(crate) fn longest_recovery(&self, copies: u8) -> Span {
        self.notice() + self.frame() * (1 + u64::from(self.burst) * u64::from(copies)) + self.one_way()
    }

    /// Time from the decision to pause or resume until frames stop or come again.
    pub(crate) fn turnaround(&self) -> Span {
        self.notice() + self.frame() + self.one_way()
    }

    /// Time from sending a frame to its acknowledgement.
    pub fn round_trip(&self) -> Span {
        self.frame() + self.one_way() + self.notice()
    }
}

/// Settings for the reception of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderingParams {
    /// Build of the reorder buffer.
    pub build: ReorderBuild,
    /// The most bytes that it holds.
    pub limit: Bytes,
    /// `None` leaves the buffer to overflow, as in the paper's Fig. 9b.
    pub backpressure: Option<PauseThresholds>,
}

/// Limits between which the mode is chosen automatically; see [`crate::auto`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoLimits {
    /// Loss rate that the copies aim for.
    pub target: Prob,
    /// Frames over which loss is measured.
    pub window: u32,
    /// Loss above which keeping order costs more than it is worth.
    pub ordered_up_to: Prob,
    /// Loss above which protection costs more than it is worth.
    pub protect_up_to: Prob,
    /// Windows of the same verdict before the mode changes.
    pub patience: u8,
    /// Frames sent unprotected before protection is tried again.
    pub rest: u64,
}

/// Configuration of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Classes that the link carries. Each serves the lane of its number; while the link is active, nothing is taken from a
    /// lane whose class is not among them.
    pub classes: Vec<Class>,
    /// Protects the frames that this end sends; otherwise it only acknowledges those that it receives.
    pub protects: bool,
    /// Copies of each retransmission (N of Eq. 2).
    pub copies: u8,
    /// Copies of each notice and life-cycle message, for links that corrupt both ways.
    pub control_copies: u8,
    /// Copies of each life-cycle message at least: the last one of all is not answered.
    pub session_copies: u8,
    /// Pace of dummies.
    pub dummies: DummyPace,
    /// Frames in order for each acknowledgement. A gap or a dummy is answered at once, so this costs the
    /// sender buffer, never time.
    pub ack_every: u8,
    /// Puts an acknowledgement, due or not, on every frame that goes the other way: it costs the wire three bytes, and
    /// where frames answer each other it saves a dummy and its answer.
    pub eager_acks: bool,
    /// The most frames outstanding in a class.
    pub window_frames: u32,
    /// The most bytes outstanding in a class.
    pub window_bytes: Bytes,
    /// The longest frame, frame check included.
    pub mtu: u32,
    /// Bytes by which a frame may be longer than `mtu`: those of a second VLAN tag. The ends do not agree on it.
    pub second_tag: u32,
    /// The paper's ackNoTimeout.
    pub timeout: Span,
    /// Losses in a row that `timeout` covers, and what is added to it for each one more.
    pub burst: u32,
    /// Added to `timeout` for each loss in a row beyond `burst`.
    pub timeout_each: Span,
    /// Number of timeouts for which a missing frame is waited for before it is given up. After each it is asked for again,
    /// unless the answer takes longer than that by what was measured; see `crate::round_trip`.
    pub asks: u8,
    /// Number of further timeouts if the peer is not heard of meanwhile.
    pub unheard_asks: u8,
    /// Settings for the order of frames of the ordered class.
    pub ordering: OrderingParams,
    /// Follows App. A.2: acknowledgements do not list the gaps still open, so that a lost notice loses its frame.
    pub paper_acks: bool,
    /// Most losses in a row that are asked for, as in §3.5; `None` for no limit. The paper has 5.
    pub max_consecutive: Option<u32>,
    /// First sequence number of the first epoch.
    pub first_seq: Seq,
    /// Times of the life cycle.
    pub session: SessionTiming,
    /// Time after which a peer that does not answer counts as gone. Time counts only while
    /// dummies go out, see `crate::silence`.
    pub patience: Span,
    /// Limits of the automatic mode; `None` keeps the mode as it is.
    pub auto: Option<AutoLimits>,
    /// Number of the way in which the driver seals frames; both ends must do it alike. Zero for no seal.
    pub seal: u8,
}

/// Few enough that the sender's buffer grows by less than a round trip's worth.
const ACK_EVERY: u8 = 4;

impl Params {
    /// A sorted reorder buffer and no recirculation, for any rate.
    pub fn ideal(path: &LinkTiming, class: Class, copies: u8) -> Self {
        let timeout = path.longest_recovery(copies).scale(1.25);
        let in_flight = path.rate.bytes_in(path.turnaround());
        let frame = Bytes::new(u64::from(path.mtu));
        let resume_at = in_flight;
        let pause_at = resume_at + frame * 2;
        let headroom = in_flight + frame * 2;
        let window_bytes = path.rate.bytes_in(path.round_trip() + timeout) + frame * u64::from(4 + ACK_EVERY);
        Self {
            classes: vec![class],
            protects: true,
            copies,
            control_copies: 1,
            session_copies: 1,
            dummies: DummyPace { copies: 1, after: Span::ZERO, every: path.round_trip(), endless: false },
            ack_every: ACK_EVERY,
            eager_acks: false,
            window_frames: (window_bytes.get() / u64::from(on_wire(0))).clamp(16, u64::from(Seq::MAX_WINDOW)) as u32,
            window_bytes,
            mtu: path.mtu,
            second_tag: 0,
            timeout,
            burst: path.burst,
            timeout_each: path.frame() * u64::from(copies),
            asks: 1,
            unheard_asks: 0,
            ordering: OrderingParams {
                build: ReorderBuild::Sorted,
                limit: pause_at + headroom,
                backpressure: Some(PauseThresholds { pause_at, resume_at, headroom }),
            },
            paper_acks: false,
            max_consecutive: None,
            first_seq: Seq::default(),
            session: SessionTiming { retry: path.round_trip() * 4, linger: path.round_trip() * 260, heartbeat: None },
            patience: path.round_trip() * 1_000,
            auto: None,
            seal: 0,
        }
    }

    /// For a program on a host, which may not get to run for tens of milliseconds: a missing frame is asked
    /// for again, after two milliseconds or the measured round trip, until `give_up_after`, and three times as long if the
    /// peer is silent meanwhile: then it does not run either. That makes at most six questions in 50 ms, and eight in
    /// 150. The sender's window bounds what is held at
    /// either end, so nobody has to be paused.
    pub fn host(mtu: u32, class: Class, copies: u8, window_frames: u32, give_up_after: Span) -> Self {
        const ASK_EVERY: Span = Span::from_ms(2);
        const LONGEST: Span = Span::from_ms(160);
        let asks = (give_up_after.as_ps() / ASK_EVERY.as_ps()).clamp(1, u64::from(Gap::MAX_ROUND));
        let window_bytes = Bytes::new(u64::from(mtu)) * u64::from(window_frames);
        Self {
            classes: vec![class],
            protects: true,
            copies,
            control_copies: 1,
            session_copies: 3,
            dummies: DummyPace { copies: 1, after: Span::from_us(40), every: Span::from_us(300), endless: false },
            ack_every: 16,
            eager_acks: true,
            window_frames,
            window_bytes,
            mtu,
            second_tag: 0,
            timeout: give_up_after / asks,
            burst: window_frames,
            timeout_each: Span::ZERO,
            asks: asks as u8,
            // In all below TCP's own 200 ms.
            unheard_asks: (LONGEST.saturating_sub(give_up_after).as_ps() / ASK_EVERY.as_ps()).min(asks * 2) as u8,
            ordering: OrderingParams { build: ReorderBuild::Sorted, limit: window_bytes, backpressure: None },
            paper_acks: false,
            max_consecutive: None,
            first_seq: Seq::default(),
            session: SessionTiming {
                retry: Span::from_ms(100),
                linger: Span::from_ms(1_000),
                heartbeat: Some(Span::from_ms(250)),
            },
            patience: Span::from_ms(300),
            auto: None,
            seal: 0,
        }
    }

    /// The values of the paper's switch, measured at 25G and at 100G (§4, App. B.1): timeout, buffers, thresholds, and the build of the
    /// reorder buffer. Acknowledgements that list open gaps, dummies that end and the lack of a limit of five are ours, as in
    /// [`Self::ideal`], because they do not move the results: the paper's set (`paper_acks`, `dummies.endless`, `max_consecutive`) has the
    /// same speed at 100G (means of four runs of a million frames: 0.917 and 0.917 at a loss of 1e-3, 0.592 and 0.595 at 1e-2, 0.327 and
    /// 0.329 at 5e-2), and an effective loss of 2.5e-5 instead of 1.9e-5 at 5e-2.
    pub fn tofino(path: &LinkTiming, class: Class, copies: u8) -> Self {
        let fast = path.rate >= Rate::gbps(100);
        let (timeout, resume_at) = if fast { (Span::from_us(7), 37_000) } else { (Span::from_ns(7_500), 40_000) };
        let buffer = Bytes::new(200_000);
        let resume_at = Bytes::new(resume_at);
        let frame = Bytes::new(u64::from(path.mtu));
        let pause_at = resume_at + frame * 2;
        // A pause takes 0.8 µs to take effect (our calibration); what left before then still arrives.
        let headroom = path.rate.bytes_in(Span::from_ns(800) + path.frame() + path.one_way()) + frame * 2;
        Self {
            timeout,
            ack_every: 1,
            window_bytes: buffer,
            window_frames: 4_096,
            ordering: OrderingParams {
                build: ReorderBuild::TOFINO,
                limit: buffer,
                backpressure: Some(PauseThresholds { pause_at, resume_at, headroom }),
            },
            ..Self::ideal(path, class, copies)
        }
    }

    /// The mode chosen by measurement: both classes agreed, limits from what each loss costs.
    ///
    /// Keeping order stalls the link for up to a recovery per loss, and is worth it while that is less
    /// than a fifth of the time; copies take wire time from new frames, and are worth it likewise.
    pub fn automatic(self, path: &LinkTiming, target: Prob) -> Self {
        let frames_per_recovery = path.longest_recovery(2).as_ps() as f64 / path.frame().as_ps() as f64;
        self.automatic_up_to(Prob::literal((0.2 / frames_per_recovery).min(0.05)), target)
    }

    /// Chooses the mode automatically; above a loss of `ordered_up_to` frames are no longer kept in order.
    pub fn automatic_up_to(mut self, ordered_up_to: Prob, target: Prob) -> Self {
        self.classes = Class::ALL.to_vec();
        self.auto = Some(AutoLimits {
            target,
            window: 20_000,
            ordered_up_to,
            protect_up_to: Prob::literal(0.1),
            patience: 2,
            rest: 1_000_000,
        });
        self
    }

    /// Agreement that this end asks of its peer.
    pub fn agreement(&self) -> LinkAgreement {
        LinkAgreement {
            version: VERSION,
            classes: self.classes.iter().fold(0, |bits, class| bits | 1 << (*class as u8)),
            protects: self.protects,
            seal: self.seal,
            window: u16::try_from(self.window_frames).unwrap_or(u16::MAX),
            mtu: u16::try_from(self.mtu).unwrap_or(u16::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(gbps: u64) -> LinkTiming {
        LinkTiming {
            rate: Rate::gbps(gbps),
            delay: Span::from_ns(100),
            pipeline: Span::from_ns(400),
            mtu: 1_518,
            burst: 5,
        }
    }

    #[test]
    fn thresholds_leave_room_for_what_is_in_flight() {
        for gbps in [1, 10, 100, 400, 1_600] {
            let params = Params::ideal(&path(gbps), Class::Ordered, 2);
            let thresholds = params.ordering.backpressure.unwrap();
            assert!(thresholds.resume_at < thresholds.pause_at);
            assert!(thresholds.pause_at + thresholds.headroom <= params.ordering.limit);
            assert!(params.timeout > path(gbps).longest_recovery(2));
            assert!(params.window_frames <= Seq::MAX_WINDOW);
        }
    }

    #[test]
    fn the_tofino_profile_has_the_papers_values() {
        let slow = Params::tofino(&path(25), Class::Ordered, 1);
        let fast = Params::tofino(&path(100), Class::Ordered, 1);
        assert_eq!((slow.timeout, fast.timeout), (Span::from_ns(7_500), Span::from_us(7)));
        let resume = |params: &Params| params.ordering.backpressure.unwrap().resume_at;
        assert_eq!((resume(&slow), resume(&fast)), (Bytes::new(40_000), Bytes::new(37_000)));
    }
}
