//! Requests: what happens between two moments at which nothing is outstanding either way.

use super::TrackedConnection;
use crate::terms::{EndSide, TimeCause};
use crate::timeline::{PartSums, SpentTime};

/// A request that is over.
#[derive(Clone, Debug)]
pub(crate) struct RequestNote {
    pub start: u64,
    pub duration: u64,
    pub bytes: [u64; 2],
    pub parts: PartSums,
}

impl RequestNote {
    /// Memory use, with the number of parts that most requests have.
    pub(super) const BYTES: usize = size_of::<Self>() + 4 * size_of::<(TimeCause, EndSide, u64)>();
}

#[derive(Clone, Debug)]
pub(super) struct OpenRequest {
    pub(super) time: SpentTime,
    pub(super) bytes: [u64; 2],
}

impl TrackedConnection {
    /// True if payload of this end, sent now, begins a request: nothing is outstanding, and it is the end that began.
    pub(super) fn starts_request(&mut self, side: EndSide, is_new: bool) -> bool {
        let is_initiator = *self.initiator.get_or_insert(side) == side;
        is_new && is_initiator && self.senders.iter().all(|sender| sender.is_quiet())
    }

    pub(super) fn open_request(&mut self, at: u64) {
        self.close_request();
        self.request = Some(OpenRequest { time: SpentTime::new(at), bytes: [0; 2] });
    }

    pub(super) fn close_request(&mut self) {
        if let Some(OpenRequest { time, bytes }) = self.request.take() {
            let (start, duration) = (time.start(), time.duration());
            self.requests.push(RequestNote { start, duration, bytes, parts: time.parts().clone() });
        }
    }
}
