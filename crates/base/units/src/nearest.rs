//! Suggestions for a mistyped name.

/// The candidate that takes the fewest edits to become `name`, the first of several. `None` if each would
/// take more than a third of the name: then it is another word, not a slip.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = name.chars().count().div_ceil(3);
    candidates
        .into_iter()
        .map(|candidate| (edits(name, candidate), candidate))
        .filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Number of letters to insert, delete or replace, whatever their case (Levenshtein's distance).
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    // The distances from what has been read of `from` to every prefix of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (read, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = read + 1;
        for (column, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(!a.eq_ignore_ascii_case(b));
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (from, to, count) in
            [("", "", 0), ("", "sw2", 3), ("sw2", "sw6", 1), ("kitten", "sitting", 3), ("A", "a", 0)]
        {
            assert_eq!(edits(from, to), count, "{from} → {to}");
            assert_eq!(edits(to, from), count, "{to} → {from}");
        }
    }

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let names = ["leaf0", "leaf1", "spine0"];
        assert_eq!(nearest("laef1", names), Some("leaf1"));
        assert_eq!(nearest("spin0", names), Some("spine0"));
        assert_eq!(nearest("leaf7", names), Some("leaf0"), "the first of several");
        assert_eq!(nearest("core3", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
