//! Columns of Parquet: their types, their cells, and the row groups of a file.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::{Column, ParquetLayout, TableCell};

impl<R> Column<'_, R> {
    fn schema(&self) -> Result<Type> {
        let (physical, logical, repetition) = match self.cell {
            TableCell::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8, Repetition::REQUIRED),
            TableCell::Whole(_) => (Physical::INT64, ConvertedType::NONE, Repetition::REQUIRED),
            TableCell::Real(_) => (Physical::DOUBLE, ConvertedType::NONE, Repetition::REQUIRED),
            TableCell::Optional(_) => (Physical::DOUBLE, ConvertedType::NONE, Repetition::OPTIONAL),
            TableCell::Flag(_) => (Physical::BOOLEAN, ConvertedType::NONE, Repetition::REQUIRED),
        };
        let built = Type::primitive_type_builder(&self.name, physical);
        built.with_converted_type(logical).with_repetition(repetition).build()
    }

    fn fill(&self, column: &mut ColumnWriter<'_>, rows: &[R]) -> Result<()> {
        match (column, &self.cell) {
            (ColumnWriter::ByteArrayColumnWriter(column), TableCell::Text(get)) => {
                let texts: Vec<ByteArray> = rows.iter().map(|row| get(row).into_bytes().into()).collect();
                column.write_batch(&texts, None, None)?;
            }
            (ColumnWriter::Int64ColumnWriter(column), TableCell::Whole(get)) => {
                let numbers: Vec<i64> = rows.iter().map(|row| get(row).cast_signed()).collect();
                column.write_batch(&numbers, None, None)?;
            }
            (ColumnWriter::DoubleColumnWriter(column), TableCell::Real(get)) => {
                column.write_batch(&rows.iter().map(get).collect::<Vec<f64>>(), None, None)?;
            }
            (ColumnWriter::DoubleColumnWriter(column), TableCell::Optional(get)) => {
                let cells: Vec<Option<f64>> = rows.iter().map(get).collect();
                let present: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
                let numbers: Vec<f64> = cells.into_iter().flatten().collect();
                column.write_batch(&numbers, Some(&present), None)?;
            }
            (ColumnWriter::BoolColumnWriter(column), TableCell::Flag(get)) => {
                column.write_batch(&rows.iter().map(get).collect::<Vec<bool>>(), None, None)?;
            }
            _ => return Err(ParquetError::General("a column of another type than its cells".to_owned())),
        }
        Ok(())
    }
}

pub(crate) fn write<R>(
    layout: ParquetLayout,
    columns: &[Column<'_, R>],
    rows: &[R],
    out: impl Write + Send,
) -> Result<()> {
    let fields = columns.iter().map(|column| column.schema().map(Arc::new)).collect::<Result<_>>()?;
    let schema = Type::group_type_builder(layout.record).with_fields(fields).build()?;
    let properties = WriterProperties::builder().set_created_by("hitless".to_owned()).build();
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
    for rows in rows.chunks(layout.rows_per_group) {
        let mut group = writer.next_row_group()?;
        for cells in columns {
            let Some(mut column) = group.next_column()? else { break };
            cells.fill(column.untyped(), rows)?;
            column.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;
    use crate::tests::{ROWS, columns};
    use crate::write_parquet;

    #[test]
    fn what_is_written_as_parquet_can_be_read() {
        let path = std::env::temp_dir().join(format!("hitless-{}.parquet", std::process::id()));
        let layout = ParquetLayout { record: "row", rows_per_group: 1 };
        write_parquet(layout, &columns(), &ROWS, File::create(&path).unwrap()).unwrap();
        let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows = file.get_row_iter(None).unwrap();
        let read: Vec<Vec<Field>> =
            rows.map(|row| row.unwrap().into_columns().into_iter().map(|(_, cell)| cell).collect()).collect();
        fs::remove_file(&path).unwrap();
        let row = |name: &str, bytes, kilobytes, fct, failed| {
            vec![Field::Str(name.into()), Field::Long(bytes), Field::Double(kilobytes), fct, Field::Bool(failed)]
        };
        assert_eq!(read, [row("web", 1_000, 1.0, Field::Double(0.5), false), row("a,b", 7, 0.007, Field::Null, true)]);
    }
}
