//! `[[traffic]]`: who sends what to whom, and how.

use faults::Random;
use settings::{ReadResult, SettingsReader};
use sim::net::{TrafficSetup, TransportSetup};
use units::Bytes;

use crate::plan::TrafficPlan;
use crate::{TrafficContext, work};

/// Traffic from which that of any seed can be made.
#[derive(Clone, Debug)]
pub(crate) struct TrafficTemplate {
    pub name: String,
    pub transport: TransportSetup,
    pub plan: TrafficPlan,
    reply: u64,
    acknowledged: bool,
    class: u8,
    ack_class: Option<u8>,
    queue_pairs: Option<u32>,
}

/// Most queue pairs between two hosts; a NIC has about as many.
const MOST_QUEUE_PAIRS: u32 = 1 << 20;

/// The randomness of workloads, apart from that of links, hosts and flows; each traffic adds its number.
const STREAM: u64 = 1 << 40;

impl TrafficTemplate {
    /// True if TCP connections stay for the next flow.
    pub(crate) fn is_persistent(&self) -> bool {
        self.queue_pairs.is_some() && !self.transport.is_rdma()
    }

    /// # Panics
    /// If the plan cannot be carried out, which was found out when it was read.
    pub(crate) fn traffic(&self, number: usize, seed: u64) -> TrafficSetup {
        let random = Random::new(seed, STREAM + number as u64);
        let work = self.plan.workload(random).expect("tried when the scenario was read");
        let Self { name, transport, reply, acknowledged, class, ack_class, queue_pairs, .. } = self.clone();
        TrafficSetup { name, transport, work, reply, acknowledged, class, ack_class, queue_pairs }
    }
}

/// `handshake` of the hosts. A connection that stays has no handshake for the next flow.
pub(crate) fn handshakes(host: &SettingsReader<'_>, traffic: &[TrafficTemplate]) -> ReadResult<bool> {
    let handshakes = host.flag("handshake")?.unwrap_or(false);
    if handshakes && traffic.iter().any(TrafficTemplate::is_persistent) {
        return Err(host.wrong("handshake", "expected traffic that is not persistent"));
    }
    Ok(handshakes)
}

/// The name of a traffic. No two have the same.
pub(crate) fn name(table: &SettingsReader<'_>, number: usize, before: &[String]) -> ReadResult<String> {
    let name = table.text("name")?.unwrap_or_else(|| format!("traffic {number}"));
    if before.contains(&name) {
        return Err(table.wrong("name", format_args!("'{name}': there is traffic of this name before")));
    }
    Ok(name)
}

pub(crate) fn read(
    table: &SettingsReader<'_>,
    name: String,
    transport: TransportSetup,
    around: &TrafficContext<'_>,
) -> ReadResult<TrafficTemplate> {
    let plan = work::read(table, &transport, around)?;
    let reply = table.bytes("reply", Bytes::ZERO..=work::largest_answered(&transport, around.topology))?;
    let is_tcp = matches!(transport, TransportSetup::Tcp(_));
    let queue_pairs = match (transport.is_rdma(), is_tcp) {
        (true, _) => queue_pairs(table, &plan)?,
        (_, true) => table.small("persistent", 1..=MOST_QUEUE_PAIRS)?,
        _ => None,
    };
    let class = table.tiny("class", 0..=7)?.unwrap_or(0);
    let ack_class = if transport.is_rdma() { table.tiny("ack_class", 0..=7)? } else { None };
    let reply = reply.map_or(0, Bytes::get);
    let ends = [("delivered", false), ("acknowledged", true)];
    let acknowledged = table.choice("fct", &ends)?.unwrap_or(false);
    if acknowledged && (reply > 0 || !is_tcp) {
        return Err(table.wrong("fct", "acknowledged: expected TCP, and no reply"));
    }
    if is_tcp && queue_pairs.is_some() && (acknowledged || reply > 0) {
        return Err(table.wrong("persistent", "expected neither reply nor fct = \"acknowledged\""));
    }
    Ok(TrafficTemplate { name, transport, plan, reply, acknowledged, class, ack_class, queue_pairs })
}

/// Queue pairs that flows between two hosts share. Transfers of a job share one, unless each is to have its own.
fn queue_pairs(table: &SettingsReader<'_>, plan: &TrafficPlan) -> ReadResult<Option<u32>> {
    let usual = match plan {
        TrafficPlan::Job(job) => (!job.work.has_flows).then_some(1),
        _ => return table.small("queue_pairs", 1..=MOST_QUEUE_PAIRS),
    };
    match table.text("queue_pairs")?.as_deref() {
        Some("per-transfer") => Ok(None),
        Some(text) if !text.starts_with(|first: char| first.is_ascii_digit()) => {
            Err(table.wrong("queue_pairs", format_args!("'{text}': expected a number, or per-transfer")))
        }
        Some(_) => table.small("queue_pairs", 1..=MOST_QUEUE_PAIRS),
        None => Ok(usual),
    }
}

/// Checks that all connections of a host agree on the size of its shared pool.
pub(crate) fn check_pools(tables: &[SettingsReader<'_>], kinds: &[TrafficTemplate]) -> ReadResult<()> {
    let mut pools = tables.iter().zip(kinds).filter_map(|(table, kind)| Some((table, kind.transport.shared_pool()?)));
    let Some((_, first)) = pools.next() else { return Ok(()) };
    match pools.find(|(_, pool)| *pool != first) {
        Some((table, _)) => Err(table.wrong("pool", "expected the same pool and block as in the traffic before")),
        None => Ok(()),
    }
}

/// Checks that no host schedules its arrivals in two ways.
pub(crate) fn check_grants(tables: &[SettingsReader<'_>], kinds: &[TrafficTemplate]) -> ReadResult<()> {
    let mut policies =
        tables.iter().zip(kinds).filter_map(|(table, kind)| Some((table, kind.transport.grant_policy()?)));
    let Some((_, first)) = policies.next() else { return Ok(()) };
    match policies.find(|(_, policy)| *policy != first) {
        Some((table, _)) => {
            let problem = "a host has one scheduler: expected rds or homa in all traffic, with the same unasked, grant, at_once and levels";
            Err(table.wrong("transport", problem))
        }
        None => Ok(()),
    }
}

/// Checks that nobody sends more than its link carries, all traffic together.
pub(crate) fn check_loads(
    tables: &[SettingsReader<'_>],
    kinds: &[TrafficTemplate],
    around: &TrafficContext<'_>,
) -> ReadResult<()> {
    let topology = around.topology;
    let mut loads = vec![0.0; topology.nodes.len()];
    for (table, kind) in tables.iter().zip(kinds) {
        let Some((load, hosts)) = kind.plan.load() else { continue };
        for host in hosts {
            let sum = &mut loads[host.index()];
            *sum += load;
            if *sum > 1.0 + 1e-9 {
                let (percent, name) = (*sum * 100.0, topology.name(*host));
                let problem =
                    format!("makes {percent:.0} % of the link of {name}, all traffic together: expected at most 100 %");
                return Err(table.wrong("load", problem));
            }
        }
    }
    Ok(())
}
