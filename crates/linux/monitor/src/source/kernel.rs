//! The machine's own ports, by the best counters that each has:
//!
//! ```text
//!   standard statistics ──none──▶ the driver's own, by the table ──not in it──▶ what every interface counts
//!   (eth-mac, eth-phy, FEC)       (ethtool -S)                                  (rx_packets, rx_crc_errors)
//! ```
//!
//! The choice is made when a port is first seen, and once more when it first has a signal, since some cards know little
//! before that. Counters of two ways have nothing to do with each other, so the way is part of the identity. The counters
//! that every interface has come over rtnetlink: the same numbers as in `/sys/class/net`, but always of the namespace in
//! which the source was opened.
//!
//! A port whose bad frames nobody counts is reported with every read, like all that lasts.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use linux::net::{self, EthtoolSocket, Netlink, PortInfo, StandardStatistics};
use units::Moment;

use super::sysfs::frames;
use super::{DriverCounters, DriverError, Drivers, OpenSources, Selection, Source, SourceSite};
use crate::reading::{CarrierState, Phy, Reading, ReceivedFrames};

/// Queries to the kernel.
trait KernelQueries: fmt::Debug + Send {
    fn ports(&self) -> net::Result<Vec<PortInfo>>;
    fn standard(&self, index: u32) -> net::Result<StandardStatistics>;
    fn driver(&self, name: &str) -> net::Result<String>;
    fn statistics(&self, name: &str) -> net::Result<Vec<(String, u64)>>;
}

#[derive(Debug)]
struct SystemQueries {
    netlink: Netlink,
    /// Older kernels do not have it.
    ethtool: Option<EthtoolSocket>,
}

impl KernelQueries for SystemQueries {
    fn ports(&self) -> net::Result<Vec<PortInfo>> {
        self.netlink.ports()
    }

    fn standard(&self, index: u32) -> net::Result<StandardStatistics> {
        self.ethtool.as_ref().map_or(Ok(StandardStatistics::default()), |ethtool| ethtool.standard(index))
    }

    fn driver(&self, name: &str) -> net::Result<String> {
        match self.netlink.driver(name) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(String::new()),
            result => result,
        }
    }

    fn statistics(&self, name: &str) -> net::Result<Vec<(String, u64)>> {
        self.netlink.driver_statistics(name)
    }
}

/// Method by which a port's frames are counted. The numbers are part of identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountingMethod {
    Nobody = 0,
    Standard = 1,
    Driver = 2,
    Interface = 3,
}

#[derive(Clone, Debug)]
struct KnownPort {
    index: u32,
    way: CountingMethod,
    driver: String,
    /// Reason why nobody counts its frames.
    uncounted: Option<String>,
    /// Decided while the port had a signal.
    settled: bool,
}

#[derive(Debug)]
pub struct KernelSource {
    ask: Box<dyn KernelQueries>,
    drivers: Drivers,
    selection: Selection,
    known: BTreeMap<String, KnownPort>,
    remarks: Vec<String>,
}

/// A source for each part of what is watched.
pub(super) fn open(site: &SourceSite<'_>) -> io::Result<OpenSources> {
    let source = |selection: &Selection| Ok(Box::new(KernelSource::open(selection.clone())?) as Box<dyn Source>);
    site.selections.iter().map(source).collect()
}

impl KernelSource {
    /// Opens the source in the network namespace of the calling thread.
    pub fn open(selection: Selection) -> io::Result<Self> {
        let system = SystemQueries { netlink: Netlink::open()?, ethtool: EthtoolSocket::open()? };
        Ok(Self::asking(Box::new(system), selection))
    }

    fn asking(ask: Box<dyn KernelQueries>, selection: Selection) -> Self {
        Self { ask, drivers: Drivers::built_in(), selection, known: BTreeMap::new(), remarks: Vec::new() }
    }

    /// Replaces the table of drivers that comes with the program.
    pub fn with_drivers(self, drivers: Drivers) -> Self {
        Self { drivers, ..self }
    }

    fn read_port(&mut self, port: &PortInfo, at: Moment, troubles: &mut Vec<String>) -> net::Result<Reading> {
        let carrier = match (port.up, port.carrier) {
            (false, _) => CarrierState::Off,
            (true, false) => CarrierState::Lost,
            (true, true) => CarrierState::Up,
        };
        let standard = self.ask.standard(port.index)?;
        let known = self.know(port, carrier == CarrierState::Up, &standard)?;
        troubles.extend(known.uncounted.iter().map(|why| format!("{}: {why}", port.name)));
        let (frames, phy) = match known.way {
            CountingMethod::Nobody => (None, Phy::default()),
            CountingMethod::Standard => (standard_frames(&standard), Phy::default()),
            CountingMethod::Interface => {
                (port.rx_packets.zip(port.rx_crc_errors).map(|(good, bad)| frames(good, bad)), Phy::default())
            }
            CountingMethod::Driver => {
                match self.drivers.normalise(&known.driver, &self.ask.statistics(&port.device)?) {
                    Ok(DriverCounters { frames, phy }) => (Some(frames), phy),
                    Err(misfit) => {
                        troubles.push(format!("{}: {}", port.name, reason(&known.driver, &misfit)));
                        (None, Phy::default())
                    }
                }
            }
        };
        let phy = Phy {
            symbol_errors: standard.symbol_errors_during_carrier.or(phy.symbol_errors),
            corrected: standard.fec_corrected.or(phy.corrected),
            uncorrectable: standard.fec_uncorrectable.or(phy.uncorrectable),
        };
        let identity = (known.way as u64) << 32 | u64::from(port.index);
        Ok(Reading { port: port.name.clone(), identity, at, carrier, frames, phy })
    }

    /// Knowledge of a port, decided now if it has to be.
    fn know(&mut self, port: &PortInfo, has_signal: bool, standard: &StandardStatistics) -> net::Result<KnownPort> {
        let before = self.known.get(&port.name).filter(|known| known.index == port.index);
        if let Some(known) = before.filter(|known| known.settled || !has_signal) {
            return Ok(known.clone());
        }
        let (way, driver, note) = self.decide(port, standard)?;
        let (uncounted, remark) = if way == CountingMethod::Nobody { (note, None) } else { (None, note) };
        if before.is_none_or(|before| before.way != way) {
            self.remarks.extend(remark.map(|remark| format!("{}: {remark}", port.name)));
        }
        let known = KnownPort { index: port.index, way, driver, uncounted, settled: has_signal };
        self.known.insert(port.name.clone(), known.clone());
        Ok(known)
    }

    /// The way, the driver if it matters, and what a person should know about the choice.
    fn decide(
        &self,
        port: &PortInfo,
        standard: &StandardStatistics,
    ) -> net::Result<(CountingMethod, String, Option<String>)> {
        if standard_frames(standard).is_some() {
            return Ok((CountingMethod::Standard, String::new(), None));
        }
        let driver = self.ask.driver(&port.device)?;
        let (way, note) = match self.drivers.normalise(&driver, &self.ask.statistics(&port.device)?) {
            Ok(_) => (CountingMethod::Driver, None),
            Err(misfit @ DriverError::CountsNothing(_)) => (CountingMethod::Nobody, Some(reason(&driver, &misfit))),
            Err(misfit) => {
                let instead = "read as in /sys/class/net instead, where not every driver counts bad frames";
                (CountingMethod::Interface, Some(format!("{}; {instead}", reason(&driver, &misfit))))
            }
        };
        Ok((way, driver, note))
    }
}

impl Source for KernelSource {
    fn name(&self) -> &str {
        "kernel"
    }

    fn read(&mut self, now: Moment, readings: &mut Vec<Reading>, troubles: &mut Vec<String>) -> io::Result<()> {
        let ports = self.ask.ports()?;
        self.selection.tell_missing(ports.iter().map(|port| port.name.as_str()), troubles);
        self.known.retain(|name, _| ports.iter().any(|port| port.name == *name));
        for port in ports {
            if !self.selection.takes(&port.name, || port.physical) {
                continue;
            }
            match self.read_port(&port, now, troubles) {
                Ok(reading) => readings.push(reading),
                // It went away since they were listed.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => troubles.push(format!("{}: {error}", port.name)),
            }
        }
        Ok(())
    }

    fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }
}

fn standard_frames(standard: &StandardStatistics) -> Option<ReceivedFrames> {
    let (good, bad) = standard.frames_received_ok.zip(standard.frame_check_sequence_errors)?;
    Some(frames(good, bad))
}

fn reason(driver: &str, misfit: &DriverError) -> String {
    match misfit {
        DriverError::Unknown if driver.is_empty() => "its driver has no name".to_owned(),
        DriverError::Unknown => format!("driver {driver} is not in the table"),
        DriverError::CountsNothing(why) => format!("driver {driver} counts no bad frames: {why}"),
        DriverError::Missing(names) => format!("driver {driver} does not have {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A machine of a test's own making.
    #[derive(Clone, Debug, Default)]
    struct Machine {
        ports: Vec<PortInfo>,
        standard: StandardStatistics,
        driver: &'static str,
        statistics: Vec<(&'static str, u64)>,
    }

    #[derive(Clone, Debug, Default)]
    struct Shared(Arc<Mutex<Machine>>);

    impl Shared {
        fn change(&self, change: impl FnOnce(&mut Machine)) {
            change(&mut self.0.lock().unwrap());
        }

        fn now(&self) -> Machine {
            self.0.lock().unwrap().clone()
        }
    }

    impl KernelQueries for Shared {
        fn ports(&self) -> net::Result<Vec<PortInfo>> {
            Ok(self.now().ports)
        }

        fn standard(&self, _: u32) -> net::Result<StandardStatistics> {
            Ok(self.now().standard)
        }

        fn driver(&self, _: &str) -> net::Result<String> {
            Ok(self.now().driver.to_owned())
        }

        fn statistics(&self, _: &str) -> net::Result<Vec<(String, u64)>> {
            Ok(self.now().statistics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect())
        }
    }

    fn port(name: &str, index: u32) -> PortInfo {
        let (rx_packets, rx_crc_errors) = (Some(50), Some(5));
        let (name, device) = (name.to_owned(), name.to_owned());
        PortInfo { index, name, device, physical: true, up: true, carrier: true, rx_packets, rx_crc_errors }
    }

    fn machine(driver: &'static str, statistics: &[(&'static str, u64)]) -> (Shared, KernelSource) {
        let machine =
            Machine { ports: vec![port("eth0", 2)], driver, statistics: statistics.to_vec(), ..Machine::default() };
        let shared = Shared(Arc::new(Mutex::new(machine)));
        let kernel = KernelSource::asking(Box::new(shared.clone()), Selection::physical());
        (shared, kernel)
    }

    fn read(kernel: &mut KernelSource) -> (Vec<Reading>, Vec<String>) {
        let (mut readings, mut troubles) = (Vec::new(), Vec::new());
        kernel.read(Moment::from_ms(9), &mut readings, &mut troubles).unwrap();
        (readings, troubles)
    }

    const MLX5: [(&str, u64); 3] = [("rx_packets_phy", 900), ("rx_crc_errors_phy", 100), ("rx_corrected_bits_phy", 31)];

    #[test]
    fn standard_statistics_go_before_the_drivers_own() {
        let (shared, mut kernel) = machine("mlx5_core", &MLX5);
        let standard = StandardStatistics {
            frames_received_ok: Some(70),
            frame_check_sequence_errors: Some(7),
            fec_corrected: Some(4),
            ..StandardStatistics::default()
        };
        shared.change(|machine| machine.standard = standard);
        let (readings, troubles) = read(&mut kernel);
        assert_eq!(readings[0].frames, Some(ReceivedFrames { all: 77, bad: 7, bits: 64 }));
        assert_eq!(readings[0].phy, Phy { corrected: Some(4), ..Phy::default() });
        assert_eq!((readings[0].at, readings[0].carrier, troubles), (Moment::from_ms(9), CarrierState::Up, vec![]));
    }

    #[test]
    fn half_of_the_standard_statistics_are_not_enough() {
        let (shared, mut kernel) = machine("mlx5_core", &MLX5);
        let standard = StandardStatistics {
            frames_received_ok: Some(70),
            fec_uncorrectable: Some(3),
            ..StandardStatistics::default()
        };
        shared.change(|machine| machine.standard = standard);
        let (readings, _) = read(&mut kernel);
        assert_eq!(readings[0].frames, Some(ReceivedFrames { all: 1_000, bad: 100, bits: 64 }));
        let phy = Phy { symbol_errors: None, corrected: Some(31), uncorrectable: Some(3) };
        assert_eq!(readings[0].phy, phy, "each from whoever tells it");
    }

    #[test]
    fn an_unknown_driver_is_read_as_in_sysfs_and_told_once() {
        let (_, mut kernel) = machine("hinic9", &[("rx", 1)]);
        let (readings, troubles) = read(&mut kernel);
        assert_eq!((readings[0].frames, troubles), (Some(ReceivedFrames { all: 55, bad: 5, bits: 64 }), vec![]));
        let remarks = kernel.remarks();
        assert!(remarks[0].starts_with("eth0: driver hinic9 is not in the table; read as in /sys/class/net"));
        read(&mut kernel);
        assert_eq!(kernel.remarks(), Vec::<String>::new());
    }

    #[test]
    fn a_driver_that_counts_nothing_gives_none_and_not_zero_and_is_told_with_every_read() {
        let (_, mut kernel) = machine("virtio_net", &[]);
        for _ in 0..3 {
            let (readings, troubles) = read(&mut kernel);
            assert_eq!(readings[0].frames, None);
            assert!(troubles[0].starts_with("eth0: driver virtio_net counts no bad frames: "));
        }
    }

    #[test]
    fn a_driver_that_was_reloaded_is_decided_upon_anew() {
        let (shared, mut kernel) = machine("hinic9", &[]);
        let before = read(&mut kernel).0.remove(0);
        shared.change(|machine| {
            machine.ports = vec![port("eth0", 8)];
            (machine.driver, machine.statistics) = ("mlx5_core", MLX5.to_vec());
        });
        let (readings, troubles) = read(&mut kernel);
        assert_ne!(readings[0].identity, before.identity);
        assert_eq!((readings[0].frames.unwrap().all, troubles), (1_000, vec![]));
    }

    #[test]
    fn a_renamed_interface_is_read_under_its_new_name() {
        let (shared, mut kernel) = machine("mlx5_core", &MLX5);
        let before = read(&mut kernel).0.remove(0);
        shared.change(|machine| machine.ports[0].name = "uplink0".to_owned());
        let after = read(&mut kernel).0.remove(0);
        assert_eq!((after.port.as_str(), after.identity), ("uplink0", before.identity));
    }

    #[test]
    fn a_card_that_knows_its_counters_only_with_a_signal_is_asked_again() {
        let (shared, mut kernel) = machine("mlx5_core", &[]);
        shared.change(|machine| machine.ports[0].carrier = false);
        let (readings, _) = read(&mut kernel);
        assert_eq!((readings[0].carrier, readings[0].frames.unwrap().all), (CarrierState::Lost, 55));
        shared.change(|machine| {
            machine.ports[0].carrier = true;
            machine.statistics = MLX5.to_vec();
        });
        let (after, _) = read(&mut kernel);
        assert_eq!((after[0].carrier, after[0].frames.unwrap().all), (CarrierState::Up, 1_000));
        assert_ne!(after[0].identity, readings[0].identity, "these counters have nothing to do with those before");
    }

    #[test]
    fn counters_that_vanish_are_told_as_long_as_they_are_gone() {
        let (shared, mut kernel) = machine("mlx5_core", &MLX5);
        read(&mut kernel);
        shared.change(|machine| machine.statistics.truncate(1));
        for _ in 0..2 {
            let (readings, troubles) = read(&mut kernel);
            assert_eq!(readings[0].frames, None);
            assert_eq!(troubles, ["eth0: driver mlx5_core does not have rx_crc_errors_phy"]);
        }
        shared.change(|machine| machine.statistics = MLX5.to_vec());
        assert!(read(&mut kernel).0[0].frames.is_some());
    }

    #[test]
    fn a_port_down_by_design_is_off() {
        let (shared, mut kernel) = machine("mlx5_core", &MLX5);
        shared.change(|machine| machine.ports[0].up = false);
        assert_eq!(read(&mut kernel).0[0].carrier, CarrierState::Off);
    }

    #[test]
    fn interfaces_without_a_port_and_excluded_ones_are_not_read() {
        let (shared, _) = machine("mlx5_core", &MLX5);
        shared.change(|machine| {
            machine.ports =
                ["eth0", "mgmt0", "br0"].into_iter().zip(2..).map(|(name, index)| port(name, index)).collect();
            machine.ports[2].physical = false;
        });
        let selection = Selection::physical().except(["mgmt*"]);
        let (readings, troubles) = read(&mut KernelSource::asking(Box::new(shared.clone()), selection));
        assert_eq!((readings.len(), readings[0].port.as_str(), troubles), (1, "eth0", vec![]));
        let (readings, troubles) = read(&mut KernelSource::asking(Box::new(shared), Selection::named(["br0", "eth7"])));
        assert_eq!((readings.len(), readings[0].port.as_str()), (1, "br0"));
        assert_eq!(troubles, ["eth7: there is no such interface; did you mean eth0?"]);
    }
}
