//! Fast convergence of utilization (thesis §2.4.1, Eq. 2.5 and 2.6) on any resources and paths.
//!
//! ```text
//!   Y(n) = A R(n)        R_j(n+1) = R_j(n) / max_i { Y_i(n) A_ij / C_i }
//! ```
//!
//! The Lemma says that (i) rates are feasible after one step, (ii) never fall afterwards, (iii) are constant and Pareto
//! optimal after as many steps as there are resources. (i) and (ii) hold. (iii) does not hold: settled paths still load other
//! resources, which therefore only approach their capacity. The limit is Pareto optimal. See [`RateNetwork::counterexample`].

/// Resources with capacities, and paths over them.
#[derive(Clone, Debug, PartialEq)]
pub struct RateNetwork {
    capacities: Vec<f64>,
    paths: Vec<Vec<usize>>,
}

impl RateNetwork {
    /// `None` unless capacities are positive and every path uses a resource, and only such as exist.
    pub fn new(capacities: Vec<f64>, paths: Vec<Vec<usize>>) -> Option<Self> {
        let is_positive = |capacity: &f64| *capacity > 0.0 && capacity.is_finite();
        let exists = |path: &Vec<usize>| !path.is_empty() && path.iter().all(|at| *at < capacities.len());
        let valid = capacities.iter().all(is_positive) && paths.iter().all(exists);
        valid.then_some(Self { capacities, paths })
    }

    /// C = (1, 2), one path over both, one over the second, R(0) = (2, 1): the second path's rate is 2/3, 4/5, 8/9, … and never 1.
    pub fn counterexample() -> (Self, Vec<f64>) {
        (Self { capacities: vec![1.0, 2.0], paths: vec![vec![0, 1], vec![1]] }, vec![2.0, 1.0])
    }

    /// Number of resources: I.
    pub fn resources(&self) -> usize {
        self.capacities.len()
    }

    /// Load of each resource: Y = A R.
    pub fn loads(&self, rates: &[f64]) -> Vec<f64> {
        let mut loads = vec![0.0; self.capacities.len()];
        for (path, rate) in self.paths.iter().zip(rates) {
            path.iter().for_each(|at| loads[*at] += rate);
        }
        loads
    }

    /// Y_i / C_i of each resource.
    fn utilizations(&self, rates: &[f64]) -> Vec<f64> {
        self.loads(rates).iter().zip(&self.capacities).map(|(load, capacity)| load / capacity).collect()
    }

    /// The rates a round trip later (Eq. 2.6). Rates must be positive.
    pub fn step(&self, rates: &[f64]) -> Vec<f64> {
        let used = self.utilizations(rates);
        let most = |path: &Vec<usize>| path.iter().fold(0.0_f64, |most, at| most.max(used[*at]));
        self.paths.iter().zip(rates).map(|(path, rate)| rate / most(path)).collect()
    }

    /// Condition (i): no resource is loaded beyond its capacity by more than the share `tolerance`.
    pub fn is_feasible(&self, rates: &[f64], tolerance: f64) -> bool {
        self.utilizations(rates).iter().all(|used| *used <= 1.0 + tolerance)
    }

    /// Feasible, and every path goes through a resource that is full: no rate can grow unless another falls.
    pub fn is_pareto_optimal(&self, rates: &[f64], tolerance: f64) -> bool {
        let used = self.utilizations(rates);
        let meets_full = |path: &Vec<usize>| path.iter().any(|at| used[*at] >= 1.0 - tolerance);
        self.is_feasible(rates, tolerance) && self.paths.iter().all(meets_full)
    }

    /// Steps until no rate changes by more than a share of `tolerance`, at most `most`; the rates, and how many steps.
    pub fn limit(&self, rates: &[f64], tolerance: f64, most: usize) -> (Vec<f64>, usize) {
        let mut rates = rates.to_vec();
        for step in 0..most {
            let next = self.step(&rates);
            let is_constant = rates.iter().zip(&next).all(|(rate, next)| (next - rate).abs() <= tolerance * next);
            rates = next;
            if is_constant {
                return (rates, step);
            }
        }
        (rates, most)
    }
}

/// (ii): no rate is less than before, to a share of `tolerance`.
pub fn never_falls(before: &[f64], after: &[f64], tolerance: f64) -> bool {
    before.iter().zip(after).all(|(before, after)| *after >= before * (1.0 - tolerance))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn networks() -> impl Strategy<Value = (RateNetwork, Vec<f64>)> {
        (1_usize..=6).prop_flat_map(|resources| {
            let path = proptest::sample::subsequence((0..resources).collect::<Vec<_>>(), 1..=resources);
            let capacities = proptest::collection::vec(0.1..10.0_f64, resources);
            (capacities, proptest::collection::vec((path, 0.01..10.0_f64), 1..9)).prop_map(|(capacities, paths)| {
                let (paths, rates) = paths.into_iter().unzip();
                (RateNetwork::new(capacities, paths).unwrap(), rates)
            })
        })
    }

    #[test]
    fn the_lemmas_third_part_has_a_counterexample() {
        let (network, start) = RateNetwork::counterexample();
        let mut rates = start.clone();
        for expected in [2.0 / 3.0, 0.8, 8.0 / 9.0, 16.0 / 17.0] {
            rates = network.step(&rates);
            assert!((rates[0] - 1.0).abs() < 1e-12 && (rates[1] - expected).abs() < 1e-12, "{rates:?}");
        }
        let (limit, steps) = network.limit(&start, 1e-12, 1_000);
        assert!(steps > network.resources() && network.is_pareto_optimal(&limit, 1e-9));
    }

    #[test]
    fn paths_over_nothing_are_refused() {
        assert_eq!(RateNetwork::new(vec![1.0], vec![vec![]]), None);
        assert_eq!(RateNetwork::new(vec![1.0], vec![vec![1]]), None);
        assert_eq!(RateNetwork::new(vec![0.0], vec![vec![0]]), None);
    }

    proptest! {
        #[test]
        fn rates_are_feasible_never_fall_and_end_pareto_optimal((network, start) in networks()) {
            let mut rates = network.step(&start);
            for _ in 0..50 {
                prop_assert!(network.is_feasible(&rates, 1e-9));
                let next = network.step(&rates);
                prop_assert!(never_falls(&rates, &next, 1e-9));
                rates = next;
            }
            let (limit, _) = network.limit(&start, 1e-10, 200_000);
            prop_assert!(network.is_pareto_optimal(&limit, 1e-3), "{limit:?}");
        }
    }
}
