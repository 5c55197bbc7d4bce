//! Header of a log, which names the connection's hosts, its start, and the settings of both ends.

use std::str::FromStr;

use tcp::cc::Algorithm;
use tcp::{LinuxVersion, LossDetection, RackUse, Reordering, TcpConfig, TcpSocketConfig, TimerProfile, TsoConfig};
use units::{ParseError, Span, Time};

use crate::bytes::{LogReader, put};
use crate::log::LogFault;

/// Level of a log: the record that it keeps of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// The time of every call, to the picosecond. Works for every connection, and a replay has the times of the run.
    #[default]
    Times,
    /// Decisions of time, and samples of when packets left (li-thesis §6.3). A fraction of the size. Not for BBR, which
    /// follows measured times continuously: every sample would be a decision.
    Decisions,
}

impl LogLevel {
    /// Levels, in the order in which errors list them.
    pub const ALL: [Self; 2] = [Self::Times, Self::Decisions];

    /// Name of the level.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Times => "times",
            Self::Decisions => "decisions",
        }
    }

    /// True if a log of this level can hold a connection with this congestion control.
    pub fn admits(self, algorithm: Algorithm) -> bool {
        self == Self::Times || algorithm != Algorithm::Bbr
    }
}

impl FromStr for LogLevel {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError = ParseError::new("a level of recording: times or decisions");
        Self::ALL.into_iter().find(|level| level.name() == text).ok_or(EXPECTED)
    }
}

/// A connection, and the run that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct LogHeader {
    /// Level of the log.
    pub level: LogLevel,
    /// The point of the sweep, and its seed.
    pub point: u32,
    /// The seed of the run.
    pub seed: u64,
    /// Number of the connection in its run.
    pub flow: u32,
    /// The two hosts, that of the client first.
    pub hosts: [u32; 2],
    /// Time at which both ends came to be.
    pub began: Time,
    /// Settings of both ends.
    pub ends: [TcpConfig; 2],
}

impl LogHeader {
    pub(crate) fn emit(&self) -> Vec<u8> {
        let mut out = vec![self.level as u8];
        for value in [u64::from(self.point), self.seed, u64::from(self.flow)] {
            put(&mut out, value);
        }
        self.hosts.iter().for_each(|host| put(&mut out, u64::from(*host)));
        put(&mut out, self.began.as_ps());
        let usual = numbers_of(&TcpConfig::default());
        let [client, server] = self.ends.map(|config| numbers_of(&config));
        put_changes(&mut out, &usual, &client);
        put_changes(&mut out, &client, &server);
        out
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, LogFault> {
        let mut reader = LogReader::new(bytes);
        let level = *LogLevel::ALL.get(usize::from(reader.byte()?)).ok_or(LogFault::Value("level"))?;
        let (point, seed, flow) = (reader.small("point")?, reader.number()?, reader.small("flow")?);
        let hosts = [reader.small("host")?, reader.small("host")?];
        let began = Time::from_ps(reader.picoseconds()?);
        let usual = numbers_of(&TcpConfig::default());
        let client = changed(&mut reader, &usual)?;
        let server = changed(&mut reader, &client)?;
        let [client, server] = [config_of(&client)?, config_of(&server)?];
        if !reader.is_empty() {
            return Err(LogFault::Value("header"));
        }
        if !level.admits(client.algorithm) || !level.admits(server.algorithm) {
            return Err(LogFault::Value("congestion control: BBR at level decisions"));
        }
        Ok(Self { level, point, seed, flow, hosts, began, ends: [client, server] })
    }
}

/// Settings as numbers, always as many.
type ConfigNumbers = Vec<u64>;

/// Writes the numbers that differ from `usual`, each with its place.
fn put_changes(out: &mut Vec<u8>, usual: &[u64], numbers: &[u64]) {
    let changes = || numbers.iter().zip(usual).enumerate().filter(|(_, (number, usual))| number != usual);
    put(out, changes().count() as u64);
    for (at, (number, _)) in changes() {
        out.push(at as u8);
        put(out, *number);
    }
}

fn changed(reader: &mut LogReader<'_>, usual: &[u64]) -> Result<ConfigNumbers, LogFault> {
    let mut numbers = usual.to_vec();
    for _ in 0..reader.number()? {
        let at = usize::from(reader.byte()?);
        *numbers.get_mut(at).ok_or(LogFault::Value("configuration"))? = reader.number()?;
    }
    Ok(numbers)
}

fn numbers_of(config: &TcpConfig) -> ConfigNumbers {
    let mut bytes = Vec::new();
    of_config(config, &mut bytes);
    let mut reader = LogReader::new(&bytes);
    std::iter::from_fn(|| reader.number().ok()).collect()
}

fn config_of(numbers: &[u64]) -> Result<TcpConfig, LogFault> {
    let mut bytes = Vec::new();
    numbers.iter().for_each(|number| put(&mut bytes, *number));
    config(&mut LogReader::new(&bytes))
}

fn of_config(config: &TcpConfig, out: &mut Vec<u8>) {
    let TcpConfig { detection, .. } = config;
    let flags = [
        config.ecn,
        config.reordering == Reordering::Fixed,
        config.idle_restart,
        config.sack,
        config.timestamps,
        config.gentle_marks,
        config.prr_follows_advances,
        detection.probes,
        detection.early_retransmit,
        detection.fack,
        detection.copies_by_timestamp,
    ];
    put(out, bits(&flags));
    let algorithm = Algorithm::ALL.iter().position(|one| *one == config.algorithm).unwrap_or_default();
    for value in [u64::from(config.mss), u64::from(config.initial_window), algorithm as u64, config.receive_buffer] {
        put(out, value);
    }
    of_profile(config.profile, config.late_ticks, out);
    of_wide_span(config.handshake_rtt, out);
    put(out, u64::from(config.seed));
    of_wide_span(config.timer_slack, out);
    let rack = match detection.rack {
        RackUse::Off => 0,
        RackUse::InRepair => 1,
        RackUse::Always => 2,
    };
    for value in [rack, u64::from(detection.threshold), u64::from(detection.max_threshold)] {
        put(out, value);
    }
    out.push(u8::from(config.socket.is_some()));
    of_socket(&config.socket.unwrap_or_default(), out);
}

/// Timers that are late by N ticks are of kind N + 1.
fn of_profile(profile: TimerProfile, late: u8, out: &mut Vec<u8>) {
    let kind = if late == 0 { 0 } else { 1 + u64::from(late) };
    let values = match profile {
        TimerProfile::Linux { hz, rto_min, phase } => [kind, u64::from(hz), rto_min.as_ps(), phase.as_ps()],
        TimerProfile::Rfc { rto_min, max_ack_delay } => [1, rto_min.as_ps(), max_ack_delay.as_ps(), 0],
    };
    values.iter().for_each(|value| put(out, *value));
}

fn of_socket(socket: &TcpSocketConfig, out: &mut Vec<u8>) {
    let TcpSocketConfig { peer_window, first_window, window_scale, tso, .. } = *socket;
    let of_tso = [tso.push, tso.by_distance, tso.by_next_ack];
    let of_receiver = [socket.compresses_sacks, socket.reads_at_once];
    let flags = [&[socket.nodelay, socket.grows_without_sack][..], &of_tso, &of_receiver].concat();
    put(out, bits(&flags));
    let version = LinuxVersion::ALL.iter().position(|one| *one == socket.version).unwrap_or_default();
    put(out, version as u64);
    of_wide_choice(socket.first_buffer, out);
    for value in [peer_window, u64::from(first_window), u64::from(window_scale)] {
        put(out, value);
    }
    of_wide_choice(socket.peer_timestamp.map(u64::from), out);
    of_wide_choice(socket.send_buffer, out);
    of_wide_span(socket.user_timeout, out);
    put(out, u64::from(tso.min_segments));
    put(out, u64::from(tso.window_divisor));
}

fn bits(flags: &[bool]) -> u64 {
    flags.iter().rev().fold(0, |bits, flag| bits << 1 | u64::from(*flag))
}

pub(crate) fn of_span(span: Option<Span>, out: &mut Vec<u8>) {
    of_choice(span.map(Span::as_ps), out);
}

fn of_choice(value: Option<u64>, out: &mut Vec<u8>) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

/// Two numbers, whether there is a value or not.
fn of_wide_choice(value: Option<u64>, out: &mut Vec<u8>) {
    out.push(u8::from(value.is_some()));
    put(out, value.unwrap_or_default());
}

fn of_wide_span(span: Option<Span>, out: &mut Vec<u8>) {
    of_wide_choice(span.map(Span::as_ps), out);
}

fn wide_choice(reader: &mut LogReader<'_>) -> Result<Option<u64>, LogFault> {
    let (given, value) = (flag(reader)?, reader.number()?);
    Ok(given.then_some(value))
}

fn wide_span(reader: &mut LogReader<'_>) -> Result<Option<Span>, LogFault> {
    let (given, span) = (flag(reader)?, Span::from_ps(reader.picoseconds()?));
    Ok(given.then_some(span))
}

fn config(reader: &mut LogReader<'_>) -> Result<TcpConfig, LogFault> {
    let flags = flags::<11>(reader)?;
    let [ecn, fixed, idle_restart, sack, timestamps, gentle_marks, prr_follows_advances, ..] = flags;
    let (mss, initial_window) = (reader.small("MSS")?, reader.small("initial window")?);
    let algorithm: usize = reader.small("congestion control")?;
    let algorithm = *Algorithm::ALL.get(algorithm).ok_or(LogFault::Value("congestion control"))?;
    let receive_buffer = reader.number()?;
    let (profile, late_ticks) = profile(reader)?;
    let (handshake_rtt, seed) = (wide_span(reader)?, reader.small("seed")?);
    let timer_slack = wide_span(reader)?;
    let rack = match reader.number()? {
        0 => RackUse::Off,
        1 => RackUse::InRepair,
        2 => RackUse::Always,
        _ => return Err(LogFault::Value("loss detection")),
    };
    let (threshold, max_threshold) = (reader.small("threshold")?, reader.small("threshold")?);
    let [.., probes, early_retransmit, fack, copies_by_timestamp] = flags;
    let detection =
        LossDetection { rack, probes, early_retransmit, fack, copies_by_timestamp, threshold, max_threshold };
    let (has_socket, socket) = (flag(reader)?, socket(reader)?);
    let socket = has_socket.then_some(socket);
    let reordering = if fixed { Reordering::Fixed } else { Reordering::Adaptive };
    Ok(TcpConfig {
        mss,
        initial_window,
        algorithm,
        profile,
        ecn,
        reordering,
        receive_buffer,
        handshake_rtt,
        idle_restart,
        seed,
        timer_slack,
        late_ticks,
        sack,
        timestamps,
        detection,
        gentle_marks,
        prr_follows_advances,
        socket,
    })
}

fn profile(reader: &mut LogReader<'_>) -> Result<(TimerProfile, u8), LogFault> {
    let kind = reader.number()?;
    let [first, second, third] = [reader.picoseconds()?, reader.picoseconds()?, reader.picoseconds()?];
    match (kind, u32::try_from(first)) {
        (1, _) => Ok((TimerProfile::Rfc { rto_min: Span::from_ps(first), max_ack_delay: Span::from_ps(second) }, 0)),
        (kind @ 0..=256, Ok(hz)) => {
            let late = kind.saturating_sub(1) as u8;
            Ok((TimerProfile::Linux { hz, rto_min: Span::from_ps(second), phase: Span::from_ps(third) }, late))
        }
        _ => Err(LogFault::Value("timers")),
    }
}

fn socket(reader: &mut LogReader<'_>) -> Result<TcpSocketConfig, LogFault> {
    let [nodelay, grows_without_sack, push, by_distance, by_next_ack, compresses_sacks, reads_at_once] =
        flags::<7>(reader)?;
    let version: usize = reader.small("kernel")?;
    let version = *LinuxVersion::ALL.get(version).ok_or(LogFault::Value("kernel"))?;
    let first_buffer = wide_choice(reader)?;
    let (peer_window, first_window) = (reader.number()?, reader.small("window")?);
    let window_scale = reader.small("window scale")?;
    let peer_timestamp =
        wide_choice(reader)?.map(|value| u32::try_from(value).map_err(|_| LogFault::Value("timestamp")));
    let (peer_timestamp, send_buffer, user_timeout) =
        (peer_timestamp.transpose()?, wide_choice(reader)?, wide_span(reader)?);
    let (min_segments, window_divisor) = (reader.small("super-frame")?, reader.small("super-frame")?);
    let tso = TsoConfig { min_segments, window_divisor, push, by_distance, by_next_ack };
    Ok(TcpSocketConfig {
        peer_window,
        first_window,
        window_scale,
        peer_timestamp,
        send_buffer,
        grows_without_sack,
        nodelay,
        user_timeout,
        tso,
        version,
        compresses_sacks,
        first_buffer,
        reads_at_once,
    })
}

fn flags<const N: usize>(reader: &mut LogReader<'_>) -> Result<[bool; N], LogFault> {
    let bits = reader.number()?;
    if bits >> N != 0 {
        return Err(LogFault::Value("configuration"));
    }
    Ok(std::array::from_fn(|at| bits >> at & 1 == 1))
}

fn flag(reader: &mut LogReader<'_>) -> Result<bool, LogFault> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(LogFault::Value("flag")),
    }
}

pub(crate) fn span(reader: &mut LogReader<'_>) -> Result<Option<Span>, LogFault> {
    if flag(reader)? { reader.picoseconds().map(|span| Some(Span::from_ps(span))) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_configuration_is_read_as_it_was_written() {
        let mut configs: Vec<TcpConfig> = LinuxVersion::ALL.map(TcpConfig::linux).into();
        configs.push(TcpConfig { profile: TimerProfile::rfc(), ecn: true, sack: false, ..TcpConfig::default() });
        configs.push(TcpConfig { handshake_rtt: Some(Span::from_us(12)), seed: 7, ..TcpConfig::default() });
        configs.push(TcpConfig { late_ticks: 3, timestamps: false, ..TcpConfig::default() });
        for client in &configs {
            for server in &configs {
                let ends = [*client, *server];
                let began = Time::from_ps(12_345);
                let level = LogLevel::Decisions;
                let header = LogHeader { level, point: 3, seed: u64::MAX, flow: 9, hosts: [4, 5], began, ends };
                let read = LogHeader::parse(&header.emit()).unwrap();
                assert_eq!(format!("{read:?}"), format!("{header:?}"));
            }
        }
    }
}
