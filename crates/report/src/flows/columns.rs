//! The columns of a flow's row, for every format.

use sim::net::FlowRow;
use sim::scenario::Point;
use units::Time;

/// A cell of a row.
pub(super) enum Cell {
    Text(fn(&FlowRow, &Point) -> String),
    Whole(fn(&FlowRow) -> u64),
    /// Empty for a flow that did not come to its end.
    Real(fn(&FlowRow) -> Option<f64>),
    Flag(fn(&FlowRow) -> bool),
}

use Cell::{Flag, Real, Text, Whole};

pub(super) const COLUMNS: [(&str, Cell); 18] = [
    ("traffic", Text(|flow, point| point.traffic_names().nth(flow.traffic.into()).unwrap_or_default().to_owned())),
    ("group", Whole(|flow| flow.group.into())),
    ("src", Text(|flow, point| point.topology().name(flow.src).to_owned())),
    ("dst", Text(|flow, point| point.topology().name(flow.dst).to_owned())),
    ("bytes", Whole(|flow| flow.bytes)),
    ("start_us", Real(|flow| Some(flow.start.since(Time::ZERO).as_us()))),
    ("fct_us", Real(|flow| flow.fct().map(|span| span.as_us()))),
    ("ideal_us", Real(|flow| Some(flow.ideal.as_us()))),
    ("slowdown", Real(FlowRow::slowdown)),
    ("received_bytes", Whole(|flow| flow.received)),
    ("failed", Flag(|flow| flow.failed)),
    ("retransmitted", Whole(|flow| flow.tally.retransmitted.into())),
    ("probes", Whole(|flow| flow.tally.probes.into())),
    ("timeouts", Whole(|flow| flow.tally.timeouts.into())),
    ("naks", Whole(|flow| flow.tally.naks.into())),
    ("reductions", Whole(|flow| flow.tally.reductions.into())),
    ("undone", Whole(|flow| flow.tally.undone.into())),
    ("most_sacked_bytes", Whole(|flow| flow.tally.most_sacked)),
];
