//! The losses still open: which frames are missing, since when, when to ask again and when to stop waiting.
//!
//! LinkGuardian (SIGCOMM'23) App. A.1; `ackNoTimeout` of §3.5. Kept as runs of consecutive frames in
//! sequence order, which is also the order in which they were found missing. There are never more open
//! frames than the peer's window, so the list is bounded; it is nearly always empty or of length one.
//!
//! A peer, or an attacker that forges its frames, can make it as long as the window allows. So nothing that a single
//! frame causes walks along it: what is missing is counted as it changes, a frame is searched for by halves, deadlines
//! are counted in a list of their own, and no more runs are looked at for a report than fit into it.
//!
//! Invariants: runs are in sequence order and do not overlap; `frames` is their sum; `deadlines` holds each deadline of
//! theirs with the number of runs that have it, earliest first, and none of no run in front.

use std::collections::VecDeque;

use units::{Span, Time};
use wire::Seq;
use wire::link::{Feedback, Gap};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissingRun {
    pub first: Seq,
    pub frames: u32,
    /// Time at which the gap was noticed.
    pub since: Time,
    /// Time at which to look at it again: to ask, to wait on or to give up.
    pub deadline: Time,
    /// Time by which an answer to the latest question should have come.
    pub ask_at: Time,
    /// Number of times it was asked for before the latest time.
    pub round: u8,
    /// Number of deadlines that have passed.
    pub waits: u8,
    /// Number of those deadlines before which the peer was not heard of.
    pub unheard: u8,
}

impl MissingRun {
    pub(crate) fn contains(&self, seq: Seq) -> bool {
        (0..self.frames as i32).contains(&seq.offset_from(self.first))
    }

    fn after(&self) -> Seq {
        self.first.plus(self.frames)
    }
}

/// Number of deadlines for which the receiver waits for a missing frame: `asks`, and `unheard` more if the peer was
/// silent meanwhile, because a silent peer probably does not run and the wire has lost no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    pub asks: u8,
    pub unheard: u8,
}

#[derive(Debug, Default)]
pub(crate) struct Losses {
    runs: VecDeque<MissingRun>,
    frames: u32,
    deadlines: VecDeque<(Time, u32)>,
    #[cfg(test)]
    steps: std::cell::Cell<u64>,
}

impl Losses {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The oldest frame missing.
    pub(crate) fn first(&self) -> Option<Seq> {
        self.runs.front().map(|run| run.first)
    }

    /// Frames missing.
    pub(crate) fn frames(&self) -> u32 {
        self.frames
    }

    /// Counts a step, for tests.
    #[inline(always)]
    fn step(&self) {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
    }

    /// Number of runs that begin before `seq`.
    fn runs_before(&self, seq: Seq) -> usize {
        self.runs.partition_point(|run| {
            self.step();
            run.first.offset_from(seq) < 0
        })
    }

    /// Adds a run where it belongs in sequence order: at the end, unless a frame that had arrived was
    /// dropped for want of room.
    pub(crate) fn open(&mut self, run: MissingRun) {
        let at = self.runs_before(run.first);
        self.runs.insert(at, run);
        self.frames += run.frames;
        self.add_deadline(run.deadline);
    }

    /// Takes out one frame that arrived; the run that it was part of, if it was missing.
    pub(crate) fn close(&mut self, seq: Seq) -> Option<MissingRun> {
        let at = self.runs_before(seq.next()).checked_sub(1)?;
        let run = self.runs[at];
        if !run.contains(seq) {
            return None;
        }
        self.frames -= 1;
        let before = seq.offset_from(run.first) as u32;
        let behind = run.frames - before - 1;
        match (before, behind) {
            (0, 0) => {
                self.runs.remove(at);
                self.remove_deadline(run.deadline);
            }
            (0, _) => self.runs[at] = MissingRun { first: seq.next(), frames: behind, ..run },
            (_, 0) => self.runs[at].frames = before,
            _ => {
                self.runs[at].frames = before;
                self.runs.insert(at + 1, MissingRun { first: seq.next(), frames: behind, ..run });
                self.add_deadline(run.deadline);
            }
        }
        Some(run)
    }

    pub(crate) fn earliest_deadline(&self) -> Option<Time> {
        self.deadlines.front().map(|(at, _)| *at)
    }

    fn deadlines_before(&self, deadline: Time) -> usize {
        self.deadlines.partition_point(|(at, _)| {
            self.step();
            *at < deadline
        })
    }

    fn add_deadline(&mut self, deadline: Time) {
        let at = self.deadlines_before(deadline);
        match self.deadlines.get_mut(at) {
            Some((same, runs)) if *same == deadline => *runs += 1,
            _ => self.deadlines.insert(at, (deadline, 1)),
        }
    }

    fn remove_deadline(&mut self, deadline: Time) {
        let at = self.deadlines_before(deadline);
        if let Some((_, runs)) = self.deadlines.get_mut(at) {
            *runs -= 1;
        }
        while self.deadlines.front().is_some_and(|(_, runs)| *runs == 0) {
            self.step();
            self.deadlines.pop_front();
        }
    }

    /// Runs whose deadline has come: those waited for no longer than `patience` allows get `renew`ed deadlines, and
    /// another round if the answer is late: the next one may take as long as `wait` says. The others are taken out and
    /// returned through `gave_up`. `heard` says whether the peer was heard of since the last time. True if any is to be
    /// asked for again.
    pub(crate) fn expire(
        &mut self,
        now: Time,
        patience: Patience,
        heard: bool,
        renew: Time,
        wait: impl Fn(u8) -> Span,
        mut gave_up: impl FnMut(MissingRun),
    ) -> bool {
        let mut again = false;
        let mut runs = std::mem::take(&mut self.runs);
        runs.retain_mut(|run| {
            self.step();
            if run.deadline > now {
                return true;
            }
            self.remove_deadline(run.deadline);
            let unheard = (run.unheard + u8::from(!heard)).min(patience.unheard);
            if run.waits + 1 - unheard.min(run.waits) >= patience.asks {
                self.frames -= run.frames;
                gave_up(*run);
                return false;
            }
            run.unheard = unheard;
            run.waits += 1;
            run.deadline = renew;
            self.add_deadline(renew);
            if run.ask_at <= now {
                run.round += 1;
                run.ask_at = now + wait(run.round);
                again = true;
            }
            true
        });
        self.runs = runs;
        again
    }

    /// Lists open runs in `feedback`, newest or oldest first, as far as they fit. If some do not, the
    /// feedback's `latest` is moved back before the first that is not listed, so that it claims nothing
    /// for them.
    #[inline(never)]
    pub(crate) fn list(&self, feedback: &mut Feedback, newest_first: bool) {
        let unlisted = if newest_first {
            // The unlisted runs lie before the listed ones, so the oldest run is the first of them.
            let rest = self.list_runs(feedback, self.runs.iter().rev());
            rest.map(|first| self.first().filter(|oldest| oldest.offset_from(first) < 0).unwrap_or(first))
        } else {
            self.list_runs(feedback, self.runs.iter())
        };
        if let Some(seq) = unlisted {
            feedback.latest = seq.previous();
        }
    }

    /// The first frame that did not fit, if any.
    fn list_runs<'a>(&self, feedback: &mut Feedback, runs: impl Iterator<Item = &'a MissingRun>) -> Option<Seq> {
        for run in runs {
            let mut first = run.first;
            while first != run.after() {
                self.step();
                if feedback.is_full() {
                    return Some(first);
                }
                let frames = (run.after().offset_from(first) as u32).min(Gap::MAX_FRAMES);
                feedback.push(Gap::new(first, frames, run.round));
                first = first.plus(frames);
            }
        }
        None
    }

    /// Panics unless the module's invariants hold and all that is missing lies at or behind `from` and before `to`.
    pub(crate) fn check_invariants(&self, from: Option<Seq>, to: Seq) {
        let mut before = from;
        for run in &self.runs {
            assert!(
                run.frames > 0 && before.is_none_or(|seq| run.first.offset_from(seq) >= 0),
                "runs overlap: {self:?}"
            );
            before = Some(run.after());
        }
        assert!(before.is_none_or(|seq| to.offset_from(seq) >= 0), "missing before it was expected: {self:?}");
        let frames: u32 = self.runs.iter().map(|run| run.frames).sum();
        assert_eq!(frames, self.frames, "frames missing: {self:?}");
        assert!(self.deadlines.iter().is_sorted_by(|a, b| a.0 < b.0), "deadlines out of order: {self:?}");
        assert!(self.deadlines.front().is_none_or(|(_, runs)| *runs > 0), "a deadline of no run: {self:?}");
        for (at, runs) in &self.deadlines {
            let having = self.runs.iter().filter(|run| run.deadline == *at).count();
            assert_eq!(having, *runs as usize, "runs with the deadline {at:?}: {self:?}");
        }
        let counted: u32 = self.deadlines.iter().map(|(_, runs)| runs).sum();
        assert_eq!(counted as usize, self.runs.len(), "a run without a deadline: {self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::link::{Class, FlowControl, MAX_GAPS};

    fn seq(number: u32) -> Seq {
        Seq::new(65_530, false).plus(number)
    }

    fn run(first: u32, frames: u32) -> MissingRun {
        let soon = Time::from_ps(10);
        MissingRun {
            first: seq(first),
            frames,
            since: Time::ZERO,
            deadline: soon,
            ask_at: soon,
            round: 0,
            waits: 0,
            unheard: 0,
        }
    }

    fn at_once(_: u8) -> Span {
        Span::ZERO
    }

    fn listed(losses: &Losses, latest: u32, newest_first: bool) -> Feedback {
        let mut feedback = Feedback::new(Class::Ordered, seq(latest), FlowControl::Flow);
        losses.list(&mut feedback, newest_first);
        feedback
    }

    #[test]
    fn a_frame_in_the_middle_splits_its_run() {
        let mut losses = Losses::default();
        losses.open(run(4, 5));
        assert_eq!(losses.close(seq(6)), Some(run(4, 5)));
        let feedback = listed(&losses, 20, false);
        let open: Vec<u32> = (0..12).filter(|&n| feedback.lists(seq(n))).collect();
        assert_eq!((open, losses.first(), losses.frames()), (vec![4, 5, 7, 8], Some(seq(4)), 4));
        assert_eq!(losses.close(seq(6)), None);
        for n in [4, 8, 7, 5] {
            assert!(losses.close(seq(n)).is_some());
        }
        assert!(losses.is_empty());
    }

    #[test]
    fn a_dropped_frame_is_listed_in_sequence_order() {
        let mut losses = Losses::default();
        for first in [4, 9, 6] {
            losses.open(run(first, 1));
        }
        let feedback = listed(&losses, 20, false);
        let firsts: Vec<Seq> = feedback.gaps().iter().map(|gap| gap.first()).collect();
        assert_eq!(firsts, [seq(4), seq(6), seq(9)]);
        assert_eq!(feedback.latest, seq(20));
    }

    #[test]
    fn what_does_not_fit_is_not_claimed_as_received() {
        let mut losses = Losses::default();
        for n in 0..MAX_GAPS as u32 + 2 {
            losses.open(run(10 + 2 * n, 1));
        }
        let oldest = listed(&losses, 40, false);
        assert_eq!(oldest.latest, seq(10 + 2 * MAX_GAPS as u32 - 1));
        let newest = listed(&losses, 40, true);
        assert_eq!(newest.latest, seq(9));
        assert_eq!(newest.gaps()[0].first(), seq(10 + 2 * (MAX_GAPS as u32 + 1)));
    }

    #[test]
    fn a_long_run_is_listed_in_pieces() {
        let mut losses = Losses::default();
        losses.open(run(0, 600));
        let feedback = listed(&losses, 700, false);
        let frames: Vec<u32> = feedback.gaps().iter().map(|gap| gap.frames()).collect();
        assert_eq!(frames, [255, 255, 90]);
    }

    #[test]
    fn an_expired_run_is_asked_for_again_before_it_is_given_up() {
        let mut losses = Losses::default();
        losses.open(run(0, 2));
        let mut given_up = Vec::new();
        let patience = Patience { asks: 2, unheard: 1 };
        let [ten, twenty, thirty] = [10, 20, 30].map(Time::from_ps);
        assert!(losses.expire(ten, patience, true, twenty, at_once, |run| given_up.push(run.first)));
        assert_eq!(losses.earliest_deadline(), Some(twenty));
        assert!(!losses.expire(twenty, patience, true, thirty, at_once, |run| given_up.push(run.first)));
        assert_eq!((given_up, losses.earliest_deadline(), losses.frames()), (vec![seq(0)], None, 0));
        assert!(losses.is_empty());
    }

    #[test]
    fn a_peer_that_does_not_run_is_given_more_time_but_not_for_ever() {
        let rounds = |heard: bool| {
            let mut losses = Losses::default();
            losses.open(run(0, 1));
            let patience = Patience { asks: 3, unheard: 4 };
            (1..)
                .map(|n| Time::from_ps(10 * n))
                .position(|now| !losses.expire(now, patience, heard, now, at_once, |_| ()))
                .unwrap()
                + 1
        };
        assert_eq!((rounds(true), rounds(false)), (3, 7));
    }

    #[test]
    fn an_answer_that_takes_long_is_waited_for_and_not_asked_for_again() {
        let mut losses = Losses::default();
        losses.open(MissingRun { ask_at: Time::from_ps(45), ..run(0, 1) });
        let patience = Patience { asks: 10, unheard: 0 };
        let asked: Vec<u64> = (1..10)
            .map(|n| 10 * n)
            .filter(|ps| {
                let (now, renew) = (Time::from_ps(*ps), Time::from_ps(ps + 10));
                losses.expire(now, patience, true, renew, |_| Span::from_ps(25), |_| panic!("given up"))
            })
            .collect();
        assert_eq!(asked, [50, 80], "a round for each answer that is late, not for each deadline");
    }

    /// Every second frame of a window is missing, and then each of them comes, oldest or newest first: the most runs
    /// that forged numbers can open.
    #[test]
    fn forged_gaps_cost_each_frame_a_search_and_no_walk() {
        const RUNS: u32 = 16_000;
        for newest_first in [false, true] {
            let mut losses = Losses::default();
            let mut most = 0;
            let mut step = |losses: &Losses| {
                most = most.max(losses.steps.take());
                losses.steps.set(0);
            };
            for n in 0..RUNS {
                losses.open(MissingRun { deadline: Time::from_ps(u64::from(n)), ..run(2 * n, 1) });
                listed(&losses, 2 * n + 1, newest_first);
                step(&losses);
            }
            for n in 0..RUNS {
                let at = if newest_first { RUNS - 1 - n } else { n };
                assert!(losses.close(seq(2 * at)).is_some() && losses.close(seq(2 * at)).is_none());
                assert_eq!(losses.frames(), RUNS - 1 - n);
                assert_eq!(losses.earliest_deadline().is_none(), losses.is_empty());
                // All that were emptied before go when the first does.
                if n + 1 < RUNS {
                    step(&losses);
                }
            }
            assert!(losses.is_empty() && most < 80, "{most} steps for a frame");
        }
    }
}
