//! Schedules in GOAL, the language of LogGOPSim and ATLAHS.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: calc 500                 // ns
//!   l2: send 1024b to 1 tag 7    /* may end in cpu N, nic N */
//!   l2 requires l1               // after l1 has ended; irequires: after it was started
//! }
//! rank 1 { l1: recv 1024b from 0 tag 7 }
//! ```
//!
//! `-1` as a source or tag is any. A line may end in `;`. Who executes what (`cpu`, `nic`) is left out: operations that do not
//! wait for each other may overlap.

mod words;

use std::collections::BTreeMap;
use std::io::BufRead;

use units::Span;

use crate::error::{ImportError, shortened};
use crate::graph::{ImportGraph, MOST_INPUTS, MOST_RANKS, MOST_TRANSFERS};
use crate::lines::number;
use crate::ops::{OpGraph, OpKind, RankOp};
use words::WordReader;

/// An hour of computation, in nanoseconds: more is a mistake in the unit.
const LONGEST_CALC: u64 = 3_600_000_000_000;

/// A dependency by labels, until all labels of the rank are known.
struct Requirement {
    line: u64,
    who: String,
    on: String,
    at_start: bool,
}

struct GoalReader<'a> {
    words: WordReader<'a>,
    graph: OpGraph,
    has_places: bool,
    dependencies: usize,
}

pub(crate) fn import(from: &mut dyn BufRead) -> Result<ImportGraph, ImportError> {
    let blame: fn(&RankOp, String) -> ImportError = |op, problem| ImportError::line(op.number, problem);
    let graph = OpGraph { blame: Some(blame), ..OpGraph::default() };
    let mut reader = GoalReader { words: WordReader::new(from), graph, has_places: false, dependencies: 0 };
    reader.expect("num_ranks")?;
    let ranks: u32 = reader.number("the number of ranks")?;
    if !(1..=MOST_RANKS).contains(&ranks) {
        return Err(reader.wrong(format!("{ranks} ranks: expected 1 to {MOST_RANKS}")));
    }
    reader.graph.ranks = ranks;
    let mut seen = vec![false; ranks as usize];
    while let Some(word) = reader.words.next_word()? {
        if word != "rank" {
            return Err(reader.wrong(format!("'{}': expected rank R {{", shortened(&word))));
        }
        let rank: u32 = reader.number("the number of a rank")?;
        match seen.get_mut(rank as usize) {
            None => return Err(reader.wrong(format!("rank {rank}: expected 0 to {}", ranks - 1))),
            Some(true) => return Err(reader.wrong(format!("rank {rank} is there twice"))),
            Some(seen) => *seen = true,
        }
        reader.block(rank)?;
    }
    if let Some(missing) = seen.iter().position(|seen| !seen) {
        return Err(ImportError::whole(format_args!("rank {missing} has no block: is the file cut short?")));
    }
    if reader.has_places {
        reader.graph.left_out.push("cpu and nic: operations that do not wait for each other may overlap".into());
    }
    reader.graph.lower()
}

impl GoalReader<'_> {
    fn wrong(&self, problem: String) -> ImportError {
        ImportError::line(self.words.line(), problem)
    }

    /// The next word, which has to be there.
    fn word(&mut self, expected: &str) -> Result<String, ImportError> {
        match self.words.next_word()? {
            Some(word) => Ok(word),
            None => Err(self.wrong(format!("the file ends here: expected {expected}"))),
        }
    }

    fn expect(&mut self, expected: &str) -> Result<(), ImportError> {
        match self.word(expected)? {
            word if word == expected => Ok(()),
            word => Err(self.wrong(format!("'{}': expected {expected}", shortened(&word)))),
        }
    }

    fn number<T: std::str::FromStr>(&mut self, expected: &str) -> Result<T, ImportError> {
        let word = self.word(expected)?;
        number(&word, expected).map_err(|problem| self.wrong(problem))
    }

    fn block(&mut self, rank: u32) -> Result<(), ImportError> {
        self.expect("{")?;
        let mut labels: BTreeMap<String, u32> = BTreeMap::new();
        let mut requirements = Vec::new();
        loop {
            let word = self.word("an operation, or }")?;
            let line = self.words.line();
            match word.as_str() {
                "}" => break,
                ";" => continue,
                "send" | "recv" | "calc" => self.operation(rank, &word)?,
                label => match self.word("':', requires or irequires")?.as_str() {
                    ":" => {
                        if labels.insert(label.to_owned(), self.graph.ops.len() as u32).is_some() {
                            return Err(self.wrong(format!("the label '{}' is there twice", shortened(label))));
                        }
                        let kind = self.word("send, recv or calc")?;
                        self.operation(rank, &kind)?;
                    }
                    relation @ ("requires" | "irequires") => {
                        let (who, at_start) = (word, relation == "irequires");
                        let on = self.word("a label")?;
                        requirements.push(Requirement { line, who, on, at_start });
                        self.dependencies += 1;
                    }
                    other => {
                        return Err(self.wrong(format!(
                            "'{} {}': expected an operation, or a label before ':', requires or irequires",
                            shortened(label),
                            shortened(other)
                        )));
                    }
                },
            }
            if self.graph.ops.len() > MOST_TRANSFERS || self.dependencies > MOST_INPUTS {
                return Err(self.wrong(format!("expected at most {MOST_TRANSFERS} operations")));
            }
        }
        self.resolve(&labels, &requirements)
    }

    fn resolve(&mut self, labels: &BTreeMap<String, u32>, requirements: &[Requirement]) -> Result<(), ImportError> {
        for Requirement { line, who, on, at_start } in requirements {
            let find = |label: &String| {
                let unknown =
                    || ImportError::line(*line, format_args!("no operation has the label '{}'", shortened(label)));
                labels.get(label).copied().ok_or_else(unknown)
            };
            let (who, on) = (find(who)?, find(on)?);
            let op = &mut self.graph.ops[who as usize];
            if *at_start { op.after_start.push(on) } else { op.after_end.push(on) }
        }
        Ok(())
    }

    fn operation(&mut self, rank: u32, word: &str) -> Result<(), ImportError> {
        let line = self.words.line();
        let kind = match word {
            "calc" => {
                let ns: u64 = self.number("nanoseconds")?;
                if ns > LONGEST_CALC {
                    return Err(self.wrong(format!("calc {ns}: expected an hour at most, in nanoseconds")));
                }
                OpKind::Delay(Span::from_ns(ns))
            }
            "send" => {
                let bytes = self.bytes()?;
                self.expect("to")?;
                let to: u32 = self.number("the number of a rank")?;
                self.check_peer(rank, to)?;
                OpKind::Send { to, bytes, tag: self.tag()?.unwrap_or_default() }
            }
            "recv" => {
                let bytes = self.bytes()?;
                self.expect("from")?;
                let from: i64 = self.number("the number of a rank, or -1")?;
                let from = (from != -1).then(|| u32::try_from(from).unwrap_or(u32::MAX));
                from.map_or(Ok(()), |from| self.check_peer(rank, from))?;
                OpKind::Receive { from, bytes, tag: self.tag()? }
            }
            other => return Err(self.wrong(format!("'{}': expected send, recv or calc", shortened(other)))),
        };
        while self.words.skip("cpu")? || self.words.skip("nic")? {
            let _place: u32 = self.number("the number of a cpu or nic")?;
            self.has_places |= _place > 0;
        }
        self.graph.ops.push(RankOp { rank, number: line, kind, after_end: Vec::new(), after_start: Vec::new() });
        Ok(())
    }

    fn check_peer(&self, rank: u32, peer: u32) -> Result<(), ImportError> {
        match peer {
            _ if peer >= self.graph.ranks => {
                Err(self.wrong(format!("rank {peer}: expected 0 to {}", self.graph.ranks - 1)))
            }
            _ if peer == rank => Err(self.wrong(format!("rank {rank} sends to itself"))),
            _ => Ok(()),
        }
    }

    /// A size such as `1024b`.
    fn bytes(&mut self) -> Result<u64, ImportError> {
        let expected = "a size such as 1024b";
        let word = self.word(expected)?;
        let bytes: u64 = number(word.trim_end_matches('b'), expected).map_err(|problem| self.wrong(problem))?;
        if bytes == 0 { Err(self.wrong("0b: expected at least one byte".into())) } else { Ok(bytes) }
    }

    /// The tag, 0 if none is given; `None` for any.
    fn tag(&mut self) -> Result<Option<u64>, ImportError> {
        if !self.words.skip("tag")? {
            return Ok(Some(0));
        }
        let tag: i64 = self.number("a tag, or -1")?;
        Ok(u64::try_from(tag).ok())
    }
}

#[cfg(test)]
mod tests;
