//! Arbitrary bytes as files of other simulators. `fuzz/` has this target, too.

use std::io::{BufRead, Cursor};

use imports::{
    HostNames, ImportError, ImportFormat, ImportGraph, StartUnit, TraceEncoding, import_file, import_traces,
};

/// Reads the bytes as each format. A graph has rows; a refusal is one line.
pub(crate) fn imports(bytes: &[u8]) {
    for format in [ImportFormat::Htsim, ImportFormat::Goal, ImportFormat::Simccl, ImportFormat::Hpcc] {
        check(import_file(format, &mut &*bytes, Some(StartUnit::Picoseconds)));
    }
    for encoding in [TraceEncoding::Protobuf, TraceEncoding::Json] {
        check(import_traces(2, encoding, |_| Ok(Box::new(Cursor::new(bytes.to_vec())) as Box<dyn BufRead>)));
    }
}

fn check(result: Result<ImportGraph, ImportError>) {
    match result {
        Ok(graph) => {
            let mut rows = Vec::new();
            graph.write_csv(&HostNames::Numbered("h"), &mut rows).unwrap();
            assert!(
                graph.transfers.iter().all(|it| it.bytes > 0 && it.src != it.dst && it.src.max(it.dst) < graph.ranks)
            );
        }
        Err(error) => {
            let said = error.to_string();
            assert!(!said.is_empty() && !said.contains('\n'), "one line: {said}");
        }
    }
}
