//! Formulas of congestion control, which need no simulation.
//!
//! Li's thesis §2.3.3 to §2.5; [`lemma`] is §2.4.1, [`periodic`] the queue of §2.4.3. Windows, queues and buffers are bytes.

pub mod lemma;
pub mod periodic;

use units::{Rate, Span};
use wire::int::{IntHeader, IntWord};

/// The additive step that `flows` concurrent flows may take each round trip without a queue (§2.3.3): W_init (1 − η) / N.
pub fn w_ai(w_init: f64, eta: f64, flows: f64) -> f64 {
    w_init * (1.0 - eta) / flows
}

/// U of a link of `bdp` bytes that `flows` share (§2.4.2): with N·W = U·B·T, U = η / (1 − W_AI/W) becomes η + N·W_AI / (B·T).
///
/// The excess over 1 stands in the queue. In packets the queue is longer than that for large steps, because flows move in
/// step.
pub fn equilibrium_utilization(eta: f64, w_ai: f64, flows: f64, bdp: f64) -> f64 {
    eta + flows * w_ai / bdp
}

/// The queue that this equilibrium has.
pub fn equilibrium_queue(utilization: f64, bdp: f64) -> f64 {
    (utilization - 1.0).max(0.0) * bdp
}

/// Share that a flow over `links` links gets of each, where every link has one flow of its own besides, with Eq. 2.7.
///
/// All registers are equal at the equilibrium, so that the long flow's rate is links^(−1/α) of a short one's. α may be infinite:
/// then the least register counts.
pub fn parking_lot_share(links: u32, alpha: f64) -> f64 {
    1.0 / (1.0 + f64::from(links).powf(alpha.recip()))
}

/// Cost of a full packet beyond its payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketOverhead {
    /// Payload of a packet.
    pub payload: f64,
    /// Headers and whatever else it takes of the wire.
    pub headers: f64,
    /// Bytes of a whole acknowledgement, which shares links with data of the other direction.
    pub ack: f64,
}

impl PacketOverhead {
    /// Share of a link that is used if payload alone would use `load`.
    pub fn used(&self, load: f64) -> f64 {
        load * (self.payload + self.headers + self.ack) / self.payload
    }
}

/// Ratio by which telemetry prolongs a long flow: the share that others leave of a link without it, by the share that they
/// leave of η with it.
///
/// 1.24 at a load of 50 % with 48 + 60 bytes without and 90 + 88 with (§2.6.3).
pub fn long_flow_ratio(load: f64, eta: f64, without: &PacketOverhead, with: &PacketOverhead) -> f64 {
    (1.0 - without.used(load)) / (eta - with.used(load))
}

/// Share of a payload that telemetry of `hops` switches takes.
pub fn int_share(hops: usize, payload: f64) -> f64 {
    IntHeader::len_with(hops) as f64 / payload
}

/// Shortest times in which the fields of Fig. 2.7 can have wrapped at a port of this rate: time and bytes.
pub fn int_wraps(rate: Rate) -> (Span, Span) {
    (IntWord::TIME_WRAP, IntWord::bytes_wrap(rate))
}

/// The longest queue when `fan_in` flows begin at once at line rate towards a link of that rate, each with `w_init` bytes of
/// payload: what one of them brings leaves meanwhile. `wire_share` is bytes of the wire per byte of payload.
pub fn incast_peak(fan_in: f64, w_init: f64, wire_share: f64) -> f64 {
    (fan_in - 1.0).max(0.0) * w_init * wire_share
}

/// Length at which each of `queues` equally hot ingress queues ends if it may take α of what is left of a buffer: α/(1 +
/// n·α) of the buffer each, which is 11 % for one and α = 1/8.
pub fn dynamic_threshold(buffer: f64, alpha: f64, queues: f64) -> f64 {
    buffer * alpha / (1.0 + queues * alpha)
}

/// True if a queue of `peak` bytes that came in equally by `ports` ports makes a switch pause them.
pub fn incast_pauses(peak: f64, ports: f64, buffer: f64, alpha: f64) -> bool {
    peak / ports > dynamic_threshold(buffer, alpha, ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value}, not {expected}");
    }

    #[test]
    fn the_steps_of_the_thesis_follow_from_the_rule() {
        close(w_ai(162_500.0, 0.95, 101.0), 80.0, 0.5);
        close(w_ai(50_000.0, 0.95, 16.0), 156.0, 0.5);
        close(w_ai(28_125.0, 0.95, 17.0), 80.0, 3.0);
        close(equilibrium_utilization(0.95, 25.0, 100.0, 50_000.0), 1.0, 1e-12);
        close(equilibrium_queue(equilibrium_utilization(0.95, 300.0, 16.0, 50_000.0), 50_000.0), 2_300.0, 1.0);
    }

    #[test]
    fn a_long_flow_gets_what_alpha_gives_it() {
        let shares = [0.5, 1.0, 2.0, 4.0, f64::INFINITY].map(|alpha| parking_lot_share(2, alpha));
        for (share, expected) in shares.into_iter().zip([0.2, 0.333, 0.414, 0.457, 0.5]) {
            close(share, expected, 5e-4);
        }
    }

    #[test]
    fn telemetry_costs_long_flows_what_the_thesis_says() {
        let overhead = |headers, ack| PacketOverhead { payload: 1_000.0, headers, ack };
        let (without, with) = (overhead(48.0, 60.0), overhead(90.0, 88.0));
        close(without.used(0.5), 0.554, 1e-9);
        close(with.used(0.5), 0.589, 1e-9);
        close(long_flow_ratio(0.5, 0.95, &without, &with), 1.235, 5e-4);
        close(long_flow_ratio(0.5, 0.95, &without, &overhead(90.0, 60.0)), 1.19, 5e-3);
        close(int_share(5, 1_000.0), 0.042, 1e-9);
        close(int_share(5, 4_096.0), 0.01, 5e-4);
    }

    #[test]
    fn fields_wrap_in_milliseconds() {
        let (time, bytes) = int_wraps(Rate::gbps(100));
        close(time.as_us(), 16_777.2, 0.1);
        close(bytes.as_us(), 10_737.4, 0.1);
    }

    #[test]
    fn an_incast_of_sixty_pauses_or_not_by_alpha() {
        close(incast_peak(16.0, 50_000.0, 1.09), 817_500.0, 1.0);
        let buffer = 32e6;
        close(dynamic_threshold(buffer, 0.125, 1.0) / buffer, 0.111, 2e-4);
        let peak = incast_peak(60.0, 162_500.0, 1.09);
        close(peak, 10.45e6, 0.01e6);
        // Four ports with a little less than the threshold each; one of them alone with the queue of two.
        close(dynamic_threshold(buffer, 0.125, 4.0), 2.67e6, 0.01e6);
        assert!(!incast_pauses(peak, 4.0, buffer, 0.125) && incast_pauses(peak, 2.0, buffer, 0.125));
        assert!(!incast_pauses(peak, 4.0, buffer, 0.5));
    }
}
