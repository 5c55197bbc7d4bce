//! Arbitrary bytes as frames of clocks. `fuzz/` has this target, too.

use wire::exchange::ExchangeFrame;
use wire::sync::SyncMessage;

/// Checks that what can be read is written again as the same bytes.
pub(crate) fn clock(bytes: &[u8]) {
    if let Ok(message) = SyncMessage::parse(bytes) {
        let again = message.emit();
        assert_eq!(again[..], bytes[..again.len()]);
    }
    if let Ok(frame) = ExchangeFrame::parse(bytes) {
        let mut again = Vec::new();
        frame.emit(&mut again);
        assert_eq!(ExchangeFrame::parse(&again), Ok(frame));
    }
}

/// Replaces the last four bytes by the checksum of those before them, which otherwise hides everything behind it.
pub(crate) fn checked(bytes: &[u8]) {
    clock(bytes);
    if let Some((body, _)) = bytes.split_last_chunk::<4>() {
        clock(&[body, &crc32fast::hash(body).to_be_bytes()].concat());
    }
}
