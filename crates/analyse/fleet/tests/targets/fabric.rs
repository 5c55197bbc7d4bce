//! Arbitrary text as the file of a topology. `fuzz/` has these targets, too.

use fleet::Fabric;

/// Reads a topology as TOML and as CSV. One that can be read is written, and read again with the same links.
pub(crate) fn fabric(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for file in ["fuzz.toml", "fuzz.csv"] {
        match Fabric::parse(file, &text) {
            Ok(fabric) => written(&fabric),
            Err(error) => assert!(!error.to_string().contains('\n'), "one line: {error}"),
        }
    }
}

fn written(fabric: &Fabric) {
    let mut again = Vec::new();
    fabric.write_csv(&mut again).unwrap();
    // Names with commas, and roles that links do not show, are lost in CSV.
    if let Ok(read) = Fabric::parse("again.csv", &String::from_utf8_lossy(&again)) {
        assert_eq!(read.links().len(), fabric.links().len());
    }
}
