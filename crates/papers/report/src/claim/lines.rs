//! Lines of the points in a claim's file.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// The line of a point, and those of its keys.
#[derive(Clone, Debug, Default)]
pub(super) struct PointLines {
    point: usize,
    keys: BTreeMap<String, usize>,
}

impl PointLines {
    /// The line of a key, or of the point if it has no such key.
    pub(super) fn of(&self, key: &str) -> usize {
        self.keys.get(key).copied().unwrap_or(self.point)
    }
}

#[derive(Deserialize)]
struct PointSpans {
    point: Vec<Spanned<BTreeMap<String, Spanned<toml::Value>>>>,
}

/// In the order of the points; nothing of a text that is no claim.
pub(super) fn of_points(text: &str) -> Vec<PointLines> {
    let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let Ok(PointSpans { point }) = toml::from_str(text) else { return Vec::new() };
    let lines = |point: Spanned<BTreeMap<String, Spanned<toml::Value>>>| PointLines {
        point: line(point.span().start),
        keys: point.into_inner().into_iter().map(|(key, value)| (key, line(value.span().start))).collect(),
    };
    point.into_iter().map(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_and_keys_have_lines() {
        let lines =
            of_points("id = \"x\"\n\n[[point]]\nid = \"a\"\n\n[[point]]\nid = \"b\"\nband = [\n  1,\n  2,\n]\n");
        assert_eq!(lines.iter().map(|point| point.of("id")).collect::<Vec<_>>(), [4, 7]);
        assert_eq!(lines.iter().map(|point| point.of("band")).collect::<Vec<_>>(), [3, 8]);
    }
}
