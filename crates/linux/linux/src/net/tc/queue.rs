//! Queueing disciplines: a rate limit, a plain queue, one that paces flows, and the counters of each.

use super::super::Result;
use super::super::netlink::{Netlink, NetlinkRequest, attribute, u32_at, u64_at};
use super::{CLSACT, CREATE, ROOT, header, was_there};

/// One of an interface's queueing disciplines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qdisc {
    /// Counts every packet that meets the filters; its drops are their verdicts.
    Clsact,
    /// Counts what has left the queue; its drops are what did not fit.
    Root,
}

/// The kernel's counters; `drops` and `overlimits` wrap at 2³².
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QdiscStatistics {
    pub packets: u64,
    pub bytes: u64,
    pub drops: u64,
    pub overlimits: u64,
    pub backlog_packets: u64,
    pub backlog_bytes: u64,
}

/// Numbers of our own: `tc` calls a rate limit that somebody else sets `1:`.
const TBF_HANDLE: u32 = 0x6877_0000;
const FIFO_HANDLE: u32 = 0x0002_0000;

const TBF_PARAMETERS: u16 = 1;
const TBF_RATE64: u16 = 4;
const TBF_BURST: u16 = 6;
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
const STATS_PACKETS64: u16 = 8;

impl Netlink {
    /// False if the root is another's: the kernel compares handle and kind.
    pub(super) fn delete_tbf(&self, index: u32) -> Result<bool> {
        let request = NetlinkRequest::new(libc::RTM_DELQDISC, 0, &header(index, TBF_HANDLE, ROOT, 0));
        let request = request.string(libc::TCA_KIND, "tbf");
        was_there(self.execute_on(index, format_args!("delete the rate limit of"), request))
    }

    /// Limits what leaves to a rate, after at most `burst` bytes at once; `limit` bytes may wait. A packet
    /// longer than `burst` never leaves.
    pub fn set_tbf(&self, index: u32, bits_per_second: u64, burst: u32, limit: u32) -> Result<()> {
        let rate = bits_per_second.div_ceil(8);
        let request = new_root(index, TBF_HANDLE).string(libc::TCA_KIND, "tbf").nested(libc::TCA_OPTIONS, |options| {
            options
                .attribute(TBF_PARAMETERS, &tbf_parameters(rate, limit))
                .attribute(TBF_RATE64, &rate.to_ne_bytes())
                .number(TBF_BURST, burst)
        });
        self.execute_on(index, format_args!("limit to {bits_per_second} bit/s what leaves"), request)
    }

    /// A plain queue of at most `packets` packets.
    pub fn set_fifo(&self, index: u32, packets: u32) -> Result<()> {
        let request = new_root(index, FIFO_HANDLE);
        let request = request.string(libc::TCA_KIND, "pfifo").number(libc::TCA_OPTIONS, packets);
        self.execute_on(index, format_args!("limit to {packets} packets the queue of"), request)
    }

    /// A queue that paces each flow as its sender asks (`fq`).
    pub fn set_fair_queue(&self, index: u32) -> Result<()> {
        let request = new_root(index, FIFO_HANDLE).string(libc::TCA_KIND, "fq");
        self.execute_on(index, format_args!("pace what leaves"), request)
    }

    /// Back to the kernel's default queue.
    pub fn delete_root(&self, index: u32) -> Result<()> {
        let request = NetlinkRequest::new(libc::RTM_DELQDISC, 0, &header(index, 0, ROOT, 0));
        self.execute_on(index, format_args!("delete the queue of"), request)
    }

    /// Reads the statistics of a discipline; `None` if the interface has none. Asks for the whole list, because the kernel
    /// sends the answer to a question for one discipline to everybody who listens for changes.
    pub fn qdisc_statistics(&self, index: u32, qdisc: Qdisc) -> Result<Option<QdiscStatistics>> {
        let parent = if qdisc == Qdisc::Clsact { CLSACT } else { ROOT };
        let request = NetlinkRequest::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP, &header(index, 0, 0, 0));
        let answers = self.execute(format_args!("read the counters of interface {index}"), request)?;
        let wanted = |message: &[u8]| u32_at(message, 4) == Some(index) && u32_at(message, 12) == Some(parent);
        Ok(answers.iter().find(|message| wanted(message)).map(|message| QdiscStatistics::parse(message)))
    }
}

fn new_root(index: u32, handle: u32) -> NetlinkRequest {
    NetlinkRequest::new(libc::RTM_NEWQDISC, CREATE | libc::NLM_F_REPLACE, &header(index, handle, ROOT, 0))
}

/// `tc_tbf_qopt`: rate, peak rate, limit, and two times that `TBF_BURST` replaces.
fn tbf_parameters(rate: u64, limit: u32) -> [u8; 36] {
    const ETHERNET: u8 = 1;
    let mut parameters = [0; 36];
    parameters[1] = ETHERNET;
    parameters[8..12].copy_from_slice(&u32::try_from(rate).unwrap_or(u32::MAX).to_ne_bytes());
    parameters[24..28].copy_from_slice(&limit.to_ne_bytes());
    parameters
}

impl QdiscStatistics {
    fn parse(message: &[u8]) -> Self {
        let all = message.get(20..).and_then(|rest| attribute(rest, libc::TCA_STATS2)).unwrap_or_default();
        let basic = attribute(all, STATS_BASIC).unwrap_or_default();
        let queue = attribute(all, STATS_QUEUE).unwrap_or_default();
        let word = |bytes, position: usize| u64::from(u32_at(bytes, 4 * position).unwrap_or(0));
        // Sent only once the short counter is not enough.
        let packets = attribute(all, STATS_PACKETS64).and_then(|bytes| u64_at(bytes, 0));
        Self {
            packets: packets.unwrap_or_else(|| word(basic, 2)),
            bytes: u64_at(basic, 0).unwrap_or(0),
            drops: word(queue, 2),
            overlimits: word(queue, 4),
            backlog_packets: word(queue, 0),
            backlog_bytes: word(queue, 1),
        }
    }
}
