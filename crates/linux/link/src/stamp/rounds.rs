//! Rounds of questions: each asks by which paths it reaches the peer, and counts for what is answered.

use units::{Span, Time};
use wire::link::ProbePaths;

/// Time within which an answer is expected, and after which the next question is asked if there is none.
pub(super) const SOON: Span = Span::from_ms(20);
/// Time between questions while all goes well; no longer does an end wait for an answer, either.
pub(super) const LATER: Span = Span::from_ms(250);

/// A question to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeRound {
    pub token: u16,
    /// The ways to send it, beside the plain one.
    pub paths: ProbePaths,
}

/// Questions so far, and the answers.
#[derive(Debug)]
pub(super) struct ProbeRounds {
    latest: ProbeRound,
    sent_at: Time,
    /// The latest question has its answer.
    is_answered: bool,
    due_at: Time,
    /// Time to wait for an answer: longer each time that there is none, and twice as long as the latest took.
    patience: Span,
    /// Questions in a row that came by all of the paths, stamped ones too.
    pub complete: u32,
    /// Answers in a row that lack a path.
    pub lacking: u32,
    /// Time of sending of the latest question that came by all paths.
    pub complete_at: Time,
    /// A question came by those paths that lead through a cable only, so that stamped frames may be tried.
    is_cable: bool,
}

/// Outcome of a round by its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoundOutcome {
    /// The question came by all paths that were asked.
    Complete,
    /// The question came by these paths only; others were asked.
    Lacking(ProbePaths),
}

impl ProbeRounds {
    pub(super) fn new() -> Self {
        Self {
            latest: ProbeRound { token: 0, paths: ProbePaths::CABLE },
            sent_at: Time::ZERO,
            is_answered: true,
            due_at: Time::NEVER,
            patience: SOON,
            complete: 0,
            lacking: 0,
            complete_at: Time::ZERO,
            is_cable: false,
        }
    }

    /// Starts anew without knowledge of the wire; the next question is asked at `at`.
    pub(super) fn begin(&mut self, at: Time) {
        *self = Self { latest: self.latest, due_at: at, ..Self::new() };
    }

    pub(super) fn end(&mut self) {
        self.due_at = Time::NEVER;
    }

    #[inline]
    pub(super) fn due_at(&self) -> Time {
        self.due_at
    }

    pub(super) fn set_due(&mut self, at: Time) {
        self.due_at = at;
    }

    /// True if the latest question, if any was asked, came by all paths.
    pub(super) fn is_complete(&self) -> bool {
        self.is_answered && self.lacking == 0
    }

    /// The next question. One that has no answer yet will not be answered any more.
    pub(super) fn next(&mut self, now: Time) -> ProbeRound {
        if !self.is_answered {
            self.complete = 0;
            self.patience = (self.patience * 2).min(LATER);
        }
        let paths = if self.is_cable { ProbePaths::ALL } else { ProbePaths::CABLE };
        self.latest = ProbeRound { token: self.latest.token.wrapping_add(1), paths };
        (self.sent_at, self.is_answered, self.due_at) = (now, false, now + self.patience);
        self.latest
    }

    /// An answer; it counts if it is the first to the latest question.
    pub(super) fn on_answer(&mut self, now: Time, token: u16, paths: ProbePaths) -> Option<RoundOutcome> {
        if self.is_answered || token != self.latest.token {
            return None;
        }
        // A long cable, or a peer that is busy, answers later than others.
        self.patience = (now.since(self.sent_at) * 2).max(SOON).min(LATER);
        (self.is_answered, self.due_at) = (true, self.sent_at + self.patience);
        if !paths.include(self.latest.paths) {
            (self.complete, self.lacking) = (0, self.lacking + 1);
            return Some(RoundOutcome::Lacking(paths));
        }
        self.lacking = 0;
        if self.latest.paths == ProbePaths::ALL {
            self.complete += 1;
            self.complete_at = self.sent_at;
        }
        self.is_cable = true;
        Some(RoundOutcome::Complete)
    }

    /// All goes well: the next question can wait.
    pub(super) fn slow_down(&mut self) {
        self.due_at = self.sent_at + LATER;
    }
}

/// The paths by which the latest of the peer's questions has come.
#[derive(Debug, Default)]
pub(super) struct HeardQuestion {
    token: u16,
    paths: ProbePaths,
}

impl HeardQuestion {
    pub(super) fn note(&mut self, token: u16, path: ProbePaths) {
        if token != self.token {
            *self = Self { token, paths: ProbePaths::NONE };
        }
        self.paths = self.paths.with(path);
    }

    /// Paths by which this question came before now.
    pub(super) fn paths(&self, token: u16) -> ProbePaths {
        if token == self.token { self.paths } else { ProbePaths::NONE }
    }
}
