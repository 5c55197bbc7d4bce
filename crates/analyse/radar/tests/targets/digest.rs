//! Arbitrary bytes as digests. `fuzz/` has these targets, too.

#![allow(dead_code, reason = "a fuzz target calls one of the two functions")]

use radar::digest::{DecodedDigest, Digest};

/// Checks that bytes that can be read are written the same again, and that decoding them comes to an end.
pub(crate) fn form(bytes: &[u8]) {
    let Ok(digest) = Digest::from_bytes(bytes) else { return };
    assert_eq!(Digest::from_bytes(&digest.to_bytes()).as_ref(), Ok(&digest));
    decode(digest);
}

fn decode(mut digest: Digest) {
    let cells = digest.shape().cells();
    let estimate = digest.estimate();
    assert!(estimate.is_finite() && estimate >= 0.0, "{estimate}");
    let DecodedDigest { lost, extra, left } = digest.decode();
    assert!(lost.len() + extra.len() <= cells);
    for (signature, _) in lost.iter().chain(&extra) {
        let loss = signature.loss(None);
        assert_eq!(loss.flow.src.is_ipv4(), loss.ip_id.is_some());
    }
    // A digest that nobody filled may be decoded to its end though its count of packets is wrong.
    assert!(left.is_none_or(|left| left.net == digest.packets()));
}

/// Cells that nobody filled in a digest that is well formed: fields, lanes and size, seed and count of packets, cells.
pub(crate) fn cells(bytes: &[u8]) {
    let Some((&[fields, lanes_low, lanes_high, size], rest)) = bytes.split_first_chunk() else { return };
    let (size, sparse) = (3 + size % 118, lanes_high & 0x80);
    let lanes = [lanes_low, lanes_high & 0b11 | sparse];
    let mut made = [b"HLRD", &[1, fields & 31][..], &lanes, &u32::from(size).to_le_bytes()].concat();
    let numbers = 16;
    made.extend(rest.iter().chain(std::iter::repeat(&0)).take(numbers));
    let body = rest.get(numbers..).unwrap_or_default();
    let cell =
        8 * (2 + usize::from(sparse != 0) + u16::from_le_bytes([lanes[0], lanes[1] & 0b11]).count_ones() as usize);
    let most = usize::from(size);
    let count = if sparse == 0 { most } else { most.min(body.len() / cell) };
    made.extend(body.iter().chain(std::iter::repeat(&0)).take(count * cell));
    made.extend(crc32fast::hash(&made).to_le_bytes());
    let read = Digest::from_bytes(&made);
    assert!(sparse != 0 || read.is_ok(), "{read:?}");
    form(&made);
    if let Ok(mut digest) = read {
        let other = digest.clone();
        digest.subtract(&other).unwrap();
        assert_eq!(digest.decode(), DecodedDigest::default(), "less itself it is empty");
        decode(other);
    }
}
