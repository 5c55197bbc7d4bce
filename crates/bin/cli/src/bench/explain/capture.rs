//! A capture of made-up connections, next to their clients: a request, its response in slow start, every tenth with a loss.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use units::StopFlag;

const MSS: u32 = 1_448;
/// Segments of the response; with acknowledgements and the rest, a connection has some 100 packets.
const SEGMENTS: u32 = 64;
const RTT_NS: u64 = 10_000_000;
const STARTED_S: u64 = 1_700_000_000;
/// One connection in this many loses this segment.
const LOSSY: u64 = 10;
const LOST: u32 = 15;

const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// A packet of any connection, at this time after its start.
#[derive(Clone, Debug)]
struct ScriptPacket {
    after: u64,
    from_client: bool,
    /// Counted from the first byte of its sender, and of the other end.
    seq: u32,
    ack: u32,
    flags: u8,
    len: u32,
    sack: Option<(u32, u32)>,
}

/// The packets of one kind of connection, in order.
fn script(is_lossy: bool) -> Vec<ScriptPacket> {
    const REQUEST: u32 = 300;
    let mut packets = Vec::new();
    let mut put = |after, from_client, seq, ack, flags, len, sack| {
        packets.push(ScriptPacket { after, from_client, seq, ack, flags, len, sack });
    };
    put(0, true, u32::MAX, 0, SYN, 0, None);
    put(RTT_NS, false, u32::MAX, 0, SYN | ACK, 0, None);
    put(RTT_NS + 20_000, true, 0, 0, ACK, 0, None);
    put(RTT_NS + 100_000, true, 0, 0, ACK, REQUEST, None);
    let (mut acked, mut at, mut round) = (0, 2 * RTT_NS, 10);
    let mut in_round = 0;
    for segment in 0..SEGMENTS {
        (at, in_round) = (at + 10_000, in_round + 1);
        let is_lost = is_lossy && segment == LOST;
        if !is_lost {
            put(at, false, segment * MSS, REQUEST, ACK, MSS, None);
        }
        if is_lossy && segment > LOST {
            put(at + 3_000, true, REQUEST, LOST * MSS, ACK, 0, Some(((LOST + 1) * MSS, (segment + 1) * MSS)));
        } else if !is_lost && segment % 2 == 1 {
            acked = (segment + 1) * MSS;
            put(at + 3_000, true, REQUEST, acked, ACK, 0, None);
        }
        if in_round == round {
            (at, round, in_round) = (at + RTT_NS, 2 * round, 0);
        }
    }
    if is_lossy {
        put(at + RTT_NS, false, LOST * MSS, REQUEST, ACK, MSS, None);
        at += RTT_NS + 10_000;
    }
    let all = SEGMENTS * MSS;
    if acked < all {
        put(at + 3_000, true, REQUEST, all, ACK, 0, None);
    }
    put(at + 50_000, true, REQUEST, all, FIN | ACK, 0, None);
    put(at + RTT_NS, false, all, REQUEST + 1, FIN | ACK, 0, None);
    put(at + RTT_NS + 5_000, true, REQUEST + 1, all + 1, ACK, 0, None);
    packets
}

/// A connection whose SYN nobody answers.
fn lone_syn() -> Vec<ScriptPacket> {
    vec![ScriptPacket { after: 0, from_client: true, seq: u32::MAX, ack: 0, flags: SYN, len: 0, sack: None }]
}

/// Content of a capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct BenchContent {
    /// The least number of packets.
    pub packets: u64,
    /// Connections that are open at a time.
    pub open: u64,
    /// Each connection is a lone SYN.
    pub is_scan: bool,
}

/// A file that is gone when this is.
#[derive(Debug)]
pub(super) struct BenchCapture {
    path: PathBuf,
    pub packets: u64,
    pub connections: u64,
    pub open: u64,
}

impl Drop for BenchCapture {
    fn drop(&mut self) {
        // The system cleans up its temporary folder.
        let _ = fs::remove_file(&self.path);
    }
}

impl BenchCapture {
    /// Writes a capture; `None` if it was stopped.
    pub(super) fn write(folder: &Path, content: BenchContent, stop: &StopFlag) -> io::Result<Option<Self>> {
        let BenchContent { packets, open, is_scan } = content;
        let path = folder.join(format!("hitless-bench-explain-{}.pcap", std::process::id()));
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&path)?);
        let mut capture = Self { path, packets: 0, connections: 0, open: 0 };
        let header = [0xa1b2_3c4d_u32, 2 | (4 << 16), 0, 0, 128, 1];
        header.iter().try_for_each(|word| out.write_all(&word.to_le_bytes()))?;
        let scripts = if is_scan { [lone_syn(), lone_syn()] } else { [script(false), script(true)] };
        let script = |connection: u64| &scripts[usize::from(connection.is_multiple_of(LOSSY))];
        let lasts = scripts[0].last().map_or(RTT_NS, |last| last.after);
        let gap = (lasts / open.max(1)).max(1);
        let mut next: BinaryHeap<Reverse<(u64, u64, usize)>> = BinaryHeap::new();
        let mut frame = Vec::new();
        loop {
            let begins = capture.connections * gap;
            if capture.packets + next.len() as u64 * 50 < packets
                && next.peek().is_none_or(|Reverse((at, ..))| *at >= begins)
            {
                next.push(Reverse((begins, capture.connections, 0)));
                capture.connections += 1;
                capture.open = capture.open.max(next.len() as u64);
            }
            let Some(Reverse((at, connection, place))) = next.pop() else { break };
            if capture.packets.is_multiple_of(65_536) && stop.is_stopped() {
                return Ok(None);
            }
            put_frame(&mut frame, connection, &script(connection)[place], at);
            record(&mut out, at, &frame, script(connection)[place].len)?;
            capture.packets += 1;
            if let Some(after) = script(connection).get(place + 1) {
                let start = at - script(connection)[place].after;
                next.push(Reverse((start + after.after, connection, place + 1)));
            }
        }
        out.flush()?;
        Ok(Some(capture))
    }

    pub(super) fn open(&self) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(File::open(&self.path)?))
    }
}

/// Writes the headers of a frame; captures do not keep the payload.
fn put_frame(frame: &mut Vec<u8>, connection: u64, packet: &ScriptPacket, at: u64) {
    let (client, server) = ([10, (connection >> 24) as u8, (connection >> 16) as u8, 1], [10, 255, 0, 2]);
    let (client_port, server_port) = (connection as u16, 443_u16);
    let (from, to) = if packet.from_client { (client, server) } else { (server, client) };
    let ports = if packet.from_client { [client_port, server_port] } else { [server_port, client_port] };
    // Each end's first byte has a number of its own.
    let base = |is_client: bool| if is_client { 1_000_u32 } else { 5_000 };
    let millis = (at / 1_000_000) as u32;
    let mut options = Vec::with_capacity(40);
    if packet.flags & SYN != 0 {
        options.extend([2, 4, 5, 180, 4, 2, 8, 10]);
    } else {
        options.extend([1, 1, 8, 10]);
    }
    options.extend((millis + 1).to_be_bytes());
    // The client received its packet just now; the server's left a round trip ago.
    let echo = if packet.from_client { millis + 1 } else { millis.saturating_sub(9) };
    options.extend(echo.to_be_bytes());
    if packet.flags & SYN != 0 {
        options.extend([1, 3, 3, 7]);
    }
    if let Some((low, high)) = packet.sack {
        options.extend([1, 1, 5, 10]);
        [low, high].iter().for_each(|edge| options.extend(base(false).wrapping_add(*edge).to_be_bytes()));
    }
    let header = 20 + options.len() as u32;
    frame.clear();
    frame.extend([0; 12]);
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(((20 + header + packet.len) as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(from);
    frame.extend(to);
    ports.iter().for_each(|port| frame.extend(port.to_be_bytes()));
    frame.extend(base(packet.from_client).wrapping_add(packet.seq).to_be_bytes());
    let ack = if packet.flags & ACK == 0 { 0 } else { base(!packet.from_client).wrapping_add(packet.ack) };
    frame.extend(ack.to_be_bytes());
    frame.extend([(header << 2) as u8, packet.flags, 2, 0, 0, 0, 0, 0]);
    frame.extend(options);
}

fn record(out: &mut impl Write, at: u64, frame: &[u8], payload: u32) -> io::Result<()> {
    let kept = frame.len() as u32;
    let words = [(STARTED_S + at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, kept, kept + payload];
    words.iter().try_for_each(|word| out.write_all(&word.to_le_bytes()))?;
    out.write_all(frame)
}
