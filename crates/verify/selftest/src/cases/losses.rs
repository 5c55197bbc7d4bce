//! Cases in which packets are lost, or come so late that they seem to be.

use std::time::Duration;

use explain::terms::{EndSide, TimeCause, TimerReason};

use super::{CasePlan, Dialogue, Draw, MSS, expect};
use crate::script::{PacketChoice, ScriptedFate, WireRule};

/// The other end.
fn opposite(side: EndSide) -> EndSide {
    match side {
        EndSide::Client => EndSide::Server,
        EndSide::Server => EndSide::Client,
    }
}

fn lose(from: EndSide, positions: std::ops::Range<u32>, times: u32) -> WireRule {
    let choice = PacketChoice::Payload { from: positions.start, to: positions.end, times };
    WireRule { from, choice, fate: ScriptedFate::Lost }
}

pub(super) fn tail(draw: &mut Draw) -> CasePlan {
    let (sender, delay) = (draw.side(), draw.delay(5_000, 20_000));
    let segments = draw.between(5, 10);
    // With one segment left it would be a lone one; more than two take longer to repair than the probe took.
    let lost = 2;
    let mut talk = Dialogue::default();
    talk.turn_to(sender);
    let start = talk.position(sender);
    talk.say(sender, segments * MSS);
    let rule = lose(sender, start + (segments - lost) * MSS..u32::MAX, 1);
    talk.plan(delay, vec![rule], expect(TimeCause::Probe, sender, Some(TimerReason::Tail))).with_slow_payload()
}

/// Some small messages, and a pause before the sender's next: what it owes the other end is acknowledged by then, not with
/// what will be lost.
fn after_exchange(talk: &mut Dialogue, sender: EndSide, rounds: u32, draw: &mut Draw) {
    let rounds = draw.between(1, rounds);
    talk.exchange(rounds, draw);
    talk.turn_to(sender);
    talk.pause(sender, Duration::from_millis(draw.between(60, 90).into()));
}

pub(super) fn lone_tail(draw: &mut Draw) -> CasePlan {
    let (sender, delay) = (draw.side(), draw.delay(2_000, 20_000));
    let mut talk = Dialogue::default();
    after_exchange(&mut talk, sender, 4, draw);
    let start = talk.position(sender);
    talk.say(sender, draw.between(50, MSS));
    let rule = lose(sender, start..u32::MAX, 1);
    talk.plan(delay, vec![rule], expect(TimeCause::Probe, sender, Some(TimerReason::LoneTail)))
}

pub(super) fn whole_window(draw: &mut Draw) -> CasePlan {
    let (sender, delay) = (draw.side(), draw.delay(5_000, 20_000));
    let mut talk = Dialogue::default();
    if sender == EndSide::Client {
        after_exchange(&mut talk, sender, 1, draw);
    } else {
        talk.turn_to(sender);
    }
    let start = talk.position(sender);
    talk.say(sender, MSS + draw.between(200, MSS));
    let rule = lose(sender, start..u32::MAX, 1);
    let expected = expect(TimeCause::Probe, sender, Some(TimerReason::WholeWindow));
    talk.plan(delay, vec![rule], expected).with_slow_payload()
}

/// Either a lone segment, whose probe and first retransmission are lost as well, or one in the middle of a window.
pub(super) fn copy_lost(draw: &mut Draw) -> CasePlan {
    let (sender, delay) = (draw.side(), draw.delay(5_000, 20_000));
    let mut talk = Dialogue::default();
    after_exchange(&mut talk, sender, 4, draw);
    let start = talk.position(sender);
    let rule = if draw.coin() {
        talk.say(sender, draw.between(50, MSS));
        lose(sender, start..u32::MAX, 3)
    } else {
        talk.say(sender, 10 * MSS);
        let place = start + draw.between(1, 5) * MSS;
        lose(sender, place..place + MSS, 2)
    };
    talk.plan(delay, vec![rule], expect(TimeCause::Timeout, sender, Some(TimerReason::CopyLost)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowFate {
    Lost,
    /// A copy that is late by more than a round trip.
    Late,
}

/// `length` segments of each window of a transfer: a window is what the repair of the last one lets out.
pub(super) fn in_windows(draw: &mut Draw, length: u32, fate: WindowFate) -> CasePlan {
    let (sender, delay) = (draw.side(), draw.delay(8_000, 20_000));
    let mut talk = Dialogue::default();
    talk.turn_to(sender);
    let start = talk.position(sender);
    let mut place = draw.between(2, 3);
    let mut rules = Vec::new();
    let windows: &[u32] = if length == 1 { &[11, 8, 7, 6] } else { &[11, 8, 7, 8] };
    for window in windows {
        let positions = start + place * MSS..start + (place + length) * MSS;
        let mut rule = lose(sender, positions, 1);
        if fate == WindowFate::Late {
            rule.fate = ScriptedFate::Late(delay * draw.between(26, 36) / 10);
        }
        rules.push(rule);
        place += window + draw.between(0, 1);
    }
    talk.say(sender, place * MSS);
    talk.plan(delay, rules, expect(TimeCause::Recovery, sender, None))
}

pub(super) fn acks_lost(draw: &mut Draw) -> CasePlan {
    let (sender, delay) = (draw.side(), draw.delay(5_000, 20_000));
    let mut talk = Dialogue::default();
    if sender == EndSide::Client {
        // The first packet of an end that never comes is invisible.
        talk.exchange(1, draw);
    }
    talk.turn_to(sender);
    let above = talk.position(sender);
    talk.say(sender, draw.between(3, 8) * MSS);
    let choice = PacketChoice::AcksUntilRepeat { above };
    let rule = WireRule { from: opposite(sender), choice, fate: ScriptedFate::Lost };
    talk.plan(delay, vec![rule], expect(TimeCause::Probe, sender, Some(TimerReason::AcksLost)))
}

/// The server's capture cannot show a SYN that never came there.
pub(super) fn syn_lost(draw: &mut Draw) -> CasePlan {
    let delay = draw.delay(2_000, 20_000);
    let mut talk = Dialogue::default();
    let rounds = draw.between(1, 4);
    talk.exchange(rounds, draw);
    let rule = WireRule { from: EndSide::Client, choice: PacketChoice::Syn, fate: ScriptedFate::Lost };
    let plan = talk.plan(delay, vec![rule], expect(TimeCause::SynLost, EndSide::Client, None));
    CasePlan { visible: [true, false], ..plan }
}
