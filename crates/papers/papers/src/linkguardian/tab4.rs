//! lg.tab4: what recirculation takes of a pipe (Table 4, App. B.4).
//!
//! The buffers of the paper's switch are loops by a port of 100G. The receiver's loop is always full of frames. At the sender a
//! frame goes round at least once before its acknowledgement comes, so that what recirculates follows how many frames are
//! sent, which is the effective speed of the link.

use faults::{FaultSchedule, LossModel};
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use sim::link::{HardwareProfile, LinkSimConfig, LinkSimMode};
use units::{Prob, Rate};
use wire::ethernet::on_wire;
use wire::link::DATA_HEADER;

const FRAME: u32 = 1_518;
const LOSSES: [(&str, f64); 3] = [("1e-5", 1e-5), ("1e-4", 1e-4), ("1e-3", 1e-3)];
const LOOP: f64 = 100e9;

/// Packets that a pipe forwards in a second: fitted, so that a loop full of frames takes the table's highest value.
const CAPACITY: f64 = LOOP / (1_541.0 * 8.0) / 0.00664;

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    let percent = |packets: f64| packets / CAPACITY * 100.0;
    let full = LOOP / (f64::from(on_wire(FRAME + DATA_HEADER)) * 8.0);
    computed.value("rx", MeasuredValue::exact(percent(full), 1));
    computed.value("times-six", MeasuredValue::exact(percent(full) * 1_500.0 / 250.0, 1));
    for gigabits in [25, 100] {
        let mut first = None;
        for (name, loss) in LOSSES {
            let Some(speed) = speed(gigabits, Prob::literal(loss), effort)? else { return Ok(None) };
            let frames = speed * gigabits as f64 * 1e9 / (f64::from(on_wire(FRAME)) * 8.0);
            computed.value(format!("tx.{gigabits}G.{name}"), MeasuredValue::exact(percent(frames), 1));
            let least = *first.get_or_insert(speed);
            computed.value(format!("tx.{gigabits}G.{name}.relative"), MeasuredValue::exact(speed / least, 1));
        }
    }
    Ok(Some(computed))
}

/// The effective speed of a link that keeps order; `None` if the run was stopped.
fn speed(gigabits: u64, loss: Prob, effort: &Effort<'_>) -> Result<Option<f64>, ClaimError> {
    let losses = match effort.scale {
        RunScale::Quick => 2e4,
        RunScale::Full => 2e5,
    };
    let config = LinkSimConfig {
        rate: Rate::gbps(gigabits),
        profile: HardwareProfile::Tofino,
        mode: LinkSimMode::Ordered,
        forward: FaultSchedule::always(LossModel::PerFrame(loss)),
        frames: (losses / loss.get()) as u64,
        seed: effort.seed,
        ..LinkSimConfig::default()
    };
    let outcome = sim::link::run(&config, effort.progress).map_err(ClaimError::new)?;
    Ok(outcome.effective_speed.filter(|_| !outcome.interrupted))
}
