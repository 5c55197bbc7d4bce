//! The columns of a run's tables.

use radar::loss::Cause;
use sim::net::metering::Lost;
use sim::net::{FlowRow, Sample};
use sim::scenario::Point;
use sim::topology::{DirectedLink, NodeId};
use units::Time;

use crate::table_file::Column;

type Flows<'a> = Column<'a, FlowRow>;
type Samples<'a> = Column<'a, Sample>;
type Losses<'a> = Column<'a, (Lost, Cause)>;

/// Of `flows.csv` and `flows.parquet`: a row for each flow. What takes time is empty for a flow that did not end.
pub(super) fn flows(point: &Point) -> Vec<Flows<'_>> {
    let name = |node: NodeId| point.topology().name(node).to_owned();
    let traffic: Vec<&str> = point.traffic_names().collect();
    vec![
        Flows::text("traffic", move |flow| {
            traffic.get(usize::from(flow.traffic)).copied().unwrap_or_default().to_owned()
        }),
        Flows::whole("group", |flow| flow.group.into()),
        Flows::text("src", move |flow| name(flow.src)),
        Flows::text("dst", move |flow| name(flow.dst)),
        Flows::whole("bytes", |flow| flow.bytes),
        Flows::optional("start_us", |flow| Some(flow.start.since(Time::ZERO).as_us())),
        Flows::optional("fct_us", |flow| flow.fct().map(|span| span.as_us())),
        Flows::optional("ideal_us", |flow| Some(flow.ideal.as_us())),
        Flows::optional("slowdown", FlowRow::slowdown),
        Flows::whole("received_bytes", |flow| flow.received),
        Flows::flag("failed", |flow| flow.failed),
        Flows::whole("retransmitted", |flow| flow.tally.retransmitted.into()),
        Flows::whole("probes", |flow| flow.tally.probes.into()),
        Flows::whole("timeouts", |flow| flow.tally.timeouts.into()),
        Flows::whole("naks", |flow| flow.tally.naks.into()),
        Flows::whole("reductions", |flow| flow.tally.reductions.into()),
        Flows::whole("undone", |flow| flow.tally.undone.into()),
        Flows::whole("most_sacked_bytes", |flow| flow.tally.most_sacked),
    ]
}

/// Of `samples.csv`: what was counted since the last row, and levels at that moment.
pub(super) fn samples(point: &Point) -> Vec<Samples<'_>> {
    let mut columns = vec![Samples::optional("time_us", |sample| Some(sample.at.since(Time::ZERO).as_us()))];
    for (at, name) in point.traffic_names().enumerate() {
        columns.push(Samples::whole(format!("received_bytes {name}"), move |sample| sample.received[at]));
    }
    columns.push(Samples::whole("retransmitted", |sample| sample.retransmitted));
    columns.push(Samples::whole("timeouts", |sample| sample.timeouts));
    for (at, port) in point.watched().iter().enumerate() {
        let name = segment(point, *port).join("->");
        let mut of_port = |what: &str, get: fn(&sim::net::PortSample) -> u64| {
            columns.push(Samples::whole(format!("{what} {name}"), move |sample| get(&sample.ports[at])));
        };
        of_port("wire_bytes", |port| port.wire_bytes);
        of_port("queue_bytes", |port| port.queue);
        of_port("tx_buffer_bytes", |port| port.tx_buffer);
        of_port("rx_buffer_bytes", |port| port.rx_buffer);
        of_port("dropped", |port| port.dropped);
    }
    columns
}

/// Of `losses.csv`: a row for each loss that meters named, with its cause.
pub(super) fn losses(point: &Point) -> Vec<Losses<'_>> {
    let end = move |row: &(Lost, Cause), at: usize| segment(point, DirectedLink(row.0.segment))[at].to_owned();
    let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
    vec![
        Losses::whole("time_ns", |row| row.0.loss.at.0),
        Losses::text("from", move |row| end(row, 0)),
        Losses::text("to", move |row| end(row, 1)),
        Losses::text("src", |row| row.0.loss.flow.src.to_string()),
        Losses::text("dst", |row| row.0.loss.flow.dst.to_string()),
        Losses::text("protocol", |row| row.0.loss.flow.protocol.to_string()),
        Losses::whole("src_port", |row| row.0.loss.flow.src_port.into()),
        Losses::whole("dst_port", |row| row.0.loss.flow.dst_port.into()),
        Losses::text("tcp_seq", move |row| number(row.0.loss.tcp.map(|segment| segment.seq))),
        Losses::text("ip_id", move |row| number(row.0.loss.ip_id.map(u32::from))),
        Losses::text("cause", |row| row.1.to_string()),
    ]
}

fn segment(point: &Point, link: DirectedLink) -> [&str; 2] {
    let topology = point.topology();
    [topology.from(link), topology.to(link)].map(|node| topology.name(node))
}
