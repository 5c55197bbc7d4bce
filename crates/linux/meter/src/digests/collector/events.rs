//! Events that a collector reports. Packets are named one by one as long as people can read that; events that strangers can
//! cause without end are counted.

use radar::packet::Flow;
use radar::rule::CauseLine;
use radar::signature::Fields;
use units::Timestamp;

/// Lost packets that are listed between two looks, of all segments; and ends that are heard for the first time.
const MOST_LOST: u64 = 100_000;
const MOST_HEARD: u64 = 100;

/// A packet that went in and did not come out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostPacket {
    pub segment: String,
    /// The end by which it went in, and that where it should have come out; `None` in a black box.
    pub from: Option<String>,
    pub to: Option<String>,
    /// Number of packets, all alike.
    pub times: u32,
    /// Beginning of the batch in which it was found.
    pub batch: Timestamp,
    /// Time at which it passed the upstream meter, and its time to live there, where they are known.
    pub at: Option<Timestamp>,
    pub ttl: Option<u8>,
    /// Nanoseconds from the batch until it was known to be lost.
    pub delay: u64,
    pub flow: Flow,
    pub tcp_seq: Option<u32>,
    pub ip_id: Option<u16>,
    /// Fields of the packet that are known; the others are rewritten on the way.
    pub fields: Fields,
}

/// Cause of losses of an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedCause {
    pub segment: String,
    pub from: Option<String>,
    pub to: Option<String>,
    pub line: CauseLine,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CollectorEvent {
    Lost(Box<LostPacket>),
    /// A packet that was called lost has come after all.
    Late(Box<LostPacket>),
    Cause(Box<JudgedCause>),
    /// An end has reported for the first time.
    Heard {
        segment: String,
        end: String,
    },
    Silent {
        segment: String,
        end: String,
    },
    Back {
        segment: String,
        end: String,
    },
    /// A problem with reports that cannot be compared or believed, with what to do about it.
    Trouble(String),
}

/// Counts of events since the last look, listed or not.
#[derive(Debug, Default)]
pub(super) struct UnlistedEvents {
    lost: u64,
    heard: u64,
}

impl UnlistedEvents {
    /// Counts one more lost packet; true if it may be listed.
    pub(crate) fn may_list(&mut self) -> bool {
        self.lost += 1;
        self.lost <= MOST_LOST
    }

    /// Counts one more end; true if it may be reported.
    pub(crate) fn may_tell(&mut self) -> bool {
        self.heard += 1;
        self.heard <= MOST_HEARD
    }

    pub(crate) fn take(&mut self) -> Vec<CollectorEvent> {
        let Self { lost, heard } = std::mem::take(self);
        let mut news = Vec::new();
        if lost > MOST_LOST {
            let more = lost - MOST_LOST;
            news.push(format!("{more} more lost packets are not listed one by one; the summaries count them"));
        }
        if heard > MOST_HEARD {
            news.push(format!("{} more ends began to report", heard - MOST_HEARD));
        }
        news.into_iter().map(CollectorEvent::Trouble).collect()
    }
}
