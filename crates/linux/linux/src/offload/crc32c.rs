//! The checksum of SCTP (RFC 9260 App. A): CRC-32C, which a host may leave undone like any other.

/// Effect of each byte on the remainder; the polynomial is reflected.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = if crc & 1 != 0 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// CRC32c in SCTP byte order; zero the checksum field first.
pub(crate) fn crc32c(bytes: &[u8]) -> [u8; 4] {
    let step = |crc: u32, byte: &u8| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)];
    (!bytes.iter().fold(u32::MAX, step)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_rfc_3720_are_found() {
        assert_eq!(u32::from_le_bytes(crc32c(b"123456789")), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(crc32c(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
    }
}
