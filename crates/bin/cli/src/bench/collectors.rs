//! `hitless bench collectors`: many simulated meters, several collectors and a real Redis, on this machine.
//!
//! Each segment has two ends, which send busy digests both ways and lose a packet in every batch. The meters' senders are
//! those of `hitless radar meter`, all in this process; each collector is a `hitless radar collect` of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use chart::table::{Align, Table, thousands};
use linux::clock::{Clock, instance, time_of_day};
use meter::cost::cpu_time;
use meter::digests::announcer::server_memory;
use meter::digests::{CollectorAddress, ReportCounts, ReportQueue, report_queue};
use radar::digest::{Digest, DigestShape};
use radar::packet::{Flow, Packet, TcpFields};
use radar::segment::{MeterReport, ReportFacts};
use radar::signature::{Fields, Signature};
use serde::Serialize;
use units::StopFlag;

use crate::args::BenchCollectorsArgs;
use crate::output::{CommandResult, Failure, print, say};
use crate::terminal::stop_on_ctrl_c;

/// Time in which collectors announce themselves and meters connect, and in which the last reports are compared.
const BEFORE: Duration = Duration::from_secs(5);
const AFTER: Duration = Duration::from_secs(8);
/// Packets of a busy digest: every cell has many.
const BUSY: u32 = 20_000;
const NAP: Duration = Duration::from_millis(1);

#[derive(Debug, Serialize)]
struct CollectorsBenchResult {
    meters: usize,
    batch_ms: f64,
    cells: usize,
    seconds: f64,
    reports: u64,
    /// Reports that found no room at a meter, that collectors refused, and that did not arrive.
    dropped: u64,
    refused: u64,
    missing: u64,
    bytes_per_report: f64,
    mbit_per_second: f64,
    /// Packets lost in batches between the first and the last that are compared, and those of them that were named.
    lost: u64,
    named: u64,
    /// Processor time of all meters, as a share of one processor.
    meters_cpu: f64,
    redis_bytes: u64,
    collectors: Vec<CollectorCost>,
}

#[derive(Debug, Serialize)]
struct CollectorCost {
    name: String,
    /// Segments that it had at any time.
    segments: u64,
    /// Share of one processor.
    cpu: f64,
    memory_bytes: u64,
}

pub(super) fn run(args: &BenchCollectorsArgs, json: bool) -> CommandResult {
    let wrong = |why: String| Failure::Usage(format!("--bus {why}"));
    // Apart from what else is on that server.
    let separator = if args.bus.contains('?') { '&' } else { '?' };
    let bus = format!("{}{separator}prefix=hitless-bench-{}", args.bus, instance());
    let place: CollectorAddress = bus.parse().map_err(|error: bus::BusError| wrong(error.to_string()))?;
    let CollectorAddress::Redis(redis) = place.clone() else {
        return Err(wrong(format!("{}: expected redis://HOST[:PORT]", args.bus)));
    };
    let stop = stop_on_ctrl_c();
    let seconds = Duration::from_secs_f64(args.seconds.clamp(1.0, 3_600.0));
    let collectors: Vec<BenchCollector> = (0..args.collectors)
        .map(|nth| BenchCollector::start(&bus, nth, args.meters, BEFORE + seconds + AFTER))
        .collect::<Result<_, _>>()?;
    let sent = simulate(args, &place, seconds, &collectors, &stop);
    let redis_bytes = server_memory(&redis).map_err(|error| Failure::Outside(error.to_string()))?;
    say("waiting for the collectors to end");
    let memory: Vec<u64> = collectors.iter().map(|of| process_peak(of.child.id())).collect();
    let all = collectors.into_iter().zip(memory);
    let rows: Vec<(CollectorCost, CollectorTally)> = all.map(|(of, memory)| of.end(sent.judged, memory)).collect();
    let tally = rows.iter().fold(CollectorTally::default(), |all, (_, tally)| all.plus(tally));
    let over = sent.measured.as_secs_f64();
    let result = CollectorsBenchResult {
        meters: args.meters,
        batch_ms: args.batch.as_ps() as f64 / 1e9,
        cells: shape(args).cells(),
        seconds: over,
        reports: sent.counts.reports,
        dropped: sent.counts.dropped,
        refused: sent.counts.refused,
        missing: tally.missing,
        bytes_per_report: sent.counts.bytes as f64 / sent.counts.reports.max(1) as f64,
        mbit_per_second: sent.counts.bytes as f64 * 8e-6 / sent.sending.as_secs_f64(),
        lost: (sent.judged.1 - sent.judged.0) * (args.meters / 2) as u64,
        named: tally.named,
        meters_cpu: sent.cpu.as_secs_f64() / over,
        redis_bytes,
        collectors: rows.into_iter().map(|(cost, _)| cost).collect(),
    };
    print(json, &result, || describe(&result))?;
    if stop.is_stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Reports that all meters sent.
struct SentReports {
    counts: ReportCounts,
    sending: Duration,
    /// Batches of which every loss is to be named: the first, and the one behind the last.
    judged: (u64, u64),
    measured: Duration,
    cpu: Duration,
}

fn length(args: &BenchCollectorsArgs) -> u64 {
    (args.batch.as_ps() / 1_000).max(1_000_000)
}

fn shape(args: &BenchCollectorsArgs) -> DigestShape {
    DigestShape::new(args.cells as usize, 1, Fields::ALL).foldable()
}

fn packet(nth: u32, batch: u64) -> Packet {
    let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
    let flow = Flow { src, dst, protocol: 6, src_port: nth as u16, dst_port: (batch >> 32) as u16 };
    let tcp = Some(TcpFields { seq: batch as u32, len: 1_448, syn: false });
    let content = u64::from(nth).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Packet { flow, ip_id: Some(nth as u16), fragment: 0, tcp, ttl: 64, content }
}

/// A meter and what it reports again and again.
struct SimulatedMeter {
    queue: ReportQueue,
    report: MeterReport,
    loses: bool,
}

impl SimulatedMeter {
    fn send(&mut self, batch: u64) {
        let lost = Signature::new(&packet(u32::MAX, batch), Fields::ALL);
        self.report.batch = batch;
        if self.loses {
            self.report.out.insert(&lost);
        }
        self.queue.put_report(&self.report);
        if self.loses {
            self.report.out.remove(&lost);
        }
    }
}

/// Sends in real time, and measures from the time at which all are connected.
fn simulate(
    args: &BenchCollectorsArgs,
    place: &CollectorAddress,
    seconds: Duration,
    collectors: &[BenchCollector],
    stop: &StopFlag,
) -> SentReports {
    let mut busy = Digest::new(shape(args));
    (0..BUSY).for_each(|nth| busy.insert(&Signature::new(&packet(nth, 0), Fields::ALL)));
    let length = length(args);
    let batch = || time_of_day().as_nanos() as u64 / length;
    thread::scope(|scope| {
        let (mut meters, mut senders) = (Vec::new(), Vec::new());
        for nth in 0..args.meters {
            let life = u64::from(instance()) << 32 | nth as u64;
            let (queue, sender) = report_queue(place.clone(), life, None);
            let report = MeterReport {
                segment: format!("segment{}", nth / 2),
                end: ["a", "b"][nth % 2].to_owned(),
                life,
                batch: 0,
                length,
                missed: 0,
                out: busy.clone(),
                out_number: None,
                came: busy.clone(),
                came_number: None,
                facts: ReportFacts::default(),
            };
            meters.push(SimulatedMeter { queue, report, loses: nth % 2 == 0 });
            senders.push(scope.spawn(move || sender.run(&|_| ())));
        }
        let clock = Clock::start();
        let (mut next, mut begun) = (batch(), None);
        while clock.elapsed() < BEFORE + seconds && !stop.is_stopped() {
            if clock.elapsed() >= BEFORE && begun.is_none() {
                collectors.iter().for_each(BenchCollector::mark);
                begun = Some((next + 1, clock.elapsed(), cpu_time()));
            }
            while next < batch() {
                meters.iter_mut().for_each(|meter| meter.send(next));
                next += 1;
            }
            thread::sleep(NAP);
        }
        let (first, since, cpu) = begun.unwrap_or((next, clock.elapsed(), cpu_time()));
        let (cpu, measured, sending) = (cpu_time().saturating_sub(cpu), clock.elapsed() - since, clock.elapsed());
        collectors.iter().for_each(BenchCollector::mark);
        drop(meters);
        let counts = senders.into_iter().map(|sender| sender.join().unwrap_or_default());
        let counts = counts.fold(ReportCounts::default(), |mut all, one| {
            all.reports += one.reports;
            all.bytes += one.bytes;
            all.dropped += one.dropped;
            all.refused += one.refused;
            all
        });
        // The last batches are still waited for when the meters end.
        let judged = (first, next.saturating_sub(4).max(first));
        SentReports { counts, sending, judged, measured, cpu }
    })
}

/// A collector in a process of its own.
struct BenchCollector {
    name: String,
    child: Child,
    reading: thread::JoinHandle<Vec<String>>,
    /// Processor time at the beginning and the end of the measurement.
    marks: std::sync::Mutex<Vec<(Duration, Duration)>>,
    clock: Clock,
}

/// Findings of collectors.
#[derive(Clone, Copy, Debug, Default)]
struct CollectorTally {
    named: u64,
    missing: u64,
}

impl CollectorTally {
    fn plus(self, other: &Self) -> Self {
        Self { named: self.named + other.named, missing: self.missing + other.missing }
    }
}

impl BenchCollector {
    fn start(bus: &str, nth: usize, meters: usize, life: Duration) -> Result<Self, Failure> {
        let outside = |error: std::io::Error| Failure::Outside(format!("a collector: {error}"));
        let name = format!("collector{nth}");
        let mut command = Command::new(std::env::current_exe().map_err(outside)?);
        command.args(["--json", "radar", "collect", "--from", bus, "--listen", "127.0.0.1:0", "--name", &name]);
        // All meters have one address here.
        command.args(["--connections", &(8 * meters).clamp(64, 65_536).to_string()]);
        command.args(["--seconds", &life.as_secs_f64().to_string()]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(outside)?;
        let out = child.stdout.take().ok_or_else(|| Failure::Outside("a collector without output".to_owned()))?;
        #[expect(clippy::disallowed_methods, reason = "a collector's output is read until it ends")]
        let reading = thread::spawn(move || BufReader::new(out).lines().map_while(Result::ok).collect());
        Ok(Self { name, child, reading, marks: std::sync::Mutex::default(), clock: Clock::start() })
    }

    /// Notes the processor time that it has used.
    fn mark(&self) {
        let mark = (self.clock.elapsed(), process_cpu(self.child.id()));
        self.marks.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(mark);
    }

    fn end(mut self, judged: (u64, u64), memory_bytes: u64) -> (CollectorCost, CollectorTally) {
        // It ends when its time is over.
        let _ = self.child.wait();
        let lines = self.reading.join().unwrap_or_default();
        let lines = lines.iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let (mut tally, mut segments) = (CollectorTally::default(), 0);
        for line in lines {
            let number = |key: &str| line[key].as_u64().unwrap_or(0);
            let batch = number("dst_port") << 32 | number("tcp_seq");
            if line["kind"] == "loss" && (judged.0..judged.1).contains(&batch) {
                tally.named += number("times");
            }
            if line["kind"] == "summary" {
                segments += 1;
                let ends = line["ends"].as_array().into_iter().flatten();
                tally.missing += ends.filter_map(|end| end["missing"].as_u64()).sum::<u64>();
            }
        }
        let marks = self.marks.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let cpu = match marks[..] {
            [(begun, before), .., (ended, after)] => {
                after.saturating_sub(before).as_secs_f64() / (ended - begun).as_secs_f64()
            }
            _ => 0.0,
        };
        (CollectorCost { name: self.name, segments, cpu, memory_bytes }, tally)
    }
}

/// Processor time of a process; the kernel counts in hundredths of a second.
fn process_cpu(id: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // Behind the name, which may have spaces: user and system time are the 12th and 13th.
    let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks: u64 = rest.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

fn process_peak(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1_024
}

fn describe(result: &CollectorsBenchResult) -> String {
    let mut table = Table::new(&[
        ("collector", Align::Left),
        ("segments", Align::Right),
        ("of a processor", Align::Right),
        ("memory", Align::Right),
    ]);
    for CollectorCost { name, segments, cpu, memory_bytes } in &result.collectors {
        let memory = format!("{:.1} MB", *memory_bytes as f64 / 1e6);
        table.row(vec![name.clone(), thousands(*segments), format!("{:.1} %", 100.0 * cpu), memory]);
    }
    let CollectorsBenchResult { meters, batch_ms, cells, reports, dropped, refused, missing, lost, named, .. } = result;
    format!(
        "{} meters, digests of {cells} cells every {batch_ms} ms: {} reports of {:.0} bytes, {:.1} Mbit/s, {:.1} % of a processor\n\
         {} dropped, {} refused, {} missing; {} of {} lost packets named; Redis has {:.1} MB\n\n{table}",
        thousands(*meters as u64),
        thousands(*reports),
        result.bytes_per_report,
        result.mbit_per_second,
        100.0 * result.meters_cpu,
        thousands(*dropped),
        thousands(*refused),
        thousands(*missing),
        thousands(*named),
        thousands(*lost),
        result.redis_bytes as f64 / 1e6,
    )
}
