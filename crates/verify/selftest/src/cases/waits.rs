//! Cases in which nothing is lost, or too little to matter.

use std::time::Duration;

use explain::terms::{EndSide, TimeCause, TimerReason};

use super::{CasePlan, Dialogue, Draw, MSS, expect};
use crate::script::{PacketChoice, ScriptedFate, WireRule};

fn pause(draw: &mut Draw, low: u32, high: u32) -> Duration {
    Duration::from_millis(draw.between(low, high).into())
}

/// The sender's side, with what the receiver's buffer is.
fn into_buffer(sender: EndSide, mut talk: Dialogue, buffer: u32, delay: Duration) -> CasePlan {
    talk.apps[1 - sender as usize].receive_buffer = Some(buffer as i32);
    talk.plan(delay, Vec::new(), expect(TimeCause::ReceiveWindow, sender, None))
}

pub(super) fn zero_window(draw: &mut Draw) -> CasePlan {
    let (sender, delay) = (draw.side(), draw.delay(2_000, 15_000));
    let mut talk = Dialogue::default();
    talk.turn_to(sender);
    let receiver = if sender == EndSide::Client { EndSide::Server } else { EndSide::Client };
    talk.pause(receiver, pause(draw, 400, 1_200));
    talk.say(sender, draw.between(80, 200) * 1_024);
    let buffer = draw.between(16, 32) * 1_024;
    into_buffer(sender, talk, buffer, delay)
}

pub(super) fn small_window(draw: &mut Draw) -> CasePlan {
    let (sender, delay) = (draw.side(), draw.delay(8_000, 20_000));
    let mut talk = Dialogue::default();
    talk.turn_to(sender);
    talk.say(sender, draw.between(60, 120) * 1_024);
    let buffer = draw.between(6, 12) * 1_024;
    into_buffer(sender, talk, buffer, delay)
}

/// The client writes twice before it waits for an answer.
pub(super) fn nagle(draw: &mut Draw) -> CasePlan {
    let delay = draw.delay(500, 6_000);
    let mut talk = Dialogue::default();
    for _ in 0..draw.between(12, 20) {
        write_twice(&mut talk, draw);
        talk.say(EndSide::Server, draw.between(50, 400));
    }
    talk.plan(delay, Vec::new(), expect(TimeCause::DelayedAck, EndSide::Server, None))
}

fn write_twice(talk: &mut Dialogue, draw: &mut Draw) {
    let sizes = [draw.between(50, 400), draw.between(50, 400)];
    sizes.iter().for_each(|bytes| talk.write(EndSide::Client, *bytes));
    let step = crate::ends::AppStep::Receive((sizes[0] + sizes[1]) as usize);
    talk.apps[1].steps.push(step);
}

/// A lone segment is lost on a path with a short retransmission timer and no probes; the server delays the acknowledgement
/// of its copy. That acknowledgement comes before the next timeout, or the next timeout comes first.
pub(super) fn after_repair(draw: &mut Draw) -> CasePlan {
    let delay = draw.delay(500, 1_500);
    let mut talk = Dialogue::default();
    let rounds = draw.between(4, 6);
    talk.exchange(rounds, draw);
    talk.pause(EndSide::Client, pause(draw, 52, 56));
    let start = talk.position(EndSide::Client);
    write_twice(&mut talk, draw);
    let choice = PacketChoice::Payload { from: start, to: start + 1, times: 1 };
    let rule = WireRule { from: EndSide::Client, choice, fate: ScriptedFate::Lost };
    let (rto_min, expected) = if draw.coin() {
        (22_000, expect(TimeCause::DelayedAck, EndSide::Server, None))
    } else {
        (12_000, expect(TimeCause::Timeout, EndSide::Client, Some(TimerReason::AckDelayed)))
    };
    let mut plan = talk.plan(delay, vec![rule], expected);
    // The server's capture does not show when the lost segment left.
    plan.visible = [true, false];
    plan.settings[0].push(("net/ipv4/tcp_early_retrans", "0".into()));
    plan.settings[0].push(("net/ipv4/tcp_rto_min_us", rto_min.to_string()));
    plan
}

pub(super) fn slow_client(draw: &mut Draw) -> CasePlan {
    let delay = draw.delay(2_000, 20_000);
    let mut talk = Dialogue::default();
    talk.apps[0].no_delay = true;
    for _ in 0..draw.between(4, 8) {
        talk.say(EndSide::Client, draw.between(200, 6 * MSS));
        talk.pause(EndSide::Client, pause(draw, 60, 200));
    }
    talk.say(EndSide::Client, draw.between(200, 6 * MSS));
    talk.plan(delay, Vec::new(), expect(TimeCause::Application, EndSide::Client, None))
}

pub(super) fn slow_server(draw: &mut Draw) -> CasePlan {
    let delay = draw.delay(2_000, 20_000);
    let mut talk = Dialogue::default();
    for _ in 0..draw.between(1, 4) {
        talk.say(EndSide::Client, draw.between(50, 4 * MSS));
        talk.pause(EndSide::Server, pause(draw, 150, 500));
        talk.say(EndSide::Server, draw.between(50, 8 * MSS));
    }
    talk.plan(delay, Vec::new(), expect(TimeCause::Application, EndSide::Server, None))
}

pub(super) fn slow_start(draw: &mut Draw) -> CasePlan {
    let (sender, delay) = (draw.side(), draw.delay(15_000, 30_000));
    let mut talk = Dialogue::default();
    talk.turn_to(sender);
    talk.say(sender, draw.between(40, 130) * MSS);
    talk.plan(delay, Vec::new(), expect(TimeCause::CongestionWindow, sender, None))
}
