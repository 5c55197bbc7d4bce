use super::*;
use crate::shape::CollectiveAlgorithm;

/// One switch at 100G, 500 ns a cable, 300 ns a switch, 4,096 B of payload.
fn network(ranks: u32) -> ModelNetwork {
    ModelNetwork {
        topology: ModelTopology::OneSwitch,
        hosts: (0..ranks).collect(),
        rate: Rate::gbps(100),
        delay: Span::from_ns(500),
        latency: Span::from_ns(300),
        payload: 4_096,
        overhead: 82,
        ack: 88,
    }
}

fn model(
    pattern: CollectivePattern,
    algorithm: CollectiveAlgorithm,
    ranks: u32,
    size: u64,
    pieces: u32,
) -> CollectiveModel {
    let shape = CollectiveShape { pattern, algorithm, ranks, size, channels: 1, pieces };
    let network = network(ranks);
    CollectiveModel { shape, network, rank: 0, sends: true, loss: 1e-3, per_transfer: false, barrier: true }
}

fn ring(ranks: u32, packets: u64, loss: f64) -> CollectiveModel {
    let size = u64::from(ranks) * packets * 4_096;
    CollectiveModel { loss, ..model(CollectivePattern::AllReduce, CollectiveAlgorithm::Ring, ranks, size, 1) }
}

fn setting(remedy: Remedy) -> RemedySetting {
    let timeout = match remedy {
        Remedy::Irn => Span::from_us(320),
        _ => Span::from_ns(67_108_864),
    };
    let effective_loss = if remedy == Remedy::UecLlr { 0.0 } else { 1e-9 };
    RemedySetting { remedy, timeout, dummies: 2, effective_loss }
}

#[track_caller]
fn close(ours: f64, expected: f64, tolerance: f64) {
    assert!((ours / expected - 1.0).abs() <= tolerance, "{ours}, expected {expected}");
}

#[test]
fn times_without_loss_are_those_of_the_closed_forms() {
    use CollectiveAlgorithm::{Direct, HalvingNearest, Ring, Tree};
    use CollectivePattern::{AllGather, AllReduce, AllToAll, ReduceScatter};
    let time = |pattern, algorithm, ranks, size, pieces| model(pattern, algorithm, ranks, size, pieces).time_us();
    for (pattern, algorithm, pieces, expected) in [
        (AllReduce, Ring, 1, 172.6),
        (AllReduce, Ring, 4, 151.4),
        (AllGather, Ring, 1, 86.3),
        (ReduceScatter, Ring, 1, 86.3),
        (AllReduce, HalvingNearest, 1, 159.5),
        (AllToAll, Direct, 1, 76.5),
    ] {
        close(time(pattern, algorithm, 8, 1 << 20, pieces), expected, 5e-4);
    }
    close(ring(64, 61, 0.0).time_us(), 2_774.9, 1e-4);
    close(time(AllReduce, Tree, 16, 16 << 20, 32), 2_930.0, 0.01);
}

#[test]
fn a_ring_over_leaves_takes_the_sum_of_its_hops() {
    let shape = model(CollectivePattern::AllReduce, CollectiveAlgorithm::Ring, 64, 16 << 20, 1);
    let leaves = ModelNetwork { topology: ModelTopology::LeafSpine { hosts_per_leaf: 8 }, ..network(64) };
    close(CollectiveModel { network: leaves, ..shape.clone() }.time_us(), 2_938.0, 1e-3);
    let pods = ModelNetwork { topology: ModelTopology::FatTree { k: 8 }, ..network(64) };
    assert!(CollectiveModel { network: pods, ..shape }.time_us() > 2_938.0);
}

#[test]
fn timeouts_are_tails_and_packets_lost_twice() {
    let ring =
        CollectiveModel { loss: 1e-3, ..model(CollectivePattern::AllReduce, CollectiveAlgorithm::Ring, 8, 1 << 20, 1) };
    assert_eq!(ring.load(), CableLoad { bytes: 14 << 17, packets: 448, messages: 14, open_tails: 1 });
    close(ring.outlook(&setting(Remedy::Nothing)).timeouts, 1.448e-3, 1e-9);
    let apart = CollectiveModel { per_transfer: true, ..ring.clone() };
    close(apart.outlook(&setting(Remedy::Nothing)).timeouts, 1.4448e-2, 1e-9);
    let going_on = CollectiveModel { barrier: false, ..ring.clone() };
    close(going_on.outlook(&setting(Remedy::Nothing)).timeouts, 4.48e-4, 1e-9);
    close(ring.outlook(&setting(Remedy::Dummies)).timeouts, 4.48e-4 + 1e-9, 1e-9);
    let halving = model(CollectivePattern::AllReduce, CollectiveAlgorithm::HalvingNearest, 8, 1 << 20, 1);
    assert_eq!((halving.load().messages, halving.load().open_tails), (6, 5));
    let direct = model(CollectivePattern::AllToAll, CollectiveAlgorithm::Direct, 8, 1 << 20, 1);
    assert_eq!((direct.load().packets, direct.load().open_tails), (7 * 32, 7));
}

/// The notes' headline: 64 ranks, 1 GiB at 400G, 1e-4, timeouts of 4.29 s.
#[test]
fn a_gigabyte_stalls_once_in_190_iterations() {
    let shape = CollectiveShape { size: 1 << 30, ..ring(64, 61, 1e-4).shape };
    let network = ModelNetwork { rate: Rate::gbps(400), ..network(64) };
    let model = CollectiveModel { shape, network, ..ring(64, 61, 1e-4) };
    let long = |remedy| RemedySetting { timeout: Span::from_ms(4_295), effective_loss: 1e-8, ..setting(remedy) };
    let nothing = model.outlook(&long(Remedy::Nothing));
    close(1.0 / nothing.timeouts, 190.0, 0.01);
    close(nothing.mean_us / model.time_us(), 1.52, 0.01);
    for remedy in [Remedy::Ordered, Remedy::UecLlr] {
        let outlook = model.outlook(&long(remedy));
        assert!(outlook.mean_us / model.time_us() < 1.003, "{remedy}: {outlook:?}");
    }
    // Nearly every step loses a packet: out of order each costs more than the cable gains between two steps.
    let nonblocking = model.outlook(&long(Remedy::Nonblocking));
    assert!((0.0005..0.003).contains(&(nonblocking.mean_us / model.time_us() - 1.0)), "{nonblocking:?}");
    let dummies = model.outlook(&long(Remedy::Dummies));
    close(dummies.p50_lateness_us, nothing.p50_lateness_us, 0.1);
    assert!(nonblocking.p50_lateness_us > 2.0 * nothing.p50_lateness_us, "{nonblocking:?}");
    let rare = CollectiveModel { loss: 1e-5, ..model };
    close(1.0 / rare.outlook(&long(Remedy::Nothing)).timeouts, 16_000.0, 0.02);
}

/// One loss in the middle of a long flow, measured with one flow (the notes' table).
#[test]
fn a_loss_costs_what_it_costs_a_flow() {
    let long = ring(8, 1_000, 1e-9);
    let delay = |remedy| {
        let recovery = setting(remedy).recovery(&long, &long.load());
        [recovery.spread.at(500), recovery.spread.at(4), recovery.spread.at(1)]
    };
    let near = |remedy, expected: [f64; 3]| {
        for (ours, expected) in delay(remedy).into_iter().zip(expected) {
            assert!((ours - expected).abs() < 0.1, "{remedy}: {:?}", delay(remedy));
        }
    };
    near(Remedy::Nothing, [3.68, 3.62, 3.62]);
    near(Remedy::Irn, [0.33, 2.28, 3.28]);
    near(Remedy::Ordered, [1.98, 1.98, 1.98]);
    near(Remedy::UecLlr, [2.01, 2.01, 2.01]);
    assert!((delay(Remedy::Nonblocking)[0] - 5.35).abs() < 0.1, "{:?}", delay(Remedy::Nonblocking));
    assert!((5.0..6.0).contains(&setting(Remedy::Nothing).recovery(&long, &long.load()).tail_us));
    let dummies = setting(Remedy::Dummies).recovery(&long, &long.load()).tail_us;
    assert!((dummies - 2.96).abs() < 0.1, "{dummies}");
}

#[test]
fn in_lock_step_the_worst_loss_counts_and_with_pieces_their_sum() {
    let lock = ring(64, 61, 1e-3);
    let outlook = lock.outlook(&setting(Remedy::Nothing));
    close(outlook.losses, 7.686, 1e-3);
    assert!((4.0..8.0).contains(&outlook.p50_lateness_us), "{outlook:?}");
    let four = CollectiveShape { pieces: 4, size: 4 * lock.shape.size, ..lock.shape };
    let filled = CollectiveModel { shape: four, ..lock.clone() }.outlook(&setting(Remedy::Nothing));
    close(filled.losses, 30.744, 1e-3);
    close(filled.p50_lateness_us / filled.losses, 3.7, 0.05);
    // Without stalls, the median and the mean of a curve are close.
    let recovered = filled.mean_us - CollectiveModel { shape: four, ..lock }.time_us() - filled.timeouts * 67_108.864;
    close(recovered / filled.losses, 3.7, 0.05);
}

#[test]
fn quantiles_count_stalls() {
    let outlook = ring(16, 61, 1e-3).outlook(&setting(Remedy::Nothing));
    close(1.0 / outlook.timeouts, 353.0, 0.01);
    close(outlook.late_share, 1.0 - (-1.833_f64).exp(), 0.01);
    assert!(outlook.p999_lateness_us == 67_108.864 && outlook.p99_lateness_us < 20.0, "{outlook:?}");
    let calm = ring(16, 61, 0.0).outlook(&setting(Remedy::Nothing));
    assert_eq!((calm.late_share, calm.p999_lateness_us, calm.losses), (0.0, 0.0, 0.0));
}
