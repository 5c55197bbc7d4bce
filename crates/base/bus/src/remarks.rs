//! Lines for people that nobody may ever ask for.

/// Lines kept, at most.
const ROOM: usize = 100;

/// Says each thing once until it is taken, and counts what there was no room for.
#[derive(Debug, Default)]
pub(super) struct WarnOnce {
    lines: Vec<String>,
    more: u64,
}

impl WarnOnce {
    pub(crate) fn add(&mut self, line: String) {
        if self.lines.contains(&line) {
            return;
        }
        if self.lines.len() < ROOM {
            self.lines.push(line);
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn take(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        match std::mem::take(&mut self.more) {
            0 => {}
            more => lines.push(format!("and {more} more")),
        }
        lines
    }
}
