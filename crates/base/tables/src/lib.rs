//! Rows as files: CSV (RFC 4180) and Parquet, from one list of columns. Parquet is a feature.

#[cfg(feature = "parquet")]
mod parquet_file;

use std::fmt;
use std::io::{self, Write};

/// A named column and how its cell is taken from a row.
pub struct Column<'a, R> {
    name: String,
    cell: TableCell<'a, R>,
}

type Get<'a, R, T> = Box<dyn Fn(&R) -> T + 'a>;

enum TableCell<'a, R> {
    Text(Get<'a, R, String>),
    Whole(Get<'a, R, u64>),
    /// A number; CSV has as many digits as it takes.
    Real(Get<'a, R, f64>),
    /// A number or nothing; CSV has six decimals, or an empty cell.
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

/// True in a build with the feature `parquet`.
pub const WRITES_PARQUET: bool = cfg!(feature = "parquet");
/// Refusal of a Parquet file by a build without that feature.
pub const NO_PARQUET: &str = "this build writes no Parquet; build it with: cargo build --release --features parquet";

/// Writes rows as Parquet. A build without the feature `parquet` reports [`io::ErrorKind::Unsupported`].
pub fn write_parquet<R>(
    layout: ParquetLayout,
    columns: &[Column<'_, R>],
    rows: &[R],
    out: impl Write + Send,
) -> io::Result<()> {
    #[cfg(feature = "parquet")]
    return parquet_file::write(layout, columns, rows, out).map_err(io::Error::other);
    #[cfg(not(feature = "parquet"))]
    {
        let _ = (layout, columns, rows, out);
        Err(io::Error::new(io::ErrorKind::Unsupported, NO_PARQUET))
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) type Row = (&'static str, u64, Option<f64>);

    pub(crate) const ROWS: [Row; 2] = [("web", 1_000, Some(0.5)), ("a,b", 7, None)];

    pub(crate) fn columns() -> Vec<Column<'static, Row>> {
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

    #[cfg(not(feature = "parquet"))]
    #[test]
    fn without_the_feature_parquet_is_refused() {
        let layout = ParquetLayout { record: "row", rows_per_group: 1 };
        let error = write_parquet(layout, &columns(), &ROWS, Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }
}
