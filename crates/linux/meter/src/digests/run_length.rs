//! Run-length coding of zeros in digests on their way, so that a quiet batch takes next to nothing.
//!
//! ```text
//!   zeros  literals  bytes …    again and again; numbers in groups of seven bits, the highest set if more follow
//! ```

use super::LONGEST;

/// Fewer are not worth a break.
const SHORTEST_RUN: usize = 4;

/// Encodes bytes.
pub(crate) fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() / 2);
    let mut rest = bytes;
    while !rest.is_empty() {
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        rest = &rest[zeros..];
        let literals = rest.windows(SHORTEST_RUN).position(|run| run == [0; SHORTEST_RUN]).unwrap_or(rest.len());
        put_number(zeros, &mut out);
        put_number(literals, &mut out);
        out.extend(&rest[..literals]);
        rest = &rest[literals..];
    }
    out
}

/// Decodes what [`encode`] wrote; `None` for other bytes, and for more than the longest report.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(walk(bytes, |_, _| ())?);
    walk(bytes, |zeros, literals| {
        out.resize(out.len() + zeros, 0);
        out.extend(literals);
    })?;
    Some(out)
}

/// True if [`decode`] accepts these bytes.
pub(crate) fn is_encoded(bytes: &[u8]) -> bool {
    walk(bytes, |_, _| ()).is_some()
}

/// Calls `run` with each run of zeros and the literals behind it. Returns the decoded length.
fn walk(mut bytes: &[u8], mut run: impl FnMut(usize, &[u8])) -> Option<usize> {
    let mut length = 0;
    while !bytes.is_empty() {
        let (zeros, literals) = (take_number(&mut bytes)?, take_number(&mut bytes)?);
        let (taken, rest) = bytes.split_at_checked(literals)?;
        if zeros + literals > LONGEST - length {
            return None;
        }
        length += zeros + literals;
        run(zeros, taken);
        bytes = rest;
    }
    Some(length)
}

fn put_number(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number of up to 28 bits, which is more than any length here.
fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in [0, 7, 14, 21] {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quiet_report_is_nearly_nothing() {
        let quiet = vec![0; 9_600];
        assert!(encode(&quiet).len() < 8);
        assert_eq!(decode(&encode(&quiet)), Some(quiet));
    }

    #[test]
    fn a_few_bytes_do_not_become_gigabytes() {
        let bomb = [0xff, 0xff, 0xff, 0x7f, 0x00].repeat(1_000);
        assert_eq!(decode(&bomb), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_was_encoded_is_decoded(bytes in prop::collection::vec(prop_oneof![4 => Just(0), 1 => any::<u8>()], 0..600)) {
            let encoded = encode(&bytes);
            prop_assert!(encoded.len() <= bytes.len() + 8);
            prop_assert_eq!(decode(&encoded), Some(bytes));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(read) = decode(&bytes) {
                prop_assert!(read.len() <= LONGEST);
            }
        }
    }
}
