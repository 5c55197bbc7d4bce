//! Tables of flows with parents: `ID parent_id src dst size channel_id`.
//!
//! ```text
//! ID  parent_id  src  dst  size   channel_id    # this line may be left out
//! 0   -1         0    1    512KB  0
//! 1   0          1    2    512KB  0
//! 2   0,1        2    3    512KB  1             # several parents
//! ```
//!
//! `KB`, `MB` and `GB` are powers of two, as far as the only public example shows.

use std::collections::BTreeMap;
use std::io::BufRead;

use collective::GraphTransfer;

use crate::error::{ImportError, shortened};
use crate::graph::{ImportGraph, MOST_INPUTS, MOST_RANKS, MOST_TRANSFERS, arrival, transfer};
use crate::lines::{BoundedLines, number};

/// A row, whose parents are still numbers of its file.
struct SimcclRow {
    line: u64,
    id: u64,
    transfer: GraphTransfer,
    parents: Vec<u64>,
}

pub(crate) fn import(from: &mut dyn BufRead) -> Result<ImportGraph, ImportError> {
    let mut lines = BoundedLines::new(from);
    let mut rows: Vec<SimcclRow> = Vec::new();
    let mut inputs = 0;
    loop {
        let line = lines.number() + 1;
        let Some(text) = lines.next_line()? else { break };
        let fields: Vec<&str> = text.split('#').next().unwrap_or_default().split_whitespace().collect();
        let is_head = rows.is_empty() && fields.first().is_some_and(|first| first.eq_ignore_ascii_case("id"));
        if fields.is_empty() || is_head {
            continue;
        }
        let row = row(line, &fields).map_err(|problem| ImportError::line(line, problem))?;
        inputs += row.parents.len();
        if rows.len() >= MOST_TRANSFERS || inputs > MOST_INPUTS {
            return Err(ImportError::line(line, "the table is too large"));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(ImportError::whole("expected at least one line ID parent_id src dst size channel_id"));
    }
    connect(rows)
}

fn row(line: u64, fields: &[&str]) -> Result<SimcclRow, String> {
    let &[id, parents, src, dst, bytes, channel] = fields else {
        return Err(format!("expected ID parent_id src dst size channel_id, found '{}'", shortened(&fields.join(" "))));
    };
    let rank = |text| {
        let rank: u32 = number(text, "the number of a rank")?;
        if rank < MOST_RANKS { Ok(rank) } else { Err(format!("{rank}: expected at most {MOST_RANKS} ranks")) }
    };
    let (src, dst) = (rank(src)?, rank(dst)?);
    if src == dst {
        return Err(format!("rank {src} sends to itself"));
    }
    let parents = match parents {
        "-1" => Vec::new(),
        list => list.split(',').map(|id| number(id, "-1, or IDs such as 0,1,2")).collect::<Result<_, _>>()?,
    };
    let id: u64 = number(id, "a whole number as ID")?;
    let lane = number(channel, "the number of a channel")?;
    let transfer = GraphTransfer { lane, ..transfer(id.to_string(), [src, dst], size(bytes)?) };
    Ok(SimcclRow { line, id, transfer, parents })
}

fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => 0,
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| format!("'{}': expected a size such as 512KB", shortened(text)))
}

fn connect(rows: Vec<SimcclRow>) -> Result<ImportGraph, ImportError> {
    let mut places = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        if places.insert(row.id, place as u32).is_some() {
            let problem = format!("ID {} is there twice", row.transfer.name);
            return Err(ImportError::line(row.line, problem));
        }
    }
    let mut graph = ImportGraph::default();
    for SimcclRow { line, mut transfer, parents, .. } in rows {
        for id in parents {
            let Some(place) = places.get(&id) else {
                return Err(ImportError::line(line, format_args!("parent_id {id}: no line has this ID")));
            };
            transfer.after.push(arrival(*place));
        }
        graph.ranks = graph.ranks.max(transfer.src.max(transfer.dst) + 1);
        graph.transfers.push(transfer);
    }
    graph.checked()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ImportGraph, String> {
        import(&mut text.as_bytes()).map_err(|error| error.to_string())
    }

    const TABLE: &str =
        "ID\tparent_id\tsrc\tdst\tsize\tchannel_id\n0\t-1\t0\t1\t512KB\t0\n1\t-1\t1\t2\t512KB\t0\n2\t0,1\t2\t0\t7\t1\n";

    #[test]
    fn a_table_becomes_transfers_after_their_parents() {
        let graph = read(TABLE).unwrap();
        let rows: Vec<_> = graph.transfers.iter().map(|it| (it.src, it.dst, it.bytes, it.after.len())).collect();
        assert_eq!(rows, [(0, 1, 512 << 10, 0), (1, 2, 512 << 10, 0), (2, 0, 7, 2)]);
        assert_eq!((graph.ranks, graph.transfers[2].lane), (3, 1));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let changed = |from: &str, to: &str| read(&TABLE.replacen(from, to, 1)).unwrap_err();
        assert_eq!(changed("0,1\t2", "0,5\t2"), "line 4: parent_id 5: no line has this ID");
        assert_eq!(changed("\n1\t-1", "\n0\t-1"), "line 3: ID 0 is there twice");
        assert_eq!(changed("7\t1", "7TB\t1"), "line 4: '7TB': expected a size such as 512KB");
        assert_eq!(changed("2\t0\t7", "2\t2\t7"), "line 4: rank 2 sends to itself");
        assert!(changed("\t7\t1", "").starts_with("line 4: expected ID parent_id src dst size channel_id, found"));
        assert!(changed("0\t-1\t0", "0\t2\t0").contains("can never finish, each waits for the one before: "));
        assert_eq!(read("\n\n").unwrap_err(), "expected at least one line ID parent_id src dst size channel_id");
    }
}
