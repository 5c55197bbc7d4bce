//! L of Alg. 1: the last telemetry of every link of the path, and what the next one says beside it.
//!
//! Exact telemetry and the wrapping fields of Fig. 2.7 go the same way: a difference is taken modulo what the field counts to,
//! and more than half of that is a step back.

use units::{Rate, Span, Time};
use wire::int::{IntHeader, IntHop, IntWord};

use super::{HpccConfig, IntForm, LinkSignal};
use crate::{ControlSite, TelemetrySample};

/// Most links that nHop of Fig. 2.7 counts; links beyond it are not looked at.
pub(super) const MAX_HOPS: usize = IntHeader::MAX_HOPS;

/// Load of a link between two telemetries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LinkLoad {
    /// Normalised inflight bytes (Eq. 2.2).
    pub u: f64,
    /// τ / T, at most 1.
    pub share: f64,
}

/// An entry of L, in the units of the telemetry.
#[derive(Clone, Copy, Debug, Default)]
struct LinkRecord {
    at: u64,
    bytes: u64,
    queue: u32,
    rate_mbps: u32,
    /// 1 / (B · T), bytes.
    inverse_bdp: f64,
}

#[derive(Clone, Debug)]
pub(super) struct LinkRecords {
    int: IntForm,
    signal: LinkSignal,
    time_mask: u64,
    byte_mask: u64,
    byte_unit: f64,
    /// 1 / T, T in units of the telemetry's time.
    inverse_t: f64,
    /// T in seconds.
    t: f64,
    /// A queue pair that had nothing in flight for this long was idle: an average over that time says nothing of now.
    idle_after: Span,

    /// Path of the entries; `count` is 0 before the first.
    path: u16,
    count: usize,
    filled_at: Time,
    /// True if everything had been acknowledged then.
    drained: bool,
    /// Differences are ambiguous after this time.
    longest_gap: Span,
    records: [LinkRecord; MAX_HOPS],
    resets: u64,
}

impl LinkRecords {
    pub(super) fn new(config: &HpccConfig, site: &ControlSite, t: Span) -> Self {
        let int = config.int.unwrap_or_default();
        let (time_unit, time_mask, byte_unit, byte_mask) = match int {
            IntForm::Exact => (1, u64::MAX, 1, u64::MAX),
            IntForm::Packed(units) => {
                (1_000, IntWord::TIME_MASK, IntWord::TX_UNIT * u64::from(units), IntWord::TX_MASK)
            }
        };
        // A flow at the least rate has one packet in flight at a time: it is not idle between two.
        let slowest = 8.0 * f64::from(site.mtu + 256) / config.min_rate.bits_per_second() as f64;
        Self {
            int,
            signal: config.signal,
            time_mask,
            byte_mask,
            byte_unit: byte_unit as f64,
            inverse_t: time_unit as f64 / t.as_ps() as f64,
            t: t.as_secs(),
            idle_after: t.scale(16.0) + Span::from_ms(1_000).scale(2.0 * slowest),
            path: 0,
            count: 0,
            filled_at: Time::ZERO,
            drained: false,
            longest_gap: Span::from_ps(u64::MAX),
            records: [LinkRecord::default(); MAX_HOPS],
            resets: 0,
        }
    }

    /// Number of times L was begun anew.
    pub(super) fn resets(&self) -> u64 {
        self.resets
    }

    /// Links of the path; 0 before the first telemetry.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// True if telemetry of this path has been seen last.
    pub(super) fn is_of(&self, sample: &TelemetrySample<'_>) -> bool {
        self.count == sample.hops.len().min(MAX_HOPS) && self.path == sample.path
    }

    /// Takes telemetry that came at `now` into L. False if it cannot be held against what was there: the first, of another path,
    /// after too long a gap, or with a time that did not advance. Otherwise `each` has seen every link's load, in their order.
    #[inline]
    pub(super) fn update(
        &mut self,
        now: Time,
        drained: bool,
        sample: &TelemetrySample<'_>,
        mut each: impl FnMut(usize, LinkLoad),
    ) -> bool {
        let hops = &sample.hops[..sample.hops.len().min(MAX_HOPS)];
        let gap = now.since(self.filled_at);
        let mut comparable = self.is_of(sample) && gap <= self.longest_gap && !(self.drained && gap > self.idle_after);
        let first = self.count == 0;
        for (at, hop) in hops.iter().enumerate() {
            let Some(fresh) = self.read(hop) else {
                self.forget();
                return false;
            };
            let last = self.records[at];
            let inverse_bdp = if fresh.rate_mbps == last.rate_mbps {
                last.inverse_bdp
            } else {
                comparable = false;
                8e-6 / (f64::from(fresh.rate_mbps.max(1)) * self.t)
            };
            let fresh = LinkRecord { inverse_bdp, ..fresh };
            if comparable {
                match self.load(&last, &fresh) {
                    Some(load) => each(at, load),
                    None => comparable = false,
                }
            }
            self.records[at] = fresh;
        }
        self.filled_at = now;
        self.drained = drained;
        if !comparable {
            self.begin(sample.path, hops.len());
            self.resets += u64::from(!first);
        }
        comparable
    }

    /// The entry for a hop, without its `inverse_bdp`. `None` if Fig. 2.7 cannot name the port's rate.
    #[inline]
    fn read(&self, hop: &IntHop) -> Option<LinkRecord> {
        let (at, bytes, queue) = match (self.int, self.signal) {
            (IntForm::Packed(units), _) => {
                let scaled = IntHop { tx_bytes: hop.tx_bytes / u64::from(units), queue: hop.queue / units, ..*hop };
                let word = IntWord::pack(&scaled)?;
                (word.time_ns(), word.tx_units(), word.queue().saturating_mul(units))
            }
            (IntForm::Exact, LinkSignal::Tx) => (hop.at.as_ps(), hop.tx_bytes, hop.queue),
            (IntForm::Exact, LinkSignal::Rx) => (hop.at.as_ps(), hop.rx_bytes(), hop.queue),
        };
        Some(LinkRecord { at, bytes, queue, rate_mbps: hop.rate_mbps, inverse_bdp: 0.0 })
    }

    /// Lines 4 and 5 of Alg. 1; `None` if time or bytes did not advance.
    #[inline]
    fn load(&self, last: &LinkRecord, fresh: &LinkRecord) -> Option<LinkLoad> {
        let tau = fresh.at.wrapping_sub(last.at) & self.time_mask;
        let bytes = fresh.bytes.wrapping_sub(last.bytes) & self.byte_mask;
        if tau == 0 || tau > self.time_mask / 2 || bytes > self.byte_mask / 2 {
            return None;
        }
        let mut bytes = bytes as f64 * self.byte_unit;
        if self.int != IntForm::Exact && self.signal == LinkSignal::Rx {
            // Fig. 2.7 has no such field: what joined has left or is still there.
            bytes = (bytes + f64::from(fresh.queue) - f64::from(last.queue)).max(0.0);
        }
        let share = tau as f64 * self.inverse_t;
        let queue = f64::from(fresh.queue.min(last.queue));
        Some(LinkLoad { u: (queue + bytes / share) * fresh.inverse_bdp, share: share.min(1.0) })
    }

    /// The entries that have just been written are the first of a path.
    fn begin(&mut self, path: u16, count: usize) {
        (self.path, self.count) = (path, count);
        if let IntForm::Packed(units) = self.int {
            let fastest = self.records[..count].iter().max_by_key(|record| record.rate_mbps);
            let bytes_wrap = fastest.map(|record| {
                let rate = Rate::from_bits_per_second(u64::from(record.rate_mbps) * 1_000_000);
                IntWord::bytes_wrap(rate) * u64::from(units)
            });
            self.longest_gap = IntWord::TIME_WRAP.min(bytes_wrap.unwrap_or(IntWord::TIME_WRAP)) / 2;
        }
    }

    fn forget(&mut self) {
        self.resets += u64::from(self.count > 0);
        self.count = 0;
    }
}
