//! Captures written by hand: packets of one connection at given times, as a capture next to the client has them.

#![allow(dead_code, reason = "each test uses its own part")]

use std::io::Cursor;
use std::sync::Arc;

use capture::pcapng::{EnhancedPacket, PcapngWriter};
use explain::answer::{ConnectionAnswer, ExplainAnswer};
use explain::evidence::{EVENT_LINK, KernelEvidence};
use explain::{ExplainError, ExplainOptions, explain};
use units::Unwatched;

pub(crate) const MSS: u32 = 1_448;
pub(crate) const MS: u64 = 1_000_000;
/// Time at which tapes begin.
const EPOCH: u64 = 1_700_000_000 * 1_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TapeEnd {
    Client,
    Server,
}

pub(crate) use TapeEnd::{Client, Server};

/// One connection, from 10.0.0.1:40000 to 10.0.0.2:80, over a path of 20 ms.
#[derive(Clone)]
pub(crate) struct Tape {
    frames: Vec<(u64, Vec<u8>)>,
    ids: [u16; 2],
    /// Next byte, and next byte expected, of each end.
    sent: [u32; 2],
    window: [u16; 2],
    /// The last timestamp of each end.
    stamps: [u32; 2],
    pub(crate) snap: usize,
    pub(crate) ip6: bool,
}

const ISN: [u32; 2] = [u32::MAX - 3_000, 7_000];

impl Default for Tape {
    fn default() -> Self {
        let (ids, window) = ([100, 60_000], [512, 512]);
        Self { frames: Vec::new(), ids, sent: [0; 2], window, stamps: [1; 2], snap: 96, ip6: false }
    }
}

impl Tape {
    /// A handshake at once, over 20 ms.
    pub(crate) fn new() -> Self {
        let mut tape = Self::default();
        tape.syn(0);
        tape.syn_ack(20 * MS);
        tape.ack(20 * MS + 50_000, Client, 0);
        tape
    }

    pub(crate) fn syn(&mut self, at: u64) -> &mut Self {
        let options = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        self.put(at, Client, (ISN[0], 0), 0x02, 0, &options)
    }

    pub(crate) fn syn_ack(&mut self, at: u64) -> &mut Self {
        let options = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1, 1, 3, 3, 7];
        self.put(at, Server, (ISN[1], ISN[0].wrapping_add(1)), 0x12, 0, &options)
    }

    /// A handshake whose SYNs have no options, as simulations write them.
    pub(crate) fn without_options() -> Self {
        let mut tape = Self::default();
        tape.put(0, Client, (ISN[0], 0), 0x02, 0, &[]);
        tape.put(20 * MS, Server, (ISN[1], ISN[0].wrapping_add(1)), 0x12, 0, &[]);
        tape.ack(20 * MS + 50_000, Client, 0);
        tape
    }

    /// Segments with new payload, 10 µs apart.
    pub(crate) fn send(&mut self, at: u64, from: TapeEnd, segments: u32) -> &mut Self {
        for number in 0..segments {
            self.send_bytes(at + u64::from(number) * 10_000, from, MSS);
        }
        self
    }

    pub(crate) fn send_bytes(&mut self, at: u64, from: TapeEnd, len: u32) -> &mut Self {
        let start = self.sent[from as usize];
        self.sent[from as usize] += len;
        self.data(at, from, start, len)
    }

    /// Loses data before the capture: its numbers are used, nothing is seen.
    pub(crate) fn lose(&mut self, from: TapeEnd, len: u32) -> &mut Self {
        self.sent[from as usize] += len;
        self.ids[from as usize] += 1;
        self
    }

    /// The other end has seen no later timestamp of this one than on that tape.
    pub(crate) fn echo_as(&mut self, tape: &Self, of: TapeEnd) -> &mut Self {
        self.stamps[of as usize] = tape.stamps[of as usize];
        self
    }

    /// The identification of an end's next packet.
    pub(crate) fn next_id(&mut self, from: TapeEnd, id: u16) -> &mut Self {
        self.ids[from as usize] = id;
        self
    }

    /// Payload again.
    pub(crate) fn data(&mut self, at: u64, from: TapeEnd, start: u32, len: u32) -> &mut Self {
        self.put_segment(at, from, start, None, len, &[])
    }

    /// Acknowledges all bytes of the other end below `ack`.
    pub(crate) fn ack(&mut self, at: u64, from: TapeEnd, ack: u32) -> &mut Self {
        self.put_segment(at, from, self.sent[from as usize], Some(ack), 0, &[])
    }

    pub(crate) fn sack(&mut self, at: u64, from: TapeEnd, ack: u32, blocks: &[(u32, u32)]) -> &mut Self {
        self.put_segment(at, from, self.sent[from as usize], Some(ack), 0, blocks)
    }

    /// The window that an end offers from now on, in units of 128 bytes.
    pub(crate) fn window(&mut self, from: TapeEnd, window: u16) -> &mut Self {
        self.window[from as usize] = window;
        self
    }

    /// Sequence numbers count from the first payload byte.
    fn put_segment(
        &mut self,
        at: u64,
        from: TapeEnd,
        start: u32,
        ack: Option<u32>,
        len: u32,
        blocks: &[(u32, u32)],
    ) -> &mut Self {
        let (own, other) = (from as usize, 1 - from as usize);
        let ack = ack.unwrap_or(self.acked(other));
        let base = ISN[other].wrapping_add(1);
        let mut options = vec![1, 1, 8, 10];
        let stamp = (at / MS) as u32 + 1;
        options.extend(stamp.to_be_bytes());
        options.extend(self.stamps[other].to_be_bytes());
        self.stamps[own] = stamp;
        if !blocks.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
            for (low, high) in blocks {
                options.extend(base.wrapping_add(*low).to_be_bytes());
                options.extend(base.wrapping_add(*high).to_be_bytes());
            }
        }
        let seq = ISN[own].wrapping_add(1).wrapping_add(start);
        self.put(at, from, (seq, base.wrapping_add(ack)), 0x10, len, &options)
    }

    /// By default all that the other end has sent.
    fn acked(&self, other: usize) -> u32 {
        self.sent[other]
    }

    pub(crate) fn put(
        &mut self,
        at: u64,
        from: TapeEnd,
        (seq, ack): (u32, u32),
        flags: u8,
        len: u32,
        options: &[u8],
    ) -> &mut Self {
        let header = 20 + options.len();
        let id = &mut self.ids[from as usize];
        let mut frame = vec![0; 12];
        if self.ip6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(((header + len as usize) as u16).to_be_bytes());
            frame.extend([6, 64]);
            let address = |end: u8| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end];
            let ends = if from == Client { [1, 2] } else { [2, 1] };
            ends.iter().for_each(|end| frame.extend(address(*end)));
        } else {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend(((20 + header + len as usize) as u16).to_be_bytes());
            frame.extend(id.to_be_bytes());
            frame.extend([0x40, 0, 64, 6, 0, 0]);
            let ends: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];
            let own = from as usize;
            frame.extend(ends[own]);
            frame.extend(ends[1 - own]);
        }
        *id = id.wrapping_add(len.div_ceil(MSS).max(1) as u16);
        let ports: [[u8; 2]; 2] = [40_000_u16.to_be_bytes(), 80_u16.to_be_bytes()];
        frame.extend(ports[from as usize]);
        frame.extend(ports[1 - from as usize]);
        frame.extend(seq.to_be_bytes());
        frame.extend(ack.to_be_bytes());
        frame.extend([((header / 4) << 4) as u8, flags]);
        frame.extend(if flags & 2 != 0 { [255, 255] } else { self.window[from as usize].to_be_bytes() });
        frame.extend([0; 4]);
        frame.extend(options);
        frame.resize(frame.len() + len as usize, 0);
        self.frames.push((at, frame));
        self
    }

    /// The last frame once more, a little later, as a bridge's capture has it.
    pub(crate) fn repeat_last(&mut self) -> &mut Self {
        if let Some((at, frame)) = self.frames.last().cloned() {
            self.frames.push((at + 2_000, frame));
        }
        self
    }

    /// Keeps what this is true of.
    pub(crate) fn keep(&mut self, mut keep: impl FnMut(usize, TapeEnd) -> bool) -> &mut Self {
        let mut place = 0;
        self.frames.retain(|(_, frame)| {
            let from = if frame[12..14] == [8, 0] && frame[29] == 1 { Client } else { Server };
            place += 1;
            keep(place, from)
        });
        self
    }

    /// Bytes of the tape as a pcap with nanoseconds.
    pub(crate) fn pcap(&self) -> Vec<u8> {
        let mut frames = self.frames.clone();
        frames.sort_by_key(|(at, _)| *at);
        let mut bytes = Vec::new();
        for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, self.snap as u32, 1] {
            bytes.extend(word.to_le_bytes());
        }
        for (at, frame) in &frames {
            let kept = &frame[..frame.len().min(self.snap)];
            let at = at + EPOCH;
            for word in [at / 1_000_000_000, at % 1_000_000_000, kept.len() as u64, frame.len() as u64] {
                bytes.extend((word as u32).to_le_bytes());
            }
            bytes.extend(kept);
        }
        bytes
    }

    pub(crate) fn answer(&self) -> ExplainAnswer {
        answer(self.pcap()).unwrap()
    }

    /// The only connection.
    pub(crate) fn explain(&self) -> ConnectionAnswer {
        only(self.answer())
    }

    /// The same, with what the client's kernel said, and when.
    pub(crate) fn explain_with(&self, events: &[(u64, &str)]) -> ConnectionAnswer {
        let mut writer = PcapngWriter::new(Vec::new()).unwrap();
        let interface = writer.interface(EVENT_LINK, 0, None).unwrap();
        for (at, line) in events {
            let line =
                line.replace("CLIENT", "10.0.0.1:40000 10.0.0.2:80").replace("SERVER", "10.0.0.2:80 10.0.0.1:40000");
            let (at, len) = (at + EPOCH, line.len() as u32);
            let packet = EnhancedPacket { interface, at, len, bytes: line.as_bytes(), ..EnhancedPacket::default() };
            writer.packet(&packet).unwrap();
        }
        let evidence = KernelEvidence::read(Cursor::new(writer.into_inner())).unwrap();
        only(answer_with(self.pcap(), Some(Arc::new(evidence))).unwrap())
    }
}

fn only(mut answer: ExplainAnswer) -> ConnectionAnswer {
    assert_eq!(answer.connections.len(), 1, "{answer:#?}");
    let connection = answer.connections.remove(0);
    assert_adds_up(&connection);
    connection
}

pub(crate) fn answer(bytes: Vec<u8>) -> Result<ExplainAnswer, ExplainError> {
    answer_with(bytes, None)
}

fn answer_with(bytes: Vec<u8>, evidence: Option<Arc<KernelEvidence>>) -> Result<ExplainAnswer, ExplainError> {
    let options = ExplainOptions { evidence, ..ExplainOptions::default() };
    let open = || -> std::io::Result<Box<dyn std::io::Read>> { Ok(Box::new(Cursor::new(bytes.clone()))) };
    explain(&open, &options, &Unwatched).map(|explanation| explanation.answer())
}

/// Parts add up exactly, of connections and of requests, and requests lie within their connection.
pub(crate) fn assert_adds_up(connection: &ConnectionAnswer) {
    let sum: u64 = connection.parts.iter().map(|part| part.ns).sum();
    assert_eq!(sum, connection.duration_ns);
    for request in &connection.requests {
        let sum: u64 = request.parts.iter().map(|part| part.ns).sum();
        assert_eq!(sum, request.duration_ns);
        assert!(request.start_ns >= connection.start_ns);
        assert!(request.start_ns + request.duration_ns <= connection.start_ns + connection.duration_ns);
    }
}
