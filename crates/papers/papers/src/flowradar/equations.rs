//! fr.counters: CounterDecode as the thesis has it, by a switch's own equations alone (§4.4.2, Algorithm 9).
//!
//! A cell is an equation, a flow an unknown. The cells of the flows alone decide how many flows the equations determine and how
//! many rounds a solver takes, so this file draws the cells of each flow and builds no flowset.

use chart::{Axis, Chart, Line, LinesChart};
use faults::Random;
use parallel::Stopwatch;
use radar::flowset::solver::{Descent, Matrix};
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};

use super::fabric::DIFFERING;

/// The thesis's k_c.
const ROWS: usize = 4;
/// Cells for each flow where the network helps: 102.5 K for 100 K (§4.5.2).
const CELLS_EACH: f64 = 1.025;
/// Matlab's own limit of the residual, as a share of the right side.
const TOLERANCE: f64 = 1e-6;
const MOST_ROUNDS: usize = 20_000;

/// The equations of one switch.
#[derive(Clone, Debug)]
pub(super) struct CounterEquations {
    cells: usize,
    places: Vec<[u32; ROWS]>,
}

impl CounterEquations {
    pub(super) fn draw(flows: usize, cells: usize, random: &mut Random) -> Self {
        let row = cells.div_ceil(ROWS) as u64;
        let mut nth = 0;
        let mut place = || {
            nth += 1;
            ((nth - 1) % ROWS as u64 * row + random.below(row)) as u32
        };
        let places = (0..flows).map(|_| [(); ROWS].map(|()| place())).collect();
        Self { cells: row as usize * ROWS, places }
    }

    /// True if they determine every counter. Independence modulo 2 is tested, which is enough.
    pub(super) fn determine_all(&self) -> bool {
        let words = self.places.len().div_ceil(64);
        let mut rows = vec![vec![0_u64; words]; self.cells];
        for (flow, places) in self.places.iter().enumerate() {
            places.iter().for_each(|at| rows[*at as usize][flow / 64] ^= 1 << (flow % 64));
        }
        (0..self.places.len()).all(|flow| {
            let (word, bit) = (flow / 64, flow % 64);
            let has = |row: &Vec<u64>| row[word] >> bit & 1 == 1;
            // The sparsest equation leaves the others sparse.
            let weight = |row: &Vec<u64>| row[word..].iter().map(|word| word.count_ones()).sum::<u32>();
            let pivot = (0..rows.len()).filter(|at| has(&rows[*at])).min_by_key(|at| weight(&rows[*at]));
            let Some(pivot) = pivot.map(|at| rows.swap_remove(at)) else { return false };
            for row in rows.iter_mut().filter(|row| has(row)) {
                row[word..].iter_mut().zip(&pivot[word..]).for_each(|(row, pivot)| *row ^= pivot);
            }
            true
        })
    }

    fn sums(&self, counters: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.cells];
        self.apply(counters, &mut sums);
        sums
    }

    /// Rounds until a solver that begins with nothing leaves no more than its tolerance.
    fn rounds_from_nothing(&self, counters: &[f64]) -> usize {
        let right = self.sums(counters);
        let all: f64 = right.iter().map(|sum| sum * sum).sum();
        let mut descent = Descent::new(self, vec![0.0; self.places.len()], right);
        let is_done = |descent: &Descent| descent.unexplained() <= TOLERANCE * TOLERANCE * all;
        (1..=MOST_ROUNDS).find(|_| descent.step(self) == 0.0 || is_done(&descent)).unwrap_or(MOST_ROUNDS)
    }

    /// Rounds from a guess until the next integers are the counters; `None` if they never are.
    fn rounds_from(&self, guess: &[f64], counters: &[f64]) -> Option<usize> {
        let mut residual = self.sums(counters);
        let explained = self.sums(guess);
        residual.iter_mut().zip(explained).for_each(|(residual, explained)| *residual -= explained);
        let mut descent = Descent::new(self, guess.to_vec(), residual);
        let is_done = |x: &[f64]| x.iter().zip(counters).all(|(x, counter)| (x - counter).abs() < 0.5);
        (0..=MOST_ROUNDS).find(|_| is_done(&descent.x) || descent.step(self) == 0.0).filter(|_| is_done(&descent.x))
    }
}

impl Matrix for CounterEquations {
    fn size(&self) -> (usize, usize) {
        (self.cells, self.places.len())
    }

    fn apply(&self, x: &[f64], sums: &mut [f64]) {
        for (x, places) in x.iter().zip(&self.places) {
            places.iter().for_each(|at| sums[*at as usize] += x);
        }
    }

    fn transpose(&self, y: &[f64], sums: &mut [f64]) {
        for (sum, places) in sums.iter_mut().zip(&self.places) {
            *sum += places.iter().map(|at| y[*at as usize]).sum::<f64>();
        }
    }
}

/// Packets of flows at a switch, and at the hop before, where a share of them has one more or less.
fn counters(flows: usize, differing: f64, random: &mut Random) -> [Vec<f64>; 2] {
    let own: Vec<f64> = (0..flows).map(|_| 2.0 + random.below(60) as f64).collect();
    let other = own.iter().map(|count| match random.unit() < differing {
        true => count + if random.below(2) == 0 { 1.0 } else { -1.0 },
        false => *count,
    });
    let other = other.collect();
    [own, other]
}

/// Rounds of both ways to solve.
#[derive(Clone, Copy, Debug)]
struct SolverRounds {
    plain: usize,
    approximated: Option<usize>,
    /// Milliseconds of the second.
    ms: f64,
}

fn solve(flows: usize, cells: usize, differing: f64, seed: u64, with_plain: bool) -> SolverRounds {
    let mut random = Random::new(seed, flows as u64);
    let equations = CounterEquations::draw(flows, cells, &mut random);
    let [own, other] = counters(flows, differing, &mut random);
    let plain = if with_plain { equations.rounds_from_nothing(&own) } else { 0 };
    let begun = Stopwatch::start();
    let approximated = equations.rounds_from(&other, &own);
    SolverRounds { plain, approximated, ms: begun.seconds() * 1e3 }
}

/// Flows whose rounds are counted, and shares of the cells that they take.
const FLOWS: usize = 10_000;
const LOADS: [f64; 6] = [0.5, 0.7, 0.8, 0.9, 0.95, 1.0 / CELLS_EACH];

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let runs = if effort.scale == RunScale::Full { 20 } else { 4 };
    let cases: Vec<(f64, u64)> = LOADS.into_iter().flat_map(|load| (0..runs).map(move |run| (load, run))).collect();
    effort.progress.expect_parts(cases.len());
    let rounds = parallel::map(&cases, effort.jobs, |(load, run)| {
        let seed = effort.seed.wrapping_mul(1_000).wrapping_add(*run);
        let rounds =
            (!super::is_over(effort)).then(|| solve(FLOWS, (FLOWS as f64 / load) as usize, DIFFERING, seed, true));
        effort.progress.part_done();
        rounds
    });
    let Some(rounds) = rounds.into_iter().collect::<Option<Vec<SolverRounds>>>() else { return Ok(None) };
    let mut computed = ComputedValues::default();
    let mean = |load: f64, of: &dyn Fn(&SolverRounds) -> f64| {
        let of_load = cases.iter().zip(&rounds).filter(|((at, _), _)| *at == load);
        of_load.map(|(_, rounds)| of(rounds)).sum::<f64>() / runs as f64
    };
    let warm = |rounds: &SolverRounds| rounds.approximated.unwrap_or(MOST_ROUNDS) as f64;
    let line = |of: &dyn Fn(&SolverRounds) -> f64| LOADS.map(|load| (load, mean(load, of).max(1.0))).to_vec();
    let lines = [line(&|rounds| rounds.plain as f64), line(&warm)];
    let at = LOADS[LOADS.len() - 1];
    let unsolved = rounds.iter().filter(|rounds| rounds.approximated.is_none()).count();
    let note = format!(
        "{:.0} rounds without, {:.0} with; {unsolved} of {} unsolved",
        mean(at, &|rounds| rounds.plain as f64),
        mean(at, &warm),
        rounds.len()
    );
    let faster = mean(at, &|rounds| rounds.plain as f64) / mean(at, &warm).max(1.0);
    computed.value("faster", MeasuredValue::exact(faster, runs).with_note(note));
    for load in [0.7, 0.9] {
        let faster = mean(load, &|rounds| rounds.plain as f64) / mean(load, &warm).max(1.0);
        computed.value(format!("faster.{load}"), MeasuredValue::exact(faster, runs));
    }
    for (name, differing) in [("tenth", 0.1), ("half", 0.5), ("all", 1.0)] {
        let seed = effort.seed.wrapping_mul(1_000);
        let SolverRounds { plain, approximated, .. } =
            solve(FLOWS, (FLOWS as f64 / at) as usize, differing, seed, true);
        let warm = approximated.unwrap_or(MOST_ROUNDS).max(1);
        let faster = MeasuredValue::exact(plain as f64 / warm as f64, 1).with_note(format!("{warm} rounds"));
        computed.value(format!("faster.{name}"), faster);
    }
    computed.charts.push(Chart::Lines(LinesChart {
        title: "Rounds of the solver, by how full the table is".into(),
        caption: "10,000 flows, four cells for each. Near as many flows as cells, equations that hardly determine the \
                  counters take long."
            .into(),
        x: Axis::linear("flows for each cell"),
        y: Axis::log("rounds"),
        lines: ["from nothing", "from the counters of the hop before"]
            .into_iter()
            .zip(lines)
            .map(|(name, points)| Line::new(name, points))
            .collect(),
    }));
    Ok(Some(computed))
}

/// Milliseconds that solving a switch's own equations takes, from the counters of the hop before.
pub(super) fn milliseconds(flows: usize, cells: usize, differing: f64, seed: u64) -> Option<MeasuredValue> {
    let SolverRounds { approximated, ms, .. } = solve(flows, cells, differing, seed, false);
    approximated.map(|rounds| MeasuredValue::exact(ms, 1).with_note(format!("{rounds} rounds")))
}

/// Number of flows beyond `alone` that the equations of as many cells determine, in 99 of 100 tables.
pub(super) fn extra_flows(alone: u64, cells: usize, trials: u64, effort: &Effort<'_>) -> Option<MeasuredValue> {
    let determined = |flows: usize| {
        let seeds: Vec<u64> = (0..trials).collect();
        let failures = parallel::map(&seeds, effort.jobs, |seed| {
            let mut random = Random::new(effort.seed.wrapping_mul(1_000).wrapping_add(*seed), flows as u64);
            super::is_over(effort) || !CounterEquations::draw(flows, cells, &mut random).determine_all()
        });
        failures.into_iter().filter(|failed| *failed).count() as u64 * 100 <= trials
    };
    let step = (alone / 200).max(1) as usize;
    let (mut low, mut high) = (alone as usize, cells);
    while high - low > step {
        let middle = low.midpoint(high);
        (low, high) = if determined(middle) { (middle, high) } else { (low, middle) };
    }
    let note = format!("{low} flows in {cells} cells");
    (!super::is_over(effort)).then(|| MeasuredValue::exact(low as f64 / alone as f64 - 1.0, trials).with_note(note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_flows_than_cells_are_never_determined_and_half_as_many_are() {
        let mut random = Random::new(1, 0);
        assert!(!CounterEquations::draw(210, 200, &mut random).determine_all());
        assert!(CounterEquations::draw(100, 200, &mut random).determine_all());
    }

    #[test]
    fn a_solver_that_begins_near_the_counters_is_done_sooner() {
        let SolverRounds { plain, approximated, .. } = solve(1_000, 1_200, DIFFERING, 1, true);
        let approximated = approximated.unwrap();
        assert!(plain > 2 * approximated, "{plain} and {approximated}");
    }
}
