//! Rows as comma-separated values (RFC 4180).

use std::io::{self, Write};

use sim::net::Outcome;
use sim::scenario::Point;
use units::Time;

use super::columns::{COLUMNS, Cell};

/// `flows.csv`.
pub(super) fn flows(point: &Point, outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    line(out, COLUMNS.iter().map(|(name, _)| (*name).to_owned()))?;
    for flow in &outcome.flows {
        let cells = COLUMNS.iter().map(|(_, cell)| match cell {
            Cell::Text(text) => quoted(&text(flow, point)),
            Cell::Whole(number) => number(flow).to_string(),
            Cell::Real(number) => number(flow).map_or_else(String::new, |number| format!("{number:.6}")),
            Cell::Flag(flag) => flag(flow).to_string(),
        });
        line(out, cells)?;
    }
    Ok(())
}

/// `samples.csv`: what was seen since the last row, and levels at that moment.
pub(super) fn samples(point: &Point, outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    let topology = point.topology();
    let mut header = vec!["time_us".to_owned()];
    header.extend(point.traffic_names().map(|name| quoted(&format!("received_bytes {name}"))));
    header.extend(["retransmitted", "timeouts"].map(str::to_owned));
    for port in point.watched() {
        let name = format!("{}->{}", topology.name(topology.from(*port)), topology.name(topology.to(*port)));
        let columns = ["wire_bytes", "queue_bytes", "tx_buffer_bytes", "rx_buffer_bytes", "dropped"];
        header.extend(columns.map(|column| quoted(&format!("{column} {name}"))));
    }
    line(out, header.into_iter())?;
    for sample in &outcome.samples {
        let mut cells = vec![format!("{:.6}", sample.at.since(Time::ZERO).as_us())];
        cells.extend(sample.received.iter().map(u64::to_string));
        cells.extend([sample.retransmitted, sample.timeouts].map(|count| count.to_string()));
        for port in &sample.ports {
            let seen = [port.wire_bytes, port.queue, port.tx_buffer, port.rx_buffer, port.dropped];
            cells.extend(seen.map(|number| number.to_string()));
        }
        line(out, cells.into_iter())?;
    }
    Ok(())
}

fn line(out: &mut impl Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    writeln!(out, "{}", cells.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_where_it_must_be() {
        assert_eq!(["web", "a,b", "say \"no\""].map(quoted), ["web", "\"a,b\"", "\"say \"\"no\"\"\""]);
    }
}
