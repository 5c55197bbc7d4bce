//! ΣD/D/1: the queue of paced flows (thesis §2.4.3).
//!
//! N sources send one packet each period, with phases that are random once and then fixed. The server takes a packet per unit of
//! time, so that a period is D = N / load. The unfinished work V, in packets, has the tail
//!
//! ```text
//!   P(V > x) = Σ_{n > x} C(N, n) ((n−x)/D)^n (1 − (n−x)/D)^(N−n) (D−N+x)/(D−n+x)
//! ```
//!
//! J. Roberts, U. Mocci, J. Virtamo (eds.): "Broadband Network Teletraffic" (1996), §15.2.

/// Some sources that send by turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeriodicSources {
    /// N.
    pub sources: u32,
    /// Their rates' sum by the server's, above 0 and at most 1.
    pub load: f64,
}

impl PeriodicSources {
    fn period(&self) -> f64 {
        f64::from(self.sources) / self.load
    }

    /// Probability that more than `packets` of work are unfinished at any time.
    pub fn tail(&self, packets: f64) -> f64 {
        let (count, period) = (f64::from(self.sources), self.period());
        let x = packets.max(0.0);
        // ln C(N, n), built up from n = 0.
        let mut ln_choose = 0.0;
        let mut sum = 0.0;
        for n in 1..=self.sources {
            let n = f64::from(n);
            ln_choose += ((count - n + 1.0) / n).ln();
            let share = (n - x) / period;
            if n <= x || share > 1.0 {
                continue;
            }
            // 0 · ln 0 counts as 0: all sources within a share of 1.
            let others = if n < count { (count - n) * (-share).ln_1p() } else { 0.0 };
            let idle = (period - count + x) / (period - n + x);
            if idle.is_finite() {
                sum += (ln_choose + n * share.ln() + others).exp() * idle;
            }
        }
        sum.clamp(0.0, 1.0)
    }

    /// Mean of the unfinished work, in packets: the tail's integral.
    pub fn mean(&self) -> f64 {
        // Simpson's rule on each packet; the tail has kinks at whole numbers only.
        const PARTS: u32 = 16;
        let mut mean = 0.0;
        for packet in 0..self.sources {
            let at = |part: u32| self.tail(f64::from(packet) + f64::from(part) / f64::from(PARTS));
            // The first value of a stretch is that just behind its kink.
            let inner: f64 = (1..PARTS).map(|part| at(part) * if part % 2 == 1 { 4.0 } else { 2.0 }).sum();
            let stretch = (at(0) + inner + at(PARTS)) / (3.0 * f64::from(PARTS));
            mean += stretch;
            if stretch < 1e-15 {
                break;
            }
        }
        mean
    }

    /// Mean at full load, by the Brownian bridge: √(πN/8).
    pub fn mean_at_full_load(sources: u32) -> f64 {
        (std::f64::consts::PI * f64::from(sources) / 8.0).sqrt()
    }
}

/// One period of a queue whose sources have these phases.
#[derive(Clone, Debug, PartialEq)]
pub struct PeriodicQueue {
    period: f64,
    /// Work just behind an arrival, and the time until the next.
    stretches: Vec<(f64, f64)>,
}

impl PeriodicQueue {
    /// Phases are shares of the period, 0 to 1, one for each source; `load` as in [`PeriodicSources`].
    ///
    /// A queue that was empty once is periodic after one period, as long as the load is at most 1: the second is what counts.
    pub fn new(phases: &[f64], load: f64) -> Self {
        let period = phases.len() as f64 / load;
        let mut arrivals: Vec<f64> = phases.iter().map(|phase| phase.rem_euclid(1.0) * period).collect();
        arrivals.sort_by(f64::total_cmp);
        let gaps: Vec<f64> = (0..arrivals.len())
            .map(|at| arrivals.get(at + 1).map_or(arrivals[0] + period, |next| *next) - arrivals[at])
            .collect();
        let mut work = 0.0_f64;
        let serve = |gap: &f64| {
            let behind = work + 1.0;
            work = (behind - gap).max(0.0);
            (behind, *gap)
        };
        let stretches = gaps.iter().chain(&gaps).map(serve).skip(gaps.len()).collect();
        Self { period, stretches }
    }

    /// Share of time with more than `packets` of work.
    pub fn share_above(&self, packets: f64) -> f64 {
        let above = |(behind, gap): &(f64, f64)| (behind - packets).clamp(0.0, *gap);
        self.stretches.iter().map(above).sum::<f64>() / self.period
    }

    /// Mean of the work over time.
    pub fn mean(&self) -> f64 {
        let area = |(behind, gap): &(f64, f64)| (behind * behind - (behind - gap).max(0.0).powi(2)) / 2.0;
        self.stretches.iter().map(area).sum::<f64>() / self.period
    }

    /// The most work at once.
    pub fn peak(&self) -> f64 {
        self.stretches.iter().fold(0.0, |most, (behind, _)| behind.max(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIFTY: PeriodicSources = PeriodicSources { sources: 50, load: 0.95 };

    /// Phases of run `run`, from a generator of whole numbers.
    fn phases(sources: u32, run: u64) -> Vec<f64> {
        let mut state = run.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
        (0..sources)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1_u64 << 53) as f64
            })
            .collect()
    }

    #[test]
    fn fifty_sources_at_95_percent_are_the_thesiss_example() {
        assert!((FIFTY.mean() - 3.226).abs() < 0.002, "{}", FIFTY.mean());
        let tails = [20.0, 21.0].map(|packets| FIFTY.tail(packets));
        assert!((tails[0] / 1.0e-8 - 1.0).abs() < 0.1 && (tails[1] / 1.5e-9 - 1.0).abs() < 0.1, "{tails:?}");
        assert!((PeriodicSources::mean_at_full_load(50) - 4.43).abs() < 0.01);
    }

    #[test]
    fn the_tail_is_what_queues_with_random_phases_show() {
        const RUNS: u64 = 4_000;
        let queues: Vec<PeriodicQueue> = (0..RUNS).map(|run| PeriodicQueue::new(&phases(50, run), 0.95)).collect();
        let average = |of: &dyn Fn(&PeriodicQueue) -> f64| queues.iter().map(of).sum::<f64>() / RUNS as f64;
        for packets in [0.0, 0.5, 1.0, 3.0, 6.5, 9.0] {
            let (seen, expected) = (average(&|queue| queue.share_above(packets)), FIFTY.tail(packets));
            assert!((seen - expected).abs() < 0.01, "{seen}, not {expected} above {packets}");
        }
        let (seen, expected) = (average(&|queue| queue.mean()), FIFTY.mean());
        assert!((seen - expected).abs() < 0.05, "{seen}, not {expected}");
    }

    #[test]
    fn a_full_link_still_has_a_short_queue() {
        let mean = (0..2_000).map(|run| PeriodicQueue::new(&phases(50, run), 1.0).mean()).sum::<f64>() / 2_000.0;
        assert!((mean - PeriodicSources::mean_at_full_load(50)).abs() < 0.3, "{mean}");
    }

    #[test]
    fn sources_in_step_queue_all_and_in_turn_none() {
        let in_step = PeriodicQueue::new(&[0.25; 20], 0.8);
        assert_eq!(in_step.peak(), 20.0);
        assert!((in_step.mean() - 20.0 * 20.0 / 2.0 / 25.0).abs() < 1e-9);
        let in_turn: Vec<f64> = (0..20).map(|n| f64::from(n) / 20.0).collect();
        assert_eq!(PeriodicQueue::new(&in_turn, 0.8).peak(), 1.0);
    }
}
