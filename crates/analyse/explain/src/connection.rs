//! One connection, packet by packet: its handshake, its two senders, its time.

mod handshake;
mod payload;
mod requests;
mod summary;

use std::net::SocketAddr;

use crate::explainer::ExplainOptions;
use crate::packet::CapturedSegment;
use crate::sender::{AckArrival, TrackedSender};
use crate::shadow::SackBlocks;
use crate::stalls::StallNote;
use crate::terms::EndSide;
use crate::timeline::SpentTime;
use crate::trace::ConnectionTrace;

use handshake::HandshakeState;
use requests::OpenRequest;

pub(crate) use requests::RequestNote;
pub(crate) use summary::ConnectionSummary;

/// A record that equals one of these, within this time, is the same packet again.
const RECENT: usize = 8;
const SAME_PACKET: u64 = 5_000_000;
/// Thirteen days: a clock was set, and sums of such times still fit.
const LONGEST_ANSWER: u64 = 1 << 50;

/// The time between a packet towards an end and that end's answer, measured one packet at a time.
#[derive(Clone, Copy, Debug, Default)]
struct AnswerTime {
    /// Position whose acknowledgement is the answer, and the time of the packet that it answers.
    awaited: Option<(u64, u64)>,
    /// Timestamp of the other end whose echo also counts as the answer.
    awaited_echo: Option<(u32, u64)>,
    /// The last timestamp that went to this end.
    last_stamp: u32,
    least: Option<u64>,
}

impl AnswerTime {
    fn sample(&mut self, ns: u64) {
        let ns = ns.min(LONGEST_ANSWER);
        self.least = Some(self.least.map_or(ns, |least| least.min(ns)));
    }

    /// A packet with this timestamp is on its way to the end; the first of several with the same counts.
    fn await_echo(&mut self, stamp: u32, at: u64) {
        if stamp != self.last_stamp {
            self.last_stamp = stamp;
            self.awaited_echo.get_or_insert((stamp, at));
        }
    }

    fn on_echo(&mut self, echo: u32, at: u64) {
        let Some((stamp, since)) = self.awaited_echo else { return };
        let ahead = echo.wrapping_sub(stamp) as i32;
        if ahead >= 0 {
            self.awaited_echo = None;
        }
        if ahead == 0 {
            self.sample(at.saturating_sub(since));
        }
    }

    fn on_answer(&mut self, ack: u64, at: u64) {
        if let Some((position, since)) = self.awaited
            && ack >= position
        {
            self.awaited = None;
            self.sample(at.saturating_sub(since));
        }
    }
}

/// The end of one stream.
#[derive(Clone, Copy, Debug, Default)]
struct FinState {
    /// Position of the segment, and the time at which it left last.
    sent: Option<(u64, u64)>,
    copies: u32,
    is_acknowledged: bool,
}

#[derive(Debug)]
pub(crate) struct TrackedConnection {
    client: SocketAddr,
    server: SocketAddr,
    has_syn: bool,
    /// Some packet's options were cut off.
    options_cut: bool,
    handshake: HandshakeState,
    time: SpentTime,
    senders: [TrackedSender; 2],
    /// The only end whose kernel said something: the capture was taken there.
    recorded_at: Option<EndSide>,
    answers: [AnswerTime; 2],
    /// True if the other end's data had been acknowledged when a packet came.
    owed_nothing: bool,
    /// Time of each end's last packet, of any kind.
    last_packets: [u64; 2],
    /// End that sent payload last, with the packet's number.
    previous: Option<(EndSide, u64)>,
    initiator: Option<EndSide>,
    request: Option<OpenRequest>,
    requests: Vec<RequestNote>,
    stalls: Vec<StallNote>,
    fins: [FinState; 2],
    is_reset: bool,
    recent: [(u64, u64); RECENT],
    next_recent: usize,
    packets: u64,
    both_directions: [bool; 2],
    /// Frames with the payload of several packets.
    super_frames: u64,
    /// Bytes when memory was last counted.
    counted: usize,
    trace: Option<Box<ConnectionTrace>>,
}

impl TrackedConnection {
    /// Begins with this packet.
    pub(crate) fn new(first: &CapturedSegment, options: &ExplainOptions, is_traced: bool) -> Self {
        let from_client = is_from_client(first);
        let (client, server) =
            if from_client { (first.source, first.destination) } else { (first.destination, first.source) };
        let sender = |side, local, remote| {
            let known = options.evidence.as_ref().and_then(|evidence| evidence.of(local, remote));
            TrackedSender::new(side, options.hz, known)
        };
        let senders = [sender(EndSide::Client, client, server), sender(EndSide::Server, server, client)];
        let recorded_at = match [0, 1].map(|place| senders[place].known.is_some()) {
            [true, false] => Some(EndSide::Client),
            [false, true] => Some(EndSide::Server),
            _ => None,
        };
        Self {
            client,
            server,
            has_syn: first.syn(),
            options_cut: false,
            handshake: HandshakeState::new(first),
            time: SpentTime::new(first.at),
            senders,
            recorded_at,
            answers: [AnswerTime::default(); 2],
            owed_nothing: true,
            last_packets: [0; 2],
            previous: None,
            initiator: None,
            request: None,
            requests: Vec::new(),
            stalls: Vec::new(),
            fins: [FinState::default(); 2],
            is_reset: false,
            recent: [(0, 0); RECENT],
            next_recent: 0,
            packets: 0,
            both_directions: [false; 2],
            super_frames: 0,
            counted: 0,
            trace: is_traced.then(Box::default),
        }
    }

    fn side_of(&self, segment: &CapturedSegment) -> EndSide {
        if segment.source == self.client { EndSide::Client } else { EndSide::Server }
    }

    /// A SYN that cannot belong to this connection: the ports are used again.
    pub(crate) fn is_replaced_by(&self, segment: &CapturedSegment) -> bool {
        if !segment.syn() || segment.has_ack() {
            return false;
        }
        let sender = &self.senders[self.side_of(segment).index()];
        self.is_over() || sender.has_begun() && sender.sequence(crate::sender::ORIGIN) != segment.seq.wrapping_add(1)
    }

    /// True if both ends have sent all their data, or one has given up.
    pub(crate) fn is_over(&self) -> bool {
        self.is_reset || self.fins.iter().all(|fin| fin.is_acknowledged)
    }

    /// True if its memory is to be counted again. Lists grow by doubling, so a count with every packet would be mostly in vain.
    pub(crate) fn is_count_due(&self) -> bool {
        self.packets.is_multiple_of(8)
    }

    /// Approximate memory use in bytes, now.
    pub(crate) fn count(&mut self) -> usize {
        let lists = self.requests.capacity() * RequestNote::BYTES + self.stalls.capacity() * size_of::<StallNote>();
        self.counted = size_of::<Self>() + lists + self.senders[0].bytes_held() + self.senders[1].bytes_held();
        self.counted
    }

    /// Memory use in bytes when it was last counted.
    pub(crate) fn counted(&self) -> usize {
        self.counted
    }

    /// Time of its last packet.
    pub(crate) fn last_seen(&self) -> u64 {
        self.last_packets[0].max(self.last_packets[1]).max(self.time.at())
    }

    /// False if the capture has this packet twice.
    pub(crate) fn on_segment(&mut self, segment: &CapturedSegment) -> bool {
        if self.is_duplicate(segment) {
            return false;
        }
        self.packets += 1;
        let side = self.side_of(segment);
        self.both_directions[side.index()] = true;
        self.options_cut |= segment.options.cut;
        if let Some((stamp, echo)) = segment.options.timestamps {
            self.answers[side.index()].on_echo(echo, segment.at);
            self.answers[side.other().index()].await_echo(stamp, segment.at);
        }
        if segment.syn() {
            self.on_syn(segment, side);
            return true;
        }
        self.begin_without_syn(segment, side);
        self.owed_nothing = self.senders[side.other().index()].is_quiet();
        if segment.has_ack() {
            self.on_ack(segment, side);
        }
        if segment.len > 0 {
            self.on_payload(segment, side);
        } else {
            self.follow_id(segment, side, 1);
        }
        if segment.fin() {
            self.on_fin(segment, side);
        }
        self.last_packets[side.index()] = segment.at;
        self.is_reset |= segment.rst();
        if self.fins.iter().all(|fin| fin.sent.is_some()) && self.senders.iter().all(TrackedSender::is_quiet) {
            self.senders.iter_mut().for_each(TrackedSender::release);
        }
        true
    }

    /// A FIN takes a number like a byte, and is repeated like one; it is no payload, and takes none of the connection's time.
    fn on_fin(&mut self, segment: &CapturedSegment, side: EndSide) {
        let sender = &mut self.senders[side.index()];
        let position = sender.position(segment.seq) + u64::from(segment.len);
        let fin = &mut self.fins[side.index()];
        match fin.sent {
            Some((known, before)) if known == position && segment.len == 0 && !fin.is_acknowledged => {
                sender.on_fin_again(fin.copies, before, segment.at, position);
                fin.copies += 1;
                fin.sent = Some((position, segment.at));
            }
            _ => fin.sent = Some((position, segment.at)),
        }
    }

    /// True for a copy of a segment with data or a number of its own; equal acknowledgements are no copies.
    fn is_duplicate(&mut self, segment: &CapturedSegment) -> bool {
        let has_number = segment.len > 0 || segment.syn() || segment.fin();
        if segment.ip_id.is_none() && !has_number {
            return false;
        }
        let print = segment.fingerprint();
        let is_soon = |at: u64| segment.at < at.saturating_add(SAME_PACKET);
        let known = self.recent.iter().any(|(seen, at)| *seen == print && is_soon(*at));
        if !known {
            self.recent[self.next_recent % RECENT] = (print, segment.at);
            self.next_recent += 1;
        }
        known
    }

    /// The first numbers of an end whose SYN is not in the capture.
    fn begin_without_syn(&mut self, segment: &CapturedSegment, side: EndSide) {
        self.senders[side.index()].begin(segment.seq);
        if segment.has_ack() {
            self.senders[side.other().index()].begin(segment.ack);
        }
    }

    fn on_ack(&mut self, segment: &CapturedSegment, side: EndSide) {
        self.finish_handshake(segment, side);
        let way = self.way(side.other());
        let sender = &mut self.senders[side.other().index()];
        let ack = sender.position(segment.ack);
        self.answers[side.index()].on_answer(ack, segment.at);
        let fin = &mut self.fins[side.other().index()];
        fin.is_acknowledged |= fin.sent.is_some_and(|(position, _)| ack > position);
        let mut blocks = SackBlocks::default();
        let given = segment.options.blocks();
        for (place, (from, to)) in blocks.iter_mut().zip(given) {
            *place = (sender.position(*from), sender.position(*to));
        }
        let news = AckArrival {
            at: segment.at.saturating_add(way),
            ack,
            window: segment.window,
            blocks,
            block_count: given.len() as u8,
            stamp: segment.options.timestamps.map(|(stamp, _)| stamp),
            echo: segment.options.timestamps.map(|(_, echo)| echo),
            is_pure: segment.len == 0,
        };
        sender.expect_ack(news);
        if sender.nxt == sender.una || way == 0 {
            sender.hear_until(segment.at, 0);
        }
        if let Some(trace) = &mut self.trace {
            trace.on_ack(segment.at, sender);
        }
    }

    /// The round trip between the capture and an end; nothing for the one that is next to it.
    fn way(&self, side: EndSide) -> u64 {
        if self.recorded_at == Some(side) {
            return 0;
        }
        let (own, other) = (self.answers[side.index()].least, self.answers[side.other().index()].least);
        match (own, other) {
            (Some(own), Some(other)) if own * 4 < other => 0,
            (own, _) => own.unwrap_or(0),
        }
    }

    pub(crate) fn rtt(&self) -> u64 {
        self.answers.iter().filter_map(|answer| answer.least).sum()
    }

    /// True if the capture was taken next to this end; on a path without any length, next to the client.
    fn is_near(&self, side: EndSide) -> bool {
        if let Some(recorded) = self.recorded_at {
            return recorded == side;
        }
        let (own, other) = (self.way(side), self.way(side.other()));
        own < other || own == other && side == EndSide::Client
    }
}

/// True if the client sent this segment. Without a SYN the server is the end with the lower port.
fn is_from_client(first: &CapturedSegment) -> bool {
    match (first.syn(), first.has_ack()) {
        (true, has_ack) => !has_ack,
        _ => first.source.port() >= first.destination.port(),
    }
}
