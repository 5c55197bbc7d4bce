//! CUBIC's growth as Linux 5.4 computes it (`bictcp_update`): in whole segments and jiffies, and seldom.
//!
//! - As long as the window stays the same, so does the pace of its growth, for up to 1/32 s.
//! - Within a jiffy only the Reno-friendly estimate is looked at, not the curve.
//! - What the curve lacks to its origin is rounded down: right after a reduction it is a segment above the window, so
//!   that this grows by one, and by more only within the same jiffy or as the friendly estimate passes it.
//!
//! With round trips of a hundred microseconds and a loss every few milliseconds, epochs end before the curve or the
//! estimate is looked at again: the window is then far from that of RFC 9438, to either side.

use machine::Out;
use units::{Span, Time};

use super::super::window::CongestionWindow;
use super::super::{CcConfig, MAX_WINDOW};
use super::{CubicCurve, CubicEpoch, cube_root, slope};
use crate::connection::TcpConnection;
use crate::sites::{TcpSite, TcpTick};

const SECOND: u64 = 1_000_000_000_000;
/// `cube_rtt_scale`: C in 1024ths, with time in 1024ths of a second.
const SCALE: u128 = 410;
const SCALE_SHIFT: u32 = 40;

#[derive(Clone, Debug)]
pub(super) struct Ticks {
    jiffy: u64,
    offset: u64,
    fine_delays: bool,
    /// Jiffies for which the pace is kept (`HZ / 32`).
    keep: u64,
    /// Window and jiffy when the curve was last looked at; no window if never.
    size: u64,
    tick: u64,
    /// K, in 1024ths of a second.
    k: u64,
    /// Bytes to acknowledge for a segment of growth.
    per: u64,
}

impl Ticks {
    /// `None` where time does not tick.
    pub(super) fn new(config: &CcConfig) -> Option<Self> {
        let (jiffy, offset) = (config.tick.as_ps(), config.tick_offset.as_ps());
        let fine_delays = config.fine_delays;
        (jiffy > 0).then(|| Self {
            jiffy,
            offset,
            fine_delays,
            keep: SECOND / 32 / jiffy,
            size: 0,
            tick: 0,
            k: 0,
            per: 0,
        })
    }

    /// Number of the last tick.
    fn tick_at(&self, now: Time) -> u64 {
        (now.as_ps() + self.offset) / self.jiffy
    }

    pub(super) fn forget(&mut self) {
        self.size = 0;
    }

    pub(super) fn bytes_per_segment<O: Out<TcpConnection>>(
        &mut self,
        curve: &mut CubicCurve,
        (now, rtt): (Time, Span),
        window: &CongestionWindow,
        acked: u64,
        out: &mut O,
    ) -> u64 {
        let mss = window.mss();
        let size = whole(window.size(), mss);
        let tick = self.tick_at(now);
        curve.credit = curve.credit.saturating_add(acked);
        if size == self.size && !TcpSite::PaceTooOld.ask(out, tick - self.tick > self.keep) {
            return self.per;
        }
        let running = matches!(curve.epoch, CubicEpoch::Running(_));
        if !running || TcpSite::NewJiffy.ask(out, tick != self.tick) {
            (self.size, self.tick) = (size, tick);
            if !running {
                self.begin(curve, now, size, mss);
                curve.credit = acked;
            }
            self.per = self.by_curve(curve, rtt, mss, out);
        }
        curve.grow_friendly_by_segments(size / mss, mss);
        if let Some(friendly) = slope(size, whole(curve.friendly, mss), mss) {
            self.per = self.per.min(whole(friendly, mss));
        }
        self.per = self.per.max(2 * mss);
        self.per
    }

    fn begin(&mut self, curve: &mut CubicCurve, now: Time, size: u64, mss: u64) {
        curve.begin(now, size, mss);
        let missing = (whole(curve.origin, mss) - size) / mss;
        self.k = cube_root((1 << SCALE_SHIFT) / SCALE * u128::from(missing));
    }

    fn by_curve<O: Out<TcpConnection>>(&self, curve: &CubicCurve, rtt: Span, mss: u64, out: &mut O) -> u64 {
        let origin = whole(curve.origin, mss);
        let above = self.target(self.age(curve, rtt), origin, mss).wrapping_sub(origin);
        let target = origin.wrapping_add(TcpTick::CubicCurve.ask(out, above));
        let per = slope(self.size, target, mss).map_or(100 * self.size, |per| whole(per, mss));
        if curve.max == 0 { per.min(20 * mss) } else { per }
    }

    /// t, in 1024ths of a second: jiffies since the epoch began, and the whole milli- or microseconds of the round trip.
    fn age(&self, curve: &CubicCurve, rtt: Span) -> u64 {
        const MS: u64 = SECOND / 1_000;
        let start = match curve.epoch {
            CubicEpoch::Running(start) => self.tick_at(start),
            CubicEpoch::None | CubicEpoch::Ended(_) => self.tick,
        };
        let unit = if self.fine_delays { MS / 1_000 } else { MS };
        let delay = (rtt.as_ps() / unit * unit).div_ceil(self.jiffy);
        let jiffies = self.tick.saturating_sub(start).saturating_add(delay);
        (u128::from(jiffies) * u128::from(self.jiffy) * 1_024 / u128::from(SECOND)) as u64
    }

    /// W(t), rounded towards the origin.
    fn target(&self, age: u64, origin: u64, mss: u64) -> u64 {
        let offset = u128::from(age.abs_diff(self.k));
        let segments = (SCALE * offset * offset * offset) >> SCALE_SHIFT;
        let bytes = u64::try_from(segments).unwrap_or(u64::MAX).saturating_mul(mss);
        if age < self.k { origin.saturating_sub(bytes) } else { origin.saturating_add(bytes).min(MAX_WINDOW) }
    }
}

/// `bytes` in whole segments.
fn whole(bytes: u64, mss: u64) -> u64 {
    bytes / mss * mss
}
