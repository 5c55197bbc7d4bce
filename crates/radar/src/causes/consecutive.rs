//! Whether the lost packets of a flow follow each other: li-thesis §5.5.1.2, which goes by IP's identification.
//!
//! Three things tell, in this order. *Places*, where somebody counted the packets of the flow: nothing is surer.
//! *TCP's sequence numbers*: what was lost is a stretch without a hole, and what was lost again (a retransmission, which
//! has its number a second time) lies within it. *The identification*, which Linux counts for each connection, modulo
//! 65,536.
//!
//! An acknowledgement without data takes up no sequence numbers. Any number of them may have passed between two that were
//! lost, so they do not show that losses follow each other, though they show where data passed in between. A flow of which
//! only such were lost goes by the identification.
//!
//! Where the identification never changes (Linux has zero in UDP that must not be fragmented) and nothing else tells, the
//! order is untold: such a flow is never in a blackhole by it, and does not make a burst congestion either.

use crate::loss::Loss;
use crate::packet::Segment;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Consecutive,
    /// Something in between was not lost.
    Apart,
    Untold,
}

/// The losses of a flow so far, by time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Track {
    losses: usize,
    places: Clue<u64>,
    tcp: Stretch,
    ids: Clue<u16>,
}

/// Numbers that should go up by one.
#[derive(Clone, Copy, Debug, Default)]
struct Clue<T> {
    last: Option<T>,
    told: usize,
    is_apart: bool,
    has_changed: bool,
}

impl<T: Copy + PartialEq> Clue<T> {
    fn push(&mut self, number: Option<T>, next: fn(T) -> T) {
        let Some(number) = number else { return };
        if let Some(last) = self.last {
            self.has_changed |= number != last;
            self.is_apart |= number != next(last);
        }
        self.last = Some(number);
        self.told += 1;
    }
}

/// Sequence numbers that were lost: from, and up to.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    range: Option<(u32, u32)>,
    segments: usize,
    with_data: usize,
    is_apart: bool,
}

impl Stretch {
    fn push(&mut self, Segment { seq, len, .. }: Segment) {
        self.segments += 1;
        self.with_data += usize::from(len > 0);
        let end = seq.wrapping_add(len.into());
        let Some((from, to)) = self.range else {
            self.range = Some((seq, end));
            return;
        };
        let is_up_to = |low: u32, high: u32| high.wrapping_sub(low) as i32 >= 0;
        self.is_apart |= !(is_up_to(seq, to) && is_up_to(from, end));
        self.range = Some((if is_up_to(from, seq) { from } else { seq }, if is_up_to(end, to) { to } else { end }));
    }
}

impl Track {
    pub(super) fn of<'a>(losses: impl Iterator<Item = &'a Loss>) -> Self {
        let mut track = Self::default();
        losses.for_each(|loss| track.push(loss));
        track
    }

    pub(super) fn push(&mut self, loss: &Loss) {
        self.losses += 1;
        self.places.push(loss.place, |place| place.wrapping_add(1));
        self.ids.push(loss.ip_id, |id| id.wrapping_add(1));
        if let Some(segment) = loss.tcp {
            self.tcp.push(segment);
        }
    }

    pub(super) fn order(&self) -> Order {
        let order = |is_apart| if is_apart { Order::Apart } else { Order::Consecutive };
        match self.witness() {
            Witness::Places => order(self.places.is_apart),
            Witness::Tcp => order(self.tcp.is_apart),
            Witness::Ids => order(self.ids.is_apart),
            Witness::None => Order::Untold,
        }
    }

    /// How many of the losses show whether they follow each other.
    pub(super) fn evidence(&self) -> usize {
        match self.witness() {
            Witness::Places | Witness::Ids => self.losses,
            Witness::Tcp => self.tcp.with_data,
            Witness::None => 0,
        }
    }

    fn witness(&self) -> Witness {
        let is_tcp = self.tcp.segments == self.losses;
        if self.places.told == self.losses {
            Witness::Places
        } else if is_tcp && (self.tcp.with_data > 0 || self.tcp.is_apart) {
            Witness::Tcp
        } else if self.ids.told == self.losses && self.ids.has_changed {
            Witness::Ids
        } else {
            Witness::None
        }
    }
}

/// What tells of a flow's order.
#[derive(Clone, Copy)]
enum Witness {
    Places,
    Tcp,
    Ids,
    None,
}
