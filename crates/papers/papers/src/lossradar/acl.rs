//! lr.acl: which rule of an access list was corrupted, from what was lost (§5.5.2, §5.7.4).

use faults::Random;
use parallel::Stopwatch;
use radar::acl::{
    AclAction, AclDecision, FilterStructure, Flip, Mix, RuleTable, generate, generate_structured, traffic,
};
use radar::packet::Flow;
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use units::samples::upper_median;

/// Rules, by the name of the point.
const LISTS: [(&str, usize); 4] = [("50k", 50_000), ("100k", 100_000), ("150k", 150_000), ("200k", 200_000)];
const FLOWS: usize = 100_000;

/// Results of flipping bits of one list.
#[derive(Clone, Debug, Default)]
struct FlipCounts {
    /// Flips by which packets were lost that should not have been, and others.
    flips: u64,
    silent: u64,
    missed: u64,
    candidates: Vec<f64>,
    /// Candidates by the letter of the thesis.
    anywhere: Vec<f64>,
    lost: u64,
    /// Seconds that finding candidates took, for each flip.
    seconds: Vec<f64>,
}

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let flips = if effort.scale == RunScale::Full { 1_000 } else { 100 };
    let mut computed = ComputedValues::default();
    effort.progress.expect_parts(3 * LISTS.len());
    let kinds = [("", ListKind::Mixed), ("structured.", ListKind::Structured), ("half.", ListKind::HalfDeny)];
    for ((kind, of), (name, rules)) in kinds.into_iter().flat_map(|kind| LISTS.map(|list| (kind, list))) {
        let list = AclTrial::new(of, rules, FLOWS, effort.seed);
        let mut tally = FlipCounts::default();
        let mut random = Random::new(effort.seed, rules as u64);
        while tally.flips < flips {
            if !effort.progress.go_on(0) {
                return Ok(None);
            }
            list.flip_one(&mut random, &mut tally);
        }
        effort.progress.part_done();
        tally.tell(&format!("{kind}{name}"), &mut computed);
    }
    Ok(Some(computed))
}

#[derive(Clone, Copy, Debug)]
enum ListKind {
    /// Fields drawn apart, and a last rule that denies everything.
    Mixed,
    /// Filters that nest, and a default.
    Structured,
    /// Filters that nest, half of which deny, and a default.
    HalfDeny,
}

/// A list of rules, traffic through it, and the expected decision for each flow.
struct AclTrial {
    table: RuleTable,
    flows: Vec<(Flow, AclDecision)>,
}

impl AclTrial {
    fn new(kind: ListKind, rules: usize, flows: usize, seed: u64) -> Self {
        let rules = match kind {
            ListKind::Mixed => generate(rules, seed, &Mix::default()),
            ListKind::Structured => generate_structured(rules, seed, &FilterStructure::default()),
            ListKind::HalfDeny => {
                generate_structured(rules, seed, &FilterStructure { deny: 0.5, ..Default::default() })
            }
        };
        let table = RuleTable::new(rules, AclAction::Deny);
        let flows = traffic(table.rules(), flows, seed).into_iter();
        let flows = flows.map(|flow| (flow, table.decide(&flow))).collect();
        Self { table, flows }
    }

    /// Flips a bit of a rule and looks for the rule, if anything was lost by it.
    fn flip_one(&self, random: &mut Random, tally: &mut FlipCounts) {
        let rules = self.table.rules();
        let nth = random.below(rules.len() as u64) as usize;
        let Some(flip) = Flip::nth(random.below(Flip::COUNT as u64) as usize) else { return };
        let corrupted = flip.apply(rules[nth]);
        let denied = |(flow, meant): &&(Flow, AclDecision)| {
            meant.action == AclAction::Accept
                && self.table.decide_with(flow, *meant, nth, &corrupted).action == AclAction::Deny
        };
        let lost: Vec<Flow> = self.flows.iter().filter(denied).map(|(flow, _)| *flow).collect();
        if lost.is_empty() {
            tally.silent += 1;
            return;
        }
        let begun = Stopwatch::start();
        let candidates = self.table.candidates(&lost);
        tally.seconds.push(begun.seconds());
        tally.flips += 1;
        tally.lost += lost.len() as u64;
        tally.candidates.push(candidates.len() as f64);
        tally.anywhere.push(self.table.candidates_anywhere(&lost).len() as f64);
        tally.missed += u64::from(!candidates.iter().any(|candidate| candidate.rule == nth));
    }
}

impl FlipCounts {
    fn tell(mut self, name: &str, computed: &mut ComputedValues) {
        let worst = self.seconds.iter().copied().fold(0.0, f64::max);
        let median = upper_median(&mut self.seconds).unwrap_or_default();
        let mut value = |what: &str, value: f64, note: String| {
            computed.value(format!("{what}.{name}"), MeasuredValue::exact(value, self.flips).with_note(note));
        };
        value("missed", self.missed as f64, format!("of {} corrupted rules", self.flips));
        value("ms", median * 1e3, format!("median; {:.2} at most", worst * 1e3));
        let all = (self.flips + self.silent) as f64;
        value("silent", self.silent as f64 / all, format!("of {all} flips"));
        let lost = self.lost as f64 / self.flips as f64;
        let with_lost = |measured: MeasuredValue| measured.with_note(format!("{lost:.0} flows were lost on average"));
        computed.value(format!("candidates.{name}"), with_lost(mean(&self.candidates)));
        computed.value(format!("anywhere.{name}"), with_lost(mean(&self.anywhere)));
    }
}

/// Mean of the values, with its interval.
fn mean(values: &[f64]) -> MeasuredValue {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let off = 1.96 * (variance / count).sqrt();
    MeasuredValue::counted(mean, values.len() as u64, (mean - off, mean + off))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corrupted_rule_is_among_few() {
        for kind in [ListKind::Mixed, ListKind::Structured] {
            let list = AclTrial::new(kind, 2_000, 5_000, 1);
            let mut tally = FlipCounts::default();
            let mut random = Random::new(1, 1);
            (0..2_000).for_each(|_| list.flip_one(&mut random, &mut tally));
            assert_eq!(tally.missed, 0);
            assert!(tally.flips > 50 && mean(&tally.candidates).value <= 4.0, "{kind:?}: {tally:?}");
        }
    }
}
