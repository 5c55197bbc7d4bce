//! `hitless radar flows meter`: the flows at a switch's ports, slot by slot, to a collector.

use std::time::Duration;

use chart::table::thousands;
use linux::clock::{Clock, instance};
use meter::cost;
use meter::digests::{self, CollectorAddress, ReportCounts};
use meter::flows::{FlowMeter, FlowMeterConfig, FlowMeterCounters, FlowMeterNotice, SlotOutlet};
use radar::fabricmap::slot_report::is_name;
use serde::Serialize;
use units::Span;

use crate::args::FlowsMeterArgs;
use crate::output::{CommandResult, Failure, print, say};

const SHORTEST_SLOT: Span = Span::from_ms(1);
const LONGEST_SLOT: Span = Span::from_ms(60_000);
/// A flowset for more takes more than a report may.
const MOST_FLOWS: u64 = 1_000_000;

#[derive(Debug, Serialize)]
struct FlowMeterResult {
    switch: String,
    seconds: f64,
    packets: u64,
    other_frames: u64,
    missed: u64,
    slots: u64,
    undecoded: u64,
    slots_dropped: u64,
    reports: u64,
    report_bytes: u64,
    reports_taken: u64,
    reports_refused: u64,
    refusal: Option<String>,
    memory_bytes: usize,
    cpu_seconds: f64,
}

pub(super) fn run(args: &FlowsMeterArgs, json: bool) -> CommandResult {
    let place = super::place(&args.to, args.bus_ca.as_deref()).map_err(|why| Failure::Usage(format!("--to {why}")))?;
    let place = match place {
        CollectorAddress::Redis(redis) => CollectorAddress::Redis(Box::new(redis.of_flows())),
        tcp @ CollectorAddress::Tcp(_) => tcp,
    };
    let key = super::key(args.key.as_deref())?;
    let until = super::seconds(args.seconds)?;
    let config = config(args)?;
    let mut meter = FlowMeter::open(config.clone()).map_err(|trouble| Failure::Usage(trouble.0))?;
    let stop = super::stop_on_signal()?;
    say(&format!(
        "metering flows at {} as switch {}, slots of {}, to {place}; tables take {} MB at most; Ctrl-C ends it",
        config.interfaces.join(", "),
        config.switch,
        args.slot,
        meter.most_memory().div_ceil(1_000_000)
    ));
    let (queue, sender) = digests::report_queue(place.clone(), config.life, key);
    let memory = usize::try_from(args.memory.get()).unwrap_or(usize::MAX);
    let clock = Clock::start();
    let (seen, sent, dropped) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| sender.run(&say));
        let mut outlet = SlotOutlet::new(queue, memory);
        let notice = &mut |notice| match notice {
            FlowMeterNotice::ClockWasSet => say("the clock was set; starting anew"),
            FlowMeterNotice::InterfaceDown(name) => say(&format!("{name} is down; waiting for it")),
        };
        let seen = meter.run(&stop, until, &mut |slot| _ = outlet.put(slot), notice);
        let dropped = outlet.dropped();
        drop(outlet);
        (seen, sending.join().unwrap_or_default(), dropped)
    });
    let seen = seen.map_err(|trouble| Failure::Outside(trouble.0))?;
    let outcome = outcome(&config.switch, seen, &sent, dropped, meter.most_memory(), clock.elapsed());
    print(json, &outcome, || in_words(&outcome))?;
    verdict(&place, &sent, dropped)
}

fn config(args: &FlowsMeterArgs) -> Result<FlowMeterConfig, Failure> {
    if !(SHORTEST_SLOT..=LONGEST_SLOT).contains(&args.slot) {
        return Err(Failure::Usage(format!("--slot {}: expected 1ms to 60s", args.slot)));
    }
    if !(1..=MOST_FLOWS).contains(&args.flows.0) {
        return Err(Failure::Usage(format!("--flows {}: expected 1 to {}", args.flows.0, thousands(MOST_FLOWS))));
    }
    for (what, name) in
        [("--switch", &args.switch)].into_iter().chain(args.interfaces.iter().map(|name| ("interface", name)))
    {
        if !is_name(name) {
            return Err(Failure::Usage(format!("{what} {name:?}: expected a name of 1 to 255 characters")));
        }
    }
    Ok(FlowMeterConfig {
        interfaces: args.interfaces.clone(),
        switch: args.switch.clone(),
        slot: Duration::from_nanos(args.slot.as_ps() / 1_000),
        flows: args.flows.0,
        life: u64::from(instance()) << 32 | u64::from(instance()),
    })
}

/// A meter of whose slots nothing came has not done what was asked.
fn verdict(place: &CollectorAddress, sent: &ReportCounts, slots_dropped: u64) -> CommandResult {
    let problem = sent.problem.as_ref().map_or(String::new(), |problem| format!(": {problem}"));
    Err(Failure::Outside(match sent.refusal.as_deref() {
        Some(why) if sent.refused > 0 => format!("{place} refused {} of {} reports: {why}", sent.refused, sent.reports),
        _ if sent.reports == 0 && sent.dropped + slots_dropped > 0 => format!("no report reached {place}{problem}"),
        _ if sent.reports > 0 && sent.taken == 0 => {
            format!("nobody acknowledged any of {} reports to {place}{problem}", sent.reports)
        }
        _ => return Ok(()),
    }))
}

fn outcome(
    switch: &str,
    seen: FlowMeterCounters,
    sent: &ReportCounts,
    slots_dropped: u64,
    memory_bytes: usize,
    elapsed: Duration,
) -> FlowMeterResult {
    FlowMeterResult {
        switch: switch.to_owned(),
        seconds: elapsed.as_secs_f64(),
        packets: seen.packets,
        other_frames: seen.other,
        missed: seen.missed,
        slots: seen.slots,
        undecoded: seen.undecoded,
        slots_dropped,
        reports: sent.reports,
        report_bytes: sent.bytes,
        reports_taken: sent.taken,
        reports_refused: sent.refused,
        refusal: sent.refusal.clone(),
        memory_bytes,
        cpu_seconds: cost::cpu_time().as_secs_f64(),
    }
}

fn in_words(outcome: &FlowMeterResult) -> String {
    let FlowMeterResult { switch, seconds, packets, missed, slots, undecoded, slots_dropped, .. } = outcome;
    let rate = outcome.report_bytes as f64 * 8e-6 / seconds;
    let [packets, missed, slots, undecoded, dropped, taken] =
        [*packets, *missed, *slots, *undecoded, *slots_dropped, outcome.reports_taken].map(thousands);
    format!(
        "{switch}: {packets} packets in {slots} slots; {missed} frames passed unseen; {undecoded} ways of ports did not decode\n\
         {taken} reports taken ({rate:.2} Mbit/s), {} refused, {dropped} slots dropped\n{:.2} % of a processor",
        thousands(outcome.reports_refused),
        outcome.cpu_seconds / seconds * 100.0
    )
}
