//! HPCC on random telemetry: it is Alg. 1 written down naively, and stays within its bounds whatever it is given.

use congestion::hpcc::{Division, IntForm, LinkSignal, Reaction, Registers};
use congestion::{AckFeedback, ControlSite, Hpcc, HpccConfig, RdmaControl, TelemetrySample};
use proptest::prelude::*;
use units::{Rate, Span, Time};
use wire::int::IntHop;

const T: Span = Span::from_us(13);
const SITE: ControlSite = ControlSite { line_rate: Rate::gbps(100), base_rtt: T, mtu: 1_000, hops: 1 };
const W_INIT: f64 = 162_500.0;

fn feedback(now: Time, acked: u64, sent: u64, hops: &[IntHop], path: u16) -> AckFeedback<'_> {
    let telemetry = Some(TelemetrySample { path, hops });
    AckFeedback { now, acked, sent, packets: 1, bytes: 1_000, marked: 0, rtt: Some(T), one_way: None, telemetry }
}

/// Alg. 1 as it stands, for telemetry that never needs a reset.
struct Naive {
    config: HpccConfig,
    w_init: f64,
    l: Vec<IntHop>,
    u: f64,
    w: f64,
    w_c: f64,
    stage: u32,
    last_update: u64,
}

impl Naive {
    fn new(config: HpccConfig) -> Self {
        Self { config, w_init: W_INIT, l: Vec::new(), u: 1.0, w: W_INIT, w_c: W_INIT, stage: 0, last_update: 0 }
    }

    /// False if two links are equally loaded: which of them counts is then up to rounding.
    fn measure(&mut self, hops: &[IntHop]) -> bool {
        let t = T.as_secs();
        let (mut u, mut tau, mut tie) = (-1.0, 0.0, false);
        for (new, old) in hops.iter().zip(&self.l) {
            let b = f64::from(new.rate_mbps) * 1e6 / 8.0;
            let elapsed = (new.at.as_ps() - old.at.as_ps()) as f64 / 1e12;
            let bytes = match self.config.signal {
                LinkSignal::Tx => new.tx_bytes - old.tx_bytes,
                LinkSignal::Rx => new.rx_bytes() - old.rx_bytes(),
            };
            let here = f64::from(new.queue.min(old.queue)) / (b * t) + bytes as f64 / elapsed / b;
            tie |= here > 0.0 && (here / u - 1.0).abs() < 1e-9;
            if here > u {
                (u, tau) = (here, elapsed);
            }
        }
        let share = tau.min(t) / t;
        self.u = (1.0 - share) * self.u + share * u;
        !tie
    }

    fn new_ack(&mut self, acked: u64, sent: u64, hops: &[IntHop]) -> bool {
        if self.l.is_empty() {
            self.last_update = sent;
            self.l = hops.to_vec();
            return true;
        }
        let update = acked > self.last_update || self.config.reaction == Reaction::PerAck;
        if self.config.reaction == Reaction::PerRtt && !update {
            return true;
        }
        if !self.measure(hops) {
            return false;
        }
        let w_ai = self.config.w_ai.unwrap_or(self.w_init * (1.0 - self.config.eta) / 100.0);
        let multiplies = self.u >= self.config.eta || self.stage >= self.config.max_stage;
        self.w = if multiplies { self.w_c / (self.u / self.config.eta) } else { self.w_c } + w_ai;
        self.w = self.w.clamp(162.5, self.w_init);
        if update {
            self.stage = if multiplies { 0 } else { self.stage + 1 };
            self.w_c = self.w;
        }
        if acked > self.last_update {
            self.last_update = sent;
        }
        self.l = hops.to_vec();
        true
    }
}

/// A link's telemetry step: time in ns and percent of the rate that was used, and the queue.
fn step() -> impl Strategy<Value = (u64, u64, u32)> {
    (1_u64..30_000, 0_u64..=120, prop_oneof![Just(0_u32), 0_u32..2_000_000])
}

fn reactions() -> impl Strategy<Value = Reaction> {
    prop_oneof![Just(Reaction::Combined), Just(Reaction::PerAck), Just(Reaction::PerRtt)]
}

fn signals() -> impl Strategy<Value = LinkSignal> {
    prop_oneof![Just(LinkSignal::Tx), Just(LinkSignal::Rx)]
}

prop_compose! {
    fn configs()(
        reaction in reactions(),
        signal in signals(),
        registers in prop_oneof![Just(Registers::One), Just(Registers::PerHop), (0.1..9.0).prop_map(Registers::Alpha)],
        int in prop_oneof![Just(None), (1_u32..64).prop_map(|units| Some(IntForm::Packed(units)))],
        table in any::<bool>(),
        max_stage in 0_u32..6,
        eta in 0.5..0.99,
    ) -> HpccConfig {
        let division = if table { Division::Table } else { Division::Exact };
        HpccConfig { reaction, signal, registers, int, division, max_stage, eta, ..HpccConfig::default() }
    }
}

prop_compose! {
    fn any_hop()(at: u64, tx_bytes: u64, queue: u32, rate in prop_oneof![
        Just(25_000_u32), Just(100_000), Just(400_000), any::<u32>()
    ]) -> IntHop {
        IntHop { at: Time::from_ps(at), tx_bytes, queue, rate_mbps: rate }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_is_alg_1(
        reaction in reactions(),
        signal in signals(),
        max_stage in 0_u32..4,
        acks in proptest::collection::vec((proptest::collection::vec(step(), 3), 1_u64..40, 1_u64..200), 1..200),
    ) {
        let config = HpccConfig { reaction, signal, max_stage, ..HpccConfig::default() };
        let (mut ours, mut naive) = (Hpcc::new(&config, &SITE), Naive::new(config));
        let mut hops = [25_000, 400_000, 100_000].map(|rate_mbps| IntHop { rate_mbps, ..IntHop::default() });
        let (mut acked, mut sent, mut now) = (0, 0, Time::ZERO);
        for (steps, more, flight) in acks {
            for (hop, (ns, percent, queue)) in hops.iter_mut().zip(steps) {
                hop.at += Span::from_ns(ns);
                let bytes = hop.rate().bytes_in(Span::from_ns(ns)).get() * percent / 100;
                let joined = hop.rx_bytes();
                hop.tx_bytes += bytes;
                // Every byte that joined a queue has left it or is still there.
                hop.queue = queue.max(joined.saturating_sub(hop.tx_bytes) as u32);
            }
            acked += more;
            sent = sent.max(acked + flight);
            now += Span::from_us(1);
            ours.on_ack(&feedback(now, acked, sent, &hops, 1));
            if !naive.new_ack(acked, sent, &hops) {
                break;
            }
            prop_assert!((ours.utilization() - naive.u).abs() <= 1e-9 * naive.u.max(1.0), "{} {}", ours.utilization(), naive.u);
            prop_assert!((ours.reference_window() - naive.w_c).abs() <= 1e-6 * naive.w_c);
            prop_assert!((ours.window() as f64 - naive.w).abs() <= 1.0);
        }
    }

    #[test]
    fn window_and_pace_stay_within_bounds(
        config in configs(),
        acks in proptest::collection::vec(
            (any::<u64>(), any::<u64>(), any::<u64>(), 0_u16..3, proptest::collection::vec(any_hop(), 0..20)),
            1..60,
        ),
    ) {
        let mut hpcc = Hpcc::new(&config, &SITE);
        for (now, acked, sent, path, hops) in acks {
            hpcc.on_ack(&feedback(Time::from_ps(now), acked, sent, &hops, path));
            prop_assert!((162..=162_500).contains(&hpcc.window()), "{}", hpcc.window());
            let rate = hpcc.rate().unwrap().bits_per_second();
            prop_assert!((100_000_000..=100_000_000_000).contains(&rate), "{rate}");
            prop_assert!(hpcc.utilization() >= 0.0 && hpcc.utilization().is_finite());
        }
    }
}
