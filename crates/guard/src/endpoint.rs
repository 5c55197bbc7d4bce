//! One end of a protected link: the machine that owns a sender and a receiver for each class, and
//! decides what goes on the wire next.
//!
//! LinkGuardian (SIGCOMM'23) §3 (Fig. 5) and §3.5; both modes at once and both directions as §5 suggests.
//!
//! When the wire pulls, strictly in this order: life-cycle messages, notices, retransmissions, the dummy
//! of a class that ran dry while the other has frames, new frames unless paused, explicit
//! acknowledgements, dummies. An acknowledgement that is due rides on whatever goes that way anyway.
//!
//! The owner drives it as any [`Machine`]: [`Endpoint::new`] is dormant and passes frames on as they
//! are; [`Command::Activate`] starts the handshake; [`Event`]s tell how it went.

use std::collections::VecDeque;

use machine::{Lane, Machine, Out, Port, Pull};
use units::{Bytes, Span, Time};
use wire::link::{Class, Feedback, Header, Kind, Refusal};

use crate::auto::{Auto, Level};
use crate::counters::Counters;
use crate::packet::{Body, Packet};
use crate::params::Params;
use crate::pool::Share;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::session::{Lifecycle, State, Step};

/// A link endpoint has one wire.
pub const WIRE: Port = Port(0);

/// The queue above that a class serves.
pub fn lane(class: Class) -> Lane {
    Lane(class as u8)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKey {
    /// A missing frame is waited for no longer.
    Timeout(Class),
    /// A frame of the rotating reorder buffer comes round.
    Examine,
    /// A life-cycle message is repeated.
    Session,
}

impl TimerKey {
    pub const ALL: [Self; 4] =
        [Self::Timeout(Class::Ordered), Self::Timeout(Class::NonBlocking), Self::Examine, Self::Session];
}

impl From<TimerKey> for usize {
    fn from(key: TimerKey) -> usize {
        match key {
            TimerKey::Timeout(class) => class as usize,
            TimerKey::Examine => 2,
            TimerKey::Session => 3,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Activate,
    Deactivate,
    /// Copies of each retransmission from now on.
    SetCopies(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Activated,
    Deactivated,
    Refused(Refusal),
    /// The peer restarted or fell silent; what it had not acknowledged is gone.
    PeerLost,
    /// Fallback or return.
    Level(Level),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    Missing { class: Class, frames: u32 },
    Recovered { class: Class, after: Span },
    GivenUp { class: Class, frames: u32 },
    Overflow,
    Paused,
    Resumed,
}

/// Both directions of one class.
#[derive(Debug)]
struct Line<B> {
    class: Class,
    tx: Sender<B>,
    rx: Receiver<B>,
}

impl<B: Body> Line<B> {
    fn new(params: &Params, class: Class) -> Self {
        Self { class, tx: Sender::new(params), rx: Receiver::new(params, class) }
    }
}

#[derive(Debug)]
pub struct Endpoint<B> {
    params: Params,
    copies: u8,
    life: Lifecycle,
    lines: Vec<Line<B>>,
    /// Which class may send the next new frame, and which may acknowledge next.
    turn: usize,
    ack_turn: usize,
    /// Unprotected frames that came while protected ones were held: those go first.
    bare: VecDeque<B>,
    auto: Option<Auto>,
    /// Dummies sent since an acknowledgement last made sense.
    unanswered: u32,
    counters: Counters,
    tx_peak: Bytes,
    rx_peak: Bytes,
    /// Active, one class, nothing urgent: frames and acknowledgements may take the short way.
    smooth: bool,
}

impl<B: Body> Endpoint<B> {
    /// A dormant end. `instance` tells this life of it from any other and from its peer's.
    pub fn new(params: Params, instance: u32) -> Self {
        let life = Lifecycle::new(instance, params.agreement(), params.retry, params.control_copies);
        Self {
            copies: params.copies.max(1),
            auto: params.auto.map(|limits| Auto::new(limits, params.copies.max(1))),
            life,
            lines: lines(&params),
            params,
            turn: 0,
            ack_turn: 0,
            bare: VecDeque::new(),
            unanswered: 0,
            counters: Counters::default(),
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

    pub fn state(&self) -> State {
        self.life.state()
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The highest that the Tx buffer has been.
    pub fn tx_peak(&self) -> Bytes {
        self.lines.iter().map(|line| line.tx.peak()).fold(self.tx_peak, Bytes::max)
    }

    /// The highest that the reorder buffer has been.
    pub fn rx_peak(&self) -> Bytes {
        self.lines.iter().map(|line| line.rx.peak()).fold(self.rx_peak, Bytes::max)
    }

    pub fn tx_buffered(&self) -> Bytes {
        self.lines.iter().fold(Bytes::ZERO, |sum, line| sum + line.tx.buffered())
    }

    pub fn rx_held(&self) -> Bytes {
        self.lines.iter().fold(Bytes::ZERO, |sum, line| sum + line.rx.held())
    }

    /// Nothing is being recovered, waited for or held back: the next frame will pass as the last did.
    /// Frames may still be held: a rotating buffer in order stays as long as it is.
    pub fn is_calm(&self) -> bool {
        let calm = |line: &Line<B>| !line.tx.is_paused() && !line.tx.is_retransmitting() && line.rx.is_calm();
        matches!(self.life.state(), State::Active | State::Dormant) && self.lines.iter().all(calm)
    }

    /// A number that is equal for two calm ends that will treat the next frame received alike, whatever
    /// the time and the sequence numbers.
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

    /// The switch lets this link's reorder buffer have so much.
    pub fn limit_reorder<O: Out<Self>>(&mut self, share: Share, out: &mut O) {
        self.smooth = false;
        for line in &mut self.lines {
            line.rx.limit(share, &mut self.counters, out);
        }
        self.wake_if_urgent(out);
    }

    fn is_smooth(&self) -> bool {
        let urgent = |line: &Line<B>| line.rx.owes_notice() || line.tx.has_requests();
        self.life.state() == State::Active
            && self.lines.len() == 1
            && self.auto.is_none()
            && !self.life.has_message()
            && self.bare.is_empty()
            && !self.lines.iter().any(urgent)
    }

    /// The short way for what nearly every frame is: the next one, or its acknowledgement. Gives the
    /// packet back if it is anything else.
    #[inline(always)]
    fn on_frame_smoothly<O: Out<Self>>(&mut self, now: Time, packet: Packet<B>, out: &mut O) -> Option<Packet<B>> {
        let epoch = self.life.epoch();
        let line = &mut self.lines[0];
        if let Some(seq) = packet.header.as_data(epoch, line.class) {
            let Some(body) = packet.body else { return Some(packet) };
            self.counters.rx_ok += 1;
            line.rx.on_data(now, seq, body, &mut self.counters, out);
            self.smooth = !line.rx.owes_notice();
            if line.rx.owes_ack() || !self.smooth {
                out.wake(WIRE);
            }
        } else if let Some((latest, wish)) = packet.header.as_ack(epoch, line.class)
            && packet.body.is_none()
            && line.tx.is_in_order()
        {
            self.counters.rx_ack += 1;
            let fresh = line.tx.is_fresh(latest);
            match line.tx.on_ack(latest, wish, out) {
                Ok(()) if fresh => self.unanswered = 0,
                Ok(()) => {}
                Err(_) => self.counters.rx_bad += 1,
            }
            out.wake(WIRE);
        } else {
            return Some(packet);
        }
        None
    }

    /// The short way out: a new frame, or else the acknowledgement that is due.
    #[inline(always)]
    fn pull_smoothly<O: Out<Self>>(&mut self, out: &mut O) -> Option<Pull> {
        let epoch = self.life.epoch();
        let line = &mut self.lines[0];
        if self.params.protects {
            if let Some(body) = line.tx.take(lane(line.class), &mut self.counters, out) {
                let seq = line.tx.push(out.keep(&body));
                self.counters.tx_ok += 1;
                let feedback = line.rx.owes_ack().then(|| line.rx.acknowledge());
                out.transmit(WIRE, Packet::new(epoch, Kind::Data(line.class, seq), feedback, Some(body)));
                return Some(Pull::Sent);
            }
        } else if out.waiting(Lane(0)) || out.waiting(Lane(1)) {
            return None;
        }
        if !line.rx.owes_ack() {
            return (!line.tx.wants_dummies()).then_some(Pull::Idle);
        }
        self.counters.tx_ack += 1;
        out.transmit(WIRE, Packet::new(epoch, Kind::Ack, Some(line.rx.acknowledge()), None));
        Some(if line.tx.wants_dummies() { Pull::Sent } else { Pull::Last })
    }

    fn level(&self) -> Option<Level> {
        self.auto.as_ref().map(Auto::level)
    }

    /// The queue that feeds a class now; none if its frames go another way.
    fn feed(&self, class: Class) -> Option<Lane> {
        if self.life.state() != State::Active || !self.params.protects {
            return None;
        }
        match self.level() {
            None => Some(lane(class)),
            Some(Level::Ordered) => (class == Class::Ordered).then_some(Lane(0)),
            Some(Level::NonBlocking) => (class == Class::NonBlocking).then_some(Lane(0)),
            Some(Level::Off) => None,
        }
    }

    fn passes_plain(&self) -> bool {
        match self.life.state() {
            State::Dormant | State::Asking | State::Answering => true,
            State::Active => !self.params.protects || self.level() == Some(Level::Off),
            State::Closing => false,
        }
    }

    #[inline]
    fn transmit<O: Out<Self>>(&self, kind: Kind, feedback: Option<Feedback>, body: Option<B>, out: &mut O) {
        out.transmit(WIRE, Packet::new(self.life.epoch(), kind, feedback, body));
    }

    /// The acknowledgement that is due, to ride on a frame.
    #[inline]
    fn due_feedback(&mut self) -> Option<Feedback> {
        let first = self.ack_turn;
        let at = (first..self.lines.len()).chain(0..first).find(|at| self.lines[*at].rx.owes_ack())?;
        // The other class first next time: one that always owes must not keep the other from its turn.
        self.ack_turn = if at + 1 < self.lines.len() { at + 1 } else { 0 };
        Some(self.lines[at].rx.acknowledge())
    }

    fn wake_if_urgent<O: Out<Self>>(&mut self, out: &mut O) {
        if self.life.has_message() || self.lines.iter().any(|line| line.rx.owes_notice()) {
            out.wake(WIRE);
        }
    }

    /// Any packet at all.
    #[inline(never)]
    fn on_packet<O: Out<Self>>(&mut self, now: Time, packet: Packet<B>, out: &mut O) {
        self.smooth = false;
        if packet.header.kind() == Kind::Bare {
            return match packet.body {
                Some(body) => self.on_bare(body, out),
                None => self.counters.rx_bad += 1,
            };
        }
        self.on_header(now, &packet.header, packet.body, out);
        self.release_bare(out);
        self.try_to_close(now, out);
        out.wake(WIRE);
    }

    /// A frame as it came. Protected frames that are still held came before it, from a sender that has
    /// restarted since; they go first. It may also be a stranger's, so they are not given up for it.
    fn on_bare<O: Out<Self>>(&mut self, body: B, out: &mut O) {
        if self.auto.is_some() || self.is_empty() {
            return self.pass_up(body, out);
        }
        self.bare.push_back(body);
        let waiting = self.bare.iter().fold(0, |sum, body| sum + u64::from(body.len()));
        if Bytes::new(waiting) > self.params.ordering.limit {
            for line in &mut self.lines {
                line.rx.flush(&mut self.counters, out);
            }
            self.release_bare(out);
        }
        out.wake(WIRE);
    }

    /// Everything received is delivered.
    fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.rx.is_empty())
    }

    fn release_bare<O: Out<Self>>(&mut self, out: &mut O) {
        while !self.bare.is_empty() && self.is_empty() {
            if let Some(body) = self.bare.pop_front() {
                self.pass_up(body, out);
            }
        }
    }

    #[inline]
    fn on_header<O: Out<Self>>(&mut self, now: Time, header: &Header, body: Option<B>, out: &mut O) {
        let kind = header.kind();
        if !self.life.accepts(header.epoch()) || kind == Kind::Session {
            return self.on_other(now, header, body, out);
        }
        if self.life.state() == State::Answering {
            let step = self.life.on_frame_of_epoch();
            self.follow(now, step, out);
        }
        if let Some(feedback) = header.feedback() {
            self.on_feedback(&feedback, kind, out);
        }
        self.on_kind(now, kind, body, out);
    }

    /// Life-cycle messages, and frames of another epoch.
    #[cold]
    fn on_other<O: Out<Self>>(&mut self, now: Time, header: &Header, body: Option<B>, out: &mut O) {
        if let Some(message) = header.message() {
            let before = self.life.state();
            let step = self.life.on_message(message);
            self.follow(now, step, out);
            // Only then: a peer that keeps talking must not put off our own repetition for ever.
            if self.life.state() != before {
                self.set_session_timer(now, out);
            }
            return body.into_iter().for_each(|body| out.release(body));
        }
        self.counters.rx_old_epoch += 1;
        self.life.on_strange_frame(now, header.epoch());
        match (header.kind(), body) {
            // Never protected, so it belongs to no epoch.
            (Kind::Plain, Some(body)) => self.pass_up(body, out),
            (_, Some(body)) => out.release(body),
            (_, None) => {}
        }
    }

    #[inline]
    fn on_kind<O: Out<Self>>(&mut self, now: Time, kind: Kind, body: Option<B>, out: &mut O) {
        match (kind, body) {
            (Kind::Data(class, seq) | Kind::Retransmission(class, seq), Some(body)) => {
                let Some(line) = self.lines.iter_mut().find(|line| line.class == class) else {
                    self.counters.rx_bad += 1;
                    return out.release(body);
                };
                self.counters.rx_ok += 1;
                self.counters.rx_replay += u64::from(matches!(kind, Kind::Retransmission(..)));
                line.rx.on_data(now, seq, body, &mut self.counters, out);
            }
            (Kind::Dummy(class, seq), None) => {
                let Some(line) = self.lines.iter_mut().find(|line| line.class == class) else {
                    self.counters.rx_bad += 1;
                    return;
                };
                self.counters.rx_dummy += 1;
                line.rx.on_dummy(now, seq, &mut self.counters, out);
            }
            (Kind::Plain, Some(body)) => self.pass_up(body, out),
            (Kind::Ack | Kind::Notice, None) => {}
            (_, body) => {
                self.counters.rx_bad += 1;
                body.into_iter().for_each(|body| out.release(body));
            }
        }
    }

    fn pass_up<O: Out<Self>>(&mut self, body: B, out: &mut O) {
        self.counters.rx_plain += 1;
        out.deliver(Lane(0), body);
    }

    #[inline]
    fn on_feedback<O: Out<Self>>(&mut self, feedback: &Feedback, kind: Kind, out: &mut O) {
        if matches!(kind, Kind::Notice) {
            self.counters.rx_nack += 1;
        } else {
            self.counters.rx_ack += 1;
        }
        let Some(line) = self.lines.iter_mut().find(|line| line.class == feedback.class) else {
            self.counters.rx_bad += 1;
            return;
        };
        let fresh = line.tx.is_fresh(feedback.latest);
        match line.tx.on_feedback(feedback, out) {
            Ok(missing) => {
                self.unanswered = if fresh { 0 } else { self.unanswered };
                if let Some(auto) = &mut self.auto {
                    auto.on_missing(missing);
                }
            }
            Err(_) => self.counters.rx_bad += 1,
        }
    }

    /// Does what the life cycle decided.
    fn follow<O: Out<Self>>(&mut self, now: Time, step: Step, out: &mut O) {
        match step {
            Step::Nothing => {}
            Step::Bogus => self.counters.rx_bad += 1,
            Step::Begin => self.begin(out),
            Step::BeginAgain => {
                self.begin(out);
                out.complete(Event::PeerLost);
            }
            Step::BeginActive => {
                self.begin(out);
                out.complete(Event::Activated);
            }
            Step::Agreed => out.complete(Event::Activated),
            Step::Refused(reason) => out.complete(Event::Refused(reason)),
            Step::Forgotten => {
                self.begin(out);
                out.complete(Event::PeerLost);
            }
            Step::Closed => {
                self.begin(out);
                out.complete(Event::Deactivated);
            }
        }
        if !matches!(step, Step::Nothing | Step::Bogus) {
            self.set_session_timer(now, out);
        }
    }

    /// Fresh sequence numbers; whatever the last epoch left behind is let go.
    fn begin<O: Out<Self>>(&mut self, out: &mut O) {
        self.tx_peak = self.tx_peak();
        self.rx_peak = self.rx_peak();
        for mut line in std::mem::replace(&mut self.lines, lines(&self.params)) {
            self.counters.flushed += line.tx.flush(out);
            line.rx.flush(&mut self.counters, out);
        }
        self.release_bare(out);
        self.unanswered = 0;
    }

    fn set_session_timer<O: Out<Self>>(&self, now: Time, out: &mut O) {
        match self.life.retry_at(now) {
            Some(at) => out.arm(TimerKey::Session, at),
            None => out.disarm(TimerKey::Session),
        }
    }

    /// After anything that may let a closing link close.
    #[inline]
    fn try_to_close<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        if self.life.state() == State::Closing {
            let step = self.life.try_to_close(self.is_drained(), self.is_empty());
            self.follow(now, step, out);
        }
    }

    #[inline]
    fn pull_control<O: Out<Self>>(&mut self, out: &mut O) -> bool {
        if self.life.has_message()
            && let Some(message) = self.life.next_message()
        {
            out.transmit(WIRE, Packet { header: Header::session(self.life.epoch(), message), body: None });
            return true;
        }
        let Some(line) = self.lines.iter_mut().find(|line| line.rx.owes_notice()) else { return false };
        let feedback = line.rx.notify();
        self.counters.tx_nack += 1;
        self.transmit(Kind::Notice, Some(feedback), None, out);
        true
    }

    #[inline]
    fn pull_copy<O: Out<Self>>(&mut self, out: &mut O) -> bool {
        if !self.lines.iter().any(|line| line.tx.has_requests()) {
            return false;
        }
        let copies = self.auto.as_ref().map_or(self.copies, Auto::copies);
        for at in 0..self.lines.len() {
            let line = &mut self.lines[at];
            let class = line.class;
            if let Some((seq, body)) = line.tx.next_copy(copies, out) {
                self.counters.tx_replay += 1;
                self.transmit(Kind::Retransmission(class, seq), None, Some(body), out);
                return true;
            }
        }
        false
    }

    /// A class that ran dry must say so ahead of the other's frames, or its lost tail stays unseen for
    /// as long as the other fills the wire.
    #[inline]
    fn pull_announcement<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> bool {
        if self.lines.len() < 2 || !matches!(self.life.state(), State::Active | State::Closing) {
            return false;
        }
        let due =
            |line: &Line<B>| line.tx.dummies.worth_announcing() <= now && line.tx.is_dry(self.feed(line.class), out);
        let Some(at) = self.lines.iter().position(due) else { return false };
        self.send_dummy(now, at, out);
        true
    }

    #[inline]
    fn pull_new<O: Out<Self>>(&mut self, out: &mut O) -> bool {
        let first = self.turn;
        let sent = (first..self.lines.len()).chain(0..first).any(|at| self.pull_data(at, out));
        sent || self.passes_plain() && self.pull_plain(out)
    }

    #[inline]
    fn pull_data<O: Out<Self>>(&mut self, at: usize, out: &mut O) -> bool {
        let class = self.lines[at].class;
        let Some(fed) = self.feed(class) else { return false };
        let line = &mut self.lines[at];
        let Some(body) = line.tx.take(fed, &mut self.counters, out) else { return false };
        let seq = line.tx.push(out.keep(&body));
        self.turn = if at + 1 < self.lines.len() { at + 1 } else { 0 };
        self.counters.tx_ok += 1;
        let feedback = self.due_feedback();
        self.transmit(Kind::Data(class, seq), feedback, Some(body), out);
        self.count_for_auto(out);
        true
    }

    fn pull_plain<O: Out<Self>>(&mut self, out: &mut O) -> bool {
        let Some(body) = (0..2).find_map(|lane| out.take(Lane(lane))) else { return false };
        self.counters.tx_plain += 1;
        match self.due_feedback() {
            Some(feedback) => self.transmit(Kind::Plain, Some(feedback), Some(body), out),
            None => out.transmit(WIRE, Packet::bare(body)),
        }
        self.count_for_auto(out);
        true
    }

    #[inline]
    fn count_for_auto<O: Out<Self>>(&mut self, out: &mut O) {
        if let Some(auto) = &mut self.auto
            && auto.on_sent()
        {
            out.complete(Event::Level(auto.level()));
        }
    }

    #[inline]
    fn pull_ack<O: Out<Self>>(&mut self, out: &mut O) -> bool {
        let Some(feedback) = self.due_feedback() else { return false };
        self.counters.tx_ack += 1;
        self.transmit(Kind::Ack, Some(feedback), None, out);
        true
    }

    /// Whether anything is left to send after an explicit acknowledgement, which goes after all else.
    fn has_more<O: Out<Self>>(&self, out: &O) -> bool {
        let wants = |line: &Line<B>| line.rx.owes_ack() || line.tx.is_dry(self.feed(line.class), out);
        self.lines.iter().any(wants)
    }

    fn pull_dummy<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> Pull {
        if !matches!(self.life.state(), State::Active | State::Closing) {
            return Pull::Idle;
        }
        let mut earliest: Option<Time> = None;
        for at in 0..self.lines.len() {
            let fed = self.feed(self.lines[at].class);
            let tx = &self.lines[at].tx;
            if !tx.is_dry(fed, out) {
                continue;
            }
            let due = tx.dummies.due();
            if due <= now {
                self.send_dummy(now, at, out);
                return Pull::Sent;
            }
            earliest = Some(earliest.map_or(due, |other| other.min(due)));
        }
        earliest.map_or(Pull::Idle, Pull::NotBefore)
    }

    fn send_dummy<O: Out<Self>>(&mut self, now: Time, at: usize, out: &mut O) {
        let feedback = self.due_feedback();
        let line = &mut self.lines[at];
        line.tx.dummies.sent(now);
        let kind = Kind::Dummy(line.class, line.tx.latest_sent());
        self.counters.tx_dummy += 1;
        self.unanswered = self.unanswered.saturating_add(1);
        self.transmit(kind, feedback, None, out);
        self.notice_silence(now, out);
    }

    /// Strictly by priority.
    #[inline(never)]
    fn pull_by_priority<O: Out<Self>>(&mut self, now: Time, out: &mut O) -> Pull {
        if self.pull_control(out) || self.pull_copy(out) || self.pull_announcement(now, out) || self.pull_new(out) {
            return Pull::Sent;
        }
        if self.pull_ack(out) {
            return if self.has_more(out) { Pull::Sent } else { Pull::Last };
        }
        self.pull_dummy(now, out)
    }

    /// Too many dummies in a row without a word from the peer: it is gone.
    fn notice_silence<O: Out<Self>>(&mut self, now: Time, out: &mut O) {
        if self.unanswered > self.params.patience && !self.params.dummies.endless {
            self.life.on_silence();
            self.follow(now, Step::Forgotten, out);
        }
    }
}

fn lines<B: Body>(params: &Params) -> Vec<Line<B>> {
    params.classes.iter().map(|class| Line::new(params, *class)).collect()
}

impl<B: Body> Machine for Endpoint<B> {
    type Frame = Packet<B>;
    type Inner = B;
    type Timer = TimerKey;
    type Command = Command;
    type Done = Event;
    type Note = Note;

    fn on_frame<O: Out<Self>>(&mut self, now: Time, _port: Port, packet: Packet<B>, out: &mut O) {
        if !self.smooth {
            self.on_packet(now, packet, out);
        } else if let Some(packet) = self.on_frame_smoothly(now, packet, out) {
            self.on_packet(now, packet, out);
        }
    }

    fn on_timer<O: Out<Self>>(&mut self, now: Time, key: TimerKey, out: &mut O) {
        self.smooth = false;
        match key {
            TimerKey::Timeout(class) => {
                if let Some(line) = self.lines.iter_mut().find(|line| line.class == class) {
                    line.rx.on_timeout(now, &mut self.counters, out);
                    out.wake(WIRE);
                }
            }
            TimerKey::Examine => {
                if let Some(line) = self.lines.iter_mut().find(|line| line.class == Class::Ordered) {
                    line.rx.on_turn(now, &mut self.counters, out);
                }
                self.wake_if_urgent(out);
            }
            TimerKey::Session => {
                let step = if self.life.on_retry() { Step::Nothing } else { Step::Forgotten };
                self.follow(now, step, out);
                self.set_session_timer(now, out);
                out.wake(WIRE);
            }
        }
        self.release_bare(out);
        self.try_to_close(now, out);
    }

    fn on_command<O: Out<Self>>(&mut self, now: Time, command: Command, out: &mut O) {
        self.smooth = false;
        match command {
            Command::Activate => self.life.activate(),
            Command::Deactivate => {
                if self.life.deactivate() {
                    out.complete(Event::Deactivated);
                }
                self.try_to_close(now, out);
            }
            Command::SetCopies(copies) => self.copies = copies.max(1),
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
}
