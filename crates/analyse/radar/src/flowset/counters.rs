//! CounterDecode: the packets of each flow at a switch whose flows are all known (li-thesis §4.4.2, Algorithm 9).
//!
//! Each cell is an equation: its flows' packets add up to its PacketCount. Near the limit there are hardly more equations than
//! flows, and a solver takes thousands of rounds over them. But flows have about as many packets at each hop, so:
//!
//! 1. [`consensus`] takes them to have exactly as many, and asks for the numbers that explain the cells of all switches best.
//!    There are several times more equations than unknowns then, which is why ten rounds or twenty are enough.
//! 2. [`solve`] looks for the few flows in which a switch differs from that ([`differences`](super::differences)).
//! 3. If that does not explain every cell, it solves the switch's own equations, warm from there, and looks for differences
//!    again every few rounds. The thesis stops as soon as every number is within ±0.5 of an integer; here that is when
//!    the integers explain every cell, and a few that are further off do no harm.
//!
//! Invariant: what comes out explains every cell exactly, and the sum over all packets.

use super::differences::{self, Incidence};
use super::network::FlowsetNetwork;
use super::shape::MOST_ROWS;
use super::solver::{Descent, Matrix};
use super::switch::{DecodedSwitch, SwitchFlow};

/// Differences are looked for anyway, so the best common numbers need not be found to the last digit.
const CLOSE: f64 = 0.05;
const MOST_COMMON_STEPS: usize = 60;
/// Rounds over a switch's own equations between two looks, and in all.
const STEPS: usize = 25;
const MOST_STEPS: usize = 1_000;

/// Packets of each flow, if it had as many at every switch.
pub(super) fn consensus(network: &FlowsetNetwork<'_>) -> Vec<f64> {
    let mut numbers = vec![f64::NAN; network.keys.len()];
    for own in network.switches.iter().flat_map(DecodedSwitch::own) {
        let number = &mut numbers[own.flow as usize];
        *number = if number.is_nan() { own.packets.into() } else { *number };
    }
    let unknown: Vec<u32> = (0..).zip(&numbers).filter(|(_, number)| number.is_nan()).map(|(flow, _)| flow).collect();
    let mut index = vec![u32::MAX; numbers.len()];
    (0..).zip(&unknown).for_each(|(nth, flow)| index[*flow as usize] = nth);
    let (common, mut residual) = KnownEquations::new(network, &numbers, &index, unknown.len());
    let entries: usize = common.blocks.iter().map(|block| block.rows * block.flows.len()).sum();
    let mean = residual.iter().sum::<f64>() / entries.max(1) as f64;
    let first = vec![mean; unknown.len()];
    let mut explained = vec![0.0; residual.len()];
    common.apply(&first, &mut explained);
    residual.iter_mut().zip(explained).for_each(|(residual, explained)| *residual -= explained);
    let mut descent = Descent::new(&common, first, residual);
    (0..MOST_COMMON_STEPS).find(|_| descent.step(&common) < CLOSE);
    unknown.iter().zip(descent.x).for_each(|(flow, number)| numbers[*flow as usize] = number);
    numbers
}

/// The equations of all switches whose flows are known, one switch after the other.
struct KnownEquations {
    blocks: Vec<EquationBlock>,
    equations: usize,
    unknowns: usize,
}

struct EquationBlock {
    rows: usize,
    /// Index of the first equation, and the number of equations.
    at: usize,
    cells: usize,
    flows: Vec<(u32, [u32; MOST_ROWS])>,
}

impl KnownEquations {
    /// Builds the equations, and the rest of the cells without the flows whose packets are known.
    fn new(network: &FlowsetNetwork<'_>, numbers: &[f64], index: &[u32], unknowns: usize) -> (Self, Vec<f64>) {
        let (mut blocks, mut residual) = (Vec::new(), Vec::new());
        for switch in network.switches.iter().filter(|switch| switch.is_told) {
            let mut left = switch.flowset.packet_counts.clone();
            let own = switch.own().iter().map(|own| (own, own.packets));
            let known = switch.lent().map(|lent| (lent, numbers[lent.flow as usize]));
            let known = known.filter(|(_, number)| !number.is_nan()).map(|(lent, number)| (lent, number as u32));
            for (found, packets) in own.chain(known) {
                switch.places(found).iter().for_each(|at| left[at] = left[at].wrapping_sub(packets));
            }
            let flows = switch.lent().filter(|lent| index[lent.flow as usize] != u32::MAX);
            let flows = flows.map(|lent| (index[lent.flow as usize], switch.places(lent).all())).collect();
            let (rows, cells) = (switch.flowset.shape().rows(), left.len());
            blocks.push(EquationBlock { rows, at: residual.len(), cells, flows });
            residual.extend(left.into_iter().map(|left| f64::from(left as i32)));
        }
        (Self { blocks, equations: residual.len(), unknowns }, residual)
    }
}

impl Matrix for KnownEquations {
    fn size(&self) -> (usize, usize) {
        (self.equations, self.unknowns)
    }

    fn apply(&self, x: &[f64], sums: &mut [f64]) {
        for EquationBlock { rows, at, cells, flows } in &self.blocks {
            let sums = &mut sums[*at..at + cells];
            for (flow, places) in flows {
                let x = x[*flow as usize];
                places[..*rows].iter().for_each(|at| sums[*at as usize] += x);
            }
        }
    }

    fn transpose(&self, y: &[f64], sums: &mut [f64]) {
        for EquationBlock { rows, at, cells, flows } in &self.blocks {
            let y = &y[*at..at + cells];
            for (flow, places) in flows {
                sums[*flow as usize] += places[..*rows].iter().map(|at| y[*at as usize]).sum::<f64>();
            }
        }
    }
}

/// The packets of each flow of a switch, by the flow's number, if they are certain. The result includes flows that the
/// filter took for others, if a neighbour knows them.
pub(super) fn solve(switch: &DecodedSwitch, numbers: &[f64]) -> Option<Vec<(u32, u32)>> {
    let own = switch.own().iter().map(|own| (own, own.packets));
    let lent = switch.lent().map(|lent| (lent, numbers[lent.flow as usize].round().max(1.0) as u32));
    let returned = switch.returned().map(|returned| (returned, 0));
    let guesses: Vec<(&SwitchFlow, u32)> = own.chain(lent).chain(returned).collect();
    let places = guesses.iter().map(|(found, _)| switch.places(found).all()).collect();
    let shape = switch.flowset.shape();
    let incidence = Incidence::new(shape.rows(), shape.cells(), places);
    let guess: Vec<i32> = guesses.iter().map(|(_, guess)| *guess as i32).collect();
    let counts = integers(&incidence, &switch.flowset.packet_counts, guess)?;
    // Counters are modulo 2³², and so is what explains them.
    let counted: Vec<(&SwitchFlow, u32)> =
        guesses.iter().zip(counts).map(|((found, _), count)| (*found, count as u32)).collect();
    let check = counted
        .iter()
        .fold(0_u64, |sum, (found, count)| sum.wrapping_add(switch.hash(found).wrapping_mul(u64::from(*count))));
    let passed = || counted.iter().filter(|(found, count)| *count > 0 || switch.keeps(found));
    (check == switch.flowset.packet_check).then(|| passed().map(|(found, count)| (found.flow, *count)).collect())
}

/// Numbers that explain all cells, near a guess.
fn integers(incidence: &Incidence, counts: &[u32], guess: Vec<i32>) -> Option<Vec<i32>> {
    let residual = unexplained(incidence, counts, &guess);
    if let Some(numbers) = differing(incidence, &residual, &guess) {
        return Some(numbers);
    }
    let x = guess.into_iter().map(f64::from).collect();
    let mut descent = Descent::new(incidence, x, residual.into_iter().map(f64::from).collect());
    for _ in 0..MOST_STEPS / STEPS {
        let moved = (0..STEPS).fold(0.0, |_, _| descent.step(incidence));
        let guess: Vec<i32> = descent.x.iter().map(|x| x.round() as i32).collect();
        let found = differing(incidence, &unexplained(incidence, counts, &guess), &guess);
        if found.is_some() || moved == 0.0 {
            return found;
        }
    }
    None
}

/// Numbers that explain all cells and differ from a guess here and there.
fn differing(incidence: &Incidence, residual: &[i32], guess: &[i32]) -> Option<Vec<i32>> {
    let mut residual = residual.to_vec();
    let difference = differences::find(incidence, &residual);
    differences::explain(incidence, &mut residual, &difference);
    let all = residual.iter().all(|left| *left == 0);
    all.then(|| guess.iter().zip(difference).map(|(guess, difference)| guess.wrapping_add(difference)).collect())
}

/// Packets of the cells that the numbers do not explain; like the counters, modulo 2³².
fn unexplained(incidence: &Incidence, counts: &[u32], numbers: &[i32]) -> Vec<i32> {
    let mut left = counts.to_vec();
    for (flow, number) in (0..).zip(numbers) {
        for at in incidence.places(flow) {
            left[*at as usize] = left[*at as usize].wrapping_sub(*number as u32);
        }
    }
    left.into_iter().map(|left| left as i32).collect()
}

impl Matrix for Incidence {
    fn size(&self) -> (usize, usize) {
        (self.cells(), self.places.len())
    }

    fn apply(&self, x: &[f64], sums: &mut [f64]) {
        for (flow, x) in (0..).zip(x) {
            self.places(flow).iter().for_each(|at| sums[*at as usize] += x);
        }
    }

    fn transpose(&self, y: &[f64], sums: &mut [f64]) {
        for (flow, sum) in (0..).zip(sums) {
            *sum += self.places(flow).iter().map(|at| y[*at as usize]).sum::<f64>();
        }
    }
}
