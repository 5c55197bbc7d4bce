//! Output of a collector: lines for people, JSON for programs.

use std::net::IpAddr;

use chart::table::{Align, Table, thousands};
use radar::causes::CauseCounts as Causes;
use radar::loss::LossCause;
use radar::packet::Flow;
use radar::rule::CauseLine;
use serde::Serialize;

use super::{CollectorSummary, EndSummary, JudgedCause, LostPacket};

/// `time` is that of the batch, in nanoseconds since 1970; what is rewritten on the way is null.
#[derive(Serialize)]
struct JsonLoss<'a> {
    kind: &'static str,
    time: u64,
    segment: &'a str,
    from: Option<&'a str>,
    to: Option<&'a str>,
    src: Option<IpAddr>,
    dst: Option<IpAddr>,
    proto: u8,
    src_port: Option<u16>,
    dst_port: Option<u16>,
    tcp_seq: Option<u32>,
    ip_id: Option<u16>,
    /// Time at the upstream meter, in nanoseconds since 1970, and time to live there.
    at_ns: Option<u64>,
    ttl: Option<u8>,
    /// Packets that were all alike.
    times: u32,
    delay_ms: f64,
}

#[derive(Serialize)]
struct JsonProblem<'a> {
    kind: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct JsonSummary<'a> {
    kind: &'static str,
    segment: &'a str,
    /// Time up to which everything has been compared, in nanoseconds since 1970.
    until: u64,
    packets: u64,
    lost: u64,
    unnamed: u64,
    unsure: u64,
    extra: u64,
    late: u64,
    skipped: u64,
    causes: Vec<JsonCause>,
    flows: Vec<JsonFlow>,
    other_flows: u64,
    ends: Vec<JsonEnd<'a>>,
}

#[derive(Serialize)]
struct JsonCause {
    cause: LossCause,
    lost: u64,
}

#[derive(Serialize)]
struct JsonFlow {
    src: IpAddr,
    dst: IpAddr,
    proto: u8,
    src_port: u16,
    dst_port: u16,
    lost: u64,
    causes: Vec<JsonCause>,
}

#[derive(Serialize)]
struct JsonEnd<'a> {
    end: &'a str,
    reports: u64,
    missed: u64,
    missing: u64,
    silent: bool,
}

pub fn json_loss(lost: &LostPacket) -> String {
    json_packet("loss", lost)
}

/// A packet that was called lost and came after all.
pub fn json_late(late: &LostPacket) -> String {
    json_packet("late", late)
}

fn json_packet(kind: &'static str, lost: &LostPacket) -> String {
    let Flow { src, dst, protocol, src_port, dst_port } = lost.flow;
    let source = lost.fields.source;
    let destination = lost.fields.destination;
    to_json(&JsonLoss {
        kind,
        time: lost.batch.0,
        segment: &lost.segment,
        from: lost.from.as_deref(),
        to: lost.to.as_deref(),
        src: source.then_some(src),
        dst: destination.then_some(dst),
        proto: protocol,
        src_port: source.then_some(src_port),
        dst_port: destination.then_some(dst_port),
        tcp_seq: lost.tcp_seq,
        ip_id: lost.ip_id,
        at_ns: lost.at.map(|at| at.0),
        ttl: lost.ttl,
        times: lost.times,
        delay_ms: lost.delay as f64 / 1e6,
    })
}

#[derive(Serialize)]
struct JsonCauseLine<'a> {
    kind: &'static str,
    segment: &'a str,
    from: Option<&'a str>,
    to: Option<&'a str>,
    #[serde(flatten)]
    line: &'a CauseLine,
}

/// Cause of losses of an interval.
pub fn json_cause(cause: &JudgedCause) -> String {
    let JudgedCause { segment, from, to, line } = cause;
    to_json(&JsonCauseLine { kind: "cause", segment, from: from.as_deref(), to: to.as_deref(), line })
}

pub fn cause_line(cause: &JudgedCause) -> String {
    let JudgedCause { segment, from, to, line } = cause;
    let way = match (from, to) {
        (Some(from), Some(to)) => format!("{from} > {to}"),
        _ => "black box".to_owned(),
    };
    let lost = if line.lost > 0 { format!("{} lost: ", thousands(line.lost)) } else { String::new() };
    let flows = line.evidence.flows.first().filter(|_| matches!(line.cause, LossCause::Blackhole | LossCause::Loop));
    let flows = flows.map_or(String::new(), |flow| format!("  {flow}"));
    let more = if flows.is_empty() { 0 } else { line.evidence.more_flows + line.evidence.flows.len() - 1 };
    let more = if more > 0 { format!(" and {more} more flows") } else { String::new() };
    let seconds = line.until_ns.saturating_sub(line.since_ns) as f64 / 1e9;
    format!(
        "{}  {segment}  {way}  in {seconds:.1} s {lost}{} ({}){flows}{more}",
        time(line.since_ns),
        line.cause,
        line.why.name()
    )
}

pub fn json_trouble(text: &str) -> String {
    to_json(&JsonProblem { kind: "trouble", text })
}

pub fn json_summary(summary: &CollectorSummary) -> String {
    let causes = |causes: &Causes| causes.causes().map(|(cause, lost)| JsonCause { cause, lost }).collect();
    let flow = |(flow, of_flow): &(Flow, Causes)| JsonFlow {
        src: flow.src,
        dst: flow.dst,
        proto: flow.protocol,
        src_port: flow.src_port,
        dst_port: flow.dst_port,
        lost: of_flow.losses(),
        causes: causes(of_flow),
    };
    let ends = summary.ends.iter().map(|of| JsonEnd {
        end: &of.end,
        reports: of.reports,
        missed: of.missed,
        missing: of.missing,
        silent: of.silent,
    });
    to_json(&JsonSummary {
        kind: "summary",
        segment: &summary.segment,
        until: summary.until.0,
        packets: summary.packets,
        lost: summary.lost,
        unnamed: summary.unnamed,
        unsure: summary.unsure,
        extra: summary.extra,
        late: summary.late,
        skipped: summary.skipped,
        causes: causes(&summary.causes),
        flows: summary.flows.iter().map(flow).collect(),
        other_flows: summary.other_flows,
        ends: ends.collect(),
    })
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A packet that was called lost and came after all.
pub fn late_line(late: &LostPacket) -> String {
    format!("{}: not lost, it came late", loss_line(late))
}

/// One lost packet.
pub fn loss_line(lost: &LostPacket) -> String {
    let way = match (&lost.from, &lost.to) {
        (Some(from), Some(to)) => format!("{from} > {to}"),
        _ => "black box".to_owned(),
    };
    let times = if lost.times > 1 { format!("  {} times", lost.times) } else { String::new() };
    let number = |name: &str, value: Option<u64>| value.map_or(String::new(), |value| format!("  {name} {value}"));
    format!(
        "{}  {}  {way}  {}{}{}{times}  after {:.0} ms",
        time(lost.batch.0),
        lost.segment,
        lost.flow,
        number("seq", lost.tcp_seq.map(u64::from)),
        number("id", lost.ip_id.map(u64::from)),
        lost.delay as f64 / 1e6
    )
}

/// Time of day, UTC.
fn time(ns: u64) -> String {
    let ms = ns / 1_000_000;
    let (seconds, ms) = (ms / 1_000 % 86_400, ms % 1_000);
    format!("{:02}:{:02}:{:02}.{ms:03}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

pub fn summary_text(summary: &CollectorSummary, top: usize) -> String {
    let CollectorSummary { segment, packets, lost, unnamed, unsure, extra, late, skipped, .. } = summary;
    let rate =
        if *packets > 0 { format!(" ({:.1e})", (lost + unnamed) as f64 / *packets as f64) } else { String::new() };
    let mut text = format!("\n{segment}: {} lost of {} packets{rate}", thousands(lost + unnamed), thousands(*packets));
    let causes: Vec<String> = summary.causes.causes().map(|(cause, lost)| format!("{lost} {cause}")).collect();
    if !causes.is_empty() {
        text += &format!(": {}", causes.join(", "));
    }
    text.push('\n');
    for (count, what) in [
        (*unnamed, "of them without a name: too many at once for the meters' cells"),
        (*unsure, "more are missing, but perhaps only to a meter that missed packets"),
        (*late, "more were called lost and came after all, later than --patience has it"),
        (*extra, "came out that were not seen to go in"),
        (*skipped, "batches could not be compared, because an end did not report them"),
        (summary.other_flows, "losses of flows beyond those listed"),
    ] {
        if count > 0 {
            text += &format!("  {} {what}\n", thousands(count));
        }
    }
    if let [only] = &summary.ends[..] {
        text += &format!("  nothing was compared: only {} reported\n", only.end);
    }
    for EndSummary { end, missed, missing, silent, .. } in &summary.ends {
        let mut words = Vec::new();
        if *missed > 0 {
            words.push(format!("its meter missed {} frames", thousands(*missed)));
        }
        if *missing > 0 {
            words.push(format!("{} of its reports did not come", thousands(*missing)));
        }
        if *silent {
            words.push("silent".to_owned());
        }
        if !words.is_empty() {
            text += &format!("  end {end}: {}\n", words.join(", "));
        }
    }
    text + &flows(&summary.flows, top)
}

fn flows(flows: &[(Flow, Causes)], top: usize) -> String {
    if flows.is_empty() || top == 0 {
        return String::new();
    }
    let mut table = Table::new(&[("flow", Align::Left), ("lost", Align::Right), ("causes", Align::Left)]);
    for (flow, causes) in flows.iter().take(top) {
        let names: Vec<String> = causes.causes().map(|(cause, _)| cause.to_string()).collect();
        table.row(vec![flow.to_string(), thousands(causes.losses()), names.join(", ")]);
    }
    let more = flows.len().saturating_sub(top);
    let rest = if more > 0 { format!("and {} more flows\n", thousands(more as u64)) } else { String::new() };
    format!("{table}{rest}")
}
