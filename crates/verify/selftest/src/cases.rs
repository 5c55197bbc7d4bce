//! The plan of each case: sizes, delays and positions are drawn.

mod losses;
mod waits;

use std::time::Duration;

use explain::terms::{EndSide, TimeCause, TimerReason};
use faults::Random;

use crate::case::TestCase;
use crate::ends::{AppPlan, AppStep};
use crate::script::WireRule;
use crate::stage::HostSetting;
use crate::wire::WireDelay;

/// Payload of a full segment over Ethernet, with timestamps.
pub(crate) const MSS: u32 = 1_448;

/// Answer that must be given for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedCause {
    pub cause: TimeCause,
    pub side: EndSide,
    pub why: Option<TimerReason>,
}

/// Plan of one run.
#[derive(Clone, Debug)]
pub(crate) struct CasePlan {
    pub delay: WireDelay,
    pub apps: [AppPlan; 2],
    pub rules: Vec<WireRule>,
    pub settings: [Vec<HostSetting>; 2],
    pub expected: ExpectedCause,
    /// True for each end whose capture can show it.
    pub visible: [bool; 2],
}

/// Numbers of one run.
#[derive(Debug)]
pub(crate) struct Draw(Random);

impl Draw {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self(Random::new(seed, stream))
    }

    /// Random number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.0.below(u64::from(high - low + 1)) as u32
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.0.below(2) == 1
    }

    pub(crate) fn side(&mut self) -> EndSide {
        if self.coin() { EndSide::Client } else { EndSide::Server }
    }

    /// A delay between two numbers of microseconds.
    fn delay(&mut self, low: u32, high: u32) -> Duration {
        Duration::from_micros(self.between(low, high).into())
    }
}

pub(crate) fn plan(case: TestCase, draw: &mut Draw) -> CasePlan {
    match case {
        TestCase::Tail => losses::tail(draw),
        TestCase::LoneTail => losses::lone_tail(draw),
        TestCase::WholeWindow => losses::whole_window(draw),
        TestCase::CopyLost => losses::copy_lost(draw),
        TestCase::Middle => losses::in_windows(draw, 1, losses::WindowFate::Lost),
        TestCase::Burst => {
            let length = draw.between(2, 3);
            losses::in_windows(draw, length, losses::WindowFate::Lost)
        }
        TestCase::Reordered => losses::in_windows(draw, 1, losses::WindowFate::Late),
        TestCase::AcksLost => losses::acks_lost(draw),
        TestCase::SynLost => losses::syn_lost(draw),
        TestCase::ZeroWindow => waits::zero_window(draw),
        TestCase::SmallWindow => waits::small_window(draw),
        TestCase::NagleDelayedAck => waits::nagle(draw),
        TestCase::DelayedAckAfterRepair => waits::after_repair(draw),
        TestCase::SlowClient => waits::slow_client(draw),
        TestCase::SlowServer => waits::slow_server(draw),
        TestCase::SlowStart => waits::slow_start(draw),
    }
}

/// Steps of both applications.
#[derive(Debug, Default)]
struct Dialogue {
    apps: [AppPlan; 2],
    /// Bytes that each end has sent so far.
    sent: [u32; 2],
}

impl Dialogue {
    /// One end sends, the other waits for it.
    fn say(&mut self, from: EndSide, bytes: u32) {
        self.write(from, bytes);
        self.apps[1 - from as usize].steps.push(AppStep::Receive(bytes as usize));
    }

    /// One end sends; what the other does is not said.
    fn write(&mut self, from: EndSide, bytes: u32) {
        self.sent[from as usize] += bytes;
        self.apps[from as usize].steps.push(AppStep::Send(bytes as usize));
    }

    fn pause(&mut self, end: EndSide, time: Duration) {
        self.apps[end as usize].steps.push(AppStep::Pause(time));
    }

    /// Small requests and answers.
    fn exchange(&mut self, rounds: u32, draw: &mut Draw) {
        for _ in 0..rounds {
            self.say(EndSide::Client, draw.between(50, 400));
            self.say(EndSide::Server, draw.between(50, 400));
        }
    }

    /// Lets `sender` be the next to speak: the server answers a request.
    fn turn_to(&mut self, sender: EndSide) {
        if sender == EndSide::Server {
            self.say(EndSide::Client, 100);
        }
    }

    fn position(&self, side: EndSide) -> u32 {
        self.sent[side as usize]
    }

    fn plan(self, delay: Duration, rules: Vec<WireRule>, expected: ExpectedCause) -> CasePlan {
        let delay = WireDelay { each: delay, payload: Duration::ZERO };
        CasePlan { delay, apps: self.apps, rules, settings: Default::default(), expected, visible: [true; 2] }
    }
}

impl CasePlan {
    /// Lets payload take longer than the handshake did. Linux takes the answer to a probe for that to the original if it comes
    /// sooner than any before, be it by a microsecond, and waits for its retransmission timer then.
    fn with_slow_payload(mut self) -> Self {
        self.delay.payload = Duration::from_millis(8);
        self
    }
}

fn expect(cause: TimeCause, side: EndSide, why: Option<TimerReason>) -> ExpectedCause {
    ExpectedCause { cause, side, why }
}
