//! Arbitrary bytes as the header of a link. `fuzz/` has this target, too.

use wire::link::{LinkHeader, MAX_HEADER};

/// Checks that a header that parses is written again as the same bytes; anything else is refused.
pub(crate) fn header(bytes: &[u8]) {
    if let Ok((header, len)) = LinkHeader::parse(bytes) {
        let mut again = [0; MAX_HEADER];
        assert_eq!(header.emit(&mut again), len);
        assert_eq!(again[..len], bytes[..len]);
    }
}
