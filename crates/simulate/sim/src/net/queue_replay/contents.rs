//! Contents of queues, by flow, and what packets that join them see of it.

use std::cmp::Reverse;

use units::Time;

use crate::topology::DirectedLink;

/// One direction of a connection: twice its number, plus one from the host that its flow is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

impl StreamId {
    /// Identifies a direction of the connection with this number, in the order of their starts.
    pub fn new(connection: u32, forward: bool) -> Self {
        Self(connection * 2 + u32::from(!forward))
    }

    /// Index of the connection, and of one of its two lists of packets.
    pub fn place(self) -> (usize, usize) {
        (self.0 as usize / 2, self.0 as usize % 2)
    }
}

/// Bytes of one stream in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowBytes {
    pub stream: StreamId,
    /// Bytes of its frames, check included.
    pub bytes: u32,
}

/// A packet at a port that it has been routed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueView {
    pub at: Time,
    pub port: DirectedLink,
    pub stream: StreamId,
    /// The number of its transmission within the stream.
    pub number: u32,
    /// Switches that it has passed before.
    pub hop: u8,
    /// First index of the queue's contents, and number of streams in it.
    from: u32,
    streams: u32,
}

impl QueueView {
    /// Key that is the same in another run.
    pub(super) fn key(&self) -> (u32, u32, u8) {
        (self.stream.0, self.number, self.hop)
    }
}

/// Question for the contents of a queue at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueQuestion {
    pub at: Time,
    pub port: DirectedLink,
}

/// Queue contents that packets saw, in the order in which they did.
#[derive(Clone, Debug, Default)]
pub struct QueueViews {
    pub views: Vec<QueueView>,
    contents: Vec<FlowBytes>,
}

impl QueueViews {
    /// Contents of the queue that a packet was about to join, without the packet that was being sent; in no particular
    /// order.
    pub fn content(&self, view: &QueueView) -> &[FlowBytes] {
        &self.contents[view.from as usize..][..view.streams as usize]
    }
}

/// Tag on a packet: its identity, and how far it has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketTag {
    pub stream: StreamId,
    pub number: u32,
    pub hop: u8,
}

/// All queues of a network while it runs.
#[derive(Debug)]
pub(super) struct QueueContents {
    ports: Vec<Vec<FlowBytes>>,
    /// Samples one packet in this many; always the same ones.
    one_in: u32,
    views: QueueViews,
    question: Option<QueueQuestion>,
    answer: Vec<FlowBytes>,
}

impl QueueContents {
    pub(super) fn new(ports: usize, one_in: u32, question: Option<QueueQuestion>) -> Self {
        let (views, answer) = (QueueViews::default(), Vec::new());
        Self { ports: vec![Vec::new(); ports], one_in: one_in.max(1), views, question, answer }
    }

    /// Views of packets, and the answer about the queue that was asked about: its streams, the largest first.
    pub(super) fn finish(mut self) -> (QueueViews, Vec<FlowBytes>) {
        self.answer_before(Time::NEVER);
        (self.views, self.answer)
    }

    /// Answers questions about times up to now before the next event. No event is scheduled for them, so asking changes
    /// nothing.
    #[inline]
    fn answer_before(&mut self, now: Time) {
        let Some(question) = self.question.take_if(|question| question.at <= now) else { return };
        self.answer.clone_from(&self.ports[question.port.index()]);
        self.answer.sort_by_key(|flow| (Reverse(flow.bytes), flow.stream));
    }

    /// A packet has been routed to a port: it sees the queue, and joins it.
    #[inline]
    pub(super) fn join(&mut self, now: Time, port: u32, len: u16, tag: &mut PacketTag) {
        self.answer_before(now);
        let content = &mut self.ports[port as usize];
        if is_chosen(tag, self.one_in) {
            let QueueViews { views, contents } = &mut self.views;
            let (from, streams) = (contents.len() as u32, content.len() as u32);
            let PacketTag { stream, number, hop } = *tag;
            views.push(QueueView { at: now, port: DirectedLink(port), stream, number, hop, from, streams });
            contents.extend_from_slice(content);
        }
        tag.hop += 1;
        match content.iter_mut().find(|flow| flow.stream == tag.stream) {
            Some(flow) => flow.bytes += u32::from(len),
            None => content.push(FlowBytes { stream: tag.stream, bytes: u32::from(len) }),
        }
    }

    /// A packet leaves a queue, or has not been let into it.
    #[inline]
    pub(super) fn leave(&mut self, now: Time, port: u32, len: u16, tag: &PacketTag) {
        self.answer_before(now);
        let content = &mut self.ports[port as usize];
        let Some(at) = content.iter().position(|flow| flow.stream == tag.stream) else { return };
        content[at].bytes -= u32::from(len);
        if content[at].bytes == 0 {
            content.swap_remove(at);
        }
    }
}

/// True if a packet is one of those that are sampled.
fn is_chosen(tag: &PacketTag, one_in: u32) -> bool {
    let mixed = (u64::from(tag.stream.0) << 32 | u64::from(tag.number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 32) as u32).wrapping_mul(0x85eb_ca6b) >> 8 < (1 << 24) / one_in
}
