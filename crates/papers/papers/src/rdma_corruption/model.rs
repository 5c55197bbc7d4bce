//! rc.model: the closed forms of "Packet corruption in RDMA" (§3.2–§4.3, §6.3), beside the numbers that the paper takes from
//! them and beside simulation.

mod counted;

use chart::{Axis, Chart, Line, LinesChart};
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use roce::model::theorems::{self, Ratios};
use roce::model::{
    CorruptionSeverity, FlowLengths, FlowPath, FrameLengths, TailProtection, TimeoutModel, TimeoutSetting,
};
use sim::workload::SizeTrace;
use units::{Bytes, Prob};

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let cases: Vec<counted::FlowCase> = counted::cases().collect();
    let Some(counts) = counted::count(&cases, effort)? else { return Ok(None) };
    let mut computed = ComputedValues::default();
    for (name, value) in ratios().into_iter().chain(examples()).chain(ping_pong()) {
        computed.value(name, MeasuredValue::exact(value, 1));
    }
    for (case, measured) in cases.iter().zip(&counts) {
        computed.value(format!("sim.{}", case.name), measured.clone());
    }
    computed.charts.push(chart(&counts));
    Ok(Some(computed))
}

fn model(beta: f64, links: u32, flows: FlowLengths) -> TimeoutModel {
    TimeoutModel {
        lengths: FrameLengths::default(),
        corruption: CorruptionSeverity::Packets(Prob::literal(beta)),
        path: FlowPath { links, corrupting: Prob::literal(1.0) },
        flows,
    }
}

fn web_search() -> FlowLengths {
    const SAMPLES: u32 = 1_000;
    let sizes = SizeTrace::WebSearch.sizes();
    let mtu = Bytes::new(1_024);
    let share = |at: u32| Prob::literal((f64::from(at) + 0.5) / f64::from(SAMPLES));
    let packets = |at: u32| sizes.quantile(share(at)).div_ceil(mtu.get());
    FlowLengths::new(sizes.mean_packets(mtu), sizes.mean_inverse_packets(mtu), (0..SAMPLES).map(packets))
}

/// §3.2 and §3.5: what a header and a NAK suffer, how many packets are tails; §4.3: what dummies cost.
fn ratios() -> Vec<(&'static str, f64)> {
    let one_packet = model(1e-6, 1, FlowLengths::fixed(1));
    let beta = one_packet.packet_corruption().get();
    let dummies = TimeoutSetting { tail: TailProtection::Dummies(1), ..TimeoutSetting::NONE };
    vec![
        ("header", one_packet.header_corruption().get() / beta),
        ("nak-length", one_packet.ack_corruption().get() / beta),
        ("web-search", web_search().mean_inverse),
        ("cost.dummy", one_packet.cost(&dummies).path.tail),
    ]
}

/// The examples of §3.3–§4.3, with β = 0.01: as printed, with 0.06 and first terms only, and exactly.
fn examples() -> Vec<(&'static str, f64)> {
    let two_links = model(1e-2, 2, web_search());
    let (path, beta) = (&two_links.path, two_links.packet_corruption());
    let per_packet = |setting: &TimeoutSetting| two_links.estimate(setting).per_packet;
    let nak_copy = TimeoutSetting { naks: 1, ..TimeoutSetting::NONE };
    let naked_copies = TimeoutSetting { naked: 2, ..TimeoutSetting::NONE };
    let dummy = TimeoutSetting { tail: TailProtection::Dummies(1), ..TimeoutSetting::NONE };
    let repeat = TimeoutSetting { tail: TailProtection::Repeat(1), ..TimeoutSetting::NONE };
    let one_link = model(1e-2, 1, web_search());
    vec![
        ("nak.printed", theorems::nak(path, beta, Ratios::ROUNDED, 0)),
        ("nak.exact", per_packet(&TimeoutSetting::NONE).nak.exact),
        ("nak-copy.printed", theorems::nak(path, beta, Ratios::ROUNDED, 1)),
        ("nak-copy.exact", per_packet(&nak_copy).nak.exact),
        ("twice.printed", theorems::twice(&one_link.path, beta, 0)),
        ("twice.exact", one_link.estimate(&TimeoutSetting::NONE).per_packet.twice.exact),
        ("naked-copies.printed", theorems::twice(path, beta, 2)),
        ("naked-copies.exact", per_packet(&naked_copies).twice.exact),
        ("dummy.printed", per_packet(&dummy).tail.rounded),
        ("dummy.exact", per_packet(&dummy).tail.exact),
        ("dummy-over-repeat", per_packet(&dummy).tail.rounded / per_packet(&repeat).tail.rounded),
    ]
}

/// §6.3, Fig. 15: timeouts to expect of 100,000 ping-pongs of one packet at β = 1/128, each mechanism removed in turn.
fn ping_pong() -> Vec<(&'static str, f64)> {
    const WRITES: f64 = 2.0 * 100_000.0;
    let writes = model(1.0 / 128.0, 1, FlowLengths::fixed(1));
    let all = TimeoutSetting { naks: 1, naked: 1, tail: TailProtection::Dummies(2), obeys_copies: false };
    let expected = |setting: TimeoutSetting| writes.estimate(&setting).per_flow.map(|forms| WRITES * forms.exact);
    let dummies = |dummies| TimeoutSetting { tail: TailProtection::Dummies(dummies), ..all };
    vec![
        ("ping-pong.no-dummy", expected(dummies(0)).tail),
        ("ping-pong.no-dummy.tail-ack", expected(dummies(0)).tail_ack),
        ("ping-pong.one-dummy", expected(dummies(1)).tail),
        ("ping-pong.no-naked", expected(TimeoutSetting { naked: 0, ..all }).twice),
        ("ping-pong.no-nak", expected(TimeoutSetting { naks: 0, ..all }).nak),
    ]
}

/// The four causes by β. The counts are in the order of the cases, with those of the chart first.
fn chart(counts: &[MeasuredValue]) -> Chart {
    const NAMES: [&str; 4] = ["tail", "ACK of the tail", "packet twice", "packet and NAK"];
    let mut counts = counts.iter();
    let mut lines = Vec::new();
    for (name, cases) in NAMES.into_iter().zip(counted::CAUSES) {
        let by_beta =
            |value: fn(&counted::FlowCase) -> f64| cases.iter().map(|case| (case.beta, value(case))).collect();
        let simulated = cases.iter().zip(&mut counts).map(|(case, count)| (case.beta, count.value)).collect();
        lines.push(Line::reference(format!("{name}, exact"), by_beta(counted::FlowCase::exact)));
        lines.push(Line::new(name, simulated).with_paper(by_beta(counted::FlowCase::approximate)));
    }
    Chart::Lines(LinesChart {
        title: "Flows with a timeout, by its cause".into(),
        caption:
            "Three links, all corrupting bits. Tails and their ACKs: flows of 1 packet; the others: of 20. Marks: \
                  simulated. Dashed: the exact forms. Hollow: the paper's approximations, which are for few corrupting \
                  links."
                .into(),
        x: Axis::log("corruption of a full packet on one link, β"),
        y: Axis::log("share of flows"),
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;
    use report::claim::{Claim, RunScale};
    use units::Unwatched;

    fn claim() -> Claim {
        let (file, text) = files::named("rdma-corruption/model.toml").unwrap();
        Claim::parse(file, text).unwrap()
    }

    #[track_caller]
    fn assert_close(ours: f64, expected: f64, what: &str) {
        assert!((ours / expected - 1.0).abs() < 5e-3, "{what}: {ours:e}, expected {expected:e}");
    }

    /// So that no count can be made to match by moving its band.
    #[test]
    fn the_bands_of_counts_are_what_the_model_says() {
        let claim = claim();
        for case in counted::cases() {
            let id = format!("sim.{}", case.name);
            let point = claim.point.iter().find(|point| point.id == id).unwrap_or_else(|| panic!("no point {id}"));
            let band = point.band.unwrap();
            let [least, most] = case.expected();
            assert_close(band.low, 0.97 * least, &id);
            assert_close(band.high, 1.03 * most, &id);
            let row = format!("paper.{}", case.name);
            let paper = claim.point.iter().find(|point| point.id == row).and_then(|point| point.paper.number());
            assert_close(paper.unwrap_or_else(|| panic!("no number in {row}")), case.approximate(), &id);
        }
    }

    #[test]
    fn every_value_is_asked_for_and_every_point_has_one() {
        let values = ratios().into_iter().chain(examples()).chain(ping_pong());
        let mut known: Vec<String> = values.map(|(name, _)| name.to_owned()).collect();
        known.extend(counted::cases().map(|case| format!("sim.{}", case.name)));
        let (beside, asked): (Vec<String>, Vec<String>) =
            claim().point.into_iter().map(|point| point.id).partition(|id| id.starts_with("paper."));
        assert_eq!(asked, known);
        assert_eq!(beside.len(), counted::cases().count());
    }

    #[test]
    fn about_as_many_tails_are_lost_as_the_model_expects() {
        let half = counted::FlowCase::of_one_packet(1.0 - 0.5_f64.cbrt());
        let effort = Effort { scale: RunScale::Quick, jobs: 1, seed: 1, progress: &Unwatched };
        let share = counted::count(&[half], &effort).unwrap().unwrap().remove(0);
        let (low, high) = share.interval.unwrap();
        assert!(low < half.exact() && half.exact() < high && share.value > 0.45, "{share:?}");
    }
}
