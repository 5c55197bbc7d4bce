//! Files of a run, each complete or not there at all.

use std::fs;
use std::io;
use std::path::Path;

use files::whole_file;
use scenario::SweepPoint;
use sim::net::NetworkOutcome;
use tables::{ParquetLayout, WRITES_PARQUET, write_csv, write_parquet};

use super::{columns, jobs, losses, pcapng};

const FLOWS: ParquetLayout = ParquetLayout { record: "flow", rows_per_group: 1 << 18 };
const ITERATIONS: ParquetLayout = ParquetLayout { record: "iteration", rows_per_group: 1 << 18 };
const TRANSFERS: ParquetLayout = ParquetLayout { record: "transfer", rows_per_group: 1 << 18 };

/// Writes everything that a run has to say into a folder, which is made if it is not there. Files of a former run with
/// the same names are replaced. A build without Parquet writes flows as CSV only.
pub fn write_run(folder: &Path, point: &SweepPoint, outcome: &NetworkOutcome) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let flows = columns::flows(point);
    whole_file(&folder.join("flows.csv"), |out| write_csv(&flows, &outcome.flows, out))?;
    if WRITES_PARQUET {
        whole_file(&folder.join("flows.parquet"), |out| write_parquet(FLOWS, &flows, &outcome.flows, out))?;
    }
    write_jobs(folder, point, outcome)?;
    if point.is_sampled() {
        whole_file(&folder.join("samples.csv"), |out| write_csv(&columns::samples(point), &outcome.samples, out))?;
    }
    if point.measures_queues() {
        let rows = outcome
            .queues
            .iter()
            .flat_map(|(port, lengths)| lengths.shares().map(|(bytes, share)| (*port, bytes, share)));
        let rows: Vec<_> = rows.collect();
        whole_file(&folder.join("queues.csv"), |out| write_csv(&columns::queues(point), &rows, out))?;
    }
    if point.radar().is_some() {
        whole_file(&folder.join("losses.csv"), |out| {
            write_csv(&columns::losses(point), &losses::named(point, outcome), out)
        })?;
    }
    for ports in point.captured().chunks_exact(2) {
        let name = format!("{}.pcapng", file_name(&pcapng::link_name(point, ports[0])));
        whole_file(&folder.join(name), |out| pcapng::packets(point, outcome, ports, out))?;
    }
    Ok(())
}

/// Writes the rows of jobs, if there are any.
fn write_jobs(folder: &Path, point: &SweepPoint, outcome: &NetworkOutcome) -> io::Result<()> {
    if outcome.jobs.is_empty() {
        return Ok(());
    }
    let rows = jobs::iterations(&outcome.jobs);
    let of_iterations = jobs::iteration_columns(point);
    whole_file(&folder.join("iterations.csv"), |out| write_csv(&of_iterations, &rows, out))?;
    if WRITES_PARQUET {
        let path = folder.join("iterations.parquet");
        whole_file(&path, |out| write_parquet(ITERATIONS, &of_iterations, &rows, out))?;
    }
    if !point.rows().transfers {
        return Ok(());
    }
    let rows = jobs::transfers(&outcome.jobs);
    let of_transfers = jobs::transfer_columns(point);
    whole_file(&folder.join("transfers.csv"), |out| write_csv(&of_transfers, &rows, out))?;
    if WRITES_PARQUET {
        let path = folder.join("transfers.parquet");
        whole_file(&path, |out| write_parquet(TRANSFERS, &of_transfers, &rows, out))?;
    }
    Ok(())
}

/// A text as the name of a file or folder, different for different texts: spaces are underscores, and any other
/// character that is unusual in names is written like `%2F`.
pub fn file_name(text: &str) -> String {
    let mut name = String::new();
    for byte in text.bytes() {
        match byte {
            b' ' => name.push('_'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'+' | b'=' | b',' | b':' => name.push(byte.into()),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    if name.starts_with('.') { name.replacen('.', "%2E", 1) } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_tell_texts_apart() {
        assert_eq!(file_name("protect=ordered loss=1e-3"), "protect=ordered_loss=1e-3");
        assert_eq!(["../x", "a_b", "a b", "1%"].map(file_name), ["%2E.%2Fx", "a%5Fb", "a_b", "1%25"]);
    }
}
