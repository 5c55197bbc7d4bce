//! Limit on the log lines about moves of addresses: hosts can cause any number of them.

use units::{Span, Time};

/// Lines within [`WITHIN`].
const MOST: u32 = 5;
const WITHIN: Span = Span::from_ms(60_000);

/// Lets a few lines a minute pass, and counts the others.
#[derive(Debug, Default)]
pub(super) struct MoveLog {
    since: Option<Time>,
    made: u32,
    withheld: u64,
}

impl MoveLog {
    /// The line, if it is to be written.
    pub(super) fn admit(&mut self, now: Time, line: String) -> Option<String> {
        if self.since.is_none_or(|since| now.since(since) >= WITHIN) {
            (self.since, self.made) = (Some(now), 0);
        }
        if self.made == MOST {
            self.withheld += 1;
            return None;
        }
        self.made += 1;
        Some(match std::mem::take(&mut self.withheld) {
            0 => line,
            withheld => format!("{line} ({withheld} more addresses moved since the last report)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_moves_a_minute_are_logged_and_the_others_counted() {
        let mut log = MoveLog::default();
        let at = |seconds: u64| Time::ZERO + Span::from_ms(1_000 * seconds);
        let said: Vec<String> = (0..59).filter_map(|second| log.admit(at(second), format!("move {second}"))).collect();
        assert_eq!(said, ["move 0", "move 1", "move 2", "move 3", "move 4"]);
        let next = log.admit(at(60), "move 60".to_owned());
        assert_eq!(next.as_deref(), Some("move 60 (54 more addresses moved since the last report)"));
    }
}
