//! Any text is read and run on our TCP without a panic; the corpus is the scripts of this crate.

use std::path::Path;

use drill::batch::{ScriptText, against_machine};
use tcp::LinuxVersion;

#[test]
fn any_script_is_read_and_run_without_a_panic() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    testkit::fuzz(&corpus, 4_000, 5_000, |bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        against_machine(&[ScriptText { file: "fuzz".to_owned(), text }], LinuxVersion::Current);
    });
}
