//! Arbitrary texts as announcements of collectors: the corpus is replayed, and then changed at random.

#[path = "targets/announcement.rs"]
mod announcement;

use std::path::PathBuf;

use testkit::fuzz;

#[test]
fn announcements() {
    let corpus: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/corpus/announcement"].iter().collect();
    fuzz(&corpus, 2_000, 100_000, announcement::announcement);
}
