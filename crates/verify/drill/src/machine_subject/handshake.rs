//! The handshake, which our TCP leaves to its driver: SYN and SYN-ACK with the options that Linux puts there, in its order.

use units::{Span, Time};

use tcp::{TcpConfig, TcpSocketConfig};

use super::settings::HostSettings;
use crate::segment::{DrillSegment, HeaderOption, TcpFlags};

/// An unanswered SYN or SYN-ACK is sent again after a second, then after twice as long.
const FIRST_RETRY: Span = Span::from_ms(1_000);
const RETRIES: u32 = 5;
/// An MTU of 1,500 bytes without both headers.
const FULL_MSS: u16 = 1_460;
/// MSS if a SYN has no such option (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;

/// A handshake that is under way.
#[derive(Debug)]
pub(super) struct DrillHandshake {
    /// The segment that waits for its answer.
    pub(super) syn: DrillSegment,
    pub(super) sent: Time,
    pub(super) retries: u32,
    /// Offer in the other side's SYN, if it has come.
    pub(super) peer: Option<PeerOffer>,
}

/// Offer in the other side's SYN or SYN-ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerOffer {
    pub(super) seq: u32,
    mss: u16,
    sack: bool,
    scale: Option<u8>,
    timestamp: Option<u32>,
    ecn: bool,
}

impl PeerOffer {
    pub(super) fn of(segment: &DrillSegment) -> Self {
        let mut offer = Self { seq: segment.seq, mss: DEFAULT_MSS, ecn: segment.is(TcpFlags::ECE), ..Self::default() };
        for option in segment.options.iter().flatten() {
            match option {
                HeaderOption::Mss(mss) => offer.mss = *mss,
                HeaderOption::SackPermitted => offer.sack = true,
                HeaderOption::WindowScale(scale) => offer.scale = Some((*scale).min(14)),
                HeaderOption::Timestamp { value, .. } => offer.timestamp = Some(*value),
                _ => {}
            }
        }
        offer
    }
}

/// Milliseconds, as timestamps of Linux count.
pub(super) fn ticks(now: Time) -> u32 {
    (now.since(Time::ZERO).as_ps() / Span::from_ms(1).as_ps()) as u32
}

impl DrillHandshake {
    /// Handshake of a `connect`.
    pub(super) fn active(settings: &HostSettings, max_segment: Option<u16>, now: Time) -> Self {
        let ecn = settings.ecn == 1;
        let flags = TcpFlags::SYN.with(TcpFlags::ECE, ecn).with(TcpFlags::CWR, ecn);
        let timestamp = settings.timestamps.then(|| HeaderOption::Timestamp { value: ticks(now), echo: 0 });
        let scale = settings.window_scaling.then(|| settings.window_scale());
        let options = options(own_mss(max_segment), settings.sack, timestamp, scale);
        let syn = DrillSegment {
            flags,
            window: Some(settings.first_window()),
            options: Some(options),
            ..DrillSegment::default()
        };
        Self { syn, sent: now, retries: 0, peer: None }
    }

    /// The answer of a listening socket to `segment`.
    pub(super) fn passive(
        settings: &HostSettings,
        max_segment: Option<u16>,
        segment: &DrillSegment,
        now: Time,
    ) -> Self {
        let mut peer = PeerOffer::of(segment);
        peer.ecn = settings.ecn > 0 && segment.is(TcpFlags::ECE) && segment.is(TcpFlags::CWR);
        peer.sack &= settings.sack;
        peer.timestamp = peer.timestamp.filter(|_| settings.timestamps);
        peer.scale = peer.scale.filter(|_| settings.window_scaling);
        let flags = TcpFlags::SYN.with(TcpFlags::ACK, true).with(TcpFlags::ECE, peer.ecn);
        let timestamp = peer.timestamp.map(|echo| HeaderOption::Timestamp { value: ticks(now), echo });
        let scale = peer.scale.map(|_| settings.window_scale());
        let syn = DrillSegment {
            flags,
            ack: segment.seq.wrapping_add(1),
            window: Some(settings.first_window()),
            options: Some(options(own_mss(max_segment), peer.sack, timestamp, scale)),
            ..DrillSegment::default()
        };
        Self { syn, sent: now, retries: 0, peer: Some(peer) }
    }

    /// Time at which the SYN is sent again.
    pub(super) fn retry_at(&self) -> Option<Time> {
        (self.retries < RETRIES).then(|| self.sent + FIRST_RETRY * (1 << self.retries))
    }

    /// The configuration of the connection that this handshake made, ended by `segment`.
    pub(super) fn config(
        &self,
        settings: &HostSettings,
        max_segment: Option<u16>,
        peer: &PeerOffer,
        segment: &DrillSegment,
        now: Time,
    ) -> TcpConfig {
        let asked = PeerOffer::of(&self.syn);
        let timestamps = asked.timestamp.is_some() && peer.timestamp.is_some();
        let scaled = asked.scale.is_some() && peer.scale.is_some();
        // The window of a SYN-ACK is not scaled (RFC 7323 §2.2).
        let shift = if segment.is(TcpFlags::SYN) || !scaled { 0 } else { peer.scale.unwrap_or_default() };
        // A peer may offer less than its own timestamps take.
        let mss = u32::from(peer.mss.min(own_mss(max_segment))).saturating_sub(if timestamps { 12 } else { 0 });
        let base = settings.config();
        let socket = TcpSocketConfig {
            peer_window: u64::from(segment.window.unwrap_or_default()) << shift,
            first_window: u32::from(settings.first_window()),
            window_scale: if scaled { settings.window_scale() } else { 0 },
            peer_timestamp: PeerOffer::of(segment).timestamp.or(peer.timestamp).filter(|_| timestamps),
            ..base.socket.unwrap_or_default()
        };
        TcpConfig {
            mss: mss.max(1),
            sack: asked.sack && peer.sack,
            timestamps,
            ecn: peer.ecn && asked.ecn,
            handshake_rtt: (self.retries == 0).then(|| now.since(self.sent)),
            socket: Some(socket),
            ..base
        }
    }

    /// Shift of the windows that come in.
    pub(super) fn peer_shift(&self, peer: &PeerOffer) -> u8 {
        PeerOffer::of(&self.syn).scale.and(peer.scale).unwrap_or_default()
    }
}

pub(super) fn own_mss(max_segment: Option<u16>) -> u16 {
    max_segment.unwrap_or(FULL_MSS).min(FULL_MSS)
}

/// Options in Linux's order, padded as Linux pads them.
fn options(mss: u16, sack: bool, timestamp: Option<HeaderOption>, scale: Option<u8>) -> Vec<HeaderOption> {
    let mut options = vec![HeaderOption::Mss(mss)];
    match (sack, timestamp) {
        (true, Some(timestamp)) => options.extend([HeaderOption::SackPermitted, timestamp]),
        (false, Some(timestamp)) => options.extend([HeaderOption::Nop, HeaderOption::Nop, timestamp]),
        (true, None) => options.extend([HeaderOption::Nop, HeaderOption::Nop, HeaderOption::SackPermitted]),
        (false, None) => {}
    }
    if let Some(scale) = scale {
        options.extend([HeaderOption::Nop, HeaderOption::WindowScale(scale)]);
    }
    options
}
