//! lg.fig14.loop: the sender's buffer as the paper's switch builds it (App. A.2, Fig. 14, Table 4).
//!
//! A copy of every frame goes round by a port of 100G. Each time that it comes by, it is dropped if its acknowledgement has
//! arrived, and goes round again otherwise. What the authors call the Tx buffer is the queue of that port: it holds
//! neither what is on its way round, nor only what is not acknowledged. [`sim::link`] counts frames that are sent and not
//! acknowledged, wherever they are.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use units::{Bytes, Rate, Span, Time};
use wire::ethernet::on_wire;
use wire::link::DATA_HEADER;

const FRAME: u32 = 1_518;
const FRAMES: usize = 100_000;
/// The port of the loop.
const LOOP: Rate = Rate::gbps(100);
/// From the end of a copy's transmission there until it is looked at: fitted, so that 1.9 µs are 2.7 rounds at 25G, as
/// Table 4 has them.
const ROUND: Span = Span::from_ns(580);

/// Frames that leave one by one, and copies that wait for their acknowledgements.
#[derive(Clone, Copy, Debug)]
struct SenderLoop {
    /// Between two frames.
    every: Span,
    /// From a frame's departure to its acknowledgement: the longest that the authors measured from a message of the
    /// receiver to the first frame in answer to it (§4, Parameters).
    acknowledged: Span,
}

/// What the loop's port was found to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LoopOutcome {
    /// The longest queue.
    most: Bytes,
    /// Passes of the port by each frame.
    rounds: f64,
}

pub(super) fn compute(_: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    // By the generator's timer at 100G: 152 cycles of 1.22 GHz (lg.testbed.speed).
    let timer = Span::from_ps(124_590);
    let line = Rate::gbps(25).span_of(on_loop());
    let loops = [
        ("25G", SenderLoop { every: line, acknowledged: Span::from_ns(1_900) }),
        ("100G", SenderLoop { every: timer, acknowledged: Span::from_ns(1_600) }),
    ];
    for (rate, sender) in loops {
        let LoopOutcome { most, rounds } = sender.run();
        computed.value(format!("{rate}.max"), MeasuredValue::exact(most.get() as f64, FRAMES as u64));
        computed.value(format!("{rate}.rounds"), MeasuredValue::exact(rounds, FRAMES as u64));
    }
    Ok(Some(computed))
}

/// What a frame takes of the wire with the link's header.
fn on_loop() -> Bytes {
    Bytes::new(u64::from(on_wire(FRAME + DATA_HEADER)))
}

impl SenderLoop {
    fn run(self) -> LoopOutcome {
        let transmission = LOOP.span_of(on_loop());
        let departure = |frame: usize| Time::ZERO + self.every * frame as u64;
        // Copies that come to the port, and the ends of transmissions there.
        let mut coming: BinaryHeap<Reverse<(Time, usize)>> =
            (0..FRAMES).map(|frame| Reverse((departure(frame), frame))).collect();
        let mut waiting: VecDeque<Time> = VecDeque::new();
        let (mut longest, mut passes) = (0, 0_u64);
        while let Some(Reverse((now, frame))) = coming.pop() {
            while waiting.front().is_some_and(|end| *end <= now) {
                waiting.pop_front();
            }
            let end = waiting.back().copied().unwrap_or(now) + transmission;
            waiting.push_back(end);
            longest = longest.max(waiting.len());
            passes += 1;
            let looked_at = end + ROUND;
            if looked_at < departure(frame) + self.acknowledged {
                coming.push(Reverse((looked_at, frame)));
            }
        }
        let most = Bytes::new(u64::from(FRAME)) * longest as u64;
        LoopOutcome { most, rounds: passes as f64 / FRAMES as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_goes_round_until_it_is_acknowledged() {
        let sender = SenderLoop { every: Span::from_us(10), acknowledged: Span::from_ns(1_900) };
        // 123 ns of transmission and 580 ns: looked at after 0.70, 1.41 and 2.11 µs.
        assert_eq!(sender.run(), LoopOutcome { most: Bytes::new(u64::from(FRAME)), rounds: 3.0 });
        let sooner = SenderLoop { acknowledged: Span::from_ns(700), ..sender };
        assert_eq!(sooner.run().rounds, 1.0);
    }

    #[test]
    fn a_full_loop_holds_a_copy_until_its_acknowledgement_is_there() {
        let full = SenderLoop { every: Span::from_ns(124), acknowledged: Span::from_us(5) };
        let held = full.run();
        let unacknowledged = 5_000 / 124 * u64::from(FRAME);
        assert!(held.rounds < 1.5, "{held:?}");
        assert!((unacknowledged / 2..unacknowledged * 2).contains(&held.most.get()), "{held:?}");
    }
}
