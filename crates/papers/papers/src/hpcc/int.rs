//! hpcc.int: what the telemetry of Fig. 2.7 takes, and what that costs long flows (§2.5.1, §2.6.3).

use congestion::theory::{PacketOverhead, int_share, int_wraps, long_flow_ratio};
use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use units::Rate;
use wire::int::{IntHeader, IntHop, IntWord};

/// Load and target of §2.6.3: 50 % of the link is payload, and HPCC leaves 5 % of it free.
const LOAD: f64 = 0.5;
const ETA: f64 = 0.95;

pub(super) fn compute(_effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let overhead = |headers, ack| PacketOverhead { payload: 1_000.0, headers, ack };
    let (without, with) = (overhead(48.0, 60.0), overhead(90.0, 88.0));
    let roce = (overhead(82.0, 88.0), overhead(124.0, 130.0));
    let wraps = [25, 100, 400].map(|gbps| int_wraps(Rate::gbps(gbps)));
    let values = [
        ("header-bytes", emitted(5) as f64),
        ("share-of-1000", int_share(5, 1_000.0)),
        ("share-of-4096", int_share(5, 4_096.0)),
        ("residual.without", 1.0 - without.used(LOAD)),
        ("residual.with", ETA - with.used(LOAD)),
        ("long-flows", long_flow_ratio(LOAD, ETA, &without, &with)),
        ("long-flows.plain-acks", long_flow_ratio(LOAD, ETA, &without, &overhead(90.0, 60.0))),
        ("long-flows.roce", long_flow_ratio(LOAD, ETA, &roce.0, &roce.1)),
        ("longest-queue", f64::from(IntWord::QUEUE_MAX * IntWord::QUEUE_UNIT)),
        ("time-wraps", wraps[0].0.as_us()),
        ("bytes-wrap.25G", wraps[0].1.as_us()),
        ("bytes-wrap.100G", wraps[1].1.as_us()),
        ("bytes-wrap.400G", wraps[2].1.as_us()),
    ];
    let mut computed = ComputedValues::default();
    for (name, value) in values {
        computed.value(name, MeasuredValue::exact(value, 1));
    }
    Ok(Some(computed))
}

/// Bytes of the header on the wire after N switches have written into it.
fn emitted(hops: u16) -> usize {
    let mut header = IntHeader::default();
    let word = IntWord::pack(&IntHop { rate_mbps: 100_000, ..IntHop::default() }).unwrap_or_default();
    let written = (1..=hops).filter(|switch| header.push(*switch, word)).count();
    let mut bytes = Vec::new();
    header.emit(&mut bytes);
    if written == usize::from(hops) { bytes.len() } else { 0 }
}
