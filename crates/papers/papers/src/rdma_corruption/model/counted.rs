//! Flows with a timeout, counted in simulation, beside what the model expects of the same flows.
//!
//! Each case isolates one cause of timeouts. It excludes the others by a direction without corruption, or by more copies and
//! dummies than can all be lost. Where nothing is kept away, all causes are counted together. What is compared is the share of
//! flows that had a timeout, since a flow that had one may have another.

use report::claim::{ClaimError, MeasuredValue, RunScale, number};
use report::runner::Effort;
use roce::model::{
    Causes, CorruptionSeverity, FlowLengths, FlowPath, Forms, FrameLengths, TailProtection, TimeoutModel,
    TimeoutSetting,
};
use scenario::Scenario;
use units::{Bytes, Prob, Progress};

const CHAIN: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../experiments/rdma-corruption/chain.toml"));

/// L, the links between the switches of the chain.
const LINKS: u32 = 3;
const MTU: Bytes = Bytes::new(1_024);
/// Extra bytes of the first packet of a WRITE: address, key and length.
const RETH: Bytes = Bytes::new(roce::RETH as u64);
/// Number of copies at which they are never all lost.
const MANY: u32 = 8;
/// Flows of one run: rows of flows take memory.
const FLOWS_OF_A_RUN: u64 = 50_000;

/// Directions that corrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CorruptingDirections {
    Ahead,
    Back,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CorruptionKind {
    /// Bits are corrupted: short packets suffer less.
    Short,
    /// Packets are dropped regardless of their length.
    Nobody,
}

/// Flows of a kind, over links of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowCase {
    pub name: &'static str,
    ways: CorruptingDirections,
    spares: CorruptionKind,
    /// β of a full packet on one corrupting link.
    pub beta: f64,
    /// ω: one, or one half.
    corrupting: f64,
    packets: u64,
    setting: TimeoutSetting,
    /// Selects the one of the paper's estimates that is for this case.
    of: fn(&Causes<Forms>) -> Forms,
    /// Delay of each link.
    delay: &'static str,
    /// The requester is still sending when NAKs arrive, most of the time.
    busy: bool,
    /// Flows at quick scale.
    flows: u64,
}

const NONE: TimeoutSetting = TimeoutSetting::NONE;
const DUMMIES: TimeoutSetting = TimeoutSetting { tail: TailProtection::Dummies(MANY), ..NONE };
const NAKED: TimeoutSetting = TimeoutSetting { naked: MANY, ..DUMMIES };
/// Two NAKs for each loss, both of which are obeyed.
const EVERY: TimeoutSetting = TimeoutSetting { naks: 1, obeys_copies: true, ..DUMMIES };
const ONE_OF_EACH: TimeoutSetting =
    TimeoutSetting { naks: 1, naked: 1, tail: TailProtection::Dummies(1), obeys_copies: false };

const TAIL: FlowCase = FlowCase {
    name: "tail",
    ways: CorruptingDirections::Ahead,
    spares: CorruptionKind::Short,
    beta: 1e-2,
    corrupting: 1.0,
    packets: 1,
    setting: NONE,
    of: |causes| causes.tail,
    delay: "50ns",
    busy: false,
    flows: 100_000,
};
const TAIL_ACK: FlowCase = FlowCase {
    name: "tail-ack",
    ways: CorruptingDirections::Back,
    of: |causes| causes.tail_ack,
    flows: 250_000,
    ..TAIL
};
const TWICE: FlowCase =
    FlowCase { name: "twice", packets: 20, setting: DUMMIES, of: |causes| causes.twice, flows: 20_000, ..TAIL };
const NAK: FlowCase = FlowCase {
    name: "nak",
    ways: CorruptingDirections::Both,
    setting: NAKED,
    of: |causes| causes.nak,
    flows: 100_000,
    ..TWICE
};
const ALL: FlowCase = FlowCase { ways: CorruptingDirections::Both, of: |causes| causes.total(), ..TWICE };

/// The four causes, each at three β: what the chart shows.
pub(super) const CAUSES: [[FlowCase; 3]; 4] = [
    [
        FlowCase { beta: 3e-3, name: "tail.3e-3", ..TAIL },
        FlowCase { name: "tail.1e-2", ..TAIL },
        FlowCase { beta: 3e-2, name: "tail.3e-2", ..TAIL },
    ],
    [
        FlowCase { beta: 3e-3, name: "tail-ack.3e-3", flows: 500_000, ..TAIL_ACK },
        FlowCase { name: "tail-ack.1e-2", ..TAIL_ACK },
        FlowCase { beta: 3e-2, name: "tail-ack.3e-2", ..TAIL_ACK },
    ],
    [
        FlowCase { beta: 3e-3, name: "twice.3e-3", flows: 100_000, ..TWICE },
        FlowCase { name: "twice.1e-2", ..TWICE },
        FlowCase { beta: 3e-2, name: "twice.3e-2", ..TWICE },
    ],
    [
        FlowCase { name: "nak.1e-2", ..NAK },
        FlowCase { beta: 3e-2, name: "nak.3e-2", flows: 30_000, ..NAK },
        FlowCase { beta: 1e-1, name: "nak.1e-1", flows: 10_000, ..NAK },
    ],
];

/// One copy or dummy of each kind (of NAKs where length does not matter, or there would be too few to count), all causes at
/// once, and links of which half corrupt.
const MECHANISMS: [FlowCase; 14] = [
    FlowCase {
        name: "dummy",
        beta: 3e-2,
        setting: TimeoutSetting { naked: MANY, tail: TailProtection::Dummies(1), ..NONE },
        flows: 400_000,
        ..TAIL
    },
    FlowCase {
        name: "tail-repeat",
        beta: 3e-2,
        setting: TimeoutSetting { tail: TailProtection::Repeat(1), ..NONE },
        ..TAIL
    },
    FlowCase {
        name: "dummy-ack",
        beta: 0.3,
        setting: TimeoutSetting { tail: TailProtection::Dummies(1), ..NONE },
        ..TAIL_ACK
    },
    FlowCase {
        name: "tail-repeat-ack",
        beta: 0.3,
        setting: TimeoutSetting { tail: TailProtection::Repeat(1), ..NONE },
        ..TAIL_ACK
    },
    FlowCase {
        name: "naked-copy",
        beta: 3e-2,
        setting: TimeoutSetting { naked: 1, ..DUMMIES },
        flows: 40_000,
        ..TWICE
    },
    FlowCase {
        name: "nak-copy",
        beta: 3e-2,
        setting: TimeoutSetting { naks: 1, ..NAKED },
        spares: CorruptionKind::Nobody,
        flows: 20_000,
        ..NAK
    },
    FlowCase { name: "obey.first", beta: 3e-2, setting: TimeoutSetting { naks: 1, ..DUMMIES }, ..TWICE },
    FlowCase { name: "obey.every", beta: 3e-2, setting: EVERY, delay: "1us", flows: 40_000, ..TWICE },
    FlowCase { name: "obey.busy", packets: 100, busy: true, setting: EVERY, flows: 8_000, ..TWICE },
    FlowCase { name: "all.none", beta: 1e-2, setting: NONE, ..ALL },
    FlowCase { name: "all.one", beta: 3e-2, setting: ONE_OF_EACH, ..ALL },
    FlowCase { name: "blind.none", setting: NONE, spares: CorruptionKind::Nobody, ..ALL },
    FlowCase {
        name: "blind.one",
        beta: 3e-2,
        packets: 1,
        flows: 100_000,
        setting: ONE_OF_EACH,
        spares: CorruptionKind::Nobody,
        ..ALL
    },
    FlowCase { name: "half.twice", beta: 3e-2, corrupting: 0.5, ..TWICE },
];

pub(super) fn cases() -> impl Iterator<Item = FlowCase> {
    CAUSES.into_iter().flatten().chain(MECHANISMS)
}

/// A run of some flows of a case.
struct FlowTask {
    case: usize,
    setup: sim::net::NetworkSetup,
}

/// The result of a run: flows, and those among them that had a timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TimeoutCount {
    flows: u64,
    timeouts: u64,
}

/// The share of flows with a timeout in each case; `None` if it was stopped early.
pub(super) fn count(cases: &[FlowCase], effort: &Effort<'_>) -> Result<Option<Vec<MeasuredValue>>, ClaimError> {
    let mut tasks = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        tasks.extend(case.tasks(at, effort)?);
    }
    effort.progress.expect_parts(tasks.len());
    let counts = parallel::map(&tasks, effort.jobs, |task| {
        let count = run(task, effort.progress);
        effort.progress.part_done();
        count
    });
    let mut sums = vec![TimeoutCount::default(); cases.len()];
    for (task, count) in tasks.iter().zip(counts) {
        let Some(count) = count? else { return Ok(None) };
        sums[task.case].flows += count.flows;
        sums[task.case].timeouts += count.timeouts;
    }
    Ok(Some(cases.iter().zip(sums).map(|(case, sum)| share(sum, case.expected())).collect()))
}

/// `None` if it was interrupted.
fn run(task: &FlowTask, progress: &dyn Progress) -> Result<Option<TimeoutCount>, ClaimError> {
    let outcome = sim::net::run(task.setup.clone(), progress).map_err(ClaimError::new)?;
    let timeouts = outcome.flows.iter().filter(|flow| flow.tally.timeouts > 0).count() as u64;
    Ok((!outcome.interrupted).then_some(TimeoutCount { flows: outcome.flows.len() as u64, timeouts }))
}

fn share(TimeoutCount { flows, timeouts }: TimeoutCount, expected: [f64; 2]) -> MeasuredValue {
    let (low, high) = units::poisson(timeouts);
    let of = flows.max(1) as f64;
    let exact = match expected.map(number) {
        [least, most] if least == most => least,
        [least, most] => format!("{least} to {most}"),
    };
    let note = format!("{timeouts} counted; exact form: {exact}");
    MeasuredValue::counted(timeouts as f64 / of, flows, (low / of, high / of)).with_note(note)
}

impl FlowCase {
    /// Flows of one packet without any help.
    #[cfg(test)]
    pub(super) fn of_one_packet(beta: f64) -> Self {
        Self { beta, flows: 2_000, ..TAIL }
    }

    /// The runs of the case. Where half of the links corrupt, every choice of links is as likely as any other, and has as
    /// many flows.
    fn tasks(&self, at: usize, effort: &Effort<'_>) -> Result<Vec<FlowTask>, ClaimError> {
        let all = (1u32 << LINKS) - 1;
        let choices = if self.corrupting == 1.0 { vec![all] } else { (0..=all).collect() };
        let more = if effort.scale == RunScale::Full { 20 } else { 1 };
        let flows = self.flows * more / choices.len() as u64;
        let runs = flows.div_ceil(FLOWS_OF_A_RUN);
        let mut tasks = Vec::new();
        for links in choices {
            let sets = self.sets(links, flows.div_ceil(runs));
            let scenario = Scenario::parse("chain.toml", CHAIN, &sets).map_err(ClaimError::new)?;
            let first = effort.seed.wrapping_mul(1_000_000).wrapping_add((at as u64 * 8 + u64::from(links)) * 1_000);
            let points = scenario.points.iter().take(1);
            tasks.extend(points.flat_map(|point| {
                (0..runs).map(move |run| FlowTask { case: at, setup: point.setup(first.wrapping_add(run)) })
            }));
        }
        Ok(tasks)
    }

    /// Settings for the scenario, in which only the links whose bit is set in `links` corrupt.
    fn sets(&self, links: u32, flows: u64) -> Vec<String> {
        let loss = match self.spares {
            CorruptionKind::Short => format!("bit_errors=\"{:e}\"", self.alpha().get()),
            CorruptionKind::Nobody => format!("loss=\"{:e}\"", self.beta),
        };
        let way = |name: &str, other: CorruptingDirections| {
            if self.ways == other { String::new() } else { format!(",{name}=[{{{loss}}}]") }
        };
        let (forward, reverse) =
            (way("forward", CorruptingDirections::Back), way("reverse", CorruptingDirections::Ahead));
        let link = |at: u32| format!("{{between=[\"sw{at}\",\"sw{}\"]{forward}{reverse}}}", at + 1);
        let corrupting: Vec<String> = (0..LINKS).filter(|at| links >> at & 1 == 1).map(link).collect();
        let TimeoutSetting { naks, naked, tail, obeys_copies } = self.setting;
        let (dummies, copies) = match tail {
            TailProtection::Dummies(dummies) => (dummies, 0),
            TailProtection::Repeat(copies) => (0, copies),
        };
        vec![
            format!("link=[{}]", corrupting.join(",")),
            format!("topology.delay={}", self.delay),
            format!("switch.repeat_naks={naks}"),
            format!("switch.repeat_naked={naked}"),
            format!("traffic.dummies={dummies}"),
            format!("traffic.tail_copies={copies}"),
            format!("traffic.obey={}", if obeys_copies { "every" } else { "first" }),
            format!("traffic.size={}", self.packets * MTU.get()),
            format!("traffic.count={flows}"),
        ]
    }

    /// α, the bit error rate at which a full packet without an extended header is corrupted with probability β.
    fn alpha(&self) -> Prob {
        CorruptionSeverity::Packets(Prob::literal(self.beta)).bit_errors(&FrameLengths::of_mtu(MTU)).unwrap_or_default()
    }

    /// Share of flows with a timeout that the model expects, with the true lengths of packets. Packets in a clean direction count as
    /// zero bytes, because none of theirs can be corrupted.
    pub(super) fn exact(&self) -> f64 {
        self.exact_with(&self.setting)
    }

    /// Bounds between which the result must be. The model has each NAK that is obeyed send the packet again; but NAKs
    /// follow one another so closely that a requester which is sending has heard them all before its next packet, and sends
    /// only one.
    pub(super) fn expected(&self) -> [f64; 2] {
        let only_first = TimeoutSetting { obeys_copies: self.setting.obeys_copies && !self.busy, ..self.setting };
        [self.exact(), self.exact_with(&only_first)]
    }

    fn exact_with(&self, setting: &TimeoutSetting) -> f64 {
        let usual = FrameLengths::of_mtu(MTU);
        // In a longer flow only the first packet is a little longer.
        let packet = if self.packets == 1 { usual.packet + RETH } else { usual.packet };
        let ahead = |length: Bytes| if self.ways == CorruptingDirections::Back { Bytes::ZERO } else { length };
        let ack = if self.ways == CorruptingDirections::Ahead { Bytes::ZERO } else { usual.ack };
        let lengths =
            FrameLengths { header: ahead(usual.header + RETH), packet: ahead(packet), tail: ahead(packet), ack };
        let corruption = match self.spares {
            CorruptionKind::Short => CorruptionSeverity::Bits(self.alpha()),
            CorruptionKind::Nobody => CorruptionSeverity::Drops(Prob::literal(self.beta)),
        };
        self.model(lengths, corruption).estimate(setting).flow_with_timeout
    }

    /// Value of the paper's approximation, with its 0.06; or with 1 where length does not matter.
    pub(super) fn approximate(&self) -> f64 {
        let beta = Prob::literal(self.beta);
        let estimate = |corruption| self.model(FrameLengths::default(), corruption).estimate(&self.setting);
        match self.spares {
            CorruptionKind::Short => (self.of)(&estimate(CorruptionSeverity::Packets(beta)).per_flow).rounded,
            CorruptionKind::Nobody => (self.of)(&estimate(CorruptionSeverity::Drops(beta)).per_flow).approximate,
        }
    }

    fn model(&self, lengths: FrameLengths, corruption: CorruptionSeverity) -> TimeoutModel {
        let path = FlowPath { links: LINKS, corrupting: Prob::literal(self.corrupting) };
        TimeoutModel { lengths, corruption, path, flows: FlowLengths::fixed(self.packets) }
    }
}
