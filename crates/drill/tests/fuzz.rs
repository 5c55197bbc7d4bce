//! Any text is read without a panic; the corpus is the scripts of this crate.

use std::path::Path;

use drill::language::Script;

#[test]
fn any_script_is_read_without_a_panic() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    testkit::fuzz(&corpus, 4_000, 20_000, |bytes| {
        let _ = Script::parse(&String::from_utf8_lossy(bytes));
    });
}
