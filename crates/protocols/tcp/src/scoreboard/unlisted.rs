//! Segments that a kernel's RACK no longer sees: a segment that it declared lost leaves the list that it looks at
//! (`tsorted_sent_queue`), and returns only by being sent again. If the repair turns out to be unnecessary before that, the
//! segment counts as in flight, but only the retransmission timer can find it lost again.

use super::Scoreboard;

/// First positions of such segments. Only connections with a socket keep them.
#[derive(Debug, Default)]
pub(super) struct UnlistedSegments(Vec<u64>);

impl Scoreboard {
    /// Scoreboard of a connection with a `socket` or without.
    pub(crate) fn new(socket: bool) -> Self {
        Self { unlisted: socket.then(UnlistedSegments::default), ..Self::default() }
    }

    /// RACK takes a segment for lost.
    pub(super) fn unlist(&mut self, index: usize) {
        let (start, head) = (self.records[index].start, self.records[0].start);
        if let Some(UnlistedSegments(starts)) = &mut self.unlisted {
            starts.retain(|other| *other >= head && *other != start);
            starts.push(start);
        }
    }

    /// A segment leaves again.
    pub(super) fn list_again(&mut self, index: usize) {
        let start = self.records[index].start;
        if let Some(UnlistedSegments(starts)) = &mut self.unlisted {
            starts.retain(|other| *other != start);
        }
    }

    pub(super) fn is_unlisted(&self, start: u64) -> bool {
        self.unlisted.as_ref().is_some_and(|UnlistedSegments(starts)| starts.contains(&start))
    }
}

#[cfg(test)]
mod tests {
    use units::{Span, Time};

    use super::*;
    use crate::delivery::DeliveryStamp;
    use crate::rack::RackState;

    /// True if RACK finds a segment lost a second time, after the first proved to be a mistake.
    fn finds_again(socket: bool, resent: bool) -> bool {
        let at = |us| Time::ZERO + Span::from_us(us);
        let mut board = Scoreboard::new(socket);
        board.push(0, 1_000, at(0), DeliveryStamp::default());
        board.push(1_000, 1_000, at(0), DeliveryStamp::default());
        let judge = |us| RackState { now: at(us), sent_at: at(us), start: 5_000, patience: Span::from_us(20) };
        board.detect(&judge(30), &mut crate::scoreboard::tests::sink());
        assert_eq!(board.lost(), 2_000);
        if resent {
            let index = board.next_repair().expect("two are lost");
            board.resend(index, at(40), DeliveryStamp::default());
        }
        board.forget_losses();
        board.detect(&judge(90), &mut crate::scoreboard::tests::sink());
        board.lost() == 2_000
    }

    #[test]
    fn a_kernel_does_not_find_again_what_it_did_not_send_again() {
        assert_eq!([finds_again(true, false), finds_again(false, false)], [false, true]);
        assert!(!finds_again(true, true), "one of the two was sent again");
    }
}
