//! Rows as files: CSV (RFC 4180) and Parquet, from one list of columns.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// A named column and how its cell is taken from a row.
pub struct Column<'a, R> {
    name: String,
    cell: TableCell<'a, R>,
}

type Get<'a, R, T> = Box<dyn Fn(&R) -> T + 'a>;

enum TableCell<'a, R> {
    Text(Get<'a, R, String>),
    Whole(Get<'a, R, u64>),
    /// In CSV with as many digits as it takes.
    Real(Get<'a, R, f64>),
    /// In CSV with six decimals, or empty.
    Optional(Get<'a, R, Option<f64>>),
    Flag(Get<'a, R, bool>),
}

/// Layout of rows in a Parquet file.
#[derive(Clone, Copy, Debug)]
pub struct ParquetLayout {
    /// The name of the schema.
    pub record: &'static str,
    pub rows_per_group: usize,
}

impl<'a, R> Column<'a, R> {
    pub fn text(name: impl Into<String>, get: impl Fn(&R) -> String + 'a) -> Self {
        Self { name: name.into(), cell: TableCell::Text(Box::new(get)) }
    }

    pub fn whole(name: impl Into<String>, get: impl Fn(&R) -> u64 + 'a) -> Self {
        Self { name: name.into(), cell: TableCell::Whole(Box::new(get)) }
    }

    pub fn real(name: impl Into<String>, get: impl Fn(&R) -> f64 + 'a) -> Self {
        Self { name: name.into(), cell: TableCell::Real(Box::new(get)) }
    }

    pub fn optional(name: impl Into<String>, get: impl Fn(&R) -> Option<f64> + 'a) -> Self {
        Self { name: name.into(), cell: TableCell::Optional(Box::new(get)) }
    }

    pub fn flag(name: impl Into<String>, get: impl Fn(&R) -> bool + 'a) -> Self {
        Self { name: name.into(), cell: TableCell::Flag(Box::new(get)) }
    }

    fn csv(&self, row: &R) -> String {
        match &self.cell {
            TableCell::Text(get) => quoted(&get(row)),
            TableCell::Whole(get) => get(row).to_string(),
            TableCell::Real(get) => get(row).to_string(),
            TableCell::Optional(get) => get(row).map_or_else(String::new, |number| format!("{number:.6}")),
            TableCell::Flag(get) => get(row).to_string(),
        }
    }

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

impl<R> fmt::Debug for Column<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Column").field("name", &self.name).finish_non_exhaustive()
    }
}

pub fn write_csv<R>(columns: &[Column<'_, R>], rows: &[R], out: &mut impl Write) -> io::Result<()> {
    let mut line = |cells: Vec<String>| writeln!(out, "{}", cells.join(","));
    line(columns.iter().map(|column| quoted(&column.name)).collect())?;
    rows.iter().try_for_each(|row| line(columns.iter().map(|column| column.csv(row)).collect()))
}

pub fn write_parquet<R>(
    layout: ParquetLayout,
    columns: &[Column<'_, R>],
    rows: &[R],
    out: impl Write + Send,
) -> io::Result<()> {
    parquet_file(layout, columns, rows, out).map_err(io::Error::other)
}

fn parquet_file<R>(layout: ParquetLayout, columns: &[Column<'_, R>], rows: &[R], out: impl Write + Send) -> Result<()> {
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

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    type Row = (&'static str, u64, Option<f64>);

    const ROWS: [Row; 2] = [("web", 1_000, Some(0.5)), ("a,b", 7, None)];

    fn columns() -> Vec<Column<'static, Row>> {
        vec![
            Column::text("say \"name\"", |row: &Row| row.0.to_owned()),
            Column::whole("bytes", |row: &Row| row.1),
            Column::real("kilobytes", |row: &Row| row.1 as f64 / 1e3),
            Column::optional("fct_us", |row: &Row| row.2),
            Column::flag("failed", |row: &Row| row.2.is_none()),
        ]
    }

    #[test]
    fn text_is_quoted_where_it_must_be() {
        let mut out = Vec::new();
        write_csv(&columns(), &ROWS, &mut out).unwrap();
        let expected = "\"say \"\"name\"\"\",bytes,kilobytes,fct_us,failed\nweb,1000,1,0.500000,false\n\
                        \"a,b\",7,0.007,,true\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

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
