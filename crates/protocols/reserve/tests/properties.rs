//! Any traffic: on a clean rack nothing is lost, however late hosts are, and a quiet rack has nothing reserved. That grants of one
//! port never overlap is checked by the rack itself, for every grant.

mod common;

use common::{Rack, numbers};
use proptest::prelude::*;
use reserve::{RackParams, SchedulerKind, SlotUnit};
use units::{Rate, Span, Time};

const END: Time = Time::from_ps(100_000_000_000);

/// Frames that are put into a queue, this long after the ones before.
#[derive(Clone, Debug)]
struct Offered {
    after_ns: u64,
    from: u16,
    step: u16,
    lane: u8,
    frames: u32,
    len: u32,
    class: u8,
}

fn offered() -> impl Strategy<Value = Offered> {
    (0u64..3_000, 0u16..4, 1u16..4, 0u8..3, 1u32..9, 64u32..1_519, 0u8..8).prop_map(
        |(after_ns, from, step, lane, frames, len, class)| Offered { after_ns, from, step, lane, frames, len, class },
    )
}

fn rack() -> impl Strategy<Value = RackParams> {
    let kinds = prop::sample::select(SchedulerKind::ALL.to_vec());
    let units = prop::sample::select(SlotUnit::ALL.to_vec());
    (kinds, units, 1u8..5, any::<bool>()).prop_map(|(kind, unit, k, unsolicited)| {
        let params = RackParams::new(kind, 4, Rate::gbps(100));
        // The paper's unsolicited bursts are counted down twice: a test of their own shows it.
        RackParams { contexts: 3, k, unit, unsolicited: unsolicited && kind != SchedulerKind::Paper, ..params }
    })
}

/// Queues everything at its time; then runs until nothing happens.
fn run(rack: &mut Rack, traffic: &[Offered]) {
    let mut at = Time::ZERO;
    for offered in traffic {
        at += Span::from_ns(offered.after_ns);
        rack.run(at);
        let Offered { from, step, lane, frames, len, class, .. } = *offered;
        rack.queue_frames(from, (from + step) % 4, lane, frames, len, class);
    }
    rack.run(END);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_clean_rack_loses_nothing_and_ends_with_nothing_reserved(
        params in rack(), traffic in prop::collection::vec(offered(), 1..60), seed in any::<u64>(), late_ns in 0u64..250_000,
    ) {
        let mut rack = Rack::new(params);
        let mut number = numbers(seed);
        rack.lateness = Box::new(move || Span::from_ns(if number().is_multiple_of(4) { number() % (late_ns + 1) } else { 0 }));
        run(&mut rack, &traffic);
        rack.check_delivered(0);
        rack.check_quiet();
        prop_assert_eq!(rack.dropped, 0);
        if params.scheduler != SchedulerKind::Paper {
            rack.check_bound(3);
        }
    }

    #[test]
    fn after_any_losses_nothing_stays_reserved(
        params in rack(), traffic in prop::collection::vec(offered(), 1..40), seed in any::<u64>(), one_in in 3u64..40,
    ) {
        prop_assume!(params.scheduler != SchedulerKind::Paper && !params.unsolicited);
        let mut rack = Rack::new(params);
        let mut number = numbers(seed);
        rack.loses = Box::new(move |_, _| number().is_multiple_of(one_in));
        run(&mut rack, &traffic);
        rack.check_delivered(rack.lost);
        rack.check_quiet();
        rack.check_bound(3);
    }
}
