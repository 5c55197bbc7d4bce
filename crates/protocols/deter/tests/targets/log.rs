//! Arbitrary bytes as the log of a connection. `fuzz/` has this target, too.

use deter::{ConnectionLog, replay};

/// Reads a log, whole or as far as it is there, and replays it.
pub(crate) fn log(bytes: &[u8]) {
    let whole = ConnectionLog::read(bytes);
    let so_far = ConnectionLog::read_so_far(bytes);
    assert!(whole.is_err() || so_far.is_ok(), "a whole log can be read as far as it is there");
    for log in [whole, so_far].into_iter().flatten() {
        let _ = replay(&log, &mut ());
    }
}
