//! One end of a protected link: the machine that owns a sender and a receiver for each class, and
//! decides what goes on the wire next.
//!
//! LinkGuardian (SIGCOMM'23) §3 (Fig. 5) and §3.5; both modes at once and both directions as §5 suggests.
//!
//! Each pull of the wire is served strictly in this order: life-cycle messages, notices, retransmissions, the dummy
//! of a class that ran dry while the other has frames, new frames unless paused, explicit
//! acknowledgements, dummies. An acknowledgement that is due rides on any frame that goes that way.
//!
//! The owner drives it as any [`Machine`]: [`Endpoint::new`] is dormant and passes frames on as they
//! are; [`EndpointCommand::Activate`] starts the handshake; [`EndpointEvent`]s report its result.

mod egress;
mod fast_path;
mod ingress;

use std::collections::VecDeque;

use machine::{FrameBody, Machine, Out, Port, Pull, QueueId};
use units::{Bytes, Prob, Span, Time};
use wire::Seq;
use wire::link::{Class, Epoch, LinkAgreement, SessionRefusal};

use crate::auto::{Auto, Level};
use crate::counters::Counters;
use crate::packet::LinkPacket;
use crate::params::Params;
use crate::pool::PoolShare;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::session::{Lifecycle, SessionIdentity, SessionState};
use crate::silence::Silence;

/// A link endpoint has one wire.
pub const WIRE: Port = Port(0);

/// The queue above that a class serves.
pub fn lane(class: Class) -> QueueId {
    QueueId(class as u8)
}

/// Timers of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointTimer {
    /// A missing frame is waited for no longer.
    Timeout(Class),
    /// A frame of the rotating reorder buffer comes round.
    Examine,
    /// A life-cycle message is repeated.
    Session,
}

impl From<EndpointTimer> for usize {
    fn from(key: EndpointTimer) -> usize {
        match key {
            EndpointTimer::Timeout(class) => class as usize,
            EndpointTimer::Examine => 2,
            EndpointTimer::Session => 3,
        }
    }
}

/// Commands of the owner to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EndpointCommand {
    /// Protect, and the peer too, though somebody may have deactivated it.
    Activate,
    /// Protect if the peer has not been deactivated: what an end does that was started and not asked.
    Offer,
    /// Do not protect until somebody asks for it, here or at the peer.
    Deactivate,
    /// Copies of each retransmission from now on.
    SetCopies(u8),
    /// The loss of what is sent here, as somebody else measured it: where the mode is chosen automatically, it and the
    /// copies follow at once. Elsewhere nothing does: copies are the owner's to set.
    Expect(Prob),
}

/// Reports of an endpoint to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// Frames are protected from now on.
    Activated,
    /// Frames pass unprotected from now on.
    Deactivated,
    /// Either end will not have it; [`Endpoint::peer_agreement`] says what the peer wants.
    Refused(SessionRefusal),
    /// The peer restarted or fell silent; what it had not acknowledged is gone.
    PeerLost,
    /// Fallback or return.
    Level(Level),
}

/// Facts for traces and measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum EndpointNote {
    /// Frames were found missing.
    Missing { class: Class, frames: u32 },
    /// A missing frame arrived, this long after it was found missing.
    Recovered { class: Class, after: Span },
    /// Missing frames are waited for no longer.
    GivenUp { class: Class, frames: u32 },
    /// A frame found the reorder buffer full.
    Overflow,
    /// The peer was asked to pause.
    Paused,
    /// The peer was asked to resume.
    Resumed,
}

/// Sender and receiver of one class.
#[derive(Debug)]
struct ClassPair<B> {
    class: Class,
    tx: Sender<B>,
    rx: Receiver<B>,
}

impl<B: FrameBody> ClassPair<B> {
    fn new(params: &Params, class: Class, peer_window: u32) -> Self {
        Self { class, tx: Sender::new(params, peer_window), rx: Receiver::new(params, class, peer_window) }
    }
}

/// One end of a protected link: a sender and a receiver for each class, and the life cycle.
///
/// A frame that the wire loses arrives all the same, and in its place:
///
/// ```
/// use guard::{Endpoint, LinkTiming, Params, endpoint::lane};
/// use testkit::{Duo, Fate, Side};
/// use units::{Rate, Span, Time};
/// use wire::link::Class;
///
/// let (slot, delay) = (Span::from_ns(123), Span::from_ns(300));
/// let path = LinkTiming { rate: Rate::gbps(100), delay, pipeline: Span::ZERO, mtu: 1_518, burst: 5 };
/// let params = Params::ideal(&path, Class::Ordered, 1);
/// let [left, right] = [(1, 2), (2, 1)].map(|(own, peer)| Endpoint::established(params.clone(), own, peer));
/// let mut link = Duo::new(left, right, slot, delay);
/// for number in 0..5 {
///     link.send(Side::Left, lane(Class::Ordered), vec![number; 1_518]);
/// }
/// let mut fates = [Fate::Arrives, Fate::Arrives, Fate::Lost].into_iter();
/// link.run(Time::NEVER, &mut |_, _| fates.next().unwrap_or(Fate::Arrives));
///
/// let numbers: Vec<u8> = link.delivered(Side::Right).iter().map(|frame| frame[0]).collect();
/// assert_eq!(numbers, [0, 1, 2, 3, 4]);
/// assert_eq!(link.machine(Side::Right).counters().recovered, 1);
/// ```
#[derive(Debug)]
pub struct Endpoint<B> {
    params: Params,
    copies: u8,
    life: Lifecycle,
    lines: Vec<ClassPair<B>>,
    /// Class that may send the next new frame, and class that may acknowledge next.
    turn: usize,
    ack_turn: usize,
    /// Class that may send the next copy.
    copy_turn: usize,
    /// Queue that may send the next unprotected frame.
    plain_turn: u8,
    /// Unprotected frames that came while protected ones were held: those go first.
    bare: VecDeque<B>,
    bare_bytes: Bytes,
    auto: Option<Auto>,
    /// Time since an acknowledgement last made sense.
    silence: Silence,
    counters: Counters,
    /// Frames of the peer's when the life cycle's timer last ran.
    heard: u64,
    tx_peak: Bytes,
    rx_peak: Bytes,
    /// Active, one class, nothing urgent: frames and acknowledgements may take the short way.
    smooth: bool,
}

impl<B: FrameBody> Endpoint<B> {
    /// A dormant end. `instance` distinguishes this incarnation of it from any other and from its peer's.
    pub fn new(params: Params, instance: u32) -> Self {
        let life = Lifecycle::new(
            instance,
            params.agreement(),
            params.session,
            params.control_copies.max(params.session_copies),
        );
        Self {
            copies: params.copies.max(1),
            auto: params.auto.map(|limits| Auto::new(limits, params.copies.max(1))),
            life,
            lines: lines(&params, params.first_seq, params.window_frames),
            params,
            turn: 0,
            ack_turn: 0,
            copy_turn: 0,
            plain_turn: 0,
            bare: VecDeque::new(),
            bare_bytes: Bytes::ZERO,
            silence: Silence::default(),
            counters: Counters::default(),
            heard: 0,
            tx_peak: Bytes::ZERO,
            rx_peak: Bytes::ZERO,
            smooth: false,
        }
    }

    /// An end that is active already; its peer must be made the same way, with the same parameters.
    pub fn established(params: Params, instance: u32, peer: u32) -> Self {
        let mut endpoint = Self::new(params, instance);
        endpoint.life.establish(peer);
        endpoint
    }

    /// State of the life cycle.
    pub fn state(&self) -> SessionState {
        self.life.state()
    }

    /// The epoch of frames sent now.
    pub fn epoch(&self) -> Epoch {
        self.life.epoch()
    }

    /// Identity that distinguishes the frames of this epoch from those of any other session.
    #[inline]
    pub fn identity(&self) -> SessionIdentity {
        self.life.identity()
    }

    /// Agreement that the peer last offered. It shows why the peer refused, or was refused.
    pub fn peer_agreement(&self) -> Option<LinkAgreement> {
        self.life.theirs()
    }

    /// Deactivated by command: only somebody's asking wakes it, here or at the peer.
    pub fn is_deactivated(&self) -> bool {
        self.life.rests()
    }

    /// The parameters that it was made with.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Agreement that this end asks of its peer.
    pub fn agreement(&self) -> LinkAgreement {
        self.params.agreement()
    }

    /// Copies of each retransmission, and the mode in force if that is chosen automatically.
    pub fn copies(&self) -> (u8, Option<Level>) {
        self.auto.as_ref().map_or((self.copies, None), |auto| (auto.copies(), Some(auto.level())))
    }

    /// Counters since the endpoint was made.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The highest that the Tx buffer has been.
    pub fn tx_peak(&self) -> Bytes {
        self.lines.iter().map(|line| line.tx.peak()).fold(self.tx_peak, Bytes::max)
    }

    /// The highest that the reorder buffer has been.
    pub fn rx_peak(&self) -> Bytes {
        self.lines.iter().map(|line| line.rx.peak()).fold(self.rx_peak, Bytes::max)
    }

    /// Bytes of frames sent and not yet acknowledged.
    pub fn tx_buffered(&self) -> Bytes {
        self.lines.iter().fold(Bytes::ZERO, |sum, line| sum + line.tx.buffered())
    }

    /// Bytes of frames that wait for their turn to be delivered.
    pub fn rx_held(&self) -> Bytes {
        self.lines.iter().fold(Bytes::ZERO, |sum, line| sum + line.rx.held())
    }

    /// True if nothing is being recovered, waited for or held back: the next frame will pass as the last did. Frames may still
    /// be held, because a rotating buffer keeps its length.
    pub fn is_calm(&self) -> bool {
        let calm = |line: &ClassPair<B>| !line.tx.is_paused() && !line.tx.is_retransmitting() && line.rx.is_calm();
        matches!(self.life.state(), SessionState::Active | SessionState::Dormant) && self.lines.iter().all(calm)
    }

    /// True if something is missing, held or being sent again, or the link is about to close: the next event should not
    /// wait.
    pub fn is_recovering(&self) -> bool {
        let busy = |line: &ClassPair<B>| line.tx.is_retransmitting() || !line.rx.is_calm();
        self.life.state() == SessionState::Closing || self.lines.iter().any(busy)
    }

    /// A number that is equal for two calm ends that will treat the next frame received alike, regardless
    /// of the time and the sequence numbers.
    pub fn fingerprint(&self, now: Time) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for line in &self.lines {
            line.rx.fingerprint(now, |value| hash = (hash ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23));
        }
        hash
    }

    /// All frames sent are acknowledged or given up.
    pub fn is_drained(&self) -> bool {
        self.lines.iter().all(|line| line.tx.is_drained())
    }

    /// Sets the size that the switch allows this link's reorder buffer.
    pub fn limit_reorder<O: Out<Self>>(&mut self, share: PoolShare, out: &mut O) {
        self.smooth = false;
        for line in &mut self.lines {
            line.rx.limit(share, &mut self.counters, out);
        }
        self.wake_if_urgent(out);
    }

    fn wake_if_urgent<O: Out<Self>>(&mut self, out: &mut O) {
        if self.life.has_message() || self.lines.iter().any(|line| line.rx.owes_notice()) {
            out.wake(WIRE);
        }
    }
}

fn lines<B: FrameBody>(params: &Params, first_seq: Seq, peer_window: u32) -> Vec<ClassPair<B>> {
    let params = Params { first_seq, ..params.clone() };
    params.classes.iter().map(|class| ClassPair::new(&params, *class, peer_window)).collect()
}

impl<B: FrameBody> Machine for Endpoint<B> {
    type Frame = LinkPacket<B>;
    type Inner = B;
    type Timer = EndpointTimer;
    type Command = EndpointCommand;
    type Done = EndpointEvent;
    type Note = EndpointNote;

    fn on_frame<O: Out<Self>>(&mut self, now: Time, _port: Port, packet: LinkPacket<B>, out: &mut O) {
        if !self.smooth {
            self.on_packet(now, packet, out);
        } else if let Some(packet) = self.on_frame_smoothly(now, packet, out) {
            self.on_packet(now, packet, out);
        }
    }

    fn on_timer<O: Out<Self>>(&mut self, now: Time, key: EndpointTimer, out: &mut O) {
        self.smooth = false;
        match key {
            EndpointTimer::Timeout(class) => {
                if let Some(line) = self.lines.iter_mut().find(|line| line.class == class) {
                    line.rx.on_timeout(now, &mut self.counters, out);
                    out.wake(WIRE);
                }
            }
            EndpointTimer::Examine => {
                if let Some(line) = self.lines.iter_mut().find(|line| line.class == Class::Ordered) {
                    line.rx.on_turn(now, &mut self.counters, out);
                }
                self.wake_if_urgent(out);
            }
            EndpointTimer::Session => {
                let count =
                    |counters: &Counters| counters.rx_ok + counters.rx_dummy + counters.rx_ack + counters.rx_nack;
                let heard = count(&self.counters);
                let step = self.life.on_retry(now, heard != self.heard);
                self.heard = heard;
                self.follow(now, step, out);
                self.set_session_timer(now, out);
                out.wake(WIRE);
            }
        }
        self.release_bare(out);
        self.try_to_close(now, out);
    }

    fn on_command<O: Out<Self>>(&mut self, now: Time, command: EndpointCommand, out: &mut O) {
        self.smooth = false;
        match command {
            EndpointCommand::Activate => self.life.activate(true),
            EndpointCommand::Offer => self.life.activate(false),
            EndpointCommand::Deactivate => {
                if self.life.deactivate(now) {
                    out.complete(EndpointEvent::Deactivated);
                }
                self.try_to_close(now, out);
            }
            EndpointCommand::SetCopies(copies) => self.copies = copies.max(1),
            EndpointCommand::Expect(loss) => {
                if let Some(auto) = &mut self.auto
                    && auto.expect(loss)
                {
                    out.complete(EndpointEvent::Level(auto.level()));
                }
            }
        }
        self.set_session_timer(now, out);
        out.wake(WIRE);
    }

    fn pull<O: Out<Self>>(&mut self, now: Time, _port: Port, out: &mut O) -> Pull {
        if self.smooth
            && let Some(pull) = self.pull_smoothly(out)
        {
            return pull;
        }
        let pull = self.pull_by_priority(now, out);
        self.smooth = self.is_smooth();
        pull
    }
    /// Unprotected frames wait only for protected ones, within the limit; the short way is open only while nothing is urgent.
    fn check_invariants(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        for line in &self.lines {
            line.tx.check_invariants();
            line.rx.check_invariants();
        }
        let bare =
            self.bare.iter().map(|body| Bytes::new(u64::from(body.len()))).fold(Bytes::ZERO, |sum, len| sum + len);
        assert_eq!(bare, self.bare_bytes, "bytes that wait unprotected");
        assert!(bare <= self.params.ordering.limit, "{bare:?} wait unprotected");
        assert!(self.bare.is_empty() || !self.is_empty(), "unprotected frames wait for nothing");
        assert!(!self.smooth || self.is_smooth(), "the short way is open while something is urgent");
    }
}
