//! Lines of the points in a claim's file.

use std::collections::BTreeMap;

use settings::TableReader;
use settings::tree::TreeNode;

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

/// Lines of the points, in their order; empty if the text is not a claim.
pub(super) fn of_points(text: &str) -> Vec<PointLines> {
    let Ok(root) = TreeNode::parse(text) else { return Vec::new() };
    let lines = |point: &TableReader<'_>| PointLines {
        point: point.line(),
        keys: point.keys().map(|(key, line)| (key.to_owned(), line)).collect(),
    };
    TableReader::new(&root).tables("point").unwrap_or_default().iter().map(lines).collect()
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
