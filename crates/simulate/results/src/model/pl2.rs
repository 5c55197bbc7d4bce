//! Rack with reservations (PL2) computed without simulating: bound, throughput, wait, ceiling, leaks, and a choice of
//! parameters.
//!
//! Formulas are those of [`reserve::theory`]. "Beside everybody" means all hosts but the receiver and the one that waits.

use chart::table::{Align, Table};
use reserve::theory::{MeanMessage, RackModel};
use reserve::{SchedulerKind, SlotUnit};
use serde::Serialize;
use units::Span;

use super::text::percent;

/// Bursts that advice chooses among: with shorter ones RSVs take more than 2 % of the sender's wire.
const BURSTS: [u32; 3] = [4, 8, 16];
/// Most contexts that a NIC has for one port.
const MOST_CONTEXTS: u32 = 64;

/// Question about a rack.
#[derive(Clone, Debug)]
pub struct Pl2Question {
    pub rack: RackModel,
    /// Messages, and what they are called.
    pub message: MeanMessage,
    pub workload: String,
    /// Share of frames that hosts' links lose.
    pub loss: f64,
    /// Longest time that a request may take at the 99th percentile, exchange included, if advice is wanted.
    pub p99: Option<Span>,
}

/// Output of `--json` for a rack.
#[derive(Debug, Serialize)]
pub struct Pl2Answer {
    bound_bytes: u64,
    /// Throughput of a host while no other host sends.
    throughput_gbps: f64,
    /// Delay of a burst while all hosts send.
    wait_us: f64,
    ceiling_gbps: f64,
    /// Half-life with the paper's scheduler; `None` without loss.
    half_life_s: Option<f64>,
    advice: Option<RackAdvice>,
}

/// A choice of parameters.
#[derive(Debug, Serialize)]
struct RackAdvice {
    scheduler: &'static str,
    k: u32,
    contexts: u32,
    /// True if requests need a class of their own.
    class: bool,
    wait_us: f64,
    throughput_gbps: f64,
    bound_bytes: u64,
    /// True if the target is met.
    met: bool,
    why: String,
}

impl Pl2Question {
    /// Hosts that send to the same port as a request's answer.
    fn senders(&self) -> u32 {
        (self.rack.hosts - 2).max(1)
    }

    fn advice(&self, p99: Span) -> Option<RackAdvice> {
        let fills = |k: &u32| {
            let rack = RackModel { k: *k, ..self.rack };
            rack.contexts_to_fill(MOST_CONTEXTS).map(|contexts| RackModel { contexts, ..rack })
        };
        let rack = BURSTS.iter().filter_map(fills).min_by_key(|rack| (rack.bound(), rack.k))?;
        let asking = rack.exchange.as_us() + rack.software.as_us();
        let (wait, budget) = (rack.wait(self.senders()) * 1e6, p99.as_us() - asking);
        // Kept RSVs are answered an exchange before their slot; a burst that has been granted goes before any class.
        let first_class = rack.exchange.as_us() / 2.0 + self.burst_us(&rack);
        let (scheduler, class, wait_us) = match wait <= budget {
            true => (SchedulerKind::Clock, false, wait),
            false => (SchedulerKind::Late, true, first_class.min(wait)),
        };
        let fewest = format!(
            "{} contexts with K = {} are the fewest slots with which one host fills its port while it asks ({asking:.1} µs)",
            rack.contexts, rack.k
        );
        let beside = format!("beside {} hosts a burst then waits {wait:.1} µs", self.senders());
        let verdict = match (class, wait_us <= budget) {
            (false, _) => format!("which leaves {:.1} µs of the target: no classes are needed", budget - wait),
            (true, true) => {
                format!(
                    "more than the {budget:.1} µs that are left: requests need a class of their own, which late grants have"
                )
            }
            (true, false) => format!(
                "and even a class of its own waits {wait_us:.1} µs where {budget:.1} µs are left: expected a larger --p99, \
                 a shorter --rtt or less --software"
            ),
        };
        Some(RackAdvice {
            scheduler: scheduler.name(),
            k: rack.k,
            contexts: rack.contexts,
            class,
            wait_us,
            throughput_gbps: rack.throughput(1) / 1e9,
            bound_bytes: rack.bound().get(),
            met: wait_us <= budget,
            why: format!("{fewest}; {beside}, {verdict}"),
        })
    }

    /// Time that a burst takes at the port.
    fn burst_us(&self, rack: &RackModel) -> f64 {
        let frame = MeanMessage::full_frame();
        f64::from(rack.k) * frame.wire_bytes * 8e6 / rack.rate.bits_per_second() as f64
    }
}

impl From<&Pl2Question> for Pl2Answer {
    fn from(question: &Pl2Question) -> Self {
        let rack = &question.rack;
        Self {
            bound_bytes: rack.bound().get(),
            throughput_gbps: rack.throughput(1) / 1e9,
            wait_us: rack.wait(question.senders()) * 1e6,
            ceiling_gbps: rack.ceiling(&question.message) / 1e9,
            half_life_s: rack.half_life(question.senders(), question.loss),
            advice: question.p99.and_then(|p99| question.advice(p99)),
        }
    }
}

pub fn pl2_text(question: &Pl2Question, answer: &Pl2Answer) -> String {
    let RackModel { rate, hosts, contexts, k, unit, exchange, software } = &question.rack;
    let mut text = format!(
        "{hosts} hosts of {rate}, {contexts} contexts each, K = {k}, slots for {}; RSV to GRT {exchange}, software {software}\n\n{}\n{}",
        unit.name(),
        table(question, answer),
        by_senders(question)
    );
    if let Some(advice) = &answer.advice {
        let class = if advice.class { ", requests in class 0" } else { "" };
        let RackAdvice { scheduler, k, contexts, why, .. } = advice;
        text += &format!("\nadvice: scheduler {scheduler}, K = {k}, {contexts} contexts{class}\n{why}\n");
    } else if question.p99.is_some() {
        text += &format!(
            "\nadvice: none: no K up to 16 fills a port with {MOST_CONTEXTS} contexts; expected a shorter --rtt or less --software\n"
        );
    }
    text
}

fn table(question: &Pl2Question, answer: &Pl2Answer) -> Table {
    let Pl2Question { rack, workload, loss, .. } = question;
    let mut table = Table::new(&[("rack", Align::Left), ("", Align::Right), ("", Align::Left)]);
    let full = answer.ceiling_gbps * 1e9 / rack.rate.bits_per_second() as f64;
    let slots = match rack.unit {
        SlotUnit::Frames => "a slot for each frame",
        SlotUnit::Bytes => "slots by bytes",
    };
    let half_life = match answer.half_life_s {
        None => "-".to_owned(),
        Some(seconds) if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.1} s"),
    };
    for (what, value, how) in [
        ("queue of a port, at most", rack.bound().to_string(), "(hosts − 1) · contexts · K · 1,538 B".to_owned()),
        ("throughput of one host", format!("{:.1} Gb/s", answer.throughput_gbps), "full frames, alone".to_owned()),
        (
            "wait added beside everybody",
            format!("{:.1} µs", answer.wait_us),
            format!("{} hosts that always send", question.senders()),
        ),
        (
            "ceiling of goodput",
            format!("{:.1} Gb/s", answer.ceiling_gbps),
            format!("{workload}: {slots}, {} % of the rate", percent(full)),
        ),
        (
            "paper's scheduler at half its rate",
            half_life,
            if *loss > 0.0 {
                format!("after this time at a loss of {loss:e}")
            } else {
                "never without loss".to_owned()
            },
        ),
    ] {
        table.row(vec![what.into(), value, how]);
    }
    table
}

/// Throughput and wait by the number of senders.
fn by_senders(question: &Pl2Question) -> Table {
    let mut table = Table::new(&[("senders", Align::Right), ("Gb/s", Align::Right), ("wait", Align::Right)]);
    for senders in 1..question.rack.hosts.min(9) {
        let (gbps, wait) = (question.rack.throughput(senders) / 1e9, question.rack.wait(senders) * 1e6);
        table.row(vec![senders.to_string(), format!("{gbps:.1}"), format!("{wait:.1} µs")]);
    }
    table
}
