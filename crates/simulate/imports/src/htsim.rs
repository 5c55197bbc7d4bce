//! htsim's connection matrices: `S->D id I (start X | trigger T) size B [send_done_trigger T] …`.
//!
//! A trigger joins transfers: those that fire it when they are done, and those that it starts. `oneshot` starts all of its
//! targets when it is fired, once; `barrier` when it was fired `count` times; `multishot` starts one target each time, so
//! that with several on both sides only time can tell which starts after which.
//!
//! htsim fires `send_done_trigger` when the sender has its last ACK, half a round trip after the arrival of the data, which
//! fires `recv_done_trigger`.

use std::collections::BTreeMap;
use std::io::BufRead;

use collective::{GraphInput, GraphTransfer};
use units::Span;

use crate::StartUnit;
use crate::error::{ImportError, shortened};
use crate::graph::{ImportGraph, MOST_INPUTS, MOST_RANKS, MOST_TRANSFERS, acknowledgement, arrival, transfer};
use crate::lines::{BoundedLines, number};

/// An hour: later starts are a mistake in the unit.
const MOST_PS: f64 = 3.6e15;

/// Counts of the header, each with the number of lines that were found.
#[derive(Default)]
struct MatrixCounts {
    nodes: Option<u32>,
    connections: Option<u64>,
    triggers: Option<u64>,
    failures: Option<u64>,
    failures_found: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TriggerKind {
    Oneshot,
    Multishot,
    Barrier(u64),
}

/// A trigger: where it is declared, and whose places are on its two sides.
#[derive(Default)]
struct Trigger {
    declared: Option<(u64, TriggerKind)>,
    /// The first line that names it.
    line: u64,
    firers: Vec<GraphInput>,
    targets: Vec<u32>,
}

struct MatrixReader {
    unit: Option<StartUnit>,
    counts: MatrixCounts,
    /// Line of each transfer.
    lines: Vec<u64>,
    triggers: BTreeMap<u64, Trigger>,
    graph: ImportGraph,
    /// Inputs of all transfers together.
    inputs: usize,
    has_priority: bool,
}

pub(crate) fn import(from: &mut dyn BufRead, unit: Option<StartUnit>) -> Result<ImportGraph, ImportError> {
    let mut matrix = MatrixReader {
        unit,
        counts: MatrixCounts::default(),
        lines: Vec::new(),
        triggers: BTreeMap::new(),
        graph: ImportGraph::default(),
        inputs: 0,
        has_priority: false,
    };
    let mut lines = BoundedLines::new(from);
    loop {
        let line = lines.number() + 1;
        let Some(text) = lines.next_line()? else { break };
        let words: Vec<&str> = text.split('#').next().unwrap_or_default().split_whitespace().collect();
        matrix.read(line, &words).map_err(|problem| ImportError::line(line, problem))?;
    }
    matrix.finish()
}

impl MatrixReader {
    fn read(&mut self, line: u64, words: &[&str]) -> Result<(), String> {
        match words {
            [] => Ok(()),
            ["Nodes", count] => set(&mut self.counts.nodes, number(count, "the number of nodes")?),
            ["Connections", count] => set(&mut self.counts.connections, number(count, "the number of connections")?),
            ["Triggers", count] => set(&mut self.counts.triggers, number(count, "the number of triggers")?),
            ["Failures", count] => set(&mut self.counts.failures, number(count, "the number of failures")?),
            ["trigger", rest @ ..] => self.trigger(line, rest),
            ["failure", ..] => {
                self.counts.failures_found += 1;
                Ok(())
            }
            [pair, rest @ ..] if pair.contains("->") => self.connection(line, pair, rest),
            [word, ..] => Err(format!("'{}': expected S->D …, trigger … or failure …", shortened(word))),
        }
    }

    fn trigger(&mut self, line: u64, words: &[&str]) -> Result<(), String> {
        let (id, kind) = match words {
            ["id", id, "oneshot"] => (id, TriggerKind::Oneshot),
            ["id", id, "multishot"] => (id, TriggerKind::Multishot),
            ["id", id, "barrier", "count", count] => (id, TriggerKind::Barrier(number(count, "a number of calls")?)),
            _ => return Err("expected trigger id T oneshot, multishot, or barrier count N".into()),
        };
        let trigger = self.known_trigger(line, id)?;
        match trigger.declared.replace((line, kind)) {
            None => Ok(()),
            Some((before, _)) => Err(format!("trigger {id} is declared in line {before} already")),
        }
    }

    fn known_trigger(&mut self, line: u64, id: &str) -> Result<&mut Trigger, String> {
        let id: u64 = number(id, "the number of a trigger")?;
        if self.triggers.len() >= MOST_TRANSFERS {
            return Err(format!("expected at most {MOST_TRANSFERS} triggers"));
        }
        Ok(self.triggers.entry(id).or_insert_with(|| Trigger { line, ..Trigger::default() }))
    }

    fn connection(&mut self, line: u64, pair: &str, words: &[&str]) -> Result<(), String> {
        let place = self.graph.transfers.len();
        if place >= MOST_TRANSFERS {
            return Err(format!("expected at most {MOST_TRANSFERS} connections"));
        }
        let (src, dst) = self.nodes(pair)?;
        let mut values: BTreeMap<&str, &str> = BTreeMap::new();
        for pair in words.chunks(2) {
            let &[key, value] = pair else { return Err(format!("'{}' has no value", shortened(pair[0]))) };
            if values.insert(key, value).is_some() {
                return Err(format!("'{}' is there twice", shortened(key)));
            }
        }
        let mut take = |key| values.remove(key);
        let id = take("id").ok_or("expected an id")?;
        let bytes: u64 = number(take("size").ok_or("expected a size")?, "a number of bytes")?;
        let (start, trigger) = (take("start"), take("trigger"));
        let fired = [take("send_done_trigger"), take("recv_done_trigger")];
        let events = [acknowledgement(place as u32), arrival(place as u32)];
        self.has_priority |= take("prio").is_some() | take("msg").is_some();
        if let Some(unknown) = values.keys().next() {
            return Err(format!("'{}' is no key of a connection", shortened(unknown)));
        }
        if bytes == 0 {
            return Err("size 0: expected at least one byte".into());
        }
        let not_before = match (start, trigger) {
            (Some(_), Some(_)) => return Err("has both a start and a trigger: expected one of them".into()),
            (None, None) => return Err("has neither a start nor a trigger: when does it begin?".into()),
            (Some(start), None) => self.start(start)?,
            (None, Some(_)) => Span::ZERO,
        };
        if let Some(trigger) = trigger {
            self.known_trigger(line, trigger)?.targets.push(place as u32);
        }
        for (trigger, event) in fired.into_iter().zip(events) {
            if let Some(trigger) = trigger {
                self.known_trigger(line, trigger)?.firers.push(event);
            }
        }
        let id: u64 = number(id, "a whole number as id")?;
        self.lines.push(line);
        self.graph.transfers.push(GraphTransfer { not_before, ..transfer(id.to_string(), [src, dst], bytes) });
        Ok(())
    }

    fn nodes(&self, pair: &str) -> Result<(u32, u32), String> {
        let expected = "two nodes such as 3->7";
        let (src, dst) = pair.split_once("->").ok_or(expected)?;
        let (src, dst): (u32, u32) = (number(src, expected)?, number(dst, expected)?);
        let nodes = self.counts.nodes.ok_or("expected the line Nodes N before connections")?;
        match src.max(dst) {
            node if node >= nodes => Err(format!("node {node}: expected 0 to {}, as Nodes says", i64::from(nodes) - 1)),
            _ if src == dst => Err(format!("node {src} sends to itself")),
            _ => Ok((src, dst)),
        }
    }

    fn start(&self, text: &str) -> Result<Span, String> {
        let value: f64 = number(text, "a time")?;
        let per_unit = match self.unit {
            _ if value == 0.0 => 0.0,
            Some(StartUnit::Picoseconds) => 1.0,
            Some(StartUnit::Microseconds) => 1e6,
            None => {
                return Err(format!(
                    "start {}: htsim_uec reads microseconds, csg's NDP picoseconds: expected --start-unit us or ps",
                    shortened(text)
                ));
            }
        };
        let ps = (value * per_unit).round();
        match (0.0..=MOST_PS).contains(&ps) {
            true => Ok(Span::from_ps(ps as u64)),
            false => Err(format!("start {}: expected an hour at most", shortened(text))),
        }
    }

    fn finish(mut self) -> Result<ImportGraph, ImportError> {
        self.check_counts().map_err(ImportError::whole)?;
        self.check_ids()?;
        for (id, trigger) in std::mem::take(&mut self.triggers) {
            let (line, problem) = match self.connect(id, &trigger) {
                Ok(()) => continue,
                Err(problem) => (trigger.declared.map_or(trigger.line, |(line, _)| line), problem),
            };
            return Err(ImportError::line(line, problem));
        }
        let Self { mut graph, counts, has_priority, .. } = self;
        graph.ranks = counts.nodes.unwrap_or_default();
        for (is_there, what) in [(has_priority, "prio and msg"), (counts.failures_found > 0, "failures of links")] {
            graph.left_out.extend(is_there.then(|| what.to_owned()));
        }
        graph.checked()
    }

    fn check_counts(&self) -> Result<(), String> {
        let MatrixCounts { nodes, connections, triggers, failures, failures_found } = &self.counts;
        let declared = self.triggers.values().filter(|trigger| trigger.declared.is_some()).count() as u64;
        if nodes.is_none_or(|nodes| nodes > MOST_RANKS) {
            return Err(format!("expected a line Nodes N, with at most {MOST_RANKS} nodes"));
        }
        for (word, said, found) in [
            ("Connections", connections.or(Some(0)), self.graph.transfers.len() as u64),
            ("Triggers", triggers.or(Some(0)), declared),
            ("Failures", failures.or(Some(0)), *failures_found),
        ] {
            if said != Some(found) {
                let said = said.unwrap_or_default();
                return Err(format!("{word} says {said}, and there are {found}: is the file cut short?"));
            }
        }
        if self.graph.transfers.is_empty() { Err("expected at least one connection".into()) } else { Ok(()) }
    }

    fn check_ids(&self) -> Result<(), ImportError> {
        let mut seen = BTreeMap::new();
        for (transfer, line) in self.graph.transfers.iter().zip(&self.lines) {
            if let Some(before) = seen.insert(&transfer.name, line) {
                let problem = format!("id {} is in line {before} already", transfer.name);
                return Err(ImportError::line(*line, problem));
            }
        }
        Ok(())
    }

    fn connect(&mut self, id: u64, trigger: &Trigger) -> Result<(), String> {
        let Trigger { declared, firers, targets, .. } = trigger;
        let Some((_, kind)) = declared else { return Err(format!("trigger {id} is declared nowhere")) };
        if targets.is_empty() {
            return Ok(());
        }
        if firers.is_empty() {
            return Err(format!("trigger {id} is fired by nobody: what it starts would never begin"));
        }
        match kind {
            TriggerKind::Oneshot if firers.len() > 1 => {
                return Err(format!("trigger {id} is a oneshot and would be fired {} times", firers.len()));
            }
            TriggerKind::Barrier(count) if *count != firers.len() as u64 => {
                return Err(format!("trigger {id} waits for {count} calls, and {} transfers fire it", firers.len()));
            }
            TriggerKind::Multishot if firers.len() != targets.len() => {
                let (firers, targets) = (firers.len(), targets.len());
                return Err(format!(
                    "trigger {id} starts one transfer at a call: {firers} calls for {targets} transfers"
                ));
            }
            TriggerKind::Multishot if firers.len() > 1 => {
                return Err(format!(
                    "trigger {id} is a multishot of several: which starts after which depends on time; expected oneshot or barrier"
                ));
            }
            _ => {}
        }
        self.inputs = firers.len().saturating_mul(targets.len()).saturating_add(self.inputs);
        if self.inputs > MOST_INPUTS {
            return Err(format!("trigger {id} joins {} transfers with {}: too many", firers.len(), targets.len()));
        }
        for target in targets {
            self.graph.transfers[*target as usize].after.extend(firers);
        }
        Ok(())
    }
}

fn set<T>(value: &mut Option<T>, new: T) -> Result<(), String> {
    match value.replace(new) {
        None => Ok(()),
        Some(_) => Err("this count is there twice".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATRIX: &str = "Nodes 4\nConnections 3\nTriggers 2\n0->1 id 1 start 5 size 1000 send_done_trigger 7\n\
                          1->2 id 2 trigger 7 size 1000 recv_done_trigger 8 # a comment\n2->3 id 3 trigger 8 size 1000 prio 2\n\
                          trigger id 7 oneshot\ntrigger id 8 barrier count 1\n";

    fn read(text: &str) -> Result<ImportGraph, String> {
        import(&mut text.as_bytes(), Some(StartUnit::Microseconds)).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(from: &str, to: &str, said: &str) {
        assert!(MATRIX.contains(from), "{from}");
        assert_eq!(read(&MATRIX.replacen(from, to, 1)).unwrap_err(), said);
    }

    #[test]
    fn triggers_become_inputs() {
        let graph = read(MATRIX).unwrap();
        let inputs: Vec<_> = graph.transfers.iter().map(|it| it.after.clone()).collect();
        assert_eq!(inputs, [vec![], vec![acknowledgement(0)], vec![arrival(1)]]);
        assert_eq!((graph.transfers[0].not_before, graph.ranks), (Span::from_us(5), 4));
        assert_eq!(graph.left_out, ["prio and msg"]);
    }

    #[test]
    fn a_start_needs_its_unit_unless_it_is_zero() {
        let without = |text: &str| import(&mut text.as_bytes(), None).map_err(|error| error.to_string());
        assert!(without(MATRIX).unwrap_err().ends_with("expected --start-unit us or ps"));
        assert!(without(&MATRIX.replace("start 5", "start 0")).is_ok());
        let ps = import(&mut MATRIX.as_bytes(), Some(StartUnit::Picoseconds)).unwrap();
        assert_eq!(ps.transfers[0].not_before, Span::from_ps(5));
        refused("start 5", "start -1", "line 4: start -1: expected an hour at most");
    }

    #[test]
    fn what_never_starts_or_starts_twice_is_refused() {
        refused(" send_done_trigger 7", "", "line 7: trigger 7 is fired by nobody: what it starts would never begin");
        refused("trigger id 7 oneshot", "trigger id 9 oneshot", "line 4: trigger 7 is declared nowhere");
        refused(
            "recv_done_trigger 8",
            "recv_done_trigger 7",
            "line 7: trigger 7 is a oneshot and would be fired 2 times",
        );
        refused("count 1", "count 2", "line 8: trigger 8 waits for 2 calls, and 1 transfers fire it");
        refused("start 5", "start 5 trigger 8", "line 4: has both a start and a trigger: expected one of them");
        refused("start 5 ", "", "line 4: has neither a start nor a trigger: when does it begin?");
        let circle = MATRIX.replace("start 5", "trigger 9").replace("prio 2", "send_done_trigger 9");
        let circle = circle.replace("Triggers 2", "Triggers 3") + "trigger id 9 multishot\n";
        assert!(read(&circle).unwrap_err().starts_with("can never finish, each waits for the one before: "));
    }

    #[test]
    fn a_multishot_between_several_depends_on_time() {
        let many =
            MATRIX.replace("recv_done_trigger 8", "recv_done_trigger 7").replace("trigger 8 size", "trigger 7 size");
        let said = read(&many.replace("id 7 oneshot", "id 7 multishot")).unwrap_err();
        assert!(said.starts_with("line 7: trigger 7 is a multishot of several"), "{said}");
        let one = MATRIX.replace("barrier count 1", "multishot");
        assert_eq!(read(&one).unwrap(), read(MATRIX).unwrap());
    }

    #[test]
    fn counts_keys_and_nodes_are_checked() {
        refused("Connections 3", "Connections 4", "Connections says 4, and there are 3: is the file cut short?");
        refused("trigger id 8 barrier count 1\n", "", "Triggers says 2, and there are 1: is the file cut short?");
        refused("2->3", "2->4", "line 6: node 4: expected 0 to 3, as Nodes says");
        refused("2->3", "2->2", "line 6: node 2 sends to itself");
        refused("Nodes 4\n", "", "line 3: expected the line Nodes N before connections");
        refused("id 3 ", "id 2 ", "id 2 is in line 5 already".replace("id 2 is", "line 6: id 2 is").as_str());
        refused("prio 2", "colour 2", "line 6: 'colour' is no key of a connection");
        refused("prio 2", "prio", "line 6: 'prio' has no value");
        refused("size 1000 send", "size 0 send", "line 4: size 0: expected at least one byte");
        refused("trigger id 7 oneshot", "trigger id 8 oneshot", "line 8: trigger 8 is declared in line 7 already");
        refused("Nodes 4", "Hello 4", "line 1: 'Hello': expected S->D …, trigger … or failure …");
    }
}
