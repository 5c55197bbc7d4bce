//! Arbitrary bytes as RoCEv2 frames. `fuzz/` has this target, too.

use wire::roce::{Opcode, ParsedRoce, icrc_is_valid, parse};

/// Nothing that the parser returns may contradict the bytes, for any bytes.
pub(crate) fn holds(bytes: &[u8]) {
    let parsed = parse(bytes);
    let check = icrc_is_valid(bytes);
    match parsed {
        Ok(ParsedRoce::Foreign) => assert_eq!(check, None),
        Ok(ParsedRoce::Reliable { header, payload }) => {
            assert!(14 + 20 + 8 + header.size() + payload <= bytes.len());
            assert!(header.psn < 1 << 24 && header.queue_pair < 1 << 24 && header.pad < 4);
        }
        Ok(ParsedRoce::Other { opcode }) => assert_eq!(Opcode::from_code(opcode), None),
        Err(malformed) => assert!(!malformed.to_string().is_empty()),
    }
}
