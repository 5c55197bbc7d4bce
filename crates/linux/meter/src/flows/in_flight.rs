//! Slots on their way to a collector, bounded by bytes: [`ReportQueue`] is bounded by number only, and a slot may be a thousand
//! times as long as another.

use std::collections::VecDeque;

use radar::fabricmap::parts;
use radar::fabricmap::slot_report::SwitchSlot;

use crate::digests::{ReportCounts, ReportQueue};

/// Sends slots in pieces.
#[derive(Debug)]
pub struct SlotOutlet {
    queue: ReportQueue,
    most: usize,
    /// Bytes of pieces that were put and may not have been sent.
    waiting: VecDeque<usize>,
    held: usize,
    /// Pieces put into the queue, and slots that found no room.
    put: u64,
    dropped: u64,
}

impl SlotOutlet {
    /// `most` is the bytes that may wait.
    pub fn new(queue: ReportQueue, most: usize) -> Self {
        Self { queue, most, waiting: VecDeque::new(), held: 0, put: 0, dropped: 0 }
    }

    /// Slots that found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub fn sent(&self) -> ReportCounts {
        self.queue.sent()
    }

    /// Sends a slot. False if there is no room: the collector will miss it.
    pub fn put(&mut self, slot: &SwitchSlot) -> bool {
        self.forget_sent();
        let bytes = slot.to_bytes();
        let is_put = match parts::split(slot.slot, &bytes) {
            Some(pieces) if self.held + bytes.len() <= self.most => {
                pieces.into_iter().all(|piece| self.put_piece(piece))
            }
            _ => false,
        };
        self.dropped += u64::from(!is_put);
        is_put
    }

    fn put_piece(&mut self, piece: Vec<u8>) -> bool {
        let bytes = piece.len();
        if !self.queue.put(piece) {
            return false;
        }
        self.put += 1;
        self.held += bytes;
        self.waiting.push_back(bytes);
        true
    }

    fn forget_sent(&mut self) {
        let left = self.put.saturating_sub(self.queue.sent().reports) as usize;
        while self.waiting.len() > left {
            self.held -= self.waiting.pop_front().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digests::{CollectorAddress, report_queue};
    use radar::fabricmap::slot_report::{PortSlot, WayFlows, WaySlot};
    use radar::flowset::{Flowset, FlowsetShape};

    #[test]
    fn slots_that_nobody_takes_wait_within_their_bytes() {
        let nobody = CollectorAddress::Tcp("127.0.0.1:1".to_owned());
        let (queue, _sender) = report_queue(nobody, 7, None);
        let mut outlet = SlotOutlet::new(queue, 1 << 20);
        let way = |packets| {
            let table = Flowset::new(FlowsetShape::new(3, 6_000, 4, 64, 1));
            WaySlot { packets, bytes: 0, flows: WayFlows::Table(Box::new(table)) }
        };
        let slot = |slot| SwitchSlot {
            switch: "leaf1".into(),
            life: 7,
            slot,
            length: 10_000_000,
            missed: 0,
            ports: vec![PortSlot { name: "eth0".into(), ways: [way(1), way(2)] }],
            ended: Vec::new(),
            ended_more: false,
        };
        let bytes = slot(1).to_bytes().len();
        let put = (0..100).filter(|nth| outlet.put(&slot(*nth))).count();
        assert_eq!(put, (1 << 20) / (bytes + 16));
        assert!(outlet.held <= 1 << 20);
        assert_eq!(outlet.dropped(), 100 - put as u64);
    }
}
