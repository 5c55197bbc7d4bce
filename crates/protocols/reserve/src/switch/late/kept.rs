//! The RSVs that are kept: at most one for each context, in lists by output, class and input.
//!
//! A list is linked through the array of RSVs, and words of bits say which lists are not empty, so finding the next one takes
//! a few instructions and nothing is allocated after the start.

use wire::reserve::RESERVE_CLASSES;

use super::super::scheduler::AdmittedRsv;

const NONE: u32 = u32::MAX;
/// Consecutive RSVs of one class after which another class has its turn, so that none waits for ever.
const IN_A_ROW: u8 = 8;

#[derive(Clone, Copy, Debug)]
struct ContextList {
    first: u32,
    last: u32,
}

impl ContextList {
    const EMPTY: Self = Self { first: NONE, last: NONE };
}

/// RSVs that wait for one output.
#[derive(Clone, Debug, Default)]
struct OutputQueue {
    /// Inputs that have an RSV waiting, for each class.
    inputs: [u128; RESERVE_CLASSES as usize],
    /// The input that was answered last.
    last: u16,
    /// Consecutive times that the lowest class was preferred to another that waited.
    in_a_row: u8,
    /// The class that had the last turn of those that were passed over.
    turn: u8,
}

#[derive(Clone, Debug)]
pub(super) struct KeptRsvs {
    ports: usize,
    rsvs: Vec<Option<AdmittedRsv>>,
    next: Vec<u32>,
    lists: Vec<ContextList>,
    queues: Vec<OutputQueue>,
    /// Bit mask of the outputs with waiting RSVs.
    waiting: u128,
}

impl KeptRsvs {
    pub(super) fn new(ports: u16, contexts: u16) -> Self {
        let all = usize::from(ports) * usize::from(contexts);
        let ports = usize::from(ports);
        Self {
            ports,
            rsvs: vec![None; all],
            next: vec![NONE; all],
            lists: vec![ContextList::EMPTY; ports * ports * usize::from(RESERVE_CLASSES)],
            queues: vec![OutputQueue::default(); ports],
            waiting: 0,
        }
    }

    /// Outputs with waiting RSVs.
    #[inline]
    pub(super) fn outputs(&self) -> impl Iterator<Item = u16> + use<> {
        let mut left = self.waiting;
        std::iter::from_fn(move || {
            let to = (left != 0).then(|| left.trailing_zeros() as u16)?;
            left &= left - 1;
            Some(to)
        })
    }

    #[inline]
    pub(super) fn waits_for(&self, to: u16) -> bool {
        self.waiting >> to & 1 != 0
    }

    fn list_of(&self, rsv: &AdmittedRsv) -> usize {
        (usize::from(rsv.to) * usize::from(RESERVE_CLASSES) + usize::from(rsv.about.class)) * self.ports
            + usize::from(rsv.from)
    }

    /// Takes out what the context has waiting in another list than this RSV belongs to; the token of it.
    #[inline]
    pub(super) fn remove_elsewhere(&mut self, rsv: &AdmittedRsv) -> Option<u64> {
        let kept = self.rsvs[rsv.context as usize].as_ref()?;
        if self.list_of(kept) == self.list_of(rsv) {
            return None;
        }
        self.remove(rsv.context).map(|kept| kept.token)
    }

    /// Keeps an RSV. One of the same context and list gives up its place to it; the token of that one.
    pub(super) fn put(&mut self, rsv: AdmittedRsv) -> Option<u64> {
        let (list, context) = (self.list_of(&rsv), rsv.context);
        if let Some(kept) = &mut self.rsvs[context as usize] {
            let replaced = kept.token;
            *kept = rsv;
            return Some(replaced);
        }
        self.rsvs[context as usize] = Some(rsv);
        self.next[context as usize] = NONE;
        match std::mem::replace(&mut self.lists[list].last, context) {
            NONE => self.lists[list].first = context,
            last => self.next[last as usize] = context,
        }
        self.queues[usize::from(rsv.to)].inputs[usize::from(rsv.about.class)] |= 1 << rsv.from;
        self.waiting |= 1 << rsv.to;
        None
    }

    /// Takes out the RSV of a context.
    pub(super) fn remove(&mut self, context: u32) -> Option<AdmittedRsv> {
        let rsv = self.rsvs[context as usize].take()?;
        let list = self.list_of(&rsv);
        let behind = self.next[context as usize];
        let before = self.before(list, context);
        match before {
            NONE => self.lists[list].first = behind,
            before => self.next[before as usize] = behind,
        }
        if behind == NONE {
            self.lists[list].last = before;
        }
        if self.lists[list].first == NONE {
            self.clear(&rsv);
        }
        Some(rsv)
    }

    fn before(&self, list: usize, context: u32) -> u32 {
        let mut at = self.lists[list].first;
        let mut before = NONE;
        while at != context {
            before = at;
            at = self.next[at as usize];
        }
        before
    }

    /// The list of this RSV is empty.
    fn clear(&mut self, rsv: &AdmittedRsv) {
        let queue = &mut self.queues[usize::from(rsv.to)];
        queue.inputs[usize::from(rsv.about.class)] &= !(1 << rsv.from);
        if queue.inputs == [0; RESERVE_CLASSES as usize] {
            self.waiting &= !(1 << rsv.to);
        }
    }

    /// Takes out the RSV whose turn it is at this output.
    pub(super) fn take_next(&mut self, to: u16) -> Option<AdmittedRsv> {
        let queue = &mut self.queues[usize::from(to)];
        let class = queue.next_class()?;
        let from = next_bit(queue.inputs[class], queue.last);
        queue.last = from;
        let list = (usize::from(to) * usize::from(RESERVE_CLASSES) + class) * self.ports + usize::from(from);
        self.remove(self.lists[list].first)
    }
}

impl OutputQueue {
    fn next_class(&mut self) -> Option<usize> {
        let waits = |class: usize| self.inputs[class] != 0;
        let classes = self.inputs.len();
        let lowest = (0..classes).find(|class| waits(*class))?;
        if !(lowest + 1..classes).any(waits) {
            self.in_a_row = 0;
            return Some(lowest);
        }
        if self.in_a_row < IN_A_ROW {
            self.in_a_row += 1;
            return Some(lowest);
        }
        let turn = usize::from(self.turn);
        let class =
            (1..=classes).map(|step| (turn + step) % classes).find(|class| *class != lowest && waits(*class))?;
        (self.in_a_row, self.turn) = (0, class as u8);
        Some(class)
    }
}

/// The next set bit above `last`, or from the start.
fn next_bit(bits: u128, last: u16) -> u16 {
    let above = if last >= 127 { 0 } else { bits & (u128::MAX << (last + 1)) };
    (if above != 0 { above } else { bits }).trailing_zeros() as u16
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::admitted;
    use super::*;

    #[test]
    fn any_of_a_list_can_be_taken_out() {
        for victim in 0..3 {
            let mut kept = KeptRsvs::new(6, 12);
            let mut rsv = admitted(0, 5, 4);
            for context in 0..3 {
                rsv.context = context;
                kept.put(rsv);
            }
            assert_eq!(kept.remove(victim).map(|rsv| rsv.context), Some(victim));
            rsv.context = 7;
            kept.put(rsv);
            let left: Vec<u32> = std::iter::from_fn(|| kept.take_next(5)).map(|rsv| rsv.context).collect();
            let expected: Vec<u32> = (0..3).filter(|context| *context != victim).chain([7]).collect();
            assert_eq!(left, expected);
            assert_eq!(kept.outputs().count(), 0);
        }
    }

    #[test]
    fn the_next_bit_wraps_around() {
        assert_eq!((next_bit(0b1010, 1), next_bit(0b1010, 3), next_bit(1 << 127, 127)), (3, 1, 127));
    }
}
