//! Offloads, speed, driver and the driver's own statistics of an interface, through `SIOCETHTOOL`.
//!
//! The per-offload commands are used where there are such, not the newer feature masks: every driver answers them, and
//! the kernel itself keeps what depends on an offload consistent (segmentation needs checksums). Other features have
//! only a name (`ethtool -k` shows older names for some of them).

use std::io;

use super::netlink::{Netlink, text};
use super::sys::{self, EthtoolNumber, StringSet};
use super::{NetError, Result};

/// Work that an interface may do in the kernel's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    RxChecksum,
    TxChecksum,
    ScatterGather,
    /// TCP segmentation by the interface.
    Tso,
    /// Segmentation just before the interface.
    Gso,
    /// Coalescing just after the interface.
    Gro,
}

impl Offload {
    /// All offloads, each behind those that it needs.
    pub const ALL: [Self; 6] =
        [Self::RxChecksum, Self::TxChecksum, Self::ScatterGather, Self::Gso, Self::Tso, Self::Gro];

    fn commands(self) -> (EthtoolNumber, EthtoolNumber) {
        match self {
            Self::RxChecksum => (EthtoolNumber::GetRxChecksum, EthtoolNumber::SetRxChecksum),
            Self::TxChecksum => (EthtoolNumber::GetTxChecksum, EthtoolNumber::SetTxChecksum),
            Self::ScatterGather => (EthtoolNumber::GetScatterGather, EthtoolNumber::SetScatterGather),
            Self::Tso => (EthtoolNumber::GetTso, EthtoolNumber::SetTso),
            Self::Gso => (EthtoolNumber::GetGso, EthtoolNumber::SetGso),
            Self::Gro => (EthtoolNumber::GetGro, EthtoolNumber::SetGro),
        }
    }
}

/// A feature of an interface, under the kernel's name for it.
#[derive(Debug)]
struct Feature {
    position: usize,
    name: String,
    can_change: bool,
    in_force: bool,
}

/// The kernel's `SPEED_UNKNOWN`.
const UNKNOWN: u32 = u32::MAX;
/// Limit of a driver's statistics; the largest drivers have tens of thousands, a few for each queue.
const MOST_STATISTICS: u32 = 1 << 20;
/// Statistics that keep changing in number are asked for again, but not for ever.
const ATTEMPTS: usize = 4;

impl Netlink {
    pub fn offload(&self, name: &str, offload: Offload) -> Result<bool> {
        let value = sys::ethtool_number(self.socket(), name, offload.commands().0, 0);
        value
            .map(|value| value != 0)
            .map_err(|error| NetError::new(format!("read offload {offload:?} of {name}"), error))
    }

    /// An interface that cannot switch the offload is no error if it is as wanted already.
    pub fn set_offload(&self, name: &str, offload: Offload, on: bool) -> Result<()> {
        let Err(error) = sys::ethtool_number(self.socket(), name, offload.commands().1, u32::from(on)) else {
            return Ok(());
        };
        if error.raw_os_error() == Some(libc::EOPNOTSUPP) && self.offload(name, offload)? == on {
            return Ok(());
        }
        let state = if on { "on" } else { "off" };
        Err(NetError::new(format!("turn offload {offload:?} of {name} {state}"), error))
    }

    /// Switches all offloads, as far as the interface has them.
    pub fn set_offloads(&self, name: &str, on: bool) -> Result<()> {
        let mut order = Offload::ALL;
        if !on {
            order.reverse();
        }
        for offload in order {
            match self.set_offload(name, offload, on) {
                Err(error) if on && error.is_any_of(&[libc::EOPNOTSUPP]) => {}
                result => result?,
            }
        }
        Ok(())
    }

    /// Returns those of the wanted features that are in force; those that the kernel has no name for are not.
    pub fn features_on(&self, name: &str, wanted: &[&str]) -> Result<Vec<String>> {
        let features = self.features(name)?;
        let on = |wanted: &&&str| features.iter().any(|feature| feature.in_force && feature.name == **wanted);
        Ok(wanted.iter().filter(on).map(|name| (*name).to_owned()).collect())
    }

    /// Switches features, those that the interface has and can switch; which of them are not as wanted afterwards.
    pub fn set_features(&self, name: &str, wanted: &[impl AsRef<str>], on: bool) -> Result<Vec<String>> {
        let differ = |features: Vec<Feature>| {
            let mut features = features;
            features.retain(|feature| {
                feature.in_force != on && wanted.iter().any(|wanted| wanted.as_ref() == feature.name)
            });
            features
        };
        let features = self.features(name)?;
        let mut blocks = vec![[0_u32; 2]; features.len().div_ceil(32)];
        for Feature { position, .. } in differ(features).iter().filter(|feature| feature.can_change) {
            let bit = 1 << (position % 32);
            let [valid, requested] = &mut blocks[position / 32];
            *valid |= bit;
            *requested |= if on { bit } else { 0 };
        }
        if blocks.iter().any(|[valid, _]| *valid != 0) {
            let set = sys::ethtool_set_features(self.socket(), name, &blocks);
            set.map_err(|error| NetError::new(format!("change the features of {name}"), error))?;
        }
        Ok(differ(self.features(name)?).into_iter().map(|feature| feature.name).collect())
    }

    fn features(&self, name: &str) -> Result<Vec<Feature>> {
        let read = || -> io::Result<Vec<Feature>> {
            let count = sys::ethtool_strings_count(self.socket(), name, StringSet::Features)? as usize;
            let names = sys::ethtool_strings(self.socket(), name, StringSet::Features, count)?;
            let blocks = sys::ethtool_features(self.socket(), name, count.div_ceil(32))?;
            let is_set = |position: usize, word: usize| blocks[position / 32][word] & 1 << (position % 32) != 0;
            let feature = |(position, name): (usize, &[u8; sys::STRING])| Feature {
                position,
                name: text(name),
                can_change: is_set(position, 0),
                in_force: is_set(position, 2),
            };
            Ok(names.iter().enumerate().map(feature).collect())
        };
        read().map_err(|error| NetError::new(format!("read the features of {name}"), error))
    }

    /// Mbit/s; none while the link is down, or if it has no speed.
    pub fn speed(&self, name: &str) -> Result<Option<u64>> {
        match sys::ethtool_speed(self.socket(), name) {
            Ok(0 | UNKNOWN) => Ok(None),
            Ok(speed) => Ok(Some(u64::from(speed))),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(NetError::new(format!("read the speed of {name}"), error)),
        }
    }

    pub fn driver(&self, name: &str) -> Result<String> {
        let driver = sys::ethtool_driver(self.socket(), name);
        driver.map(|driver| text(&driver)).map_err(|error| NetError::new(format!("read the driver of {name}"), error))
    }

    /// Returns the output of `ethtool -S`: the driver's own counters under the driver's own names, which some pad with
    /// blanks. None if it has none.
    pub fn driver_statistics(&self, name: &str) -> Result<Vec<(String, u64)>> {
        for _ in 0..ATTEMPTS {
            match self.try_driver_statistics(name) {
                Ok(Some(statistics)) => return Ok(statistics),
                // They have become more, or fewer, since they were counted: a queue was added, for example.
                Ok(None) => {}
                Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {}
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(Vec::new()),
                Err(error) => return Err(NetError::new(format!("read the statistics of {name}"), error)),
            }
        }
        let changing = io::Error::new(io::ErrorKind::ResourceBusy, "they keep changing");
        Err(NetError::new(format!("read the statistics of {name}"), changing))
    }

    /// Names and numbers are asked for one after the other; none if they do not belong together.
    fn try_driver_statistics(&self, name: &str) -> io::Result<Option<Vec<(String, u64)>>> {
        let socket = self.socket();
        let count = sys::ethtool_strings_count(socket, name, StringSet::Statistics)?.min(MOST_STATISTICS) as usize;
        if count == 0 {
            return Ok(Some(Vec::new()));
        }
        let names = sys::ethtool_strings(socket, name, StringSet::Statistics, count)?;
        let numbers = sys::ethtool_statistics(socket, name, count)?;
        if names.len() != count || numbers.len() != count {
            return Ok(None);
        }
        Ok(Some(names.iter().map(|name| text(name).trim().to_owned()).zip(numbers).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing::in_own_namespace;

    const STATISTICS: StringSet = StringSet::Statistics;

    fn states(netlink: &Netlink) -> Vec<Offload> {
        Offload::ALL.into_iter().filter(|offload| netlink.offload("w0", *offload).unwrap()).collect()
    }

    #[test]
    fn all_offloads_go_off_and_on_and_one_goes_alone() {
        in_own_namespace(|netlink| {
            netlink.add_veth("w0", "x0").unwrap();
            netlink.set_offloads("w0", false).unwrap();
            assert_eq!(states(netlink), []);
            netlink.set_offloads("w0", true).unwrap();
            assert_eq!(states(netlink), Offload::ALL);
            netlink.set_offload("w0", Offload::Gro, false).unwrap();
            assert_eq!(states(netlink), Offload::ALL[..5]);
            netlink.set_offload("w0", Offload::TxChecksum, false).unwrap();
            assert!(!netlink.offload("w0", Offload::Tso).unwrap(), "segments need checksums");
        });
    }

    #[test]
    fn features_are_switched_by_name_and_what_is_unknown_or_fixed_is_left() {
        in_own_namespace(|netlink| {
            netlink.add_veth("w0", "x0").unwrap();
            let tunnels = ["tx-udp_tnl-segmentation", "tx-gre-segmentation"];
            assert_eq!(netlink.features_on("w0", &tunnels).unwrap(), tunnels);
            assert_eq!(netlink.set_features("w0", &tunnels, false).unwrap(), [""; 0]);
            assert_eq!(netlink.features_on("w0", &tunnels).unwrap(), [""; 0]);
            assert!(netlink.offload("w0", Offload::Tso).unwrap(), "others stay");
            assert_eq!(netlink.set_features("w0", &tunnels, true).unwrap(), [""; 0]);
            assert_eq!(netlink.features_on("w0", &tunnels).unwrap(), tunnels);
            assert_eq!(netlink.set_features("w0", &["no-such-feature"], false).unwrap(), [""; 0]);
            assert_eq!(netlink.set_features("lo", &["loopback"], false).unwrap(), ["loopback"], "it is fixed");
            let missing = netlink.set_features("nope", &tunnels, false).unwrap_err();
            assert_eq!(missing.to_string(), "read the features of nope: No such device");
        });
    }

    #[test]
    fn a_veth_knows_its_driver_and_a_speed_and_the_loopback_has_none() {
        in_own_namespace(|netlink| {
            netlink.add_veth("w0", "x0").unwrap();
            assert_eq!(netlink.driver("w0").unwrap(), "veth");
            assert_eq!(netlink.speed("w0").unwrap(), Some(10_000));
            assert_eq!(netlink.speed("lo").unwrap(), None);
        });
    }

    #[test]
    fn a_veth_counts_for_each_queue_and_names_its_peer_and_the_loopback_counts_nothing() {
        in_own_namespace(|netlink| {
            netlink.add_veth("w0", "x0").unwrap();
            let peer = u64::from(netlink.existing_link("x0").unwrap().index);
            let statistics = netlink.driver_statistics("w0").unwrap();
            assert!(statistics.contains(&("peer_ifindex".to_owned(), peer)), "{statistics:?}");
            assert!(statistics.iter().any(|(name, _)| name == "rx_queue_0_xdp_packets"), "{statistics:?}");
            assert_eq!(netlink.driver_statistics("lo").unwrap(), []);
            let missing = netlink.driver_statistics("nope").unwrap_err();
            assert_eq!(missing.to_string(), "read the statistics of nope: No such device");
        });
    }

    #[test]
    fn an_answer_longer_than_the_room_for_it_fails_and_overwrites_nothing() {
        in_own_namespace(|netlink| {
            netlink.add_veth("w0", "x0").unwrap();
            let count = sys::ethtool_strings_count(netlink.socket(), "w0", STATISTICS).unwrap() as usize;
            assert_eq!(sys::ethtool_strings(netlink.socket(), "w0", STATISTICS, count).unwrap().len(), count);
            assert_eq!(sys::ethtool_statistics(netlink.socket(), "w0", count).unwrap().len(), count);
            // Asked for none, every kernel answers with all; asked for too few, newer ones answer with none.
            for room in [0, 1] {
                let nothing = |got: std::io::Result<usize>| match got {
                    Ok(given) => assert_eq!(given, 0),
                    Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EFAULT)),
                };
                nothing(sys::ethtool_strings(netlink.socket(), "w0", STATISTICS, room).map(|names| names.len()));
                nothing(sys::ethtool_statistics(netlink.socket(), "w0", room).map(|numbers| numbers.len()));
            }
        });
    }

    #[test]
    fn a_missing_interface_is_named() {
        in_own_namespace(|netlink| {
            let error = netlink.set_offloads("nope", false).unwrap_err();
            assert_eq!(error.to_string(), "turn offload Gro of nope off: No such device");
            assert!(netlink.driver("a-name-that-is-far-too-long").is_err());
        });
    }
}
