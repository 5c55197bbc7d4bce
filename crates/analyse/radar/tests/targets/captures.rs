//! Arbitrary bytes as captures. `fuzz/` has this target, too.

use std::io::{Cursor, Read};

use capture::CaptureReader;
use radar::compare::{CaptureInput, CompareError, CompareOptions, Comparison, compare};
use units::Unwatched;

/// Reads every record of a capture, and compares the capture with itself: nothing of it is lost.
pub(crate) fn capture(bytes: &[u8]) {
    if let Ok(mut reader) = CaptureReader::new(bytes) {
        while let Ok(Some(record)) = reader.next() {
            assert!(!record.bytes.is_empty() || record.len == 0 || reader.packets() > 0);
        }
    }
    if let Ok(found) = compared(bytes, bytes) {
        assert!(found.losses() <= found.up.packets);
    }
}

/// Compares two captures as `hitless radar losses` does.
pub(crate) fn compared(up: &[u8], down: &[u8]) -> Result<Comparison, CompareError> {
    let [up, down] = [up.to_vec(), down.to_vec()];
    let open_up = || Ok(Box::new(Cursor::new(up.clone())) as Box<dyn Read>);
    let open_down = || Ok(Box::new(Cursor::new(down.clone())) as Box<dyn Read>);
    compare(CaptureInput { open: &open_up }, CaptureInput { open: &open_down }, &CompareOptions::default(), &Unwatched)
}
