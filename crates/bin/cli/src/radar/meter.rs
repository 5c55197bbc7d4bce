//! `hitless radar meter`: what passes an interface, in digests, to a collector.

use std::io::{self, IsTerminal};
use std::time::Duration;

use chart::table::thousands;
use linux::clock::{Clock, instance};
use meter::digests::{self, CollectorAddress, ReportCounts, ReportQueue};
use meter::{LiveMeter, MeterConfig, MeterCounters, MeterNotice, cost};
use radar::clock_slack::ClockSlack;
use radar::digest::DigestShape;
use radar::signature::Fields;
use serde::Serialize;
use units::{Bytes, Prob, Span};

use crate::args::{FieldArg, MeterArgs, NatArg};
use crate::output::{CommandResult, Failure, print, say};

/// Seed of the hashes; the same in all meters of a segment.
const SEED: u64 = 0x6869_746c_6573_7301;
const SHORTEST_BATCH: Span = Span::from_ms(1);
const LONGEST_BATCH: Span = Span::from_ms(60_000);
/// Most memory for the latest packets: a minute of a million packets a second.
const MOST_TRAIL: Bytes = Bytes::new(1_000_000_000);
const STATUS_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Serialize)]
struct MeterResult {
    interface: String,
    seconds: f64,
    packets_out: u64,
    packets_in: u64,
    other_frames: u64,
    super_frames: u64,
    tagged_frames: u64,
    missed: u64,
    reports: u64,
    report_bytes: u64,
    reports_dropped: u64,
    /// Reports that the collector acknowledged.
    reports_taken: u64,
    reports_refused: u64,
    refusal: Option<String>,
    cpu_seconds: f64,
}

pub(super) fn run(args: &MeterArgs, json: bool) -> CommandResult {
    let place = super::place(&args.to, args.bus_ca.as_deref()).map_err(|why| Failure::Usage(format!("--to {why}")))?;
    let key = super::key(args.key.as_deref())?;
    let until = super::seconds(args.seconds)?;
    let config = config(args)?;
    let mut meter = LiveMeter::open(config.clone()).map_err(|trouble| Failure::Usage(trouble.0))?;
    let stop = super::stop_on_signal()?;
    say(&greeting(&config, &place));
    if let Some(slack) = clock_slack(args) {
        let patience = slack.patience();
        say(&format!(
            "by these clocks a packet may be {patience} batches on its way: `radar collect --patience {patience}`"
        ));
    }
    if meter.expects_super_frames() {
        say(&advice(&config.interface, "may come, because segmentation or receive offload is on"));
    }
    let trail = meter.trail();
    let (outlet, sender) = digests::report_queue(place.clone(), config.life, key);
    let clock = Clock::start();
    let (seen, sent) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| sender.run_with(&say, &trail));
        let seen = watch(&mut meter, outlet, &config, &stop, until, &clock);
        (seen, sending.join().unwrap_or_default())
    });
    let seen = seen.map_err(|trouble| Failure::Outside(trouble.0))?;
    let outcome = outcome(&config.interface, seen, &sent, clock.elapsed());
    print(json, &outcome, || in_words(&outcome))?;
    verdict(&place, &sent)
}

/// Fails if no report of the meter arrived.
fn verdict(place: &CollectorAddress, sent: &ReportCounts) -> CommandResult {
    let ReportCounts { reports, dropped, taken, refused, .. } = sent;
    let problem = sent.problem.as_ref().map_or(String::new(), |problem| format!(": {problem}"));
    Err(Failure::Outside(match sent.refusal.as_deref() {
        Some(why) if *refused > 0 => format!("{place} refused {refused} of {reports} reports: {why}"),
        _ if *reports == 0 && *dropped > 0 => format!("no report reached {place}{problem}"),
        _ if *reports > 0 && *taken == 0 => {
            let hint = if sent.problem.is_none() { ": does a collector run there?" } else { "" };
            format!("nobody acknowledged any of {reports} reports to {place}{problem}{hint}")
        }
        _ => return Ok(()),
    }))
}

fn watch(
    meter: &mut LiveMeter,
    mut outlet: ReportQueue,
    config: &MeterConfig,
    stop: &io::PipeReader,
    until: Option<Duration>,
    clock: &Clock,
) -> Result<MeterCounters, linux::SystemError> {
    let shows_status = io::stderr().is_terminal();
    let mut status = MeterStatusLine { packets: 0, cpu: Duration::ZERO, next: STATUS_EVERY };
    let notice = &mut |notice| match notice {
        MeterNotice::SuperFrames => say(&advice(&config.interface, "come")),
        MeterNotice::ClockWasSet => say("the clock was set; starting anew"),
        MeterNotice::InterfaceDown => say(&format!("{} is down; waiting for it", config.interface)),
    };
    let report = &mut |report: &radar::segment::MeterReport| {
        status.packets += [&report.out, &report.came].iter().map(|digest| digest.packets().unsigned_abs()).sum::<u64>();
        outlet.put_report(report);
        if shows_status && clock.elapsed() >= status.next {
            say(&status.line(config, &outlet.sent(), clock.elapsed()));
        }
    };
    meter.run(stop, until, report, notice)
}

/// Changes since the last status line.
struct MeterStatusLine {
    packets: u64,
    cpu: Duration,
    next: Duration,
}

impl MeterStatusLine {
    fn line(&mut self, config: &MeterConfig, sent: &ReportCounts, now: Duration) -> String {
        let cpu = cost::cpu_time();
        let over = (now + STATUS_EVERY).saturating_sub(self.next).as_secs_f64();
        let busy = (cpu - self.cpu).as_secs_f64() / over * 100.0;
        let line = format!(
            "{}: {} packets/s, {busy:.1} % of a processor, {} reports sent, {} refused, {} dropped",
            config.interface,
            thousands((self.packets as f64 / over) as u64),
            thousands(sent.reports),
            thousands(sent.refused),
            thousands(sent.dropped)
        );
        *self = Self { packets: 0, cpu, next: now + STATUS_EVERY };
        line
    }
}

/// Room for packets on their way where batches are cut by clocks.
fn clock_slack(args: &MeterArgs) -> Option<ClockSlack> {
    args.clock_error.map(|clock_error| ClockSlack { clock_error, way: args.way, batch: args.batch })
}

fn cells(args: &MeterArgs) -> Result<usize, Failure> {
    const MOST: usize = 8_192;
    let Some((slack, rate)) = clock_slack(args).zip(args.packet_rate) else { return Ok(args.cells as usize) };
    let cells = slack.shape(args.losses.0, rate.0, Prob::literal(0.99)).cells().max(12);
    if cells > MOST {
        return Err(Failure::Usage(format!(
            "--clock-error {}: {} packets of a batch are on its edges, which takes {} cells, and a report has {} at most; a \
             shorter --batch or better clocks take fewer",
            slack.clock_error,
            thousands(slack.packets(rate.0)),
            thousands(cells as u64),
            thousands(MOST as u64)
        )));
    }
    Ok(cells)
}

fn config(args: &MeterArgs) -> Result<MeterConfig, Failure> {
    if !(SHORTEST_BATCH..=LONGEST_BATCH).contains(&args.batch) {
        return Err(Failure::Usage(format!("--batch {}: expected 1ms to 60s", args.batch)));
    }
    let end = args.end.clone().unwrap_or_else(|| format!("{}/{}", super::hostname(), args.interface));
    for (option, name) in [("--segment", &args.segment), ("--end", &end)] {
        if name.is_empty() || name.len() > 255 || name.contains(char::is_control) {
            return Err(Failure::Usage(format!("{option} {name:?}: expected a name of 1 to 255 characters")));
        }
    }
    if args.trail > MOST_TRAIL {
        return Err(Failure::Usage(format!("--trail {}: expected {MOST_TRAIL} at most, 0 for none", args.trail)));
    }
    let cells = cells(args)?;
    let shape = |fields| DigestShape::new(cells, SEED, fields).foldable();
    Ok(MeterConfig {
        interface: args.interface.clone(),
        segment: args.segment.clone(),
        end,
        batch: Duration::from_nanos(args.batch.as_ps() / 1_000),
        shapes: fields(args.nat, &args.fields).map(shape),
        promiscuous: args.promiscuous,
        trail: usize::try_from(args.trail.get()).unwrap_or(usize::MAX),
        life: u64::from(instance()) << 32 | u64::from(instance()),
    })
}

/// Fields of packets that leave, and of packets that arrive: an address that is rewritten as a source on one way is a
/// destination on the other.
fn fields(nat: Option<NatArg>, only: &[FieldArg]) -> [Fields; 2] {
    let has = |field| only.is_empty() || only.contains(&field);
    let all = Fields {
        source: has(FieldArg::Source),
        destination: has(FieldArg::Destination),
        ip_id: has(FieldArg::IpId),
        tcp: has(FieldArg::Tcp),
        content: has(FieldArg::Content),
    };
    let no_source = Fields { source: false, ..all };
    let no_destination = Fields { destination: false, ..all };
    match nat {
        None => [all; 2],
        Some(NatArg::Source) => [no_source, no_destination],
        Some(NatArg::Destination) => [no_destination, no_source],
        Some(NatArg::Both) => [Fields { source: false, ..no_destination }; 2],
    }
}

fn greeting(config: &MeterConfig, place: &CollectorAddress) -> String {
    let MeterConfig { interface, segment, end, batch, shapes, .. } = config;
    let cells = shapes[0].cells();
    format!("metering {interface} as end {end} of {segment}: {cells} cells every {batch:?} to {place}; Ctrl-C ends it")
}

fn advice(interface: &str, why: &str) -> String {
    format!(
        "{interface}: super-frames {why}. They are cut into the packets on the wire, at a price; \
         `ethtool -K {interface} tso off gso off gro off`, on the sending host too, saves it"
    )
}

fn outcome(interface: &str, seen: MeterCounters, sent: &ReportCounts, elapsed: Duration) -> MeterResult {
    MeterResult {
        interface: interface.to_owned(),
        seconds: elapsed.as_secs_f64(),
        packets_out: seen.packets[0],
        packets_in: seen.packets[1],
        other_frames: seen.other,
        super_frames: seen.super_frames,
        tagged_frames: seen.tagged,
        missed: seen.missed,
        reports: sent.reports,
        report_bytes: sent.bytes,
        reports_dropped: sent.dropped,
        reports_taken: sent.taken,
        reports_refused: sent.refused,
        refusal: sent.refusal.clone(),
        cpu_seconds: cost::cpu_time().as_secs_f64(),
    }
}

fn in_words(outcome: &MeterResult) -> String {
    let MeterResult { interface, seconds, packets_out, packets_in, missed, reports, report_bytes, .. } = outcome;
    let packets = packets_out + packets_in;
    let each = if packets > 0 {
        format!(", {:.0} ns a packet", outcome.cpu_seconds * 1e9 / packets as f64)
    } else {
        String::new()
    };
    let share = outcome.cpu_seconds / seconds * 100.0;
    let rate = *report_bytes as f64 * 8e-6 / seconds;
    let [out, came, missed, reports, dropped, refused] =
        [*packets_out, *packets_in, *missed, *reports, outcome.reports_dropped, outcome.reports_refused].map(thousands);
    let taken = thousands(outcome.reports_taken);
    format!(
        "{interface}: {out} packets left and {came} arrived in {seconds:.1} s; {missed} frames passed unseen\n\
         {reports} reports sent ({rate:.2} Mbit/s), {taken} taken, {refused} refused, {dropped} dropped\n\
         {share:.2} % of a processor{each}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_source_at_one_end_is_a_destination_at_the_other() {
        let [inside, outside] = [NatArg::Source, NatArg::Destination].map(|nat| fields(Some(nat), &[]));
        assert_eq!((inside[0], inside[1]), (outside[1], outside[0]));
        assert!(!inside[0].source && inside[0].destination && inside[1].source && !inside[1].destination);
        assert_eq!(fields(None, &[]), [Fields::ALL; 2]);
        let [only, _] = fields(None, &[FieldArg::Tcp, FieldArg::Source]);
        assert!(only.tcp && only.source && !only.destination && !only.ip_id && !only.content);
    }
}
