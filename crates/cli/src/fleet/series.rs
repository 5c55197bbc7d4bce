//! A simulated year as rows: the state after every event, as CSV or Parquet.

use std::io;
use std::path::Path;

use fleet::Fabric;
use fleet::simulate::{Happened, Sample};
use report::flows::whole_file;
use report::table_file::{Column, ParquetLayout, write_csv, write_parquet};

const EVENTS: ParquetLayout = ParquetLayout { record: "event", rows_per_group: 1 << 16 };

fn columns(fabric: &Fabric) -> Vec<Column<'_, Sample>> {
    type Samples<'a> = Column<'a, Sample>;
    vec![
        Samples::real("hours", |sample| sample.at.as_hours()),
        Samples::text("event", |sample| event(sample.happened).to_owned()),
        Samples::text("link", |sample| fabric.name(sample.link).to_string()),
        Samples::real("penalty", |sample| sample.totals.penalty.as_f64()),
        Samples::whole("least_paths", |sample| sample.totals.least_paths),
        Samples::real("least_share", |sample| sample.totals.least_share),
        Samples::real("least_capacity", |sample| sample.totals.least_capacity),
        Samples::whole("disabled", |sample| sample.totals.disabled.into()),
        Samples::whole("corrupting", |sample| sample.totals.corrupting.into()),
        Samples::whole("protected", |sample| sample.totals.protected.into()),
        Samples::whole("most_in_a_pipe", |sample| sample.totals.most_in_a_pipe.into()),
    ]
}

fn event(happened: Happened) -> &'static str {
    match happened {
        Happened::Corrupted => "corrupted",
        Happened::Repaired => "repaired",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    Parquet,
}

impl Format {
    /// As the name of a file says, if it is one of these.
    pub(super) fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

pub(super) fn write(path: &Path, format: Format, fabric: &Fabric, samples: &[Sample]) -> io::Result<()> {
    whole_file(path, |out| match format {
        Format::Csv => write_csv(&columns(fabric), samples, out),
        Format::Parquet => write_parquet(EVENTS, &columns(fabric), samples, out),
    })
}

#[cfg(test)]
mod tests {
    use fleet::LinkId;
    use fleet::ledger::{Ledger, Terms};
    use fleet::paths::Constraint;
    use units::{Moment, Rate};

    use super::*;

    #[test]
    fn an_event_is_a_row_in_either_format() {
        let fabric = Fabric::leaf_spine(2, 2, Rate::gbps(100)).unwrap();
        let constraint = Constraint::new(0.5).unwrap();
        let mut ledger = Ledger::new(&fabric, Terms { constraint, healthy_loss: 0.0, ports_per_pipe: 16 });
        ledger.corrupt(LinkId(1), 1e-3, None);
        let totals = ledger.totals();
        let sample = Sample { at: Moment::from_hours(1.5), happened: Happened::Corrupted, link: LinkId(1), totals };
        let path = |end: &str| std::env::temp_dir().join(format!("hitless-series-{}.{end}", std::process::id()));
        let [csv, parquet] = ["csv", "parquet"].map(|end| {
            let path = path(end);
            write(&path, Format::of(&path).unwrap(), &fabric, &[sample]).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            bytes
        });
        let text = String::from_utf8(csv).unwrap();
        assert_eq!(text.lines().nth(1), Some("1.5,corrupted,leaf0--spine1,0.001,2,1,1,0,1,0,0"));
        assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    }
}
