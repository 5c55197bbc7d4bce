//! Eq. 2.7 on a parking lot: one flow over two links, and one besides on each.

use report::claim::MeasuredValue;
use report::runner::ComputedValues;

/// U_target, and the additive increase as a share of a link.
const TARGET: f64 = 0.95;
const STEP: f64 = 0.005;
/// Round trips until nothing moves any more.
const ROUNDS: u64 = 20_000;

pub(super) fn compute(computed: &mut ComputedValues) {
    for (name, alpha) in [("parking-lot.1", 1.0), ("parking-lot.2", 2.0), ("parking-lot.4", 4.0)] {
        computed.value(name, MeasuredValue::exact(long_share(alpha), ROUNDS));
    }
}

/// The share of each link that the long flow ends with. It begins with all, and its neighbours with nearly nothing.
fn long_share(alpha: f64) -> f64 {
    let mut registers = [1.0_f64; 2];
    let mut neighbours = [0.01_f64; 2];
    let rate = |registers: &[f64; 2]| registers.iter().map(|rate| rate.powf(-alpha)).sum::<f64>().powf(-alpha.recip());
    for _ in 0..ROUNDS {
        let long = rate(&registers);
        for (register, neighbour) in registers.iter_mut().zip(&mut neighbours) {
            let used = long + *neighbour;
            *register = *register * TARGET / used + STEP;
            *neighbour = *neighbour * TARGET / used + STEP;
        }
    }
    rate(&registers) / (rate(&registers) + neighbours[0])
}
