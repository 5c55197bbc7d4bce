//! The `transport` of a `[[traffic]]`, with what can be set about it.

use transport::roce::{self, irn, melo, selective};
use transport::tcp::cc::Algorithm;
use transport::tcp::{self, Profile, Reordering};
use units::{Bytes, Span};
use wire::ethernet::MAX_FRAME;
use wire::ip::Ecn;

use super::reader::{Read, Reader};
use crate::net::{Memory, TCP_HEADERS, TransportSetup, raw};

#[derive(Clone, Copy)]
enum Kind {
    Tcp(Algorithm),
    Rdma,
    Datagrams,
}

const KINDS: [(&str, Kind); 6] = [
    ("reno", Kind::Tcp(Algorithm::Reno)),
    ("cubic", Kind::Tcp(Algorithm::Cubic)),
    ("dctcp", Kind::Tcp(Algorithm::Dctcp)),
    ("bbr", Kind::Tcp(Algorithm::Bbr)),
    ("rdma", Kind::Rdma),
    ("datagrams", Kind::Datagrams),
];

/// What RFC 6298 lets the timeout grow to at least.
const LONGEST_RTO: Span = Span::from_ms(60_000);

/// More than any loss calls for.
const MOST_BEHIND_A_TAIL: u32 = 64;

pub(super) fn read(table: &Reader<'_>) -> Read<TransportSetup> {
    let kind = table.choice("transport", &KINDS)?;
    match table.needed("transport", kind, "a transport such as cubic, dctcp, rdma or datagrams")? {
        Kind::Tcp(algorithm) => connection(table, algorithm).map(TransportSetup::Tcp),
        Kind::Rdma => rdma(table),
        Kind::Datagrams => Ok(TransportSetup::Raw(raw::Config {
            payload: table.small("payload", 1..=MAX_FRAME - raw::HEADERS)?.unwrap_or(1_518 - raw::HEADERS),
            rate: table.parsed("rate")?,
        })),
    }
}

fn connection(table: &Reader<'_>, algorithm: Algorithm) -> Read<tcp::Config> {
    let usual = tcp::Config::default();
    let mss = table.small("mss", 64..=MAX_FRAME - TCP_HEADERS)?.unwrap_or(usual.mss);
    let receive_buffer: Option<Bytes> = table.parsed("receive_buffer")?;
    let receive_buffer = receive_buffer.map_or(usual.receive_buffer, Bytes::get);
    if receive_buffer < 2 * u64::from(mss) || receive_buffer > 1 << 30 {
        return Err(table.wrong("receive_buffer", "expected at least two segments and at most 1 GiB"));
    }
    let choices = [("adaptive", Reordering::Adaptive), ("fixed", Reordering::Fixed)];
    Ok(tcp::Config {
        mss,
        initial_window: table.small("initial_window", 1..=10_000)?.unwrap_or(usual.initial_window),
        algorithm,
        profile: timers(table)?,
        ecn: table.flag("ecn")?.unwrap_or(usual.ecn),
        reordering: table.choice("reordering", &choices)?.unwrap_or(usual.reordering),
        receive_buffer,
        idle_restart: table.flag("idle_restart")?.unwrap_or(usual.idle_restart),
        ..usual
    })
}

fn timers(table: &Reader<'_>) -> Read<Profile> {
    let usual = table.choice("timers", &[("linux", Profile::linux()), ("rfc", Profile::rfc())])?;
    let rto = table.span("rto_min", Span::from_ps(1)..=LONGEST_RTO)?;
    Ok(match usual.unwrap_or(Profile::linux()) {
        Profile::Linux { hz, rto_min, phase } => Profile::Linux {
            hz: table.small("hz", 1..=1_000_000)?.unwrap_or(hz),
            rto_min: rto.unwrap_or(rto_min),
            phase,
        },
        Profile::Rfc { rto_min, max_ack_delay } => Profile::Rfc {
            rto_min: rto.unwrap_or(rto_min),
            max_ack_delay: table.span("max_ack_delay", Span::ZERO..=LONGEST_RTO)?.unwrap_or(max_ack_delay),
        },
    })
}

#[derive(Clone, Copy)]
enum Recovery {
    GoBackN,
    Melo,
    Irn,
}

fn rdma(table: &Reader<'_>) -> Read<TransportSetup> {
    let choices = [("go-back-n", Recovery::GoBackN), ("melo", Recovery::Melo), ("irn", Recovery::Irn)];
    let recovery = table.choice("recovery", &choices)?.unwrap_or(Recovery::GoBackN);
    let memory = match recovery {
        Recovery::GoBackN => return queue_pair(table).map(TransportSetup::Roce),
        Recovery::Melo => Memory::Shared(pool(table)?),
        Recovery::Irn => Memory::Own(irn_timeouts(table)?),
    };
    let common = connection_of_messages(table)?;
    let window = table.small("outstanding", 1..=selective::MAX_OUTSTANDING)?;
    let config = selective::Config::from(common);
    let max_outstanding = window.unwrap_or(selective::Config::default().max_outstanding);
    Ok(TransportSetup::Selective(selective::Config { max_outstanding, ..config }, memory))
}

/// The bits that all connections of a host share.
fn pool(table: &Reader<'_>) -> Read<melo::PoolConfig> {
    let usual = melo::PoolConfig::default();
    let pool = melo::PoolConfig {
        bits: table.small("pool", 1..=u32::MAX)?.unwrap_or(usual.bits),
        block: table.small("block", 1..=u32::MAX)?.unwrap_or(usual.block),
    };
    pool.blocks::<u16>().map_err(|error| table.wrong(if table.has("pool") { "pool" } else { "block" }, error))?;
    Ok(pool)
}

/// IRN's short timeout; the long one is `timeout`.
fn irn_timeouts(table: &Reader<'_>) -> Read<irn::Timeouts> {
    let usual = irn::Timeouts::default();
    Ok(irn::Timeouts { low: table.span("timeout_low", Span::from_ps(1)..=LONGEST_RTO)?.unwrap_or(usual.low), ..usual })
}

fn queue_pair(table: &Reader<'_>) -> Read<roce::Config> {
    let usual = connection_of_messages(table)?;
    Ok(roce::Config {
        max_outstanding: table.small("outstanding", 1..=roce::MAX_OUTSTANDING)?.unwrap_or(usual.max_outstanding),
        naks: table.flag("naks")?.unwrap_or(usual.naks),
        obey_nak_copies: table.choice("obey", &[("every", true), ("first", false)])?.unwrap_or(usual.obey_nak_copies),
        dummies: table.small("dummies", 0..=MOST_BEHIND_A_TAIL)?.unwrap_or(usual.dummies),
        dummies_after: table.span("dummies_after", Span::ZERO..=LONGEST_RTO)?.unwrap_or(usual.dummies_after),
        tail_copies: table.small("tail_copies", 0..=MOST_BEHIND_A_TAIL)?.unwrap_or(usual.tail_copies),
        ..usual
    })
}

/// What all queue pairs have, whichever way they recover.
fn connection_of_messages(table: &Reader<'_>) -> Read<roce::Config> {
    let usual = roce::Config::default();
    let timeouts = Span::from_ps(1)..=roce::Config::timeout_for(u8::MAX);
    Ok(roce::Config {
        mtu: table.small("mtu", 64..=4_096)?.unwrap_or(usual.mtu),
        timeout: table.span("timeout", timeouts)?.unwrap_or(usual.timeout),
        retry_count: table.small("retries", 0..=u32::MAX)?.unwrap_or(usual.retry_count),
        ack_every: table.small("ack_every", 1..=65_536)?.unwrap_or(usual.ack_every),
        rate: table.parsed("rate")?,
        ecn: if table.flag("ecn")?.unwrap_or(false) { Ecn::Capable } else { Ecn::NotCapable },
        ..usual
    })
}
