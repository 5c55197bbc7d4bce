//! Tables of what can be measured: a runner has one, and a new measure is one entry.

use super::ClaimError;

/// One thing that a runner can take from what it ran.
#[derive(Clone, Copy, Debug)]
pub struct Measure<T> {
    pub name: &'static str,
    pub unit: &'static str,
    /// Description for the documentation.
    pub about: &'static str,
    pub take: T,
}

impl<T> Measure<T> {
    pub const fn new(name: &'static str, unit: &'static str, about: &'static str, take: T) -> Self {
        Self { name, unit, about, take }
    }
}

/// The measure of this name, or an error that lists those that there are.
pub fn find<'a, T>(measures: &'a [Measure<T>], name: &str) -> Result<&'a Measure<T>, ClaimError> {
    let unknown = || ClaimError::new(format_args!("{name}: expected {}", names(measures.iter())));
    measures.iter().find(|measure| measure.name == name).ok_or_else(unknown)
}

/// `a, b or c`.
pub fn names<'a, T: 'a>(measures: impl Iterator<Item = &'a Measure<T>>) -> String {
    let names: Vec<&str> = measures.map(|measure| measure.name).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// The rows of a table in Markdown, as docs/claims.md has them.
#[cfg(test)]
pub(crate) fn markdown<T>(measures: &[Measure<T>]) -> String {
    let row = |measure: &Measure<T>| format!("| `{}` | {} | {} |\n", measure.name, measure.unit, measure.about);
    measures.iter().map(row).collect()
}
