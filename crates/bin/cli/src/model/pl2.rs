//! `hitless model pl2`.

use reserve::theory::{MeanMessage, RackModel};
use results::model::{Pl2Answer, Pl2Question, pl2_text};
use sim::workload::FlowSizes;
use units::{Bytes, Prob, Rate, Span};
use wire::ethernet::{HEADER_AND_CHECK, on_wire};

use crate::args::Pl2Args;
use crate::output::{CommandResult, Failure, print};

/// Longest time that an option may give.
const LONGEST: Span = Span::from_ms(1_000);
/// Payload of a full frame, and of the shortest.
const PAYLOAD: u64 = 1_500;
const SHORTEST: u64 = 46;
/// Sizes that stand for a distribution where its means are not enough.
const SAMPLES: u32 = 4_096;

pub(super) fn run(args: &Pl2Args, json: bool) -> CommandResult {
    let question = question(args)?;
    let answer = Pl2Answer::from(&question);
    print(json, &answer, || pl2_text(&question, &answer))
}

fn question(args: &Pl2Args) -> Result<Pl2Question, Failure> {
    let Pl2Args { rate, hosts, contexts, k, unit, rtt, software, .. } = *args;
    if rate < Rate::from_bits_per_second(1_000_000) {
        return Err(Failure::Usage(format!("--rate {rate}: expected at least 1M, such as 100G")));
    }
    for (option, span) in [("--rtt", Some(rtt)), ("--software", Some(software)), ("--p99", args.p99)] {
        if let Some(span) = span.filter(|span| *span > LONGEST) {
            return Err(Failure::Usage(format!("{option} {span}: expected at most 1s, such as 2us")));
        }
    }
    if rtt == Span::ZERO {
        return Err(Failure::Usage("--rtt 0: expected more than nothing, such as 2us".into()));
    }
    let p99 = match (args.advise, args.p99) {
        (true, None) => return Err(Failure::Usage("--advise: expected --p99 as well, such as --p99 50us".into())),
        (true, target) => target,
        (false, _) => None,
    };
    let (message, workload) = match &args.workload {
        None => (MeanMessage::full_frame(), "full frames".to_owned()),
        Some(name) => (mean_message(&super::workload(name)?), name.clone()),
    };
    let rack = RackModel { rate, hosts, contexts, k, unit: unit.into(), exchange: rtt, software };
    Ok(Pl2Question { rack, message, workload, loss: args.loss.get(), p99 })
}

/// The last frame of a message is short, and padded if it is shorter than Ethernet allows.
fn mean_message(sizes: &FlowSizes) -> MeanMessage {
    let frames = sizes.mean_packets(Bytes::new(PAYLOAD));
    let padding = (0..SAMPLES).map(|sample| {
        let size = sizes.quantile(Prob::literal((f64::from(sample) + 0.5) / f64::from(SAMPLES)));
        let last = size.saturating_sub(1) % PAYLOAD + 1;
        SHORTEST.saturating_sub(last) as f64
    });
    let padding = padding.sum::<f64>() / f64::from(SAMPLES);
    let headers = f64::from(on_wire(PAYLOAD as u32 + HEADER_AND_CHECK)) - PAYLOAD as f64;
    MeanMessage { bytes: sizes.mean(), frames, wire_bytes: sizes.mean() + padding + frames * headers }
}
