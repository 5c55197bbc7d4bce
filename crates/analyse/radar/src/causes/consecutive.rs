//! Determines if the lost packets of a flow follow each other: li-thesis §5.5.1.2, which goes by IP's identification.
//!
//! Three things show it, in this order. *Places*, where a meter counted the packets of the flow: nothing is surer.
//! *TCP's sequence numbers*: what was lost is a stretch without a hole, and what was lost again (a retransmission, which
//! has its number a second time) lies within it. *The identification*, which Linux counts for each connection, modulo
//! 65,536.
//!
//! An acknowledgement without data takes up no sequence numbers. Any number of them may have passed between two that were
//! lost, so they do not show that losses follow each other, though they show where data passed in between. A flow of which
//! only such were lost goes by the identification.
//!
//! If the identification never changes (Linux has zero in UDP that must not be fragmented) and nothing else shows the
//! order, the order is unknown. Such a flow is never judged to be in a blackhole by its order, and does not make a burst
//! congestion either.

use crate::loss::Loss;
use crate::packet::TcpFields;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SequenceOrder {
    Consecutive,
    /// A packet in between was not lost.
    Apart,
    Untold,
}

/// The losses of a flow so far, by time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowLossTrack {
    losses: usize,
    places: SequenceClue<u64>,
    tcp: LostRange,
    ids: SequenceClue<u16>,
}

/// Numbers that should go up by one.
#[derive(Clone, Copy, Debug, Default)]
struct SequenceClue<T> {
    last: Option<T>,
    told: usize,
    is_apart: bool,
    has_changed: bool,
}

impl<T: Copy + PartialEq> SequenceClue<T> {
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
struct LostRange {
    range: Option<(u32, u32)>,
    segments: usize,
    with_data: usize,
    is_apart: bool,
}

impl LostRange {
    fn push(&mut self, TcpFields { seq, len, .. }: TcpFields) {
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

impl FlowLossTrack {
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

    pub(super) fn order(&self) -> SequenceOrder {
        let order = |is_apart| if is_apart { SequenceOrder::Apart } else { SequenceOrder::Consecutive };
        match self.witness() {
            OrderWitness::Places => order(self.places.is_apart),
            OrderWitness::Tcp => order(self.tcp.is_apart),
            OrderWitness::Ids => order(self.ids.is_apart),
            OrderWitness::None => SequenceOrder::Untold,
        }
    }

    /// Number of losses that show if they follow each other.
    pub(super) fn evidence(&self) -> usize {
        match self.witness() {
            OrderWitness::Places | OrderWitness::Ids => self.losses,
            OrderWitness::Tcp => self.tcp.with_data,
            OrderWitness::None => 0,
        }
    }

    fn witness(&self) -> OrderWitness {
        let is_tcp = self.tcp.segments == self.losses;
        if self.places.told == self.losses {
            OrderWitness::Places
        } else if is_tcp && (self.tcp.with_data > 0 || self.tcp.is_apart) {
            OrderWitness::Tcp
        } else if self.ids.told == self.losses && self.ids.has_changed {
            OrderWitness::Ids
        } else {
            OrderWitness::None
        }
    }
}

/// Field that shows the order of a flow's packets.
#[derive(Clone, Copy)]
enum OrderWitness {
    Places,
    Tcp,
    Ids,
    None,
}
