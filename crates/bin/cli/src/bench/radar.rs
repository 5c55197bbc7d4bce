//! `hitless bench radar`: how fast digests and comparisons of captures are, on one core of this machine.
//!
//! Targets: a packet put into a digest within 25 ns; two captures compared at 2 million packets a second or more, counting
//! the packets of one of them, with memory that follows the losses.

mod captures;

use capture::LinkType;
use std::hint::black_box;

use chart::table::{Align, Table, thousands};
use radar::compare::{self, CaptureInput, CompareError, CompareOptions};
use radar::digest::{Digest, DigestShape};
use radar::read::{self, DEPTH};
use radar::signature::{Fields, Signature};
use serde::Serialize;

use crate::args::BenchRadarArgs;
use crate::memory;
use crate::output::{CommandResult, Failure, print};
use crate::terminal::{now, stop_on_ctrl_c};
use captures::{BenchCaptures, frame};
use units::StopFlag;
use units::samples::upper_median;

/// Signatures that are put in over and over: as many as stay in a cache.
const SIGNATURES: u64 = 1 << 12;
const INSERTED: u64 = 20_000_000;
/// Cells of a port's digest, which takes 8 KB to 1 MB.
const CELLS: usize = 3 << 10;
/// Losses of a batch to be decoded, and cells for each of them.
const DECODED: u64 = 10_000;
const CELLS_EACH: f64 = 1.3;

#[derive(Debug, Serialize)]
struct RadarBenchResult {
    packets: u64,
    loss: f64,
    rounds: u32,
    insert_ns: f64,
    /// Time from the bytes of a frame to its signature.
    read_ns: f64,
    decode_ns_per_loss: f64,
    rows: Vec<RadarBenchRow>,
}

/// One way of comparing the two captures.
#[derive(Debug, Serialize)]
struct RadarBenchRow {
    name: &'static str,
    /// Medians over the rounds.
    seconds: f64,
    /// Rate of the packets of UP alone.
    packets_per_second: f64,
    lost: u64,
    named: u64,
    /// Most memory that comparing added to this program, in bytes.
    memory: u64,
}

pub(super) fn run(args: &BenchRadarArgs, json: bool) -> CommandResult {
    let stop = stop_on_ctrl_c();
    let packets = args.packets.0.max(1_000);
    let signatures: Vec<Signature> = (0..SIGNATURES).map(signature).collect();
    let insert_ns = median(args.rounds, || insert(&signatures));
    let read_ns = median(args.rounds, read);
    let decode_ns_per_loss = median(args.rounds, decode);
    let folder = args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let outside = |error: std::io::Error| Failure::Outside(format!("{}: {error}", folder.display()));
    let Some(captures) = BenchCaptures::write(&folder, packets, args.loss.get(), &stop).map_err(outside)? else {
        return Err(Failure::Interrupted);
    };
    let mut rows = Vec::new();
    let digests = CompareOptions::default();
    for (name, options) in [("digests", digests), ("--exact", CompareOptions { exact: true, ..digests })] {
        let Some(row) = measure(name, &options, &captures, args.rounds, &stop)? else { break };
        rows.push(row);
    }
    let loss = args.loss.get();
    let answer = RadarBenchResult { packets, loss, rounds: args.rounds, insert_ns, read_ns, decode_ns_per_loss, rows };
    print(json, &answer, || describe(&answer))?;
    if stop.is_stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn signature(number: u64) -> Signature {
    let packet = read::packet(&frame(number), LinkType::Ethernet, DEPTH);
    packet
        .map_or_else(|| unreachable!("a frame of ours is an IP packet"), |packet| Signature::new(&packet, Fields::ALL))
}

fn insert(signatures: &[Signature]) -> f64 {
    let mut digest = Digest::new(DigestShape::new(CELLS, 1, Fields::ALL));
    let begun = now();
    for _ in 0..INSERTED / SIGNATURES {
        signatures.iter().for_each(|signature| digest.insert(black_box(signature)));
    }
    black_box(&digest);
    begun.elapsed().as_secs_f64() * 1e9 / (INSERTED / SIGNATURES * SIGNATURES) as f64
}

fn read() -> f64 {
    let frames: Vec<_> = (0..SIGNATURES).map(frame).collect();
    let rounds = INSERTED / SIGNATURES / 4;
    let begun = now();
    for _ in 0..rounds {
        for frame in &frames {
            let packet = read::packet(black_box(frame), LinkType::Ethernet, DEPTH);
            black_box(packet.map(|packet| Signature::new(&packet, Fields::ALL)));
        }
    }
    begun.elapsed().as_secs_f64() * 1e9 / (rounds * SIGNATURES) as f64
}

fn decode() -> f64 {
    let mut digest = Digest::new(DigestShape::new((DECODED as f64 * CELLS_EACH) as usize, 1, Fields::ALL));
    (0..DECODED).map(signature).for_each(|signature| digest.insert(&signature));
    let begun = now();
    black_box(digest.decode());
    begun.elapsed().as_secs_f64() * 1e9 / DECODED as f64
}

fn median(rounds: u32, mut measure: impl FnMut() -> f64) -> f64 {
    let mut found: Vec<f64> = (0..rounds).map(|_| measure()).collect();
    upper_median(&mut found).unwrap_or(f64::NAN)
}

fn measure(
    name: &'static str,
    options: &CompareOptions,
    captures: &BenchCaptures,
    rounds: u32,
    stop: &StopFlag,
) -> Result<Option<RadarBenchRow>, Failure> {
    let (up, down) = (|| captures.open("up"), || captures.open("down"));
    let (mut seconds, mut last) = (Vec::new(), None);
    let before = memory::reset_peak();
    for _ in 0..rounds {
        let begun = now();
        match compare::compare(CaptureInput { open: &up }, CaptureInput { open: &down }, options, stop) {
            Ok(comparison) => last = Some((comparison.losses(), comparison.lost.len() as u64)),
            Err(CompareError::Interrupted) => return Ok(None),
            Err(error) => return Err(Failure::Outside(error.to_string())),
        }
        seconds.push(begun.elapsed().as_secs_f64());
    }
    let median = upper_median(&mut seconds).unwrap_or(f64::NAN);
    let memory = memory::peak().saturating_sub(before);
    let packets_per_second = captures.packets as f64 / median;
    Ok(last.map(|(lost, named)| RadarBenchRow { name, seconds: median, packets_per_second, lost, named, memory }))
}

fn describe(answer: &RadarBenchResult) -> String {
    let mut table = Table::new(&[
        ("two captures compared", Align::Left),
        ("seconds", Align::Right),
        ("packets/s", Align::Right),
        ("lost", Align::Right),
        ("named", Align::Right),
        ("memory", Align::Right),
    ]);
    for row in &answer.rows {
        table.row(vec![
            row.name.into(),
            format!("{:.2}", row.seconds),
            format!("{:.2} M", row.packets_per_second / 1e6),
            thousands(row.lost),
            thousands(row.named),
            format!("{:.1} MB", row.memory as f64 / 1e6),
        ]);
    }
    let RadarBenchResult { packets, loss, rounds, insert_ns, read_ns, decode_ns_per_loss, .. } = answer;
    format!(
        "a packet put into a digest: {insert_ns:.1} ns (target below 25)\n\
         a frame read, to its signature: {read_ns:.1} ns\n\
         a loss decoded: {decode_ns_per_loss:.0} ns\n\n\
         {} packets, {} % of them lost, medians of {rounds} rounds; packets/s count those of UP only (target 2 M)\n\n{table}",
        thousands(*packets),
        100.0 * loss
    )
}
