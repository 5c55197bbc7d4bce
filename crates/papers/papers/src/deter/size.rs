//! det.size: what logs take, for web search and incasts on 20 hosts (§6.5.2).

use std::io::Write;

use ::deter::{ColumnBytes, LogLevel};
use chart::{Axis, Bar, BarGroup, BarsChart, Chart};
use flate2::Compression;
use flate2::write::GzEncoder;
use report::claim::{ClaimError, MeasuredValue, RunScale};
use report::runner::{ComputedValues, Effort};
use results::replay::header_record;
use sim::net::NetworkSetup;
use sim::net::recording::capture_of;
use units::Time;

use super::logs::{self, ReplayedLog, RunLogs};
use super::runs;

/// Share of headers that NetSight's compression leaves, as it reports: the thesis multiplies by it.
const NETSIGHT: f64 = 0.29;

/// The network of det.size.
pub(super) fn setup(effort: &Effort<'_>) -> Result<NetworkSetup, ClaimError> {
    let ms = if effort.scale == RunScale::Full { 200 } else { 40 };
    runs::setup("size-network.toml", &[format!("run.until={ms}ms")], effort.seed)
}

/// The thesis's 380 connections: each pair of hosts has one, here one of each kind of traffic.
fn persistent(effort: &Effort<'_>) -> Result<NetworkSetup, ClaimError> {
    let mut setup = setup(effort)?;
    setup.traffic.iter_mut().for_each(|traffic| traffic.queue_pairs = Some(1));
    Ok(setup)
}

/// Bytes of a packet in logs where each request has a connection of its own, and those of headers.
fn apart(effort: &Effort<'_>) -> Result<Option<[MeasuredValue; 2]>, ClaimError> {
    let Some((_, logs)) = logs::record(&setup(effort)?, LogLevel::Decisions, effort)? else { return Ok(None) };
    let bytes: Vec<&Vec<u8>> = logs.0.values().collect();
    let replayed = parallel::map(&bytes, effort.jobs, |log| logs::replay_log(log));
    let replayed = replayed.into_iter().collect::<Result<Vec<ReplayedLog>, _>>()?;
    let packets: usize = replayed.iter().map(|log| log.frames.len()).sum();
    let total = length(&logs);
    let [.., (_, rest)] = columns(&replayed, total);
    Ok(Some([total, rest].map(|bytes| MeasuredValue::exact(bytes as f64 / packets.max(1) as f64, packets as u64))))
}

pub(super) fn compute(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    effort.progress.expect_parts(4);
    let Some([apart_bytes, apart_rest]) = apart(effort)? else { return Ok(None) };
    effort.progress.part_done();
    let setup = persistent(effort)?;
    let Some((_, logs)) = logs::record(&setup, LogLevel::Decisions, effort)? else { return Ok(None) };
    effort.progress.part_done();
    let Some((_, with_times)) = logs::record(&setup, LogLevel::Times, effort)? else { return Ok(None) };
    effort.progress.part_done();
    let bytes: Vec<&Vec<u8>> = logs.0.values().collect();
    let replayed: Result<Vec<ReplayedLog>, ClaimError> =
        parallel::map(&bytes, effort.jobs, |log| logs::replay_log(log)).into_iter().collect();
    let replayed = replayed?;
    let (capture, gzip) = captured(&replayed).map_err(ClaimError::new)?;
    effort.progress.part_done();
    let packets: usize = replayed.iter().map(|log| log.frames.len()).sum();
    let per_packet = |bytes: u64| MeasuredValue::exact(bytes as f64 / packets.max(1) as f64, packets as u64);
    let total = length(&logs);
    let mut computed = ComputedValues::default();
    let share = total as f64 / (NETSIGHT * capture as f64);
    computed.value("share", MeasuredValue::exact(share, packets as u64));
    computed.value("bytes", per_packet(total));
    computed.value("apart.bytes", apart_bytes);
    computed.value("apart.rest", apart_rest);
    for (name, bytes) in columns(&replayed, total) {
        computed.value(name, per_packet(bytes));
    }
    computed.value("connection", MeasuredValue::exact(total as f64 / logs.0.len().max(1) as f64, logs.0.len() as u64));
    computed.value("connections", MeasuredValue::exact(logs.0.len() as f64, logs.0.len() as u64));
    computed.value("times-level", per_packet(length(&with_times)));
    computed.value("capture", per_packet(capture));
    computed.value("gzip", per_packet(gzip));
    computed.value("gzip.ratio", MeasuredValue::exact(gzip as f64 / capture.max(1) as f64, packets as u64));
    computed.value("of-gzip", MeasuredValue::exact(total as f64 / gzip.max(1) as f64, packets as u64));
    computed.charts.push(chart(&replayed, total, packets));
    Ok(Some(computed))
}

fn length(logs: &RunLogs) -> u64 {
    logs.0.values().map(|log| log.len() as u64).sum()
}

/// Bytes of each column, and of the rest around them: headers, checks, digests.
fn columns(replayed: &[ReplayedLog], total: u64) -> [(&'static str, u64); 7] {
    let mut sum = ColumnBytes::default();
    replayed.iter().for_each(|log| sum += log.columns);
    let ColumnBytes { order, calls, network, decisions, ticks, times } = sum;
    let rest = total - (order + calls + network + decisions + ticks + times);
    [
        ("order", order),
        ("calls", calls),
        ("network", network),
        ("decisions", decisions),
        ("ticks", ticks),
        ("times", times),
        ("rest", rest),
    ]
}

/// Length of a capture of all headers, one record for each packet, and of the same in gzip.
fn captured(replayed: &[ReplayedLog]) -> std::io::Result<(u64, u64)> {
    let mut records: Vec<(Time, Vec<u8>)> = Vec::new();
    for log in replayed {
        records.extend(log.frames.iter().map(|frame| (frame.at, header_record(&capture_of(&log.header, frame)))));
    }
    records.sort_by_key(|(at, _)| *at);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut capture = 0;
    for (_, record) in &records {
        capture += record.len() as u64;
        encoder.write_all(record)?;
    }
    Ok((capture, encoder.finish()?.len() as u64))
}

fn chart(replayed: &[ReplayedLog], total: u64, packets: usize) -> Chart {
    let bar = |(name, bytes): (&str, u64)| Bar {
        name: name.into(),
        ours: Some(bytes as f64 / packets.max(1) as f64),
        paper: None,
    };
    let bars = columns(replayed, total).into_iter().map(bar).collect();
    Chart::Bars(BarsChart {
        title: "What a packet takes in a log".into(),
        caption: "Level decisions, web search at 80 % with incasts on 20 hosts. “Rest” is headers, checks and digests."
            .into(),
        axis: Axis::linear("bytes per packet"),
        groups: vec![BarGroup { name: "columns".into(), bars }],
    })
}
