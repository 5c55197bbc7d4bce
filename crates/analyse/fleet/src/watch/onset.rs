//! Order in which two ports were found corrupting: reported only if it is certain.
//!
//! Monitors that know how wrong their clocks are say between which times they found a condition. Of two such intervals one is
//! before the other only if it ends before the other begins; if they overlap, or a monitor does not say, nobody knows. Nor does
//! anybody if the two are times of different roots of clocks.

use std::collections::BTreeMap;

use bus::{Condition, Message, PortId};
use serde::Serialize;

/// Ports whose onsets are remembered.
const MOST: usize = 4_096;

/// A port that was found corrupting before another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OnsetOrder {
    pub first: PortId,
    pub then: PortId,
    /// Least distance of the two onsets, in nanoseconds.
    pub by_ns: u64,
}

/// Last state of a port that was heard.
#[derive(Debug)]
struct PortOnset {
    version: (u64, u64),
    is_corrupting: bool,
    found: Option<ConditionInterval>,
}

/// Interval in which a condition was found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ConditionInterval {
    earliest: u64,
    latest: u64,
    /// Clock of that time; `None` for the time of day.
    of: Option<String>,
}

/// Times at which ports were found corrupting.
#[derive(Debug, Default)]
pub(super) struct Onsets {
    ports: BTreeMap<PortId, PortOnset>,
}

impl Onsets {
    /// Returns what is new: for each port that is corrupting now and was not before, the last port that was found before it
    /// and the first that was found after it. A message that is no newer than what was heard changes nothing.
    pub(super) fn hear<'m>(&mut self, messages: impl IntoIterator<Item = &'m Message>) -> Vec<OnsetOrder> {
        let mut orders = Vec::new();
        for message in messages {
            let Message::Port(state) = message else { continue };
            let (version, former) = (message.version(), self.ports.get(&state.id));
            if former.is_some_and(|former| former.version >= version) || former.is_none() && self.ports.len() >= MOST {
                continue;
            }
            let is_corrupting = state.condition == Condition::Corrupting;
            let went_on = former.filter(|former| former.is_corrupting && is_corrupting);
            let found = match went_on {
                Some(former) => former.found.clone(),
                None => state.found_between().filter(|_| is_corrupting).map(|(earliest, latest)| ConditionInterval {
                    earliest,
                    latest,
                    of: state.time_of.clone(),
                }),
            };
            if let Some(found) = found.as_ref().filter(|_| went_on.is_none()) {
                orders.extend(self.around(&state.id, found));
            }
            self.ports.insert(state.id.clone(), PortOnset { version, is_corrupting, found });
        }
        orders
    }

    fn around(&self, port: &PortId, found: &ConditionInterval) -> impl Iterator<Item = OnsetOrder> + use<> {
        let ConditionInterval { earliest, latest, of } = found;
        let (earliest, latest) = (*earliest, *latest);
        let known = self.ports.iter().filter(|(other, _)| *other != port);
        let comparable =
            known.filter_map(|(other, onset)| Some((other, onset.found.as_ref().filter(|found| found.of == *of)?)));
        let known: Vec<(&PortId, (u64, u64))> =
            comparable.map(|(other, found)| (other, (found.earliest, found.latest))).collect();
        let others = || known.iter().copied();
        let before = others().filter(|(_, (_, other))| *other < earliest).max_by_key(|(_, (_, other))| *other);
        let after = others().filter(|(_, (other, _))| latest < *other).min_by_key(|(_, (other, _))| *other);
        let before = before.map(|(other, (_, end))| OnsetOrder {
            first: other.clone(),
            then: port.clone(),
            by_ns: earliest - end,
        });
        let after = after.map(|(other, (begin, _))| OnsetOrder {
            first: port.clone(),
            then: other.clone(),
            by_ns: begin - latest,
        });
        before.into_iter().chain(after)
    }
}

#[cfg(test)]
mod tests {
    use bus::{Evidence, PortState};
    use units::Moment;

    use super::*;

    fn said(port: &str, number: u64, condition: Condition, found: Option<(u64, u64)>) -> Message {
        Message::Port(PortState {
            id: port.parse().unwrap(),
            peer: None,
            at: Moment::ZERO,
            earliest_ns: found.map(|(earliest, _)| earliest),
            latest_ns: found.map(|(_, latest)| latest),
            time_of: None,
            life: 1,
            number,
            condition,
            sticky: false,
            evidence: Evidence::default(),
            why: String::new(),
        })
    }

    fn bad(port: &str, earliest: u64, latest: u64) -> Message {
        said(port, earliest, Condition::Corrupting, Some((earliest, latest)))
    }

    fn order(first: &str, then: &str, by_ns: u64) -> OnsetOrder {
        OnsetOrder { first: first.parse().unwrap(), then: then.parse().unwrap(), by_ns }
    }

    #[test]
    fn one_is_before_another_only_if_it_is_so() {
        let mut onsets = Onsets::default();
        assert_eq!(onsets.hear(&[bad("a/1", 100, 120)]), []);
        assert_eq!(onsets.hear(&[bad("b/1", 121, 150)]), [order("a/1", "b/1", 1)]);
        // Overlaps both: nobody knows.
        assert_eq!(onsets.hear(&[bad("c/1", 110, 130)]), []);
        // Messages may come late.
        assert_eq!(onsets.hear(&[bad("d/1", 50, 60)]), [order("d/1", "a/1", 40)]);
        assert_eq!(onsets.hear(&[bad("d/1", 500, 600)]), [], "it was corrupting already");
        assert_eq!(onsets.hear(&[said("b/1", 7, Condition::Healthy, None)]), [], "older than what was heard");
        // Touching is not before.
        assert_eq!(onsets.hear(&[bad("e/1", 150, 150)]), [order("c/1", "e/1", 20)]);
    }

    #[test]
    fn times_of_different_roots_are_not_compared() {
        let by = |port: &str, earliest, root: Option<&str>| match bad(port, earliest, earliest + 1) {
            Message::Port(state) => Message::Port(PortState { time_of: root.map(str::to_owned), ..state }),
            Message::Order(_) => unreachable!("a port's"),
        };
        let mut onsets = Onsets::default();
        assert_eq!(onsets.hear(&[by("a/1", 10, Some("clock 7")), by("b/1", 100, None)]), []);
        assert_eq!(onsets.hear(&[by("c/1", 200, Some("clock 7, elected"))]), []);
        assert_eq!(onsets.hear(&[by("d/1", 300, Some("clock 7"))]), [order("a/1", "d/1", 289)]);
    }

    #[test]
    fn without_bounds_nothing_is_said_and_what_is_healthy_is_forgotten() {
        let mut onsets = Onsets::default();
        onsets.hear(&[said("a/1", 1, Condition::Corrupting, None), bad("b/1", 10, 20)]);
        assert_eq!(onsets.hear(&[said("b/1", 20, Condition::Healthy, None), bad("c/1", 30, 40)]), []);
        assert_eq!(onsets.hear(&[bad("b/1", 50, 60)]), [order("c/1", "b/1", 10)]);
        // Ends the wrong way round are no interval.
        assert_eq!(onsets.hear(&[bad("d/1", 90, 80)]), []);
    }
}
