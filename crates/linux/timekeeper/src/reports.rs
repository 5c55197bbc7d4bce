//! Reports of a clock's daemon, limited in number: a neighbour that comes and goes a hundred times a second makes a few
//! lines a minute ([`daemon::limiter`]).

use daemon::limiter::{LogLimiter, ReportTopic};
use units::Time;

use crate::core::{ClockCore, CoreEvent};
use crate::seal::FrameRefusal;

/// Subject of a line. Each is limited on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockTopic {
    Synchronized,
    Turned,
    Returned,
    Elected,
    Evicted,
    Replaced,
    Reigns,
    ClockStep,
    SystemClock,
    /// The link to the neighbour with this number.
    Link(usize, LinkTopic),
}

/// Subject of a line about one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkTopic {
    /// The link goes down, or comes up.
    Passing,
    WrongNeighbour,
    OtherPlan,
    Forged,
    Replayed,
    Unsealed,
    Sealed,
}

const LINK_TOPICS: usize = LinkTopic::Sealed as usize + 1;
const NODE_TOPICS: usize = 9;

impl ReportTopic for ClockTopic {
    fn index(self) -> usize {
        match self {
            Self::Synchronized => 0,
            Self::Turned => 1,
            Self::Returned => 2,
            Self::Elected => 3,
            Self::Evicted => 4,
            Self::Replaced => 5,
            Self::Reigns => 6,
            Self::ClockStep => 7,
            Self::SystemClock => 8,
            Self::Link(port, topic) => NODE_TOPICS + port * LINK_TOPICS + topic as usize,
        }
    }

    fn state(self) -> Option<usize> {
        match self {
            Self::SystemClock | Self::ClockStep => None,
            Self::Link(port, LinkTopic::Passing) => Some(1 + port),
            Self::Link(..) => None,
            _ => Some(0),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Link(_, LinkTopic::Passing) => "times",
            Self::Link(..) => "frames",
            _ => "times",
        }
    }
}

impl ClockTopic {
    /// Frames on the link to the neighbour of this number are refused; none if that is nobody's concern.
    fn of_refusal(port: usize, refusal: FrameRefusal) -> Option<Self> {
        let topic = match refusal {
            FrameRefusal::Foreign => LinkTopic::WrongNeighbour,
            FrameRefusal::Forged => LinkTopic::Forged,
            FrameRefusal::Replayed => LinkTopic::Replayed,
            FrameRefusal::Unsealed => LinkTopic::Unsealed,
            FrameRefusal::Sealed => LinkTopic::Sealed,
            FrameRefusal::Malformed | FrameRefusal::Early => return None,
        };
        Some(Self::Link(port, topic))
    }
}

/// Says what happens, within limits.
#[derive(Debug, Default)]
pub(crate) struct ClockReports {
    limiter: LogLimiter<ClockTopic>,
    /// Frames that were refused since the last report.
    refused: Vec<(usize, FrameRefusal, u64)>,
}

impl ClockReports {
    /// A frame on the link to the neighbour of this number was refused.
    pub(crate) fn note_refusal(&mut self, port: usize, refusal: FrameRefusal) {
        match self.refused.iter_mut().find(|(at, of, _)| (*at, *of) == (port, refusal)) {
            Some((.., times)) => *times += 1,
            None => self.refused.push((port, refusal, 1)),
        }
    }

    /// Says a line, unless there were too many of its topic.
    pub(crate) fn tell(&mut self, now: Time, topic: ClockTopic, times: u64, line: &str, tell: &mut dyn FnMut(&str)) {
        if let Some(line) = self.limiter.admit(now, topic, times, line) {
            tell(&line);
        }
    }

    /// Says what happened to the node since the last time, what was refused, and what was withheld for long enough.
    pub(crate) fn tell_news(&mut self, now: Time, core: &mut ClockCore, tell: &mut dyn FnMut(&str)) {
        for event in std::mem::take(&mut core.events) {
            let (topic, line) = in_words(&event, core);
            self.tell(now, topic, 1, &line, tell);
        }
        for (port, refusal, times) in std::mem::take(&mut self.refused) {
            if let Some(topic) = ClockTopic::of_refusal(port, refusal) {
                let line = refusal.in_words(&core.neighbours[port].name);
                self.tell(now, topic, times, &line, tell);
            }
        }
        while let Some(line) = self.limiter.due(now) {
            tell(&line);
        }
    }
}

fn in_words(event: &CoreEvent, core: &ClockCore) -> (ClockTopic, String) {
    let duties = &core.duties;
    let (parent, backup) = (duties.parent().unwrap_or("nobody"), duties.backup().unwrap_or("nobody"));
    let port = |name: &str| core.neighbours.iter().position(|neighbour| neighbour.name == name).unwrap_or(0);
    match event {
        CoreEvent::Synchronized => (ClockTopic::Synchronized, format!("{} knows the time", duties.node)),
        CoreEvent::Turned => (ClockTopic::Turned, format!("{parent} is silent: listening to {backup}")),
        CoreEvent::Returned => {
            (ClockTopic::Returned, format!("{parent} sends: listening to it again, and no longer to {backup}"))
        }
        CoreEvent::Elected => (ClockTopic::Elected, "the root is silent: this node is the root now".to_owned()),
        CoreEvent::Evicted => (
            ClockTopic::Evicted,
            "neither parent's time can be true by this clock: it says no time any more; check this machine's \
             oscillator, then give it a plan again"
                .to_owned(),
        ),
        CoreEvent::Replaced(by) => (
            ClockTopic::Replaced,
            format!("{by} has the time of a later root: this node is the root no longer, and listens to it"),
        ),
        CoreEvent::Reigns => (ClockTopic::Reigns, "this node is the root, as planned".to_owned()),
        CoreEvent::ClockStep => {
            (ClockTopic::ClockStep, "the clock jumped, or the machine was suspended: listening anew".to_owned())
        }
        CoreEvent::WrongNeighbour(name) => (
            ClockTopic::Link(port(name), LinkTopic::WrongNeighbour),
            format!("another node than {name} is at the other end: is the cable, or --link, wrong?"),
        ),
        CoreEvent::OtherPlan(name, given) => (
            ClockTopic::Link(port(name), LinkTopic::OtherPlan),
            format!("{name} has the plan with epoch {given}, not {}: give both the same", duties.epoch),
        ),
    }
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::*;

    const TURNED: &str = "a is silent: listening to c";
    const RETURNED: &str = "a sends: listening to it again, and no longer to c";

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    #[test]
    fn a_neighbour_that_comes_and_goes_makes_a_handful_of_lines_a_minute() {
        let (mut reports, mut lines) = (ClockReports::default(), Vec::new());
        // Ten minutes of a busy machine: five turns a second, and the cable as well.
        for ms in (0..600_000).step_by(200) {
            let mut said = |line: &str| lines.push((ms, line.to_owned()));
            reports.tell(at(ms), ClockTopic::Turned, 1, TURNED, &mut said);
            reports.tell(at(ms + 50), ClockTopic::Returned, 1, RETURNED, &mut said);
            for line in ["l0 is down", "l0 is up again"] {
                reports.tell(at(ms + 60), ClockTopic::Link(0, LinkTopic::Passing), 1, line, &mut said);
            }
            while let Some(line) = reports.limiter.due(at(ms + 100)) {
                said(&line);
            }
        }
        for minute in 0..10 {
            let of_it: Vec<_> = lines.iter().filter(|(ms, _)| ms / 60_000 == minute).collect();
            assert!((3..=12).contains(&of_it.len()), "minute {minute}: {of_it:#?}");
        }
        assert!(lines.iter().any(|(_, line)| line.ends_with("times since the last report)")), "{lines:#?}");
    }

    #[test]
    fn the_state_at_the_end_is_said_of_the_node_and_of_each_link() {
        let (mut reports, mut lines) = (ClockReports::default(), Vec::new());
        let mut said = |line: &str| lines.push(line.to_owned());
        let links = [0, 1].map(|port| ClockTopic::Link(port, LinkTopic::Passing));
        for ms in 0..50 {
            reports.tell(at(ms), ClockTopic::Returned, 1, RETURNED, &mut said);
            reports.tell(at(ms), ClockTopic::Turned, 1, TURNED, &mut said);
            links.iter().for_each(|link| reports.tell(at(ms), *link, 1, "up", &mut said));
            links.iter().for_each(|link| reports.tell(at(ms), *link, 1, "down", &mut said));
        }
        lines.clear();
        lines.extend(std::iter::from_fn(|| reports.limiter.due(at(61_000))));
        let expected = [format!("{TURNED} (47"), "down (97".to_owned(), "down (97".to_owned()];
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines.iter().zip(expected).all(|(line, begin)| line.starts_with(&begin)), "{lines:?}");
    }
}
