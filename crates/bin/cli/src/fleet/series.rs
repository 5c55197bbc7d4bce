//! A simulated year as rows: the state after every event, as CSV or Parquet.

use std::path::Path;

use fleet::Fabric;
use fleet::simulate::{FleetEvent, FleetSample};
use tables::{Column, ParquetLayout, WRITES_PARQUET, write_csv, write_parquet};

use crate::output::CommandResult;
use crate::results::write_file;

const EVENTS: ParquetLayout = ParquetLayout { record: "event", rows_per_group: 1 << 16 };

fn columns(fabric: &Fabric) -> Vec<Column<'_, FleetSample>> {
    type SeriesColumns<'a> = Column<'a, FleetSample>;
    vec![
        SeriesColumns::real("hours", |sample| sample.at.as_hours()),
        SeriesColumns::text("event", |sample| event(sample.happened).to_owned()),
        SeriesColumns::text("link", |sample| fabric.name(sample.link).to_string()),
        SeriesColumns::real("penalty", |sample| sample.totals.penalty.as_f64()),
        SeriesColumns::whole("least_paths", |sample| sample.totals.least_paths),
        SeriesColumns::real("least_share", |sample| sample.totals.least_share),
        SeriesColumns::real("least_capacity", |sample| sample.totals.least_capacity),
        SeriesColumns::whole("disabled", |sample| sample.totals.disabled.into()),
        SeriesColumns::whole("corrupting", |sample| sample.totals.corrupting.into()),
        SeriesColumns::whole("protected", |sample| sample.totals.protected.into()),
        SeriesColumns::whole("most_in_a_pipe", |sample| sample.totals.most_in_a_pipe.into()),
    ]
}

fn event(happened: FleetEvent) -> &'static str {
    match happened {
        FleetEvent::Corrupted => "corrupted",
        FleetEvent::Repaired => "repaired",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeriesFormat {
    Csv,
    Parquet,
}

impl SeriesFormat {
    /// Format by the extension of a file's name, if it is one of these.
    pub(super) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }

    /// True if this build writes it.
    pub(super) fn is_written(self) -> bool {
        self != Self::Parquet || WRITES_PARQUET
    }
}

pub(super) fn write(path: &Path, format: SeriesFormat, fabric: &Fabric, samples: &[FleetSample]) -> CommandResult {
    write_file("--out", path, |out| match format {
        SeriesFormat::Csv => write_csv(&columns(fabric), samples, out),
        SeriesFormat::Parquet => write_parquet(EVENTS, &columns(fabric), samples, out),
    })
}

#[cfg(all(test, feature = "parquet"))]
mod tests {
    use fleet::LinkId;
    use fleet::ledger::{Ledger, LedgerTerms, PipeLayout};
    use fleet::paths::Constraint;
    use units::{Moment, Rate};

    use super::*;

    #[test]
    fn an_event_is_a_row_in_either_format() {
        let fabric = Fabric::leaf_spine(2, 2, Rate::gbps(100)).unwrap();
        let constraint = Constraint::new(0.5).unwrap();
        let mut ledger =
            Ledger::new(&fabric, LedgerTerms { constraint, healthy_loss: 0.0, pipes: PipeLayout::default() });
        ledger.corrupt(LinkId(1), 1e-3, None);
        let totals = ledger.totals();
        let sample =
            FleetSample { at: Moment::from_hours(1.5), happened: FleetEvent::Corrupted, link: LinkId(1), totals };
        let path = |end: &str| std::env::temp_dir().join(format!("hitless-series-{}.{end}", std::process::id()));
        let [csv, parquet] = ["csv", "parquet"].map(|end| {
            let path = path(end);
            write(&path, SeriesFormat::of(&path).unwrap(), &fabric, &[sample]).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            bytes
        });
        let text = String::from_utf8(csv).unwrap();
        assert_eq!(text.lines().nth(1), Some("1.5,corrupted,leaf0--spine1,0.001,2,1,1,0,1,0,0"));
        assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    }
}
