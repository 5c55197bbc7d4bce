//! A switch: one buffer shared by its ports, with dynamic thresholds, and PFC towards those who send to it.
//!
//! Dynamic thresholds (Choudhury and Hahne, 1998): a queue may grow to `alpha` times what is left of the buffer, so that
//! one hot port cannot starve the others and a lone one gets most of it.
//!
//! A switch keeps an upper bound on its buffer use, which grows with each packet; the exact value is computed from all
//! ports only if the bound would cause a drop.
//!
//! PFC (802.1Qbb): a class that has filled its share from one ingress port pauses the sender there. Packets that are
//! on their way by then go to headroom that is kept for them.

use units::{Bytes, Time};

use super::index::IndexVec;
use super::pfc::{IngressShare, Pfc};
use super::port::{CLASSES, SimPort};
use crate::topology::DirectedLink;

/// Free bytes below which the room of a queue is computed exactly where it is asked for.
const NEARLY_FULL: i64 = 32_768;

/// All ports of a network.
pub(super) type Ports = IndexVec<DirectedLink, SimPort>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchSettings {
    pub buffer: Bytes,
    /// Share of what is left that one queue may take.
    pub alpha: f64,
    /// Limit of one queue. PFC, which is there to lose nothing, ignores it.
    pub port_limit: Option<Bytes>,
    pub pfc: Option<Pfc>,
}

impl Default for SwitchSettings {
    fn default() -> Self {
        Self { buffer: Bytes::new(32_000_000), alpha: 1.0, port_limit: None, pfc: None }
    }
}

#[derive(Debug)]
pub(super) struct SimSwitch {
    settings: SwitchSettings,
    /// All its ports, by number.
    pub ports: Vec<DirectedLink>,
    /// Upper bound on the bytes that all ports have to send, in wire time.
    bound: u64,
    /// Held for all ingress ports beyond what is reserved for each, if anybody can be paused.
    shared: u64,
    /// Headroom and what else is kept for each of them.
    kept: u64,
    pub pauses: u64,
}

/// Bytes that came in by one port and have not left, by class.
#[derive(Debug)]
#[repr(C)] // what every packet needs comes first, and most of the time in one cache line
pub(super) struct Ingress {
    paused: u8,
    share: IngressShare,
    held: [u64; CLASSES],
}

impl Ingress {
    pub(super) fn new(share: IngressShare) -> Self {
        Self { paused: 0, share, held: [0; CLASSES] }
    }
}

/// Change for a sender: pause, or go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PauseChange {
    None,
    Pause,
    Resume,
}

impl SimSwitch {
    /// `kept` is what its ingress ports have for themselves.
    pub(super) fn new(settings: SwitchSettings, ports: Vec<DirectedLink>, kept: u64) -> Self {
        Self { settings, ports, bound: 0, shared: 0, kept, pauses: 0 }
    }

    /// Decides whether the buffer has room for `bytes` more at the port `at`, and counts them if so.
    #[inline]
    pub(super) fn admits(&mut self, now: Time, all: &Ports, at: DirectedLink, bytes: u64) -> bool {
        let port = &all[at];
        let within = port.backlog(now) + port.time_of_bytes(bytes) <= port.time_of_bytes(self.limit());
        let fits = self.bound + bytes <= self.settings.buffer.get();
        let admitted = (within && fits) || self.admits_exactly(now, all, at, bytes);
        self.bound += if admitted { bytes } else { 0 };
        admitted
    }

    /// Limit of a queue, computed from the bound.
    #[inline]
    fn limit(&self) -> u64 {
        let free = self.settings.buffer.get().saturating_sub(self.bound);
        let share = ((free as f64 * self.settings.alpha) as u64).min(self.settings.buffer.get());
        self.settings.port_limit.map_or(share, |limit| share.min(limit.get()))
    }

    /// Bytes until the queue of a port is as long as it may be now: exact below [`NEARLY_FULL`], otherwise no fewer than said.
    pub(super) fn room(&mut self, now: Time, all: &Ports, at: DirectedLink) -> i64 {
        let backlog = all[at].backlog_bytes(now) as i64;
        if (self.limit() as i64) < backlog + NEARLY_FULL {
            self.bound = self.occupied(now, all);
        }
        self.limit() as i64 - backlog
    }

    /// A packet joins a queue that has no room for it, or does not although there is room.
    pub(super) fn overrule(&mut self, bytes: u64, joins: bool) {
        self.bound = if joins { self.bound + bytes } else { self.bound.saturating_sub(bytes) };
    }

    #[cold]
    fn admits_exactly(&mut self, now: Time, all: &Ports, at: DirectedLink, bytes: u64) -> bool {
        self.bound = self.occupied(now, all);
        if self.bound + bytes > self.settings.buffer.get() {
            return false;
        }
        // A sender that was paused in time loses nothing.
        self.settings.pfc.is_some() || all[at].backlog_bytes(now) + bytes <= self.limit()
    }

    /// Bytes that all ports have to send.
    fn occupied(&self, now: Time, all: &Ports) -> u64 {
        self.ports.iter().map(|port| all[*port].backlog_bytes(now)).sum()
    }

    pub(super) fn has_pfc(&self) -> bool {
        self.settings.pfc.is_some()
    }

    /// A packet that came in by one of its ports joins a queue, or leaves the switch.
    #[inline]
    pub(super) fn account(&mut self, ingress: &mut Ingress, class: u8, change: i64) -> PauseChange {
        let reserve = ingress.share.reserve;
        let held = &mut ingress.held[usize::from(class) % CLASSES];
        let before = held.saturating_sub(reserve);
        *held = held.saturating_add_signed(change);
        let beyond = held.saturating_sub(reserve);
        // Most of the time there is no more than what is reserved, which pauses nobody.
        if before == 0 && beyond == 0 && ingress.paused == 0 {
            return PauseChange::None;
        }
        self.shared = self.shared + beyond - before;
        self.pause_change(ingress, class, beyond)
    }

    /// Change of the pause state for a sender that holds this much beyond its reserved buffer.
    fn pause_change(&mut self, ingress: &mut Ingress, class: u8, beyond: u64) -> PauseChange {
        let Some(pfc) = self.settings.pfc else { return PauseChange::None };
        let free = self.settings.buffer.get().saturating_sub(self.kept + self.shared);
        let threshold = (free as f64 * ingress.share.alpha) as u64;
        let bit = 1 << (usize::from(class) % CLASSES);
        let is_paused = ingress.paused & bit != 0;
        if !is_paused && beyond > threshold {
            ingress.paused |= bit;
            self.pauses += 1;
            return PauseChange::Pause;
        }
        if is_paused && (beyond == 0 || beyond + pfc.hysteresis.get() <= threshold) {
            ingress.paused &= !bit;
            return PauseChange::Resume;
        }
        PauseChange::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::index::SwitchId;
    use crate::net::port::Owner;
    use units::{Rate, Span};

    const FIRST: DirectedLink = DirectedLink(0);
    const SECOND: DirectedLink = DirectedLink(1);

    fn ports(count: usize) -> Ports {
        (0..count).map(|_| SimPort::new(Rate::gbps(8), Span::ZERO, Owner::of_switch(SwitchId(0)))).collect()
    }

    /// Fills a port until the switch refuses.
    fn fill(switch: &mut SimSwitch, all: &mut Ports, at: DirectedLink) -> u64 {
        let mut bytes = 0;
        while switch.admits(Time::ZERO, all, at, 1_000) {
            let time = all[at].time_of_bytes(1_000);
            all[at].busy_until += time;
            bytes += 1_000;
        }
        bytes
    }

    #[test]
    fn a_lone_port_gets_half_and_the_next_half_of_the_rest() {
        let settings = SwitchSettings { buffer: Bytes::new(1_000_000), ..SwitchSettings::default() };
        let mut switch = SimSwitch::new(settings, vec![FIRST, SECOND], 0);
        let mut all = ports(2);
        let first = fill(&mut switch, &mut all, FIRST);
        assert!((499_000..=501_000).contains(&first), "{first}");
        let second = fill(&mut switch, &mut all, SECOND);
        assert!((249_000..=251_000).contains(&second), "{second}");
    }

    #[test]
    fn what_has_been_sent_makes_room() {
        let settings = SwitchSettings { buffer: Bytes::new(100_000), alpha: 8.0, ..SwitchSettings::default() };
        let mut switch = SimSwitch::new(settings, vec![FIRST], 0);
        let mut all = ports(1);
        let first = fill(&mut switch, &mut all, FIRST);
        let later = Time::ZERO + all[FIRST].time_of_bytes(10_000);
        assert!(switch.admits(later, &all, FIRST, 10_000), "after {first}");
        assert!(!switch.admits(Time::ZERO, &all, FIRST, 30_000));
    }

    #[test]
    fn a_sender_is_paused_at_its_share_and_resumed_below_it() {
        let pfc = Pfc::new(0.1, Bytes::ZERO, Bytes::new(2_000));
        let settings = SwitchSettings { buffer: Bytes::new(100_000), pfc: Some(pfc), ..SwitchSettings::default() };
        let share = IngressShare { alpha: pfc.alpha, headroom: 0, reserve: 0 };
        let (mut switch, mut ingress) = (SimSwitch::new(settings, vec![FIRST], 0), Ingress::new(share));
        let mut account = |change| switch.account(&mut ingress, 3, change);
        assert_eq!(account(9_000), PauseChange::None);
        assert_eq!(account(2_000), PauseChange::Pause);
        assert_eq!(account(-1_000), PauseChange::None);
        assert_eq!(account(-4_000), PauseChange::Resume);
        assert_eq!(switch.pauses, 1);
    }

    #[test]
    fn what_is_reserved_for_a_port_neither_pauses_it_nor_counts_against_others() {
        let pfc = Pfc::new(0.1, Bytes::ZERO, Bytes::ZERO);
        let settings = SwitchSettings { buffer: Bytes::new(108_000), pfc: Some(pfc), ..SwitchSettings::default() };
        let share = IngressShare { alpha: pfc.alpha, headroom: 0, reserve: 4_000 };
        let mut switch = SimSwitch::new(settings, vec![FIRST, SECOND], 2 * share.kept());
        let [mut first, mut second] = [share; 2].map(Ingress::new);
        assert_eq!(switch.account(&mut second, 0, 4_000), PauseChange::None);
        // 100,000 are shared: 4,000 + x is too much when x > (100,000 - x) / 10.
        assert_eq!(switch.account(&mut first, 0, 4_000 + 9_090), PauseChange::None);
        assert_eq!(switch.account(&mut first, 0, 10), PauseChange::Pause);
    }
}
