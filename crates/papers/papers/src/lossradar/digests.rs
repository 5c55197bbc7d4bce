//! Digests filled with losses and decoded, many times.

use faults::Random;
use radar::digest::{Digest, DigestShape};
use radar::packet::{Flow, Packet, TcpFields};
use radar::signature::{Fields, Signature};
use report::claim::MeasuredValue;
use report::runner::Effort;

/// Trials with digests of `cells` cells, each with `losses` losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct DigestTrials {
    pub losses: usize,
    pub cells: usize,
    pub trials: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DigestTrialResult {
    trials: u64,
    /// Digests of which every loss was named.
    complete: u64,
    losses: u64,
    named: u64,
}

impl DigestTrials {
    /// Cells for each loss.
    pub(super) fn each(&self) -> f64 {
        DigestShape::new(self.cells, 0, Fields::ALL).cells() as f64 / self.losses as f64
    }

    /// A difference has only what was lost, so that is all that goes in.
    fn run(&self, seed: u64) -> DigestTrialResult {
        let mut random = Random::new(seed, (self.losses * 1_000_003 + self.cells) as u64);
        let mut outcome = DigestTrialResult::default();
        for _ in 0..self.trials {
            let mut digest = Digest::new(DigestShape::new(self.cells, random.below(u64::MAX), Fields::ALL));
            (0..self.losses).for_each(|_| digest.insert(&signature(&packet(&mut random))));
            let decoded = digest.decode();
            outcome.trials += 1;
            outcome.complete += u64::from(decoded.left.is_none());
            outcome.losses += self.losses as u64;
            outcome.named += decoded.lost.iter().map(|(_, times)| u64::from(*times)).sum::<u64>();
        }
        outcome
    }
}

impl DigestTrialResult {
    pub(super) fn decoded(&self) -> f64 {
        self.complete as f64 / self.trials as f64
    }

    pub(super) fn share_decoded(&self) -> Option<MeasuredValue> {
        MeasuredValue::share(self.complete, self.trials)
    }

    pub(super) fn share_named(&self) -> Option<MeasuredValue> {
        MeasuredValue::share(self.named, self.losses)
    }
}

/// All of them, in order; `None` if it was stopped early.
pub(super) fn try_all(tried: &[DigestTrials], effort: &Effort<'_>) -> Option<Vec<DigestTrialResult>> {
    effort.progress.expect_parts(tried.len());
    let outcomes = parallel::map(tried, effort.jobs, |trials| {
        let outcome = effort.progress.go_on(0).then(|| trials.run(effort.seed));
        effort.progress.part_done();
        outcome
    });
    outcomes.into_iter().collect()
}

/// Point between two of its points at which a rising curve reaches a level and stays above it.
pub(super) fn crossing(curve: &[(f64, f64)], level: f64) -> Option<f64> {
    let below = curve.iter().rposition(|(_, y)| *y < level)?;
    let ((x0, y0), (x1, y1)) = (curve[below], *curve.get(below + 1)?);
    Some(x0 + (x1 - x0) * (level - y0) / (y1 - y0))
}

/// Some packet of some flow.
pub(super) fn packet(random: &mut Random) -> Packet {
    let mut bits = |bits: u32| random.below(1 << bits);
    let address = |low: u64| [10, (low >> 16) as u8, (low >> 8) as u8, low as u8].into();
    let flow = Flow {
        src: address(bits(24)),
        dst: address(bits(24)),
        protocol: 6,
        src_port: bits(16) as u16,
        dst_port: bits(16) as u16,
    };
    let tcp = Some(TcpFields { seq: bits(32) as u32, len: 121, syn: false });
    Packet { flow, ip_id: Some(bits(16) as u16), fragment: 0, tcp, ttl: 64, content: bits(40) }
}

pub(super) fn signature(packet: &Packet) -> Signature {
    Signature::new(packet, Fields::ALL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::claim::RunScale;
    use units::Unwatched;

    #[test]
    fn a_curve_is_crossed_where_it_stays_above() {
        let curve = [(1.0, 0.2), (1.1, 0.995), (1.2, 0.98), (1.3, 1.0)];
        assert!((crossing(&curve, 0.99).unwrap() - 1.25).abs() < 1e-9);
        assert_eq!(crossing(&curve[..3], 0.99), None);
        assert_eq!(crossing(&curve[3..], 0.99), None);
    }

    #[test]
    fn large_digests_name_all_small_ones_few_and_threads_change_nothing() {
        let tried = [400, 110].map(|cells| DigestTrials { losses: 100, cells, trials: 50 });
        let effort = |jobs| Effort { scale: RunScale::Quick, jobs, seed: 1, progress: &Unwatched };
        let outcomes = try_all(&tried, &effort(1)).unwrap();
        assert_eq!(try_all(&tried, &effort(2)).unwrap(), outcomes);
        assert!(outcomes[0].decoded() > 0.9 && outcomes[1].decoded() < 0.1, "{outcomes:?}");
        let named = |at: usize| outcomes[at].share_named().unwrap().value;
        assert!(named(0) > 0.99 && named(1) < 0.5);
    }
}
