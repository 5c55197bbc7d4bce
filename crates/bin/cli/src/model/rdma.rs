//! `hitless model rdma`.

use faults::LossModel as Fault;
use papers::rdma_corruption::Trial;
use results::model::{RdmaAnswer, RdmaQuestion, TimeoutShare, TimeoutShares, rdma_text};
use roce::model::{
    CorruptionSeverity, FlowLengths, FlowPath, FrameLengths, Goal, PenaltyTiming, TailProtection, TimeoutModel,
    TimeoutSetting, gap_between_flows,
};
use roce::{MAX_MESSAGE, MAX_OUTSTANDING};
use sim::workload::FlowSizes;
use units::{Bytes, Prob, Span};

use crate::args::RdmaArgs;
use crate::output::{CommandResult, Failure, print};
use crate::terminal::{TerminalProgress, jobs};

/// Sizes that stand for a distribution where its means are not enough.
const SAMPLES: u32 = 512;
/// Longest time of a setting; no network takes so long.
const LONGEST: Span = Span::from_ms(3_600_000);
/// Largest payload of the simulator's packets.
const LARGEST_SIMULATED_MTU: u64 = 4_096;
/// A terabyte: what is larger is a mistake.
const LARGEST_FLOW: u64 = 1_000_000_000_000;

pub(super) fn run(args: &RdmaArgs, json: bool) -> CommandResult {
    let question = question(args)?;
    let simulated = simulate(args, &question)?;
    let answer = RdmaAnswer::new(&question, simulated.as_ref());
    print(json, &answer, || rdma_text(&question, simulated.as_ref()))
}

fn simulate(args: &RdmaArgs, question: &RdmaQuestion) -> Result<Option<TimeoutShares>, Failure> {
    let Some(flows) = args.simulate else { return Ok(None) };
    let sizes = sizes(args)?;
    let largest = sizes.quantile(Prob::literal(1.0));
    if args.mtu.get() > LARGEST_SIMULATED_MTU || largest > MAX_MESSAGE.min(u64::from(MAX_OUTSTANDING) * args.mtu.get())
    {
        let expected = "expected an --mtu of at most 4096, and flows that one RDMA message can carry";
        return Err(Failure::Usage(format!("--simulate: {expected}")));
    }
    let model = &question.model;
    let fault = match (model.corruption, model.corruption.bit_errors(&model.lengths)) {
        (CorruptionSeverity::Drops(share), _) => Fault::PerFrame(share),
        (_, bits) => Fault::PerBit(bits.unwrap_or_default()),
    };
    let trial = Trial {
        sizes,
        mtu: args.mtu.get() as u32,
        fault,
        path: model.path,
        setting: TimeoutSetting::NONE,
        rto: args.rto,
        wait: args.wait,
        flows: flows.0,
        seed: args.seed,
    };
    let terminal = TerminalProgress::of_runs();
    let run = |setting| {
        let measured = Trial { setting, ..trial.clone() }.run(jobs(args.jobs), &terminal);
        let found = measured.map_err(|error| Failure::Outside(error.to_string()))?.ok_or(Failure::Interrupted)?;
        Ok(TimeoutShare { share: found.value, flows: found.n, interval: found.interval })
    };
    let found =
        run(TimeoutSetting::NONE).and_then(|without| Ok(TimeoutShares { without, with: run(question.setting)? }));
    terminal.finish();
    found.map(Some)
}

fn question(args: &RdmaArgs) -> Result<RdmaQuestion, Failure> {
    super::check_mtu(args.mtu)?;
    for (option, span) in [("--rto", args.rto), ("--rtt", args.rtt), ("--wait", args.wait), ("--base", args.base)] {
        if span > LONGEST {
            return Err(Failure::Usage(format!("{option} {span}: expected at most an hour")));
        }
    }
    let sizes = sizes(args)?;
    let mean_packets = sizes.mean_packets(args.mtu);
    let lengths = FrameLengths::of_mtu(args.mtu);
    // All packets of a flow but one are full: the tail has the rest.
    let tail = sizes.mean() - args.mtu.get() as f64 * (mean_packets - 1.0);
    let lengths = FrameLengths { tail: lengths.header + Bytes::new(tail.round() as u64), ..lengths };
    Ok(RdmaQuestion {
        model: TimeoutModel {
            lengths,
            corruption: match (args.bit_errors, args.drops) {
                (Some(rate), _) => CorruptionSeverity::Bits(rate),
                (None, Some(share)) => CorruptionSeverity::Drops(share),
                (None, None) => CorruptionSeverity::Packets(args.corruption),
            },
            path: FlowPath { links: args.links, corrupting: args.corrupting },
            flows: flows(&sizes, args.mtu, mean_packets),
        },
        setting: TimeoutSetting {
            naks: args.naks,
            naked: args.requested,
            tail: if args.tail_repeat > 0 {
                TailProtection::Repeat(args.tail_repeat)
            } else {
                TailProtection::Dummies(args.dummies)
            },
            obeys_copies: args.obeys_copies,
        },
        timing: timing(args, &sizes)?,
        goal: goal(args)?,
    })
}

fn flows(sizes: &FlowSizes, mtu: Bytes, mean_packets: f64) -> FlowLengths {
    let share = |at: u32| Prob::literal((f64::from(at) + 0.5) / f64::from(SAMPLES));
    let packets = |at: u32| sizes.quantile(share(at)).div_ceil(mtu.get());
    FlowLengths::new(mean_packets, sizes.mean_inverse_packets(mtu), (0..SAMPLES).map(packets))
}

fn sizes(args: &RdmaArgs) -> Result<FlowSizes, Failure> {
    let sizes = match args.size {
        Some(Bytes::ZERO) => return Err(Failure::Usage("--size 0: expected at least one byte".into())),
        Some(size) => FlowSizes::fixed(size.get()),
        None => super::workload(&args.workload)?,
    };
    let largest = sizes.quantile(Prob::literal(1.0));
    if largest > LARGEST_FLOW {
        return Err(Failure::Usage(format!("a flow of {}: expected at most 1 TB", Bytes::new(largest))));
    }
    Ok(sizes)
}

fn timing(args: &RdmaArgs, sizes: &FlowSizes) -> Result<PenaltyTiming, Failure> {
    let gap = match args.queue_pairs {
        Some(_) if args.load.is_zero() => {
            return Err(Failure::Usage("--load 0: expected more than 0 and at most 1".into()));
        }
        Some(pairs) => Some(gap_between_flows(Bytes::new(sizes.mean().round() as u64), args.rate, args.load, pairs)),
        None => None,
    };
    Ok(PenaltyTiming { rto: args.rto, rtt: args.rtt, gap, wait: args.wait })
}

fn goal(args: &RdmaArgs) -> Result<Option<Goal>, Failure> {
    let wanted = [(args.goal.p99, 1e-2), (args.goal.p999, 1e-3), (args.goal.p9999, 1e-4)];
    let goal = wanted.into_iter().find_map(|(latency, late)| latency.map(|latency| (latency, late)));
    match goal {
        None if args.advise => {
            Err(Failure::Usage("--advise: expected a goal, such as --p999 300us (or --p99, --p9999)".into()))
        }
        None => Ok(None),
        Some((latency, late)) => Ok(Some(Goal { latency, late: Prob::literal(late), base: args.base })),
    }
}
