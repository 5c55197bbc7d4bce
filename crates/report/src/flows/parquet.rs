//! Rows as Parquet, for whoever has millions of them.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use sim::net::{FlowRow, Outcome};
use sim::scenario::Point;

use super::columns::{COLUMNS, Cell};

/// Rows that are written at a time: a row group.
const GROUP: usize = 1 << 18;

/// `flows.parquet`.
pub(super) fn flows(point: &Point, outcome: &Outcome, out: impl Write + Send) -> io::Result<()> {
    write(point, &outcome.flows, out).map_err(io::Error::other)
}

fn write(point: &Point, rows: &[FlowRow], out: impl Write + Send) -> Result<()> {
    let properties = WriterProperties::builder().set_created_by("hitless".to_owned()).build();
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema()?), Arc::new(properties))?;
    for rows in rows.chunks(GROUP) {
        let mut group = writer.next_row_group()?;
        for (_, cell) in &COLUMNS {
            let Some(mut column) = group.next_column()? else { break };
            fill(column.untyped(), cell, rows, point)?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn schema() -> Result<Type> {
    let column = |(name, cell): &(&str, Cell)| {
        let (physical, logical, repetition) = match cell {
            Cell::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8, Repetition::REQUIRED),
            Cell::Whole(_) => (Physical::INT64, ConvertedType::NONE, Repetition::REQUIRED),
            Cell::Real(_) => (Physical::DOUBLE, ConvertedType::NONE, Repetition::OPTIONAL),
            Cell::Flag(_) => (Physical::BOOLEAN, ConvertedType::NONE, Repetition::REQUIRED),
        };
        let built = Type::primitive_type_builder(name, physical);
        built.with_converted_type(logical).with_repetition(repetition).build().map(Arc::new)
    };
    let columns = COLUMNS.iter().map(column).collect::<Result<_>>()?;
    Type::group_type_builder("flow").with_fields(columns).build()
}

fn fill(column: &mut ColumnWriter<'_>, cell: &Cell, rows: &[FlowRow], point: &Point) -> Result<()> {
    match (column, cell) {
        (ColumnWriter::ByteArrayColumnWriter(column), Cell::Text(text)) => {
            let texts: Vec<ByteArray> = rows.iter().map(|row| text(row, point).into_bytes().into()).collect();
            column.write_batch(&texts, None, None)?;
        }
        (ColumnWriter::Int64ColumnWriter(column), Cell::Whole(number)) => {
            let numbers: Vec<i64> = rows.iter().map(|row| number(row).cast_signed()).collect();
            column.write_batch(&numbers, None, None)?;
        }
        (ColumnWriter::DoubleColumnWriter(column), Cell::Real(number)) => {
            let numbers: Vec<f64> = rows.iter().filter_map(number).collect();
            let there: Vec<i16> = rows.iter().map(|row| i16::from(number(row).is_some())).collect();
            column.write_batch(&numbers, Some(&there), None)?;
        }
        (ColumnWriter::BoolColumnWriter(column), Cell::Flag(flag)) => {
            let flags: Vec<bool> = rows.iter().map(flag).collect();
            column.write_batch(&flags, None, None)?;
        }
        _ => return Err(ParquetError::General("a column of another type than its cells".to_owned())),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use sim::scenario::Scenario;

    use super::*;

    const TWO_FLOWS: &str = r#"
        topology = { kind = "pair", rate = "10G" }
        [[traffic]]
        name = "short"
        transport = "cubic"
        work = "bulk"
        from = "h0"
        to = "h1"
        size = 1000
        [[traffic]]
        name = "endless"
        transport = "cubic"
        work = "bulk"
        from = "h1"
        to = "h0"
        [run]
        until = "1ms"
    "#;

    #[test]
    fn what_is_written_can_be_read() {
        let point = &Scenario::parse("it", TWO_FLOWS, &[]).unwrap().points[0];
        let outcome = sim::net::run(point.setup(1), &sim::link::Unwatched).unwrap();
        let path = std::env::temp_dir().join(format!("hitless-{}.parquet", std::process::id()));
        flows(point, &outcome, File::create(&path).unwrap()).unwrap();
        let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows: Vec<Vec<(String, Field)>> =
            file.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns().into_iter().collect()).collect();
        fs::remove_file(&path).unwrap();
        let cell = |row: usize, name: &str| rows[row].iter().find(|(column, _)| column == name).unwrap().1.clone();
        assert_eq!(rows.len(), 2);
        assert_eq!((cell(0, "traffic"), cell(0, "src")), (Field::Str("short".into()), Field::Str("h0".into())));
        assert_eq!(cell(0, "bytes"), Field::Long(1_000));
        assert_eq!(cell(0, "fct_us"), Field::Double(outcome.flows[0].fct().unwrap().as_us()));
        assert_eq!((cell(1, "fct_us"), cell(1, "failed")), (Field::Null, Field::Bool(false)));
    }
}
