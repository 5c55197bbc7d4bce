//! The closed forms, computed a second time: what the files say must be what the formulas give.

use congestion::theory::periodic::PeriodicSources;

use super::PAPER;

const MSS_BITS: f64 = 1_448.0 * 8.0;
const WIRE: f64 = 1_538.0;
/// Time of a packet at 10G, in µs.
const SERVICE: f64 = WIRE * 8.0 / 10_000.0;

fn expect(claim: &str, point: &str, value: f64) {
    let claims = PAPER.claims().unwrap().claims;
    let claim = claims.into_iter().find(|found| found.id == claim).expect(claim);
    let found = claim.point.iter().find(|found| found.id == point).unwrap_or_else(|| panic!("{}: {point}", claim.id));
    let said = found.paper.number().expect(point);
    assert!((said / value - 1.0).abs() < 2e-3, "{} {point}: the file says {said}, the formula {value}", claim.id);
}

#[test]
fn there_are_fifteen_claims_and_every_one_names_its_source() {
    let claims = PAPER.claims().unwrap().claims;
    assert!(claims.len() >= 15, "{}", claims.len());
    for claim in &claims {
        let dated = claim.paper.split(|letter: char| !letter.is_ascii_digit()).any(|word| word.len() == 4);
        assert!(dated || claim.paper.contains('§') || claim.id == "tb.pfc", "{}: {}", claim.id, claim.paper);
    }
}

#[test]
fn throughputs_under_loss() {
    let rate = |window: f64, rtt: f64| window * MSS_BITS / rtt / 1e9;
    let mathis = |loss: f64, rtt: f64| rate((1.5 / loss).sqrt(), rtt);
    for (point, loss, rtt) in
        [("0.001.0.1ms", 1e-3, 1e-4), ("0.0001.1ms", 1e-4, 1e-3), ("0.003.1ms", 3e-3, 1e-3), ("0.001.10ms", 1e-3, 1e-2)]
    {
        expect("tb.mathis", &format!("{point}.periodic"), mathis(loss, rtt));
        expect("tb.mathis", &format!("{point}.random"), mathis(loss, rtt));
    }
    let cubic = |loss: f64, rtt: f64| rate((0.4 * 3.7 / (4.0 * 0.3_f64)).powf(0.25) * (rtt / loss).powf(0.75), rtt);
    expect("tb.cubic", "cubic.1e-05.100ms", cubic(1e-5, 0.1));
    expect("tb.cubic", "cubic.0.0001.100ms", cubic(1e-4, 0.1));
    expect("tb.cubic", "cubic.1e-05.50ms", cubic(1e-5, 0.05));
    expect("tb.cubic", "reno.0.001.1ms", mathis(1e-3, 1e-3));
    expect("tb.cubic", "reno.0.0001.10ms", mathis(1e-4, 1e-2));
    let padhye = |loss: f64, rtt: f64| {
        let timeouts = (3.0 * (3.0 * loss / 8.0).sqrt()).min(1.0) * loss * (1.0 + 32.0 * loss * loss);
        MSS_BITS / (rtt * (2.0 * loss / 3.0).sqrt() + (rtt + 0.2) * timeouts) / 1e9
    };
    expect("tb.padhye", "0.01.100ms", padhye(1e-2, 0.1));
    expect("tb.padhye", "0.01.20ms", padhye(1e-2, 0.02));
    expect("tb.padhye", "0.02.100ms", padhye(2e-2, 0.1));
}

#[test]
fn waits() {
    for load in [0.5, 0.8, 0.9] {
        expect("tb.md1", &format!("mean.{load}"), load / (2.0 * (1.0 - load)) * SERVICE);
        expect("tb.md1", &format!("p99.{load}"), md1_quantile(load, 0.99) * SERVICE);
        expect("tb.little", &format!("{load}"), load * load / (2.0 * (1.0 - load)) * WIRE / 1e3);
    }
    expect("tb.md1", "p50.0.8", md1_quantile(0.8, 0.5) * SERVICE);
    expect("tb.md1", "p50.0.9", md1_quantile(0.9, 0.5) * SERVICE);
    let short = 250.0 * 8.0 / 10_000.0;
    let residual = (0.3 * short + 0.5 * SERVICE) / 2.0;
    expect("tb.mg1", "short", residual / 0.2);
    expect("tb.mg1", "long", residual / 0.2);
    expect("tb.priority", "first", residual / 0.7);
    expect("tb.priority", "second", residual / (0.7 * 0.2));
    let residual = (0.5 * short + 0.4 * SERVICE) / 2.0;
    expect("tb.priority", "first.0.9", residual / 0.5);
    expect("tb.priority", "second.0.9", residual / (0.5 * 0.1));
    for (name, sources, load) in [("10.0.8", 10, 0.8), ("50.0.8", 50, 0.8), ("50.0.95", 50, 0.95)] {
        let sources = PeriodicSources { sources, load };
        let mean: f64 = (1..=sources.sources).map(|packets| sources.tail(f64::from(packets))).sum();
        expect("tb.periodic", &format!("mean.{name}"), mean);
        expect("tb.periodic", &format!("above-2.{name}"), sources.tail(2.0));
        expect("tb.periodic", &format!("above-5.{name}"), sources.tail(5.0));
    }
}

/// Quantile of the wait in M/D/1, in services.
fn md1_quantile(load: f64, share: f64) -> f64 {
    let (mut low, mut high) = (0.0, 60.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if md1_distribution(load, middle) < share { low = middle } else { high = middle }
    }
    low
}

/// The alternating sum of Crommelin loses its digits; this is the same by the work that is left: arrivals up to a wait of
/// less than one service, then each further service by integrating λ over the one before (a grid of 1/1000 of a service).
fn md1_distribution(load: f64, wait: f64) -> f64 {
    const GRID: usize = 1_000;
    let (steps, slice) = ((wait * GRID as f64) as usize, 1.0 / GRID as f64);
    let mut below = vec![1.0 - load];
    for step in 1..=steps {
        // F' = λ (F(t) − F(t − 1)), the forward equation of the work.
        let behind = if step > GRID { (below[step - 1 - GRID] + below[step - GRID]) / 2.0 } else { 0.0 };
        let last = below[step - 1];
        let middle = last + load * (last - behind) * slice / 2.0;
        below.push(last + load * (middle - behind) * slice);
    }
    below[steps]
}

#[test]
fn repetitions_windows_and_queues() {
    let (packet, delay) = (1_106.0 * 8.0 / 10e9, 50e-6);
    let whole = 1_024.0 * 8.0 / packet / 1e9;
    let again = (2.0 * delay + 2.5 * packet + 94.0 * 8.0 / 10e9) / packet;
    for loss in [1e-4, 1e-3, 1e-2] {
        expect("tb.arq", &format!("go-back-n.{loss}"), whole * (1.0 - loss) / (1.0 - loss + loss * again));
    }
    expect("tb.arq", "selective.0.001", whole * 0.999);
    expect("tb.arq", "selective.0.01", whole * 0.99);
    for window in [1.0, 8.0, 64.0] {
        let round = 2.0 * delay + packet + 82.0 * 8.0 / 10e9;
        expect("tb.window", &format!("{window}"), window * 1_024.0 * 8.0 / round / 1e9);
    }
    let product = 10e9 / 8.0 * (80e-6 + 2.0 * (WIRE + 84.0) * 8.0 / 10e9) / WIRE;
    for (name, flows, mark) in [("2.100KB", 2.0, 100e3), ("2.60KB", 2.0, 60e3), ("4.100KB", 4.0, 100e3)] {
        let (highest, mark) = (mark / WIRE + flows, mark / WIRE);
        expect("tb.dctcp", &format!("highest.{name}"), highest * WIRE / 1e3);
        let amplitude = (2.0 * flows * (product + mark)).sqrt() / 2.0;
        if flows == 2.0 {
            expect("tb.dctcp", &format!("lowest.{name}"), (highest - amplitude) * WIRE / 1e3);
        }
    }
    let block = 1.024e6 * 8.0;
    expect("tb.incast", "40", block / (0.2 + block / (1e9 * 1_448.0 / WIRE)) / 1e9);
    for (loss, point) in [(0.05, "0.05"), (0.1, "0.1"), (0.2, "0.2")] {
        expect("tb.syn", point, 1e6 * loss / (1.0 - 2.0 * loss));
    }
    expect("tb.touched", "100.0.001", 1.0 - 0.999_f64.powi(100));
}
