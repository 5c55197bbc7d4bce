//! A bridge in the place of the wire: it learns addresses, loses frames, forgets, and has a third host.

use std::time::Duration;

use units::Prob;

use super::actions::{FaultTargets, PATIENCE};
use super::ledger::TimeInterval;
use super::plan::PlannedFault;
use super::side;
use linux::SystemError;

/// Time to plug in a cable again.
const REPLUG: Duration = Duration::from_millis(300);
const FORGETS_EVERY: Duration = Duration::from_millis(50);
const LOSS: Prob = Prob::literal(0.05);

impl FaultTargets<'_> {
    /// A frame with its number in its addresses that the third host sees is a problem. Frames may be lost while the cable is
    /// changed, and not in between.
    pub(super) fn bridge(&mut self, fault: &PlannedFault) -> Result<Vec<TimeInterval>, SystemError> {
        let stage = self.stage;
        let (plugged_in, (bridge, mut witness)) = self.replug(fault.end, || stage.put_bridge())?;
        stage.set_loss(LOSS)?;
        let until = self.clock.elapsed() + fault.lasts;
        while !self.is_stopped() && self.clock.elapsed() < until {
            self.wait(FORGETS_EVERY);
            stage.flush_bridge(&bridge)?;
            witness.look();
        }
        let stamped = witness.look().stamped;
        if stamped > 0 {
            let seconds = self.clock.elapsed().as_secs_f64();
            let place = side(fault.end);
            self.problems.push(format!(
                "a bridge, plugged in on the {place}, passed {stamped} stamped frames on to a third host, until {seconds:.1} s of the act"
            ));
        }
        let (pulled_out, ()) = self.replug(fault.end, || Ok(stage.take_bridge(bridge)?))?;
        Ok(vec![plugged_in, pulled_out])
    }

    /// Changes what an end's cable leads to; the time in which it leads nowhere.
    fn replug<T>(
        &self,
        end: usize,
        change: impl FnOnce() -> Result<T, SystemError>,
    ) -> Result<(TimeInterval, T), SystemError> {
        let from = self.clock.elapsed();
        self.stage.set_carrier(end, false)?;
        self.wait(REPLUG);
        // A daemon that had no processor meanwhile has not seen the cable go.
        let out = self.clock.elapsed();
        self.wait_until(PATIENCE, || self.ends.iter().all(|daemon| daemon.status_since(out).is_some()));
        let changed = change()?;
        self.stage.set_carrier(end, true)?;
        self.on_wire(end, |netlink, index| netlink.wait_until_running(index))?;
        Ok((TimeInterval { from, to: self.clock.elapsed() }, changed))
    }
}
