//! lg.fig14.loop: the sender's buffer as the paper's switch builds it (App. A.2, Fig. 14, Table 4).
//!
//! ```text
//!   frame ──▶ link
//!     └copy──▶ first port ──▶ acknowledged? ──no──▶ loop's port ──▶ acknowledged? ──no──┐
//!                                                       ▲                               │
//!                                                       └───────────────────────────────┘
//! ```
//!
//! Both ports have 100G. The authors' Tx buffer is the queue of the loop's port: copies on their way round are not in it,
//! acknowledged ones may be. [`sim::link`] counts frames that are sent and not acknowledged, wherever they are.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use units::{Bytes, Rate, Span, Time};

const FRAME: u64 = 1_518;
/// A copy on a port: the frame, two headers, preamble and gap.
const COPY: Bytes = Bytes::new(FRAME + 3 + 2 + 20);
const PORT: Rate = Rate::gbps(100);
const FRAMES: u64 = 100_000;

/// Time from the end of a copy's transmission until it is looked at: fitted, so that copies pass the loop's port as
/// often as in Table 4 at 25G, as nearly as a whole number can.
const ROUND: Span = Span::from_ns(450);

/// Pause of a sender at a loss, in the ordered mode.
const PAUSE: Span = Span::from_us(10);
/// Frames from one loss to the next.
const LOSS_EVERY: u64 = 1_000;

/// Frames that leave one by one, and copies that wait for their acknowledgements.
#[derive(Clone, Copy, Debug)]
struct SenderLoop {
    /// Time between two frames.
    every: Span,
    /// Pause at each loss.
    pause: Span,
    /// Time from a frame's departure to its acknowledgement.
    acknowledged: Span,
}

/// Measured load of the loop's port.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LoopOutcome {
    /// The longest queue.
    most: Bytes,
    /// Passes by each frame.
    rounds: f64,
}

pub(super) fn compute(_: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues::default();
    let slow = SenderLoop { every: Span::from_ns(496), pause: Span::ZERO, acknowledged: Span::from_ns(1_900) };
    // The period that the authors' speeds show (lg.testbed.speed).
    let fast = SenderLoop { every: Span::from_ps(124_590), acknowledged: Span::from_ns(1_600), ..slow };
    let behind = |sender: SenderLoop, reordered: Bytes| SenderLoop {
        acknowledged: sender.acknowledged + PORT.span_of(reordered),
        ..sender
    };
    let loops = [
        ("25G", slow),
        ("25G.shared", behind(slow, Bytes::new(40_000))),
        ("100G.shared", behind(fast, Bytes::new(37_000))),
        ("100G", fast),
        ("100G.paused", SenderLoop { pause: PAUSE, ..fast }),
        ("100G.2.5us", SenderLoop { acknowledged: Span::from_ns(2_500), ..fast }),
        ("100G.4.5us", SenderLoop { acknowledged: Span::from_ns(4_500), ..fast }),
    ];
    for (name, sender) in loops {
        let LoopOutcome { most, rounds } = sender.run();
        computed.value(format!("{name}.max"), MeasuredValue::exact(most.get() as f64, FRAMES));
        computed.value(format!("{name}.rounds"), MeasuredValue::exact(rounds, FRAMES));
    }
    Ok(Some(computed))
}

/// The ends of transmissions of what waits at a port.
#[derive(Debug, Default)]
struct PortQueue(VecDeque<Time>);

impl PortQueue {
    /// Adds a copy to the queue, and returns the end of its transmission.
    fn join(&mut self, now: Time) -> Time {
        while self.0.front().is_some_and(|end| *end <= now) {
            self.0.pop_front();
        }
        let end = self.0.back().copied().unwrap_or(now) + PORT.span_of(COPY);
        self.0.push_back(end);
        end
    }
}

impl SenderLoop {
    fn departure(&self, frame: u64) -> Time {
        Time::ZERO + self.every * frame + self.pause * (frame / LOSS_EVERY)
    }

    fn run(self) -> LoopOutcome {
        let (mut first, mut round) = (PortQueue::default(), PortQueue::default());
        let mut coming: BinaryHeap<Reverse<(Time, u64)>> = BinaryHeap::new();
        let (mut longest, mut passes) = (0, 0_u64);
        let look = |coming: &mut BinaryHeap<_>, frame: u64, end: Time| {
            let looked_at = end + ROUND;
            if looked_at < self.departure(frame) + self.acknowledged {
                coming.push(Reverse((looked_at, frame)));
            }
        };
        for frame in 0..FRAMES {
            let departure = self.departure(frame);
            while let Some(Reverse((now, copy))) = coming.peek().copied().filter(|Reverse((now, _))| *now <= departure)
            {
                coming.pop();
                let end = round.join(now);
                longest = longest.max(round.0.len());
                passes += 1;
                look(&mut coming, copy, end);
            }
            look(&mut coming, frame, first.join(departure));
        }
        LoopOutcome { most: Bytes::new(FRAME) * longest as u64, rounds: passes as f64 / FRAMES as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: SenderLoop =
        SenderLoop { every: Span::from_us(10), pause: Span::ZERO, acknowledged: Span::from_ns(1_900) };

    #[test]
    fn a_copy_goes_round_until_it_is_acknowledged() {
        // 123 ns of transmission and 450 ns: looked at after 0.57, 1.15, 1.72 and 2.29 µs, the first time from the other port.
        let LoopOutcome { most, rounds } = ALONE.run();
        assert_eq!(most, Bytes::new(FRAME));
        assert!((rounds - 3.0).abs() < 1e-3, "{rounds}");
        let sooner = SenderLoop { acknowledged: Span::from_ns(570), ..ALONE };
        assert_eq!(sooner.run(), LoopOutcome { most: Bytes::ZERO, rounds: 0.0 });
    }

    #[test]
    fn a_full_loop_holds_copies_until_their_acknowledgements_are_there() {
        let full = SenderLoop { every: Span::from_ns(124), acknowledged: Span::from_us(5), ..ALONE };
        let held = full.run();
        let unacknowledged = 5_000 / 124 * FRAME;
        assert!(held.rounds < 1.1, "{held:?}");
        assert!((unacknowledged / 2..unacknowledged * 2).contains(&held.most.get()), "{held:?}");
    }
}
