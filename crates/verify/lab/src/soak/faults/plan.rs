//! Faults of a run, their order, ends and lengths: all of it from the seed.
//!
//! Kinds are dealt from a shuffled deck that holds each of them once, so that a run of a minute meets every kind and no
//! kind is rare. Nothing here touches a network: the same seed gives the same list.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use faults::Random;

/// A kind of bad day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// The daemon is killed (SIGKILL) and restarted by its supervisor.
    Kill,
    /// The daemon is not run for a while (SIGSTOP, SIGCONT).
    Stop,
    /// The cable is pulled out: the interface loses its carrier.
    WireDown,
    /// The interface is set down.
    InterfaceDown,
    /// The interface is deleted and made again.
    InterfaceGone,
    /// A program renames the wire or the stand-in, and back again or not.
    Renamed,
    /// Rules that name the interface drop datagrams while the daemon is killed or restarted.
    Firewall,
    /// A host on the wire sends frames from the peer's address.
    Forged,
    /// A host on the wire sends recorded frames again.
    Replayed,
    /// Clients of the metrics port that send a byte now and then.
    SlowMetrics,
    /// Clients of the control socket that send a byte now and then.
    SlowControl,
    /// The daemon is restarted while such clients hold both.
    SlowStop,
    /// Two busy loops for each processor.
    CpuHogs,
    /// Protection is switched off and on again.
    Deactivate,
    /// An orderly restart.
    Restart,
    /// An orderly restart with `--dormant`, and protection asked for later.
    RestartDormant,
    /// The wire's MTU becomes too small for full frames, and then large again.
    Mtu,
    /// A restart with the clock an hour back; where a key is used.
    ClockBack,
    /// A bridge takes the place of the wire for a while; it loses frames and forgets what it has learnt. Where no key is used.
    Bridge,
    /// The keeper is killed, and once there is another the daemon, which is not restarted for a while; where there is no key.
    KeeperKilled,
    /// A host on the side ends with all its processes, and another begins with the number of its namespace.
    NamespaceReused,
}

impl FaultKind {
    pub const ALL: [Self; 21] = [
        Self::Kill,
        Self::Stop,
        Self::WireDown,
        Self::InterfaceDown,
        Self::InterfaceGone,
        Self::Renamed,
        Self::Firewall,
        Self::Forged,
        Self::Replayed,
        Self::SlowMetrics,
        Self::SlowControl,
        Self::SlowStop,
        Self::CpuHogs,
        Self::Deactivate,
        Self::Restart,
        Self::RestartDormant,
        Self::Mtu,
        Self::ClockBack,
        Self::Bridge,
        Self::KeeperKilled,
        Self::NamespaceReused,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::WireDown => "wire-down",
            Self::InterfaceDown => "interface-down",
            Self::InterfaceGone => "interface-gone",
            Self::Renamed => "renamed",
            Self::Firewall => "firewall",
            Self::Forged => "forged",
            Self::Replayed => "replayed",
            Self::SlowMetrics => "slow-metrics",
            Self::SlowControl => "slow-control",
            Self::SlowStop => "slow-stop",
            Self::CpuHogs => "cpu-hogs",
            Self::Deactivate => "deactivate",
            Self::Restart => "restart",
            Self::RestartDormant => "restart-dormant",
            Self::Mtu => "mtu",
            Self::ClockBack => "clock-back",
            Self::Bridge => "bridge",
            Self::KeeperKilled => "keeper-killed",
            Self::NamespaceReused => "namespace-reused",
        }
    }

    /// True if it can happen to a link with or without a key.
    pub fn applies(self, keyed: bool) -> bool {
        match self {
            Self::ClockBack => keyed,
            // Sealed frames are never flooded: their addresses are those of the two ends. And with a key a link fails closed, and
            // has no keeper.
            Self::Bridge | Self::KeeperKilled => !keyed,
            _ => true,
        }
    }

    /// Shortest and longest, in milliseconds.
    fn lasts(self) -> (u64, u64) {
        match self {
            Self::Kill | Self::Restart | Self::ClockBack | Self::SlowStop | Self::NamespaceReused => (0, 0),
            Self::KeeperKilled => (200, 800),
            Self::Stop => (20, 400),
            Self::WireDown | Self::InterfaceDown => (50, 1_000),
            Self::InterfaceGone | Self::Renamed | Self::Deactivate | Self::RestartDormant => (50, 800),
            Self::Forged | Self::Replayed | Self::Mtu => (200, 800),
            Self::Bridge | Self::Firewall | Self::SlowMetrics | Self::SlowControl | Self::CpuHogs => (600, 1_200),
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for FaultKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{name:?}: expected one or more of {names}")
        })
    }
}

/// One bad day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    pub kind: FaultKind,
    /// 0 on the left, 1 on the right.
    pub end: usize,
    pub lasts: Duration,
    /// Quiet before it.
    pub pause: Duration,
    /// Seed for everything else that is random about the fault.
    pub seed: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultShuffle {
    random: Random,
    kinds: Vec<FaultKind>,
    left: Vec<FaultKind>,
    /// Length of faults that last at all; that of their kinds if not given.
    lasting: Option<Duration>,
}

impl FaultShuffle {
    /// Makes the plan for one act of a run; kinds that cannot happen in it are left out.
    pub(crate) fn new(seed: u64, act: u64, kinds: &[FaultKind], keyed: bool) -> Self {
        let kinds = kinds.iter().copied().filter(|kind| kind.applies(keyed)).collect();
        Self { random: Random::new(seed, act), kinds, left: Vec::new(), lasting: None }
    }

    /// Gives each fault this duration.
    #[must_use]
    pub(crate) fn lasting(self, lasting: Option<Duration>) -> Self {
        Self { lasting, ..self }
    }

    /// The next; `None` if no kind can happen.
    pub(crate) fn deal(&mut self) -> Option<PlannedFault> {
        if self.left.is_empty() {
            self.left.clone_from(&self.kinds);
            for at in (1..self.left.len()).rev() {
                self.left.swap(at, self.random.below(at as u64 + 1) as usize);
            }
        }
        let kind = self.left.pop()?;
        let (shortest, longest) = kind.lasts();
        let mut between = |from: u64, to: u64| Duration::from_millis(from + self.random.below(to - from + 1));
        let (random, pause) = (between(shortest, longest), between(150, 450));
        let lasts = self.lasting.filter(|_| longest > 0).unwrap_or(random);
        Some(PlannedFault { kind, end: self.random.below(2) as usize, lasts, pause, seed: self.random.below(u64::MAX) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deal(seed: u64, act: u64, keyed: bool, count: usize) -> Vec<PlannedFault> {
        let mut deck = FaultShuffle::new(seed, act, &FaultKind::ALL, keyed);
        (0..count).map(|_| deck.deal().unwrap()).collect()
    }

    #[test]
    fn the_same_seed_deals_the_same_faults_and_another_does_not() {
        assert_eq!(deal(1, 0, true, 200), deal(1, 0, true, 200));
        assert_ne!(deal(1, 0, true, 200), deal(2, 0, true, 200));
        assert_ne!(deal(1, 0, true, 200), deal(1, 1, true, 200));
    }

    #[test]
    fn every_kind_comes_once_in_each_deck() {
        for keyed in [false, true] {
            let all: Vec<FaultKind> = FaultKind::ALL.into_iter().filter(|kind| kind.applies(keyed)).collect();
            for hand in deal(7, 3, keyed, 4 * all.len()).chunks(all.len()) {
                let mut kinds: Vec<FaultKind> = hand.iter().map(|fault| fault.kind).collect();
                kinds.sort();
                assert_eq!(kinds, all);
            }
        }
    }

    #[test]
    fn both_ends_have_their_share() {
        let left = deal(1, 0, false, 1_000).iter().filter(|fault| fault.end == 0).count();
        assert!((400..600).contains(&left), "{left}");
    }

    #[test]
    fn the_clock_matters_only_where_there_is_a_key_and_a_keeper_only_where_there_is_none() {
        assert!(deal(1, 0, true, 200).iter().all(|fault| fault.kind != FaultKind::KeeperKilled));
        assert!(deal(1, 0, false, 200).iter().all(|fault| fault.kind != FaultKind::ClockBack));
        assert_eq!(FaultShuffle::new(1, 0, &[FaultKind::ClockBack], false).deal(), None);
        assert_eq!(FaultShuffle::new(1, 0, &[FaultKind::Bridge], true).deal(), None);
    }

    #[test]
    fn stops_last_as_long_as_promised() {
        let stops = deal(1, 0, false, 2_000).into_iter().filter(|fault| fault.kind == FaultKind::Stop);
        let lengths: Vec<Duration> = stops.map(|fault| fault.lasts).collect();
        let ms = Duration::from_millis;
        assert!(lengths.iter().all(|lasts| (ms(20)..=ms(400)).contains(lasts)));
        assert!(lengths.iter().any(|lasts| *lasts > ms(300)) && lengths.iter().any(|lasts| *lasts < ms(100)));
    }

    #[test]
    fn a_length_that_is_asked_for_changes_nothing_else() {
        let minute = Duration::from_mins(1);
        let mut deck = FaultShuffle::new(1, 0, &FaultKind::ALL, false).lasting(Some(minute));
        for fault in deal(1, 0, false, 200) {
            let lasts = if fault.lasts.is_zero() { Duration::ZERO } else { minute };
            assert_eq!(deck.deal(), Some(PlannedFault { lasts, ..fault }));
        }
    }

    #[test]
    fn kinds_are_read_by_their_names() {
        for kind in FaultKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert!("kil".parse::<FaultKind>().unwrap_err().contains("expected one or more of kill, stop"));
    }
}
