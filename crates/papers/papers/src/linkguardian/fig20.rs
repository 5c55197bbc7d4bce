//! lg.fig20: how many frames in a row are lost (Fig. 20, §3.5), if losses are independent.

use faults::{LossModel, LossProcess, Random};
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use units::Prob;

/// Registers that the paper's switch has for requests: as many frames in a row can be asked for.
const REGISTERS: u32 = 5;
const LOSSES: [(&str, f64); 2] = [("1", 0.01), ("5", 0.05)];
const FRAME: u32 = 1_518;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let events = match effort.scale {
        RunScale::Quick => 20_000_000,
        RunScale::Full => 200_000_000,
    };
    let mut computed = ComputedValues::default();
    for (percent, loss) in LOSSES {
        let covered = 1.0 - loss.powi(REGISTERS as i32);
        computed.value(format!("covered.{percent}"), MeasuredValue::exact(covered, 1));
        let Some(beyond) = beyond(Prob::literal(loss), events, effort) else { return Ok(None) };
        let (low, high) = units::poisson(beyond);
        let share = |beyond: f64| 1.0 - beyond / events as f64;
        let counted = MeasuredValue::counted(share(beyond as f64), events, (share(high), share(low)));
        computed.value(format!("counted.{percent}"), counted);
    }
    Ok(Some(computed))
}

/// Number of these events that have more frames in a row than there are registers; `None` if the run was stopped.
fn beyond(loss: Prob, events: u64, effort: &Effort<'_>) -> Option<u64> {
    const STRETCH: u64 = 1_000_000;
    let mut process = LossProcess::new(&LossModel::PerFrame(loss), Random::new(effort.seed, 0));
    let (mut beyond, mut seen) = (0, 0);
    while seen < events {
        if seen % STRETCH == 0 && !effort.progress.go_on(seen) {
            return None;
        }
        let clear = process.clear(FRAME);
        process.pass(clear, FRAME);
        let mut run = 0;
        while process.corrupts(FRAME) {
            run += 1;
        }
        seen += 1;
        beyond += u64::from(run > REGISTERS);
    }
    Some(beyond)
}
