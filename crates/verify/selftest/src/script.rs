//! Script of the wire: rules for packets, and their fates.

use std::time::Duration;

use explain::terms::EndSide;

/// A TCP packet, as far as the wire looks at it. Positions count from the first byte behind the SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScriptedPacket {
    pub from: EndSide,
    pub seq: u32,
    pub position: u32,
    pub len: u32,
    pub acked: u32,
    pub is_syn: bool,
    pub is_fin: bool,
}

impl ScriptedPacket {
    fn is_pure_ack(&self) -> bool {
        self.len == 0 && !self.is_syn && !self.is_fin
    }
}

/// Packets of an end that a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketChoice {
    Syn,
    /// Payload that begins in this range, each segment this many times.
    Payload {
        from: u32,
        to: u32,
        times: u32,
    },
    /// Acknowledgements above this position, until the other end repeats something or sends a probe.
    AcksUntilRepeat {
        above: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptedFate {
    Lost,
    /// Extra delay against other packets.
    Late(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireRule {
    pub from: EndSide,
    pub choice: PacketChoice,
    pub fate: ScriptedFate,
}

/// Rules, and how often they have applied.
#[derive(Debug, Default)]
pub(crate) struct WireScript {
    rules: Vec<WireRule>,
    syns: u32,
    /// Segments by their beginnings, with how often each came.
    seen: Vec<(EndSide, u32, u32)>,
    repeated: [bool; 2],
}

impl WireScript {
    pub(crate) fn new(rules: Vec<WireRule>) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Fate of this packet, the next to come.
    pub(crate) fn fate(&mut self, packet: &ScriptedPacket) -> Option<ScriptedFate> {
        let earlier = self.count(packet);
        let side = packet.from as usize;
        self.repeated[side] |= packet.len > 0 && earlier > 0;
        let applies = |rule: &&WireRule| {
            rule.from == packet.from
                && match rule.choice {
                    PacketChoice::Syn => packet.is_syn && earlier == 0,
                    PacketChoice::Payload { from, to, times } => {
                        packet.len > 0 && (from..to).contains(&packet.position) && earlier < times
                    }
                    PacketChoice::AcksUntilRepeat { above } => {
                        packet.is_pure_ack() && packet.acked > above && !self.repeated[1 - side]
                    }
                }
        };
        self.rules.iter().find(applies).map(|rule| rule.fate)
    }

    /// Number of times that it came before.
    fn count(&mut self, packet: &ScriptedPacket) -> u32 {
        if packet.is_syn {
            self.syns += 1;
            return self.syns - 1;
        }
        if packet.len == 0 {
            return 0;
        }
        let key = (packet.from, packet.position);
        match self.seen.iter_mut().find(|(from, position, _)| (*from, *position) == key) {
            Some((.., count)) => {
                *count += 1;
                *count - 1
            }
            None => {
                self.seen.push((packet.from, packet.position, 1));
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(position: u32) -> ScriptedPacket {
        let from = EndSide::Client;
        ScriptedPacket { from, seq: position, position, len: 100, acked: 0, is_syn: false, is_fin: false }
    }

    #[test]
    fn each_segment_of_a_range_is_lost_as_often_as_asked() {
        let choice = PacketChoice::Payload { from: 100, to: 300, times: 2 };
        let mut script = WireScript::new(vec![WireRule { from: EndSide::Client, choice, fate: ScriptedFate::Lost }]);
        let positions = [0, 100, 200, 300, 100, 100, 200, 200];
        let lost = positions.map(|position| script.fate(&payload(position)).is_some());
        assert_eq!(lost, [false, true, true, false, true, false, true, false]);
    }

    #[test]
    fn acknowledgements_are_lost_until_something_is_repeated() {
        let choice = PacketChoice::AcksUntilRepeat { above: 0 };
        let mut script = WireScript::new(vec![WireRule { from: EndSide::Server, choice, fate: ScriptedFate::Lost }]);
        let ack = |acked| ScriptedPacket { from: EndSide::Server, len: 0, acked, ..payload(0) };
        assert_eq!(script.fate(&ack(0)), None);
        assert_eq!(script.fate(&payload(0)), None);
        assert_eq!(script.fate(&ack(100)), Some(ScriptedFate::Lost));
        assert_eq!(script.fate(&payload(0)), None);
        assert_eq!(script.fate(&ack(100)), None);
    }
}
