//! The losses still open: which frames are missing, since when, and when to stop waiting.
//!
//! LinkGuardian (SIGCOMM'23) App. A.1; `ackNoTimeout` of §3.5. Kept as runs of consecutive frames in
//! sequence order, which is also the order in which they were found missing. There are never more open
//! frames than the peer's window, so the list is bounded; it is nearly always empty or of length one.

use std::collections::VecDeque;

use units::Time;
use wire::Seq;
use wire::link::{Feedback, Gap};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: Seq,
    pub frames: u32,
    /// When the gap was noticed.
    pub since: Time,
    /// When to ask again or give up.
    pub deadline: Time,
    /// How often it was asked for before the latest time.
    pub round: u8,
    /// How many of those times the peer was not heard of meanwhile.
    pub unheard: u8,
}

impl Run {
    pub fn contains(&self, seq: Seq) -> bool {
        (0..self.frames as i32).contains(&seq.offset_from(self.first))
    }

    fn after(&self) -> Seq {
        self.first.plus(self.frames)
    }
}

/// How often a missing frame is asked for: so many times, and so many more if the peer was not heard of
/// meanwhile, which means that it does not run rather than that the wire lost its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    pub asks: u8,
    pub unheard: u8,
}

#[derive(Debug, Default)]
pub struct Losses {
    runs: VecDeque<Run>,
}

impl Losses {
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The oldest frame missing.
    pub fn first(&self) -> Option<Seq> {
        self.runs.front().map(|run| run.first)
    }

    /// Frames missing.
    pub fn frames(&self) -> u32 {
        self.runs.iter().map(|run| run.frames).sum()
    }

    /// Adds a run where it belongs in sequence order: at the end, unless a frame that had arrived was
    /// dropped for want of room.
    pub fn open(&mut self, run: Run) {
        let at = self.runs.iter().rposition(|other| other.first.offset_from(run.first) < 0).map_or(0, |at| at + 1);
        self.runs.insert(at, run);
    }

    /// Takes out one frame that arrived; the run that it was part of, if it was missing.
    pub fn close(&mut self, seq: Seq) -> Option<Run> {
        let at = self.runs.iter().position(|run| run.contains(seq))?;
        let run = self.runs[at];
        let before = seq.offset_from(run.first) as u32;
        let behind = run.frames - before - 1;
        match (before, behind) {
            (0, 0) => {
                self.runs.remove(at);
            }
            (0, _) => self.runs[at] = Run { first: seq.next(), frames: behind, ..run },
            (_, 0) => self.runs[at].frames = before,
            _ => {
                self.runs[at].frames = before;
                self.runs.insert(at + 1, Run { first: seq.next(), frames: behind, ..run });
            }
        }
        Some(run)
    }

    pub fn earliest_deadline(&self) -> Option<Time> {
        self.runs.iter().map(|run| run.deadline).min()
    }

    /// Runs whose deadline has come: those asked for as `patience` allows get `renew`ed deadlines and
    /// another round; the others are taken out and returned through `gave_up`. `heard` says whether the
    /// peer was heard of since the last time. True if any is to be asked for again.
    pub fn expire(
        &mut self,
        now: Time,
        patience: Patience,
        heard: bool,
        renew: Time,
        mut gave_up: impl FnMut(Run),
    ) -> bool {
        let mut again = false;
        self.runs.retain_mut(|run| {
            if run.deadline > now {
                return true;
            }
            let unheard = (run.unheard + u8::from(!heard)).min(patience.unheard);
            if run.round + 1 - unheard.min(run.round) < patience.asks {
                run.unheard = unheard;
                run.round += 1;
                run.deadline = renew;
                again = true;
                return true;
            }
            gave_up(*run);
            false
        });
        again
    }

    /// Lists open runs in `feedback`, newest or oldest first, as far as they fit. If some do not, the
    /// feedback's `latest` is moved back before the first that is not listed, so that it claims nothing
    /// for them.
    #[inline(never)]
    pub fn list(&self, feedback: &mut Feedback, newest_first: bool) {
        let mut unlisted: Option<Seq> = None;
        let mut visit = |run: &Run| {
            let mut first = run.first;
            while first != run.after() {
                let frames = (run.after().offset_from(first) as u32).min(Gap::MAX_FRAMES);
                if feedback.is_full() {
                    let earlier = unlisted.is_none_or(|seen| first.offset_from(seen) < 0);
                    unlisted = if earlier { Some(first) } else { unlisted };
                    return;
                }
                feedback.push(Gap::new(first, frames, run.round));
                first = first.plus(frames);
            }
        };
        if newest_first {
            self.runs.iter().rev().for_each(&mut visit);
        } else {
            self.runs.iter().for_each(&mut visit);
        }
        if let Some(seq) = unlisted {
            feedback.latest = seq.previous();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::link::{Class, MAX_GAPS, Wish};

    fn seq(number: u32) -> Seq {
        Seq::new(65_530, false).plus(number)
    }

    fn run(first: u32, frames: u32) -> Run {
        Run { first: seq(first), frames, since: Time::ZERO, deadline: Time::from_ps(10), round: 0, unheard: 0 }
    }

    fn listed(losses: &Losses, latest: u32, newest_first: bool) -> Feedback {
        let mut feedback = Feedback::new(Class::Ordered, seq(latest), Wish::Flow);
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
        assert!(losses.expire(Time::from_ps(10), patience, true, Time::from_ps(20), |run| given_up.push(run.first)));
        assert_eq!(losses.earliest_deadline(), Some(Time::from_ps(20)));
        assert!(!losses.expire(Time::from_ps(20), patience, true, Time::from_ps(30), |run| given_up.push(run.first)));
        assert_eq!(given_up, [seq(0)]);
        assert!(losses.is_empty());
    }

    #[test]
    fn a_peer_that_does_not_run_is_given_more_time_but_not_for_ever() {
        let rounds = |heard: bool| {
            let mut losses = Losses::default();
            losses.open(run(0, 1));
            let patience = Patience { asks: 3, unheard: 4 };
            (1..)
                .find(|n| !losses.expire(Time::from_ps(10 * n), patience, heard, Time::from_ps(10 * n), |_| ()))
                .unwrap()
        };
        assert_eq!((rounds(true), rounds(false)), (3, 7));
    }
}
