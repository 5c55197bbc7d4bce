//! lg.fig2: how many flows fit one packet (Fig. 2), in each distribution that the simulator has.

use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use sim::workload::{FlowSizes, SizeTrace};
use units::Prob;

/// Payload of a packet without timestamps.
const PACKET: u64 = 1_460;

pub(super) fn compute(_effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    for trace in SizeTrace::ALL {
        computed.value(trace.name(), MeasuredValue::exact(share_up_to(&trace.sizes(), PACKET), 1));
    }
    Ok(Some(computed))
}

/// The share of flows that are no larger, to a millionth.
fn share_up_to(sizes: &FlowSizes, bytes: u64) -> f64 {
    const STEPS: u32 = 1_000_000;
    let fits = |step: u32| {
        let share = Prob::new(f64::from(step) / f64::from(STEPS));
        share.is_some_and(|share| sizes.quantile(share) <= bytes)
    };
    let (mut low, mut high) = (0, STEPS + 1);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if fits(middle) { low = middle } else { high = middle }
    }
    f64::from(low) / f64::from(STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_line_between_two_points() {
        let sizes = FlowSizes::parse("1000 0\n2000 100\n").unwrap();
        assert!((share_up_to(&sizes, 1_460) - 0.46).abs() < 1e-3);
        assert_eq!([share_up_to(&sizes, 10), share_up_to(&sizes, 5_000)], [0.0, 1.0]);
    }
}
