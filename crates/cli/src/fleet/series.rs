//! A simulated year as rows: the state after every event, as CSV or Parquet.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use fleet::Fabric;
use fleet::simulate::{Happened, Sample};
use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use report::flows::whole_file;

/// Rows that are written at a time: a row group.
const GROUP: usize = 1 << 16;

enum Cell {
    Text(fn(&Sample, &Fabric) -> String),
    Whole(fn(&Sample) -> u64),
    Real(fn(&Sample) -> f64),
}

use Cell::{Real, Text, Whole};

const COLUMNS: [(&str, Cell); 11] = [
    ("hours", Real(|sample| sample.at.as_hours())),
    ("event", Text(|sample, _| event(sample.happened).to_owned())),
    ("link", Text(|sample, fabric| fabric.name(sample.link).to_string())),
    ("penalty", Real(|sample| sample.totals.penalty.as_f64())),
    ("least_paths", Whole(|sample| sample.totals.least_paths)),
    ("least_share", Real(|sample| sample.totals.least_share)),
    ("least_capacity", Real(|sample| sample.totals.least_capacity)),
    ("disabled", Whole(|sample| sample.totals.disabled.into())),
    ("corrupting", Whole(|sample| sample.totals.corrupting.into())),
    ("protected", Whole(|sample| sample.totals.protected.into())),
    ("most_in_a_pipe", Whole(|sample| sample.totals.most_in_a_pipe.into())),
];

fn event(happened: Happened) -> &'static str {
    match happened {
        Happened::Corrupted => "corrupted",
        Happened::Repaired => "repaired",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    Parquet,
}

impl Format {
    /// As the name of a file says, if it is one of these.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

pub fn write(path: &Path, format: Format, fabric: &Fabric, samples: &[Sample]) -> io::Result<()> {
    whole_file(path, |out| match format {
        Format::Csv => csv(fabric, samples, out),
        Format::Parquet => parquet(fabric, samples, out).map_err(io::Error::other),
    })
}

fn csv(fabric: &Fabric, samples: &[Sample], out: &mut BufWriter<File>) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(","))?;
    for sample in samples {
        let cells = COLUMNS.iter().map(|(_, cell)| match cell {
            Text(text) => text(sample, fabric),
            Whole(number) => number(sample).to_string(),
            Real(number) => number(sample).to_string(),
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join(","))?;
    }
    Ok(())
}

fn parquet(fabric: &Fabric, samples: &[Sample], out: &mut BufWriter<File>) -> Result<()> {
    let properties = WriterProperties::builder().set_created_by("hitless".to_owned()).build();
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema()?), Arc::new(properties))?;
    for samples in samples.chunks(GROUP) {
        let mut group = writer.next_row_group()?;
        for (_, cell) in &COLUMNS {
            let Some(mut column) = group.next_column()? else { break };
            fill(column.untyped(), cell, samples, fabric)?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn schema() -> Result<Type> {
    let column = |(name, cell): &(&str, Cell)| {
        let (physical, logical) = match cell {
            Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            Whole(_) => (Physical::INT64, ConvertedType::NONE),
            Real(_) => (Physical::DOUBLE, ConvertedType::NONE),
        };
        let built = Type::primitive_type_builder(name, physical);
        built.with_converted_type(logical).with_repetition(Repetition::REQUIRED).build().map(Arc::new)
    };
    let columns = COLUMNS.iter().map(column).collect::<Result<_>>()?;
    Type::group_type_builder("event").with_fields(columns).build()
}

fn fill(column: &mut ColumnWriter<'_>, cell: &Cell, samples: &[Sample], fabric: &Fabric) -> Result<()> {
    match (column, cell) {
        (ColumnWriter::ByteArrayColumnWriter(column), Text(text)) => {
            let texts: Vec<ByteArray> = samples.iter().map(|row| text(row, fabric).into_bytes().into()).collect();
            column.write_batch(&texts, None, None)?;
        }
        (ColumnWriter::Int64ColumnWriter(column), Whole(number)) => {
            let numbers: Vec<i64> = samples.iter().map(|row| number(row).cast_signed()).collect();
            column.write_batch(&numbers, None, None)?;
        }
        (ColumnWriter::DoubleColumnWriter(column), Real(number)) => {
            let numbers: Vec<f64> = samples.iter().map(number).collect();
            column.write_batch(&numbers, None, None)?;
        }
        _ => return Err(ParquetError::General("a column of another type than its cells".to_owned())),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use fleet::LinkId;
    use fleet::ledger::{Ledger, Terms};
    use fleet::paths::Constraint;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use units::{Moment, Rate};

    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let fabric = Fabric::leaf_spine(2, 2, Rate::gbps(100)).unwrap();
        let constraint = Constraint::new(0.5).unwrap();
        let mut ledger = Ledger::new(&fabric, Terms { constraint, healthy_loss: 0.0, ports_per_pipe: 16 });
        ledger.corrupt(LinkId(1), 1e-3, None);
        let totals = ledger.totals();
        let sample = Sample { at: Moment::from_hours(1.5), happened: Happened::Corrupted, link: LinkId(1), totals };
        let path = |end: &str| std::env::temp_dir().join(format!("hitless-series-{}.{end}", std::process::id()));
        let [csv, parquet] = ["csv", "parquet"].map(path);
        write(&csv, Format::Csv, &fabric, &[sample]).unwrap();
        write(&parquet, Format::Parquet, &fabric, &[sample]).unwrap();
        let text = std::fs::read_to_string(&csv).unwrap();
        let file = SerializedFileReader::new(File::open(&parquet).unwrap()).unwrap();
        let rows: Vec<Vec<(String, Field)>> =
            file.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns().into_iter().collect()).collect();
        [csv, parquet].iter().for_each(|path| std::fs::remove_file(path).unwrap());
        assert_eq!(text.lines().nth(1), Some("1.5,corrupted,leaf0--spine1,0.001,2,1,1,0,1,0,0"));
        let cell = |name: &str| rows[0].iter().find(|(column, _)| column == name).unwrap().1.clone();
        assert_eq!((cell("hours"), cell("link")), (Field::Double(1.5), Field::Str("leaf0--spine1".into())));
        assert_eq!((cell("penalty"), cell("corrupting")), (Field::Double(1e-3), Field::Long(1)));
    }
}
