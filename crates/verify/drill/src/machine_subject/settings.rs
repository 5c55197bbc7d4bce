//! Meaning of sysctls, queues and options of sockets for our TCP. A setting that it does not have makes a script not
//! applicable.

use units::Span;

use tcp::cc::Algorithm;
use tcp::{LinuxVersion, LossDetection, RackUse, TcpConfig, TcpSocketConfig, TimerProfile, TsoConfig};

use crate::language::{Setting, TunQueue};
use crate::subject::DrillStop;

/// A host's settings: those of a kernel, changed by the script.
#[derive(Clone, Debug)]
pub(super) struct HostSettings {
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    pub(super) window_scaling: bool,
    /// `tcp_ecn`: 0 never, 1 always, 2 if the other side asks.
    pub(super) ecn: u8,
    /// `tcp_rmem`: default and maximum.
    receive_buffer: (u64, u64),
    version: LinuxVersion,
    algorithm: Algorithm,
    idle_restart: bool,
    detection: LossDetection,
    tso: TsoConfig,
    rto_min: Span,
    /// Ticks a second, and the first of them.
    hz: u32,
    phase: Span,
}

impl HostSettings {
    pub(super) fn new(version: LinuxVersion, hz: u32, phase: Span) -> Self {
        let config = TcpConfig::linux(version);
        Self {
            sack: true,
            timestamps: true,
            window_scaling: true,
            ecn: 2,
            receive_buffer: (131_072, 6_291_456),
            version,
            algorithm: config.algorithm,
            idle_restart: config.idle_restart,
            detection: config.detection,
            tso: config.socket.map(|socket| socket.tso).unwrap_or_default(),
            rto_min: Span::from_ms(200),
            hz,
            phase,
        }
    }

    /// The shift that makes the largest buffer fit into 16 bits.
    pub(super) fn window_scale(&self) -> u8 {
        tcp::window_scale(self.receive_buffer.1)
    }

    /// The window of a SYN.
    pub(super) fn first_window(&self) -> u16 {
        u16::try_from(self.receive_buffer.0 / 2).unwrap_or(u16::MAX)
    }

    /// Settings of a connection, before its handshake's results are filled in.
    pub(super) fn config(&self) -> TcpConfig {
        let base = TcpConfig::linux(self.version);
        // Half of a buffer is for the kernel's own use (`tcp_adv_win_scale` = 1).
        let first_buffer = Some(self.receive_buffer.0 / 2);
        let socket = TcpSocketConfig { tso: self.tso, first_buffer, ..base.socket.unwrap_or_default() };
        TcpConfig {
            algorithm: self.algorithm,
            idle_restart: self.idle_restart,
            detection: self.detection,
            receive_buffer: self.receive_buffer.1 / 2,
            profile: TimerProfile::Linux { hz: self.hz, rto_min: self.rto_min, phase: self.phase },
            socket: Some(socket),
            ..base
        }
    }

    pub(super) fn apply(&mut self, setting: &Setting) -> Result<(), DrillStop> {
        match setting {
            Setting::Sysctl { path, value, .. } => self.sysctl(path, value),
            Setting::Queue(TunQueue::Fifo(0)) => DrillStop::not_applicable("a full local queue is not modelled"),
            Setting::Queue(TunQueue::Fifo(_)) => Ok(()),
            Setting::Queue(TunQueue::Fair) => DrillStop::not_applicable("pacing by fq is not modelled"),
            // TCP makes super-segments in any case (Linux since 4.17); where they are cut does not matter.
            Setting::Offloads(_) => Ok(()),
            Setting::ModuleParameter { path, value } => match (path.as_str(), value.as_str()) {
                ("tcp_cubic/parameters/hystart_detect", "3") => Ok(()),
                _ => DrillStop::not_applicable(format!("{path} = {value} is not modelled")),
            },
        }
    }

    fn sysctl(&mut self, path: &str, value: &str) -> Result<(), DrillStop> {
        let unknown = || DrillStop::NotApplicable(format!("{path} = {value} is not modelled"));
        let name = path.strip_prefix("net/ipv4/").ok_or_else(unknown)?;
        let numbers: Vec<u64> = value.split_whitespace().filter_map(number).collect();
        let first = numbers.first().copied().unwrap_or(u64::MAX);
        match (name, first) {
            ("tcp_sack", 0 | 1) => self.sack = first == 1,
            ("tcp_timestamps", 0..=2) => self.timestamps = first > 0,
            ("tcp_window_scaling", 0 | 1) => self.window_scaling = first == 1,
            ("tcp_ecn", 0..=2) => self.ecn = first as u8,
            ("tcp_slow_start_after_idle", 0 | 1) => self.idle_restart = first == 1,
            ("tcp_reordering", 1..=300) => self.detection.threshold = first as u32,
            ("tcp_max_reordering", 1..=10_000) => self.detection.max_threshold = first as u32,
            ("tcp_early_retrans", 0..=4) => self.early_retransmit(first),
            ("tcp_recovery", 0 | 1) => self.rack(first == 1),
            ("tcp_tso_win_divisor", 0..=1_000) => self.tso.window_divisor = first as u32,
            ("tcp_min_tso_segs", 1..=65_535) => self.tso.min_segments = first as u32,
            ("tcp_rto_min_us", 1_000..=10_000_000) => self.rto_min = Span::from_us(first),
            ("tcp_fack", 0 | 1) => self.detection.fack = first == 1 && self.version == LinuxVersion::V4_4,
            ("tcp_congestion_control", _) => self.algorithm = value.parse().map_err(|_| unknown())?,
            ("tcp_rmem", _) if numbers.len() == 3 => self.receive_buffer = (numbers[1], numbers[2]),
            _ if is_without_effect(name, first) => {}
            _ => return Err(unknown()),
        }
        Ok(())
    }

    /// Early retransmit left Linux with 4.12; from 3 on the setting means probes.
    fn early_retransmit(&mut self, value: u64) {
        self.detection.probes = value >= 3;
        self.detection.early_retransmit = self.version == LinuxVersion::V4_4 && (1..=3).contains(&value);
    }

    fn rack(&mut self, on: bool) {
        self.detection.rack = match (on, self.version) {
            (false, _) => RackUse::Off,
            (true, LinuxVersion::V4_4) => RackUse::InRepair,
            (true, _) => RackUse::Always,
        };
    }
}

/// Values that describe what our TCP does anyway, or that nothing a script can say here depends on.
fn is_without_effect(name: &str, value: u64) -> bool {
    match name {
        // Buffers grow as far as a script writes; fast open, cookies and AccECN are not used.
        "tcp_wmem" | "tcp_fastopen" | "tcp_syncookies" | "tcp_ecn_option" | "tcp_no_metrics_save" => true,
        "tcp_dsack" => value == 1,
        "tcp_frto" => value == 2,
        "tcp_syn_retries" | "tcp_synack_retries" => value == 5,
        "tcp_pacing_ss_ratio" => value == 200,
        "tcp_pacing_ca_ratio" => value == 120,
        "tcp_notsent_lowat" => value == u64::from(u32::MAX),
        _ => false,
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysctl(name: &str, value: &str) -> Result<(), DrillStop> {
        let path = format!("net/ipv4/{name}");
        let setting = Setting::Sysctl { path, value: value.to_owned(), optional: false };
        HostSettings::new(LinuxVersion::Current, 1_000, Span::ZERO).apply(&setting)
    }

    #[test]
    fn a_setting_that_is_not_modelled_is_not_accepted() {
        assert_eq!(sysctl("tcp_sack", "0"), Ok(()));
        for (name, value) in
            [("tcp_mtu_probing", "1"), ("tcp_dsack", "0"), ("tcp_congestion_control", "vegas"), ("tcp_ecn", "7")]
        {
            assert!(matches!(sysctl(name, value), Err(DrillStop::NotApplicable(_))), "{name}");
        }
        let mut settings = HostSettings::new(LinuxVersion::Current, 1_000, Span::ZERO);
        assert!(settings.apply(&Setting::Queue(TunQueue::Fifo(0))).is_err());
        assert!(settings.apply(&Setting::Queue(TunQueue::Fair)).is_err());
    }

    #[test]
    fn the_scale_follows_from_the_largest_buffer() {
        let mut settings = HostSettings::new(LinuxVersion::Current, 1_000, Span::ZERO);
        assert_eq!(settings.window_scale(), 7);
        let rmem =
            Setting::Sysctl { path: "net/ipv4/tcp_rmem".into(), value: "4096 540000 15728640".into(), optional: true };
        settings.apply(&rmem).unwrap();
        assert_eq!((settings.window_scale(), settings.first_window()), (8, 65_535));
    }
}
