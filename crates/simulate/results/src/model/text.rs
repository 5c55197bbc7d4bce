//! The model of RDMA in tables and plain words.

use chart::table::{Align, Table, thousands};
use roce::model::{
    Advice, AdvisedSetting, CorruptionSeverity, Forms, Goal, GoalObstacle, MOST_COPIES, PenaltyTiming, TailProtection,
    TimeoutModel, TimeoutSetting,
};
use units::{Prob, Span};

use super::{RdmaQuestion, TimeoutShares};

pub fn rdma_text(question: &RdmaQuestion, simulated: Option<&TimeoutShares>) -> String {
    let RdmaQuestion { model, setting, timing, .. } = question;
    let mut text = String::new();
    if let Some((goal, found)) = question.advice() {
        text += "advice\n";
        for line in advice(model, timing, &goal, &found) {
            text += &format!("  {line}\n");
        }
        text += "\n";
    }
    text += &format!("{}\n", premises(model, timing));
    if *setting != TimeoutSetting::NONE {
        text +=
            &format!("with nothing done about it, timeouts are expected\n{}\n", causes(model, &TimeoutSetting::NONE));
    }
    text += &format!("with {}\n{}", words(setting), causes(model, setting));
    text += "approximation: the paper's first terms; paper: with its 0.06 for both headers and ACKs\n\n";
    text += &format!("{}\n", costs(model, setting));
    text += &format!("{}", penalties(model, setting, timing));
    if let Some(simulated) = simulated {
        text += &format!("\n{}", beside(model, setting, simulated));
    }
    text
}

/// Simulated shares beside those of the model.
fn beside(model: &TimeoutModel, setting: &TimeoutSetting, TimeoutShares { without, with }: &TimeoutShares) -> String {
    let mut table = Table::new(&[
        ("flows with a timeout", Align::Left),
        ("model", Align::Right),
        ("simulated", Align::Right),
        ("95 %", Align::Right),
        ("flows", Align::Right),
    ]);
    for (name, setting, found) in [("with nothing", &TimeoutSetting::NONE, without), ("so set", setting, with)] {
        let (low, high) = found.interval.unwrap_or((found.share, found.share));
        table.row(vec![
            name.into(),
            small(model.estimate(setting).flow_with_timeout),
            small(found.share),
            format!("{} to {}", small(low), small(high)),
            thousands(found.flows),
        ]);
    }
    format!("{table}simulated are WRITEs: the first packet and dummies are 16 B longer than the model has them\n")
}

fn premises(model: &TimeoutModel, timing: &PenaltyTiming) -> String {
    let lengths = &model.lengths;
    let mut table =
        Table::new(&[("on a corrupting link", Align::Left), ("bytes", Align::Right), ("lost", Align::Right)]);
    for (what, length) in [
        ("full packet", lengths.packet),
        ("last packet", lengths.tail),
        ("dummy", lengths.header),
        ("ACK, NAK", lengths.ack),
    ] {
        let lost = model.corruption.of(length, lengths);
        table.row(vec![what.into(), length.get().to_string(), small(lost.get())]);
    }
    let bits = match model.corruption.bit_errors(lengths) {
        Some(rate) => format!("bit errors {}", small(rate.get())),
        None => "packets are dropped whatever their length".into(),
    };
    let links = match model.path.links {
        1 => "1 link".into(),
        links => format!("{links} links"),
    };
    let gap = timing.gap.map_or_else(
        || "every flow has a queue pair of its own".into(),
        |gap| format!("flows share queue pairs, {gap} apart on each"),
    );
    format!(
        "{table}{bits}; {links} each way, of which {} % corrupt; {gap}\n\
         packets of a flow: {} on average, E(1/S) = {:.4}; 1/E(S) = {} of all packets are the last of their flow\n",
        percent(model.path.corrupting.get()),
        mean(model.flows.mean),
        model.flows.mean_inverse,
        small(model.flows.mean.recip()),
    )
}

fn causes(model: &TimeoutModel, setting: &TimeoutSetting) -> Table {
    let mut table = Table::new(&[
        ("lost", Align::Left),
        ("per packet: exact", Align::Right),
        ("approximation", Align::Right),
        ("paper", Align::Right),
        ("per flow: exact", Align::Right),
        ("approximation", Align::Right),
        ("paper", Align::Right),
        ("per 100 K flows", Align::Right),
    ]);
    let estimate = model.estimate(setting);
    let mut row = |name: &str, packet: Forms, flow: Forms| {
        let cells = [packet.exact, packet.approximate, packet.rounded, flow.exact, flow.approximate, flow.rounded];
        let cells = cells.into_iter().map(small).chain([count(flow.exact * 1e5)]);
        table.row(std::iter::once(name.to_owned()).chain(cells).collect());
    };
    for ((name, packet), (_, flow)) in estimate.per_packet.named().into_iter().zip(estimate.per_flow.named()) {
        row(cause(name), packet, flow);
    }
    row("in all", estimate.per_packet.total(), estimate.per_flow.total());
    table
}

fn cause(name: &str) -> &'static str {
    match name {
        "nak" => "packet and NAK",
        "twice" => "packet, twice",
        "tail" => "last packet",
        _ => "last packet's ACK",
    }
}

fn costs(model: &TimeoutModel, setting: &TimeoutSetting) -> Table {
    let mut table = Table::new(&[
        ("bandwidth", Align::Left),
        ("of bytes on this path", Align::Right),
        ("as the paper counts", Align::Right),
    ]);
    let costs = model.cost(setting);
    let tail = match setting.tail {
        TailProtection::Dummies(_) => "dummies (on every path)",
        TailProtection::Repeat(_) => "copies of tails (on every path)",
    };
    for (name, path, paper) in [
        ("copies of NAKs (way back)", costs.path.naks, costs.paper.naks),
        ("copies of NAKed packets", costs.path.naked, costs.paper.naked),
        (tail, costs.path.tail, costs.paper.tail),
        ("in all", costs.path.total(), costs.paper.total()),
    ] {
        table.row(vec![name.into(), format!("{} %", percent(path)), format!("{} %", percent(paper))]);
    }
    table
}

fn penalties(model: &TimeoutModel, setting: &TimeoutSetting, timing: &PenaltyTiming) -> Table {
    let mut table = Table::new(&[
        ("mean delay of a flow by corruption", Align::Left),
        ("with nothing", Align::Right),
        ("so set", Align::Right),
    ]);
    let [without, with] = [&TimeoutSetting::NONE, setting].map(|setting| model.penalty(setting, timing));
    for (name, without, with) in [
        ("NAKs and retransmissions lost", without.timeouts, with.timeouts),
        ("tails and their ACKs lost", without.tails, with.tails),
        ("what go-back-N repairs", without.retransmissions, with.retransmissions),
        ("in all", without.total(), with.total()),
    ] {
        table.row(vec![name.into(), without.to_string(), with.to_string()]);
    }
    table
}

/// The advice and its reasons, a sentence each.
pub(super) fn advice(model: &TimeoutModel, timing: &PenaltyTiming, goal: &Goal, advice: &Advice) -> Vec<String> {
    match advice {
        Advice::Set(plan) => set(goal, timing, plan),
        Advice::Unreachable(obstacle) => unreachable(model, timing, goal, obstacle),
    }
}

fn set(goal: &Goal, timing: &PenaltyTiming, plan: &AdvisedSetting) -> Vec<String> {
    let Goal { latency, late, base } = *goal;
    let mut lines = Vec::new();
    if plan.setting == (TimeoutSetting { obeys_copies: plan.setting.obeys_copies, ..TimeoutSetting::NONE }) {
        lines.push(format!(
            "nothing need be set: {} % of flows are later than {latency} because of corruption, {} % may be",
            percent(plan.late),
            percent(late.get())
        ));
        return lines;
    }
    lines.push(format!("set {}: costs {} % of the bytes on this path", words(&plan.setting), percent(plan.cost)));
    lines.push(format!(
        "then {} % of flows are later than {latency} because of corruption, {} % may be; with nothing set {} % would be",
        percent(plan.late),
        percent(late.get()),
        percent(plan.late_unprotected)
    ));
    let names = ["dummy", "copy of NAKs", "copy of NAKed packets"];
    for (name, fewer) in names.into_iter().zip(plan.with_one_less) {
        if let Some(fewer) = fewer {
            lines.push(format!("with one {name} less {} % would be late", percent(fewer)));
        }
    }
    if let Some(wait) = plan.wait {
        lines.push(format!(
            "send dummies once a queue pair has been idle for T, at most {wait}: {latency} less {base} without corruption \
             less {} for the retransmission",
            timing.rtt
        ));
    }
    lines
}

fn unreachable(model: &TimeoutModel, timing: &PenaltyTiming, goal: &Goal, obstacle: &GoalObstacle) -> Vec<String> {
    let Goal { latency, late, base } = *goal;
    let may = percent(late.get());
    match *obstacle {
        GoalObstacle::Base => vec![
            format!("no setting reaches {latency}: flows take {base} without corruption (--base)"),
            "nothing that is done about corruption helps; look at load and queues".into(),
        ],
        GoalObstacle::Repairs { late, in_time, bearable } => {
            let why = match in_time {
                0 => format!(
                    "a loss that go-back-N repairs takes a round trip of {}, and only {} are left beyond the {base} \
                     without corruption",
                    timing.rtt,
                    Span::from_ps(latency.as_ps() - base.as_ps())
                ),
                1 => "time is left for one loss that go-back-N repairs, and many flows have more".into(),
                losses => format!("time is left for {losses} losses that go-back-N repairs, and many flows have more"),
            };
            vec![
                format!("no setting reaches {latency}: {why}"),
                format!("{} % of flows would be late even if none ever timed out; {may} % may be", percent(late)),
                underneath(model, bearable),
            ]
        }
        GoalObstacle::Copies { late, bearable } => vec![
            format!(
                "no setting reaches {latency}: with {MOST_COPIES} dummies and {MOST_COPIES} copies of everything still \
                 {} % of flows are late; {may} % may be",
                percent(late)
            ),
            underneath(model, bearable),
        ],
    }
}

/// Loss that a link protocol would have to hide, and the way LinkGuardian could.
fn underneath(model: &TimeoutModel, bearable: Prob) -> String {
    let actual = model.packet_corruption();
    let hidden = format!(
        "hide the loss from the endpoints: at {} of full packets a link the goal is reached with nothing set",
        small(bearable.get())
    );
    let link = match model.corruption {
        CorruptionSeverity::Drops(_) => "LinkGuardian cannot hide what switches drop, only what links corrupt".into(),
        CorruptionSeverity::Bits(_) | CorruptionSeverity::Packets(_) => match guard::copies_for(actual, bearable) {
            Some((copies, left)) => {
                let copies = plural(u32::from(copies), "copy", "copies");
                format!(
                    "LinkGuardian on the links does, with {copies} of each retransmission ({} is left)",
                    small(left.get())
                )
            }
            None => "this link is beyond LinkGuardian, too: take it out of service".into(),
        },
    };
    format!("{hidden}; {link}")
}

fn words(setting: &TimeoutSetting) -> String {
    let tail = match setting.tail {
        TailProtection::Dummies(dummies) => plural(dummies, "dummy", "dummies"),
        TailProtection::Repeat(copies) => format!("{} of tails", plural(copies, "copy", "copies")),
    };
    let [naks, naked] = [setting.naks, setting.naked].map(|copies| plural(copies, "copy", "copies"));
    let obeyed = if setting.obeys_copies { " (each obeyed by the NIC)" } else { "" };
    format!("{tail}, {naks} of NAKs{obeyed}, {naked} of NAKed packets")
}

fn plural(count: u32, one: &str, many: &str) -> String {
    match count {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}

pub(super) fn small(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        0.1.. => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

fn count(value: f64) -> String {
    if value >= 10.0 { format!("{value:.0}") } else { small(value) }
}

pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        0.0 => "0".into(),
        percent @ 0.01.. => {
            let text = format!("{percent:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        percent => format!("{percent:.1e}"),
    }
}

fn mean(packets: f64) -> String {
    if packets.fract() == 0.0 { format!("{packets}") } else { format!("{packets:.1}") }
}
