//! Congestion control of RDMA as a scenario has it: `congestion = …`, with a table of its own for each controller.

use congestion::hpcc::{Division, IntForm, LinkSignal, Reaction, Registers};
use congestion::{
    CnpDelivery, ControllerConfig, DcqcnConfig, FixedRateConfig, HpccConfig, RdmaDctcpConfig, SwiftConfig, SwiftSignal,
    TimelyConfig,
};
use settings::KeyShape::{One, Several};
use settings::{Keys, ReadResult, SettingsReader};
use units::{Bytes, Rate, Span};

/// Longer round trips are not those of a datacenter.
const LONGEST_RTT: Span = Span::from_ms(1_000);
const SHORTEST: Span = Span::from_ps(1);

pub(super) const HPCC: Keys = &[
    ("eta", One),
    ("max_stage", One),
    ("w_ai", One),
    ("t", One),
    ("reaction", One),
    ("signal", One),
    ("registers", One),
    ("alpha", One),
    ("int", One),
    ("int_units", One),
    ("division", One),
    ("pace", One),
    ("min_rate", One),
];

pub(super) const DCQCN: Keys = &[
    ("set", One),
    ("cnp", One),
    ("cnp_gap", One),
    ("nic_delay", One),
    ("increase_every", One),
    ("decrease_every", One),
    ("alpha_every", One),
    ("g", One),
    ("ai", One),
    ("hai", One),
    ("fast_recovery", One),
    ("clamp_target", One),
    ("min_rate", One),
];

pub(super) const TIMELY: Keys = &[
    ("alpha", One),
    ("beta", One),
    ("t_low", One),
    ("t_high", One),
    ("min_rtt", One),
    ("ai", One),
    ("hai", One),
    ("hyper_after", One),
    ("min_rate", One),
];

pub(super) const DCTCP: Keys = &[("g", One), ("min_rate", One), ("t", One)];

pub(super) const SWIFT: Keys = &[
    ("delay", One),
    ("target", One),
    ("per_hop", One),
    ("flow_scaling", One),
    ("flow_scaling_windows", Several),
    ("ai", One),
    ("beta", One),
    ("max_decrease", One),
    ("min_window", One),
    ("max_window", One),
];

#[derive(Clone, Copy)]
enum Kind {
    None,
    Fixed,
    Hpcc,
    Dcqcn,
    Timely,
    Dctcp,
    Swift,
}

const KINDS: [(&str, Kind); 7] = [
    ("none", Kind::None),
    ("fixed", Kind::Fixed),
    ("hpcc", Kind::Hpcc),
    ("dcqcn", Kind::Dcqcn),
    ("timely", Kind::Timely),
    ("dctcp", Kind::Dctcp),
    ("swift", Kind::Swift),
];

/// Reads what a scenario says about congestion control of a `[[traffic]]`.
pub(super) fn read(table: &SettingsReader<'_>) -> ReadResult<ControllerConfig> {
    let kind = table.choice("congestion", &KINDS)?.unwrap_or(Kind::None);
    Ok(match kind {
        Kind::None => ControllerConfig::None,
        Kind::Fixed => ControllerConfig::Fixed(FixedRateConfig { rate: table.parsed("rate")? }),
        Kind::Hpcc => ControllerConfig::Hpcc(inner(table, "hpcc", hpcc)?),
        Kind::Dcqcn => {
            let dcqcn = inner(table, "dcqcn", dcqcn)?;
            ControllerConfig::Dcqcn(DcqcnConfig { plus_window: plus_window(table)?, ..dcqcn })
        }
        Kind::Timely => {
            let timely = inner(table, "timely", timely)?;
            ControllerConfig::Timely(TimelyConfig { plus_window: plus_window(table)?, ..timely })
        }
        Kind::Dctcp => ControllerConfig::Dctcp(inner(table, "dctcp", dctcp)?),
        Kind::Swift => ControllerConfig::Swift(inner(table, "swift", swift)?),
    })
}

fn plus_window(table: &SettingsReader<'_>) -> ReadResult<bool> {
    Ok(table.flag("plus_window")?.unwrap_or(false))
}

/// Settings from the table of a controller, or the defaults if there is none.
fn inner<T>(
    table: &SettingsReader<'_>,
    key: &str,
    read: impl Fn(Option<&SettingsReader<'_>>) -> ReadResult<T>,
) -> ReadResult<T> {
    read(table.inner(key).as_ref())
}

fn share(table: &SettingsReader<'_>, key: &str, usual: f64) -> ReadResult<f64> {
    let given = table.number(key, |share| share > 0.0 && share <= 1.0, "more than 0 and at most 1")?;
    Ok(given.unwrap_or(usual))
}

fn rate(table: &SettingsReader<'_>, key: &str, usual: Rate) -> ReadResult<Rate> {
    Ok(table.parsed(key)?.unwrap_or(usual))
}

fn span(table: &SettingsReader<'_>, key: &str, shortest: Span, usual: Span) -> ReadResult<Span> {
    Ok(table.span(key, shortest..=LONGEST_RTT)?.unwrap_or(usual))
}

fn hpcc(table: Option<&SettingsReader<'_>>) -> ReadResult<HpccConfig> {
    let usual = HpccConfig::default();
    let Some(table) = table else { return Ok(usual) };
    let eta = table.number("eta", |eta| eta > 0.0 && eta < 1.0, "more than 0 and less than 1, such as 0.95")?;
    let reactions = [("combined", Reaction::Combined), ("per-ack", Reaction::PerAck), ("per-rtt", Reaction::PerRtt)];
    let alpha = |alpha: f64| alpha > 0.0 && alpha <= 1_024.0;
    let registers = [("one", 0_u8), ("per-hop", 1), ("alpha", 2)];
    Ok(HpccConfig {
        eta: eta.unwrap_or(usual.eta),
        max_stage: table.small("max_stage", 0..=1_000)?.unwrap_or(usual.max_stage),
        w_ai: table.bytes("w_ai", Bytes::new(1)..=Bytes::new(1_000_000))?.map(|bytes| bytes.get() as f64),
        t: table.span("t", SHORTEST..=LONGEST_RTT)?,
        reaction: table.choice("reaction", &reactions)?.unwrap_or_default(),
        signal: table.choice("signal", &[("tx", LinkSignal::Tx), ("rx", LinkSignal::Rx)])?.unwrap_or_default(),
        registers: match table.choice("registers", &registers)? {
            Some(1) => Registers::PerHop,
            Some(2) => {
                let alpha = table.number("alpha", alpha, "more than 0 and at most 1024")?;
                Registers::Alpha(table.needed("alpha", alpha, "the α of Eq. 2.7, such as 2")?)
            }
            _ => Registers::One,
        },
        int: match table.choice("int", &[("exact", false), ("packed", true)])? {
            Some(true) => Some(IntForm::Packed(table.small("int_units", 1..=64)?.unwrap_or(1))),
            Some(false) => Some(IntForm::Exact),
            None => None,
        },
        division: table
            .choice("division", &[("exact", Division::Exact), ("table", Division::Table)])?
            .unwrap_or_default(),
        min_rate: rate(table, "min_rate", usual.min_rate)?,
        paced: table.flag("pace")?.unwrap_or(usual.paced),
    })
}

fn dcqcn(table: Option<&SettingsReader<'_>>) -> ReadResult<DcqcnConfig> {
    let Some(table) = table else { return Ok(DcqcnConfig::VENDOR) };
    let sets =
        [("vendor", DcqcnConfig::VENDOR), ("paper", DcqcnConfig::PAPER), ("conservative", DcqcnConfig::CONSERVATIVE)];
    let usual = table.choice("set", &sets)?.unwrap_or(DcqcnConfig::VENDOR);
    let cnp =
        table.choice("cnp", &[("packet", CnpDelivery::Packet), ("echo", CnpDelivery::Echo)])?.unwrap_or(usual.cnp);
    Ok(DcqcnConfig {
        cnp,
        cnp_gap: match cnp {
            CnpDelivery::Packet => span(table, "cnp_gap", Span::ZERO, usual.cnp_gap)?,
            CnpDelivery::Echo => usual.cnp_gap,
        },
        nic_delay: span(table, "nic_delay", Span::ZERO, usual.nic_delay)?,
        increase_every: span(table, "increase_every", SHORTEST, usual.increase_every)?,
        decrease_every: span(table, "decrease_every", SHORTEST, usual.decrease_every)?,
        alpha_every: span(table, "alpha_every", SHORTEST, usual.alpha_every)?,
        g: share(table, "g", usual.g)?,
        ai: rate(table, "ai", usual.ai)?,
        hai: rate(table, "hai", usual.hai)?,
        fast_recovery: table.small("fast_recovery", 0..=1_000)?.unwrap_or(usual.fast_recovery),
        clamp_target: table.flag("clamp_target")?.unwrap_or(usual.clamp_target),
        min_rate: rate(table, "min_rate", usual.min_rate)?,
        plus_window: usual.plus_window,
    })
}

fn timely(table: Option<&SettingsReader<'_>>) -> ReadResult<TimelyConfig> {
    let usual = TimelyConfig::default();
    let Some(table) = table else { return Ok(usual) };
    let timely = TimelyConfig {
        alpha: share(table, "alpha", usual.alpha)?,
        beta: share(table, "beta", usual.beta)?,
        t_low: span(table, "t_low", SHORTEST, usual.t_low)?,
        t_high: span(table, "t_high", SHORTEST, usual.t_high)?,
        min_rtt: span(table, "min_rtt", SHORTEST, usual.min_rtt)?,
        ai: rate(table, "ai", usual.ai)?,
        hai: rate(table, "hai", usual.hai)?,
        hyper_after: table.small("hyper_after", 1..=1_000)?.unwrap_or(usual.hyper_after),
        min_rate: rate(table, "min_rate", usual.min_rate)?,
        plus_window: usual.plus_window,
    };
    if timely.t_low > timely.t_high {
        let problem = format!("{}: expected at most t_high, {}", timely.t_low, timely.t_high);
        return Err(table.wrong("t_low", problem));
    }
    Ok(timely)
}

fn dctcp(table: Option<&SettingsReader<'_>>) -> ReadResult<RdmaDctcpConfig> {
    let usual = RdmaDctcpConfig::default();
    let Some(table) = table else { return Ok(usual) };
    Ok(RdmaDctcpConfig {
        g: share(table, "g", usual.g)?,
        min_rate: rate(table, "min_rate", usual.min_rate)?,
        t: table.span("t", SHORTEST..=LONGEST_RTT)?,
    })
}

fn swift(table: Option<&SettingsReader<'_>>) -> ReadResult<SwiftConfig> {
    let usual = SwiftConfig::default();
    let Some(table) = table else { return Ok(usual) };
    let packets = |key, usual: f64| {
        let fits = |packets: f64| (1e-6..=1e6).contains(&packets);
        Ok(table.number(key, fits, "a number of packets from 1e-6 to 1e6")?.unwrap_or(usual))
    };
    let swift = SwiftConfig {
        signal: table
            .choice("delay", &[("rtt", SwiftSignal::Rtt), ("one-way", SwiftSignal::OneWay)])?
            .unwrap_or(usual.signal),
        base_target: span(table, "target", Span::ZERO, usual.base_target)?,
        per_hop: span(table, "per_hop", Span::ZERO, usual.per_hop)?,
        flow_scaling: span(table, "flow_scaling", Span::ZERO, usual.flow_scaling)?,
        flow_scaling_windows: windows(table, usual.flow_scaling_windows)?,
        ai: packets("ai", usual.ai)?,
        beta: share(table, "beta", usual.beta)?,
        max_decrease: share(table, "max_decrease", usual.max_decrease)?,
        min_window: packets("min_window", usual.min_window)?,
        max_window: packets("max_window", usual.max_window)?,
    };
    if swift.min_window > swift.max_window {
        let problem = format!("{}: expected at most max_window, {}", swift.min_window, swift.max_window);
        return Err(table.wrong("min_window", problem));
    }
    Ok(swift)
}

/// Two windows in packets, the smaller first.
fn windows(table: &SettingsReader<'_>, usual: [f64; 2]) -> ReadResult<[f64; 2]> {
    const KEY: &str = "flow_scaling_windows";
    let Some(given) = table.several(KEY)? else { return Ok(usual) };
    let numbers: Vec<f64> = given.iter().filter_map(|text| text.parse().ok()).collect();
    match numbers[..] {
        [small, large] if given.len() == 2 && small > 0.0 && small < large => Ok([small, large]),
        _ => Err(table.wrong(KEY, "expected two numbers of packets, the smaller first")),
    }
}
