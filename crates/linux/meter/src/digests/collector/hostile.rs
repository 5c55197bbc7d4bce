//! Reports that nobody honest would send, by the hundred thousand.

use radar::digest::{Digest, DigestShape};
use radar::packet::{Packet, TcpFields as Tcp};
use radar::segment::ReportFacts;
use radar::signature::{Fields, Signature};

use super::*;

const LENGTH: u64 = 10_000_000;
const START: u64 = 170_000_000_000;
const MEMORY: usize = 6 << 20;

/// Numbers that look drawn, the same each time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % most
    }
}

fn packet(nth: u32) -> Packet {
    let [src, dst] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
    let flow = Flow { src, dst, protocol: 6, src_port: nth as u16, dst_port: 80 };
    let tcp = Some(Tcp { seq: nth * 1_000, len: 900, syn: false });
    Packet { flow, ip_id: Some(nth as u16), fragment: 0, tcp, ttl: 64, content: u64::from(nth) as _ }
}

fn digest(cells: usize, packets: impl IntoIterator<Item = u32>, times: usize) -> Digest {
    let mut digest = Digest::new(DigestShape::new(cells, 1, Fields::ALL));
    for nth in packets {
        (0..times).for_each(|_| digest.insert(&Signature::new(&packet(nth), Fields::ALL)));
    }
    digest
}

fn report(segment: &str, end: &str, batch: u64, length: u64, out: Digest, came: Digest) -> MeterReport {
    MeterReport {
        segment: segment.to_owned(),
        end: end.to_owned(),
        life: 1,
        batch,
        length,
        missed: 0,
        out,
        out_number: None,
        came,
        came_number: None,
        facts: ReportFacts::default(),
    }
}

/// Digests as they are sent: nearly all of few bytes and most cells, some with a packet 127 times, few that are full.
fn digests() -> Vec<Vec<u8>> {
    let empty = Digest::new(DigestShape::new(MOST_CELLS, 1, Fields::ALL)).to_bytes();
    let alike = (0..12).map(|nth| digest(MOST_CELLS, [nth], 127).to_bytes());
    let full = (0..2).map(|nth| digest(MOST_CELLS, nth * 6_000..(nth + 1) * 6_000, 1).to_bytes());
    std::iter::repeat_n(empty, 50).chain(alike).chain(full).collect()
}

/// One of a mix: digests of few bytes and most cells, full ones, segments and ends without number, batches as far apart and as
/// short as may be, packets that are lost 127 times, counts that lie, the names of others, and bytes that are no report.
fn hostile(draw: &mut Draw, now: u64, digests: &[Vec<u8>]) -> Vec<u8> {
    let length = [1_000_000, LENGTH, 60_000_000_000][draw.below(3) as usize];
    let batch = (now / length + draw.below(1 + 119_000_000_000 / length)).saturating_sub(59_000_000_000 / length);
    let segment = match draw.below(4) {
        0 => "x".repeat(200) + &draw.below(1_000_000).to_string(),
        1 => format!("few {}", draw.below(3)),
        2 if draw.below(10) == 0 => "honest".to_owned(),
        _ => format!("some {}", draw.below(400)),
    };
    let end = ["a", "b", "c"][draw.below(3) as usize];
    let mut bytes = b"HLRR\x02".to_vec();
    for name in [segment.as_str(), end] {
        bytes.push(name.len() as u8);
        bytes.extend(name.as_bytes());
    }
    for number in [draw.below(3), batch, length, draw.below(2) * u64::MAX] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend([0xff; 8]);
    for _ in 0..2 {
        let digest = &digests[draw.below(digests.len() as u64) as usize];
        bytes.extend((digest.len() as u32).to_le_bytes());
        bytes.extend(digest);
    }
    if draw.below(20) == 0 {
        let at = draw.below(bytes.len() as u64) as usize;
        bytes[at] ^= 0x55;
    }
    bytes
}

/// Ports of lost packets of the honest segment.
fn lost_ports(news: Vec<CollectorEvent>) -> Vec<u16> {
    let port = |news| match news {
        CollectorEvent::Lost(lost) if lost.segment == "honest" => Some(lost.flow.src_port),
        _ => None,
    };
    news.into_iter().filter_map(port).collect()
}

/// Two honest ends, which lose a packet in every batch but the first few, among a thousand hostile reports a second.
#[test]
fn a_hundred_thousand_hostile_reports_stay_within_the_memory_and_honest_losses_are_still_named() {
    let mut collector = Collector::new(2, 1, MEMORY);
    let mut draw = Draw(7);
    let digests = digests();
    assert!(MeterReport::packed(&hostile(&mut Draw(1), START, &digests)).is_ok(), "most of them can be read");
    let (mut most, mut named, mut news_at_once) = (0, Vec::new(), 0);
    const BATCHES: u64 = 500;
    for batch in 0..BATCHES {
        let now = START + (batch + 1) * LENGTH;
        let honest = |end, out, came| {
            let report = report("honest", end, START / LENGTH + batch, LENGTH, out, came);
            MeterReport { life: 12_345, ..report }.to_bytes()
        };
        let (none, sent) = (digest(90, [], 1), digest(90, [50_000 + batch as u32], 1));
        for bytes in [honest("a", sent, none.clone()), honest("b", none.clone(), none)] {
            named.extend(lost_ports(collector.on_report(Timestamp(now), 0, &bytes)));
            for _ in 0..100_000 / (2 * BATCHES) {
                let news = collector.on_report(Timestamp(now), 0, &hostile(&mut draw, now, &digests));
                news_at_once = news.len().max(news_at_once);
                most = collector.held().max(most);
                assert!(collector.held() <= MEMORY, "{} bytes are held", collector.held());
            }
        }
        named.extend(lost_ports(collector.look(Timestamp(now))));
    }
    named.extend(lost_ports(collector.end()));
    // The first two batches pass before both ends are known; the last two are still waited for.
    let expected: Vec<u16> = (2..BATCHES - 1).map(|batch| (50_000 + batch) as u16).collect();
    assert_eq!(named, expected);
    assert!(
        most > MEMORY / 2 && collector.dropped() > 0,
        "it was tried: {most} bytes, {} dropped",
        collector.dropped()
    );
    assert!(news_at_once <= 40_000, "{news_at_once} at once");
}
