//! The columns of a run's tables.

use radar::loss::LossCause;
use scenario::SweepPoint;
use sim::net::metering::SegmentLoss;
use sim::net::{FlowRow, NetworkSample};
use sim::topology::{DirectedLink, NodeId};
use tables::Column;
use units::Time;

type FlowColumns<'a> = Column<'a, FlowRow>;
type SampleColumns<'a> = Column<'a, NetworkSample>;
type QueueColumns<'a> = Column<'a, (DirectedLink, u64, f64)>;
type LossColumns<'a> = Column<'a, (SegmentLoss, LossCause)>;

/// Columns of `flows.csv` and `flows.parquet`: a row for each flow. Completion time and slowdown are empty for a flow that
/// did not end.
pub(super) fn flows(point: &SweepPoint) -> Vec<FlowColumns<'_>> {
    let name = |node: NodeId| point.topology().name(node).to_owned();
    let traffic: Vec<&str> = point.traffic_names().collect();
    vec![
        FlowColumns::text("traffic", move |flow| {
            traffic.get(usize::from(flow.traffic)).copied().unwrap_or_default().to_owned()
        }),
        FlowColumns::whole("group", |flow| flow.group.into()),
        FlowColumns::text("src", move |flow| name(flow.src)),
        FlowColumns::text("dst", move |flow| name(flow.dst)),
        FlowColumns::whole("bytes", |flow| flow.bytes),
        FlowColumns::optional("start_us", |flow| Some(flow.start.since(Time::ZERO).as_us())),
        FlowColumns::optional("fct_us", |flow| flow.fct().map(|span| span.as_us())),
        FlowColumns::optional("ideal_us", |flow| Some(flow.ideal.as_us())),
        FlowColumns::optional("slowdown", FlowRow::slowdown),
        FlowColumns::whole("received_bytes", |flow| flow.received),
        FlowColumns::flag("failed", |flow| flow.failed),
        FlowColumns::whole("retransmitted", |flow| flow.tally.retransmitted.into()),
        FlowColumns::whole("probes", |flow| flow.tally.probes.into()),
        FlowColumns::whole("timeouts", |flow| flow.tally.timeouts.into()),
        FlowColumns::whole("naks", |flow| flow.tally.naks.into()),
        FlowColumns::whole("reductions", |flow| flow.tally.reductions.into()),
        FlowColumns::whole("undone", |flow| flow.tally.undone.into()),
        FlowColumns::whole("most_sacked_bytes", |flow| flow.tally.most_sacked),
    ]
}

/// Columns of `samples.csv`: counts since the last row, and levels at that moment.
pub(super) fn samples(point: &SweepPoint) -> Vec<SampleColumns<'_>> {
    let mut columns = vec![SampleColumns::optional("time_us", |sample| Some(sample.at.since(Time::ZERO).as_us()))];
    for (at, name) in point.traffic_names().enumerate() {
        columns.push(SampleColumns::whole(format!("received_bytes {name}"), move |sample| sample.received[at]));
    }
    columns.push(SampleColumns::whole("retransmitted", |sample| sample.retransmitted));
    columns.push(SampleColumns::whole("timeouts", |sample| sample.timeouts));
    for (at, port) in point.watched().iter().enumerate() {
        let name = port_name(point, *port);
        let mut of_port = |what: &str, get: fn(&sim::net::PortSample) -> u64| {
            columns.push(SampleColumns::whole(format!("{what} {name}"), move |sample| get(&sample.ports[at])));
        };
        of_port("wire_bytes", |port| port.wire_bytes);
        of_port("queue_bytes", |port| port.queue);
        of_port("tx_buffer_bytes", |port| port.tx_buffer);
        of_port("rx_buffer_bytes", |port| port.rx_buffer);
        of_port("dropped", |port| port.dropped);
    }
    columns
}

/// Columns of `losses.csv`: a row for each loss that meters named, with its cause.
pub(super) fn losses(point: &SweepPoint) -> Vec<LossColumns<'_>> {
    let end =
        move |row: &(SegmentLoss, LossCause), at: usize| segment(point, DirectedLink(row.0.segment))[at].to_owned();
    let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
    vec![
        LossColumns::whole("time_ns", |row| row.0.loss.at.0),
        LossColumns::text("from", move |row| end(row, 0)),
        LossColumns::text("to", move |row| end(row, 1)),
        LossColumns::text("src", |row| row.0.loss.flow.src.to_string()),
        LossColumns::text("dst", |row| row.0.loss.flow.dst.to_string()),
        LossColumns::text("protocol", |row| row.0.loss.flow.protocol.to_string()),
        LossColumns::whole("src_port", |row| row.0.loss.flow.src_port.into()),
        LossColumns::whole("dst_port", |row| row.0.loss.flow.dst_port.into()),
        LossColumns::text("tcp_seq", move |row| number(row.0.loss.tcp.map(|segment| segment.seq))),
        LossColumns::text("ip_id", move |row| number(row.0.loss.ip_id.map(u32::from))),
        LossColumns::text("cause", |row| row.1.to_string()),
    ]
}

/// Columns of `queues.csv`: a row for each length that a port's queue had, with its share of the time.
pub(super) fn queues(point: &SweepPoint) -> Vec<QueueColumns<'_>> {
    vec![
        QueueColumns::text("port", move |(port, _, _)| port_name(point, *port)),
        QueueColumns::whole("bytes", |(_, bytes, _)| *bytes),
        QueueColumns::real("share", |(_, _, share)| *share),
    ]
}

fn port_name(point: &SweepPoint, port: DirectedLink) -> String {
    segment(point, port).join("->")
}

fn segment(point: &SweepPoint, link: DirectedLink) -> [&str; 2] {
    let topology = point.topology();
    [topology.from(link), topology.to(link)].map(|node| topology.name(node))
}
