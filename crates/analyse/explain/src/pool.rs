//! Connections in bounded memory.
//!
//! ```text
//!   SYN ──▶ opening: 40 bytes ──anything else──▶ tracked: some KB ──over──▶ summary, or a note of 32 bytes without payload
//! ```
//!
//! Most connections of a scan are a SYN and nothing else, or a SYN and a reset. Above [`MOST_BARE`] of these all of them are said
//! together. Beyond the memory that was allowed, connections that were silent for longest end early, and summaries of those that
//! took the least time are dropped: both are counted.
//!
//! Invariant: a connection is in one state; what it takes is counted when it begins and with every eighth packet.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::mem;

use crate::connection::{ConnectionSummary, TrackedConnection};
use crate::explainer::{ExplainOptions, TracedStarts};
use crate::explanation::busy_time;
use crate::packet::{CapturedSegment, OpeningNote};
use crate::pairs::{AddressBook, PairKey};
use crate::scans::{BareNote, BareOutcome, ScanAnswer, scans};

/// More connections without payload than this are said together.
const MOST_BARE: usize = 1_000;
/// Memory that an opening takes beside its place in the table, and that of an entry in the table.
const OPENING: usize = 48;
const ENTRY: usize = size_of::<(PairKey, PairState)>() + 1;

/// State of a pair of ends.
#[derive(Debug)]
enum PairState {
    /// A SYN asked for a connection; true if its sender comes first in the pair.
    Opening(Box<OpeningNote>, bool),
    Open(Box<TrackedConnection>),
    /// The connection is over; later segments belong to its end.
    Over,
}

/// Connections that were removed to keep within `--memory`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FallenOut {
    /// Connections that were closed early although they continued.
    pub ended: u64,
    /// Connections that are not listed.
    pub dropped: u64,
}

/// All that is known at the end.
#[derive(Debug, Default)]
pub(crate) struct PoolResult {
    pub summaries: Vec<ConnectionSummary>,
    pub scans: Vec<ScanAnswer>,
    pub fallen_out: FallenOut,
}

#[derive(Debug)]
pub(crate) struct ConnectionPool<'a> {
    options: &'a ExplainOptions,
    traced: TracedStarts,
    book: AddressBook,
    pairs: HashMap<PairKey, PairState>,
    openings: usize,
    /// Bytes of tracked connections and of summaries, with what they point to.
    tracked: usize,
    summarised: usize,
    summaries: Vec<ConnectionSummary>,
    /// Connections without payload: in full while they are few.
    bare: Vec<ConnectionSummary>,
    notes: Vec<BareNote>,
    fallen_out: FallenOut,
}

/// A segment that begins a connection where another one is over.
fn begins_anew(segment: &CapturedSegment) -> bool {
    segment.syn() && !segment.has_ack() || segment.len > 0
}

impl<'a> ConnectionPool<'a> {
    pub(crate) fn new(options: &'a ExplainOptions, traced: TracedStarts) -> Self {
        Self {
            options,
            traced,
            book: AddressBook::default(),
            pairs: HashMap::new(),
            openings: 0,
            tracked: 0,
            summarised: 0,
            summaries: Vec::new(),
            bare: Vec::new(),
            notes: Vec::new(),
            fallen_out: FallenOut::default(),
        }
    }

    /// False if the capture has this packet twice.
    pub(crate) fn on_segment(&mut self, segment: &CapturedSegment) -> bool {
        let (pair, first) = self.book.pair(segment.source, segment.destination);
        let Some(state) = self.pairs.get_mut(&pair) else {
            self.begin(pair, first, segment);
            return true;
        };
        let connection = match state {
            PairState::Over => {
                if begins_anew(segment) {
                    self.begin(pair, first, segment);
                }
                return true;
            }
            PairState::Opening(note, by_first) => {
                let (source, destination) = self.book.ends(pair, *by_first);
                let opened = opened(&note.segment(source, destination), self.options, false);
                (self.openings, self.tracked) = (self.openings - 1, self.tracked + opened.counted());
                *state = PairState::Open(opened);
                let PairState::Open(connection) = state else { return true };
                connection
            }
            PairState::Open(connection) => connection,
        };
        if connection.is_replaced_by(segment) {
            self.end(pair);
            self.begin(pair, first, segment);
            return true;
        }
        let is_new = connection.on_segment(segment);
        let has_counted = connection.is_count_due();
        if has_counted {
            let before = connection.counted();
            self.tracked = (self.tracked + connection.count()).saturating_sub(before);
        }
        if connection.is_over() {
            self.end(pair);
        }
        if has_counted && self.bytes() > self.most() {
            self.make_room();
        }
        is_new
    }

    fn begin(&mut self, pair: PairKey, first: bool, segment: &CapturedSegment) {
        let is_traced = !self.traced.is_empty() && self.traced.contains(&(sorted_ends(segment), segment.at));
        let state = match OpeningNote::of(segment).filter(|_| !is_traced) {
            Some(note) => {
                self.openings += 1;
                PairState::Opening(Box::new(note), first)
            }
            None => {
                let opened = opened(segment, self.options, is_traced);
                self.tracked += opened.counted();
                PairState::Open(opened)
            }
        };
        self.pairs.insert(pair, state);
        if self.bytes() > self.most() {
            self.make_room();
        }
    }

    /// Ends a connection: its data so far becomes its summary.
    fn end(&mut self, pair: PairKey) {
        let Some(state) = self.pairs.get_mut(&pair) else { return };
        if let PairState::Open(connection) = mem::replace(state, PairState::Over) {
            self.summarise(pair, connection);
        }
    }

    fn summarise(&mut self, pair: PairKey, connection: Box<TrackedConnection>) {
        self.tracked = self.tracked.saturating_sub(connection.counted());
        let summary = connection.finish();
        if !summary.is_bare() {
            self.summarised += summary.bytes_held();
            self.summaries.push(summary);
        } else if self.notes.is_empty() && self.bare.len() < MOST_BARE {
            self.bare.push(summary);
        } else {
            let client_first = self.book.ends(pair, true).0 == summary.client;
            self.notes.push(BareNote { pair, client_first, outcome: summary.outcome, at: summary.start });
        }
    }

    fn most(&self) -> usize {
        usize::try_from(self.options.memory).unwrap_or(usize::MAX)
    }

    /// Approximate memory use of everything, in bytes.
    fn bytes(&self) -> usize {
        let fixed = self.pairs.capacity() * ENTRY + self.openings * OPENING + self.book.bytes();
        let notes = self.notes.capacity() * size_of::<BareNote>();
        fixed + notes + self.tracked + self.summarised
    }

    #[cold]
    fn make_room(&mut self) {
        let enough = self.most() / 8 * 7;
        // Connections that go on are not ended for the sake of many that are over.
        if self.summarised > self.tracked {
            self.drop_fastest(enough);
        }
        if self.bytes() > enough {
            self.end_silent(enough);
            self.drop_fastest(enough);
        }
        if self.bytes() > enough {
            self.forget_bare();
        }
    }

    /// Ends connections that have been silent for longest.
    fn end_silent(&mut self, enough: usize) {
        let mut silent: Vec<(u64, PairKey)> = Vec::new();
        for (pair, state) in &self.pairs {
            if let PairState::Open(connection) = state {
                silent.push((connection.last_seen(), *pair));
            }
        }
        silent.sort_unstable();
        for (_, pair) in silent {
            if self.bytes() <= enough {
                return;
            }
            self.fallen_out.ended += 1;
            self.end(pair);
        }
    }

    /// Drops summaries of connections that took the least time.
    fn drop_fastest(&mut self, enough: usize) {
        if self.bytes() <= enough {
            return;
        }
        self.summaries.sort_by_cached_key(|summary| (Reverse(busy_time(summary)), summary.start, summary.client));
        while self.bytes() > enough
            && let Some(summary) = self.summaries.pop()
        {
            self.summarised = self.summarised.saturating_sub(summary.bytes_held());
            self.fallen_out.dropped += 1;
        }
    }

    /// Connections without payload are only counted.
    fn forget_bare(&mut self) {
        self.fallen_out.dropped += (self.notes.len() + self.openings) as u64;
        self.notes = Vec::new();
        self.openings = 0;
        // A book of all addresses that ever came would fill the memory. Its numbers decide between equals, so they are given in order.
        let former = mem::take(&mut self.book);
        let mut stay: Vec<_> = mem::take(&mut self.pairs).into_iter().collect();
        stay.retain(|(_, state)| matches!(state, PairState::Open(_)));
        stay.sort_unstable_by_key(|(pair, _)| *pair);
        for (pair, state) in stay {
            let (one, other) = former.ends(pair, true);
            self.pairs.insert(self.book.pair(one, other).0, state);
        }
    }

    /// All connections in the order in which they began.
    pub(crate) fn finish(mut self) -> PoolResult {
        let mut openings = Vec::new();
        for (pair, state) in mem::take(&mut self.pairs) {
            match state {
                PairState::Open(connection) => self.summarise(pair, connection),
                PairState::Opening(note, first) => openings.push((pair, note, first)),
                PairState::Over => {}
            }
        }
        let is_scan = !self.notes.is_empty() || self.bare.len() + openings.len() > MOST_BARE;
        for (pair, note, first) in openings {
            if is_scan {
                let outcome = BareOutcome::Unanswered;
                self.notes.push(BareNote { pair, client_first: first, outcome, at: note.at() });
            } else {
                let (source, destination) = self.book.ends(pair, first);
                self.bare.push(opened(&note.segment(source, destination), self.options, false).finish());
            }
        }
        let bare = mem::take(&mut self.bare);
        if is_scan {
            self.notes.extend(bare.iter().map(|summary| {
                let (pair, client_first) = self.book.pair(summary.client, summary.server);
                BareNote { pair, client_first, outcome: summary.outcome, at: summary.start }
            }));
        } else {
            self.summaries.extend(bare);
        }
        self.summaries.sort_by_key(|summary| (summary.start, summary.client, summary.server));
        PoolResult { summaries: self.summaries, scans: scans(self.notes, &self.book), fallen_out: self.fallen_out }
    }
}

fn sorted_ends(segment: &CapturedSegment) -> (std::net::SocketAddr, std::net::SocketAddr) {
    let (one, other) = (segment.source, segment.destination);
    if one <= other { (one, other) } else { (other, one) }
}

/// A connection that begins with this segment.
fn opened(first: &CapturedSegment, options: &ExplainOptions, is_traced: bool) -> Box<TrackedConnection> {
    let mut connection = Box::new(TrackedConnection::new(first, options, is_traced));
    connection.on_segment(first);
    connection.count();
    connection
}
