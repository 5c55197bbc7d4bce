//! A secret that those who trust each other share, in a file: 32 hexadecimal digits, as `head -c16 /dev/urandom | xxd -p`
//! prints them.
//!
//! A message sent with a key carries a tag, SipHash-2-4 over all of it: without the key it can neither be made nor
//! changed. The users of a key prevent replays themselves: each documents how.

use std::fmt;
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use siphasher::sip::SipHasher24;

#[derive(Clone, PartialEq, Eq)]
pub struct OrderKey([u8; 16]);

impl fmt::Debug for OrderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl OrderKey {
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// An error is one line that names the file and says what to do.
    pub fn read(path: &Path) -> Result<Self, String> {
        let named = |what: &dyn fmt::Display| format!("key {}: {what}", path.display());
        let mode = fs::metadata(path).map_err(|error| named(&error))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(named(&"others than its owner can get at it; `chmod 600` it first"));
        }
        let text = fs::read_to_string(path).map_err(|error| named(&error))?;
        parse(text.trim()).map(Self).ok_or_else(|| named(&"expected 32 hexadecimal digits"))
    }

    /// Computes the tag of these parts, in this order, for this purpose: a tag for one purpose is none for another, and
    /// none for the same bytes divided in another way.
    pub fn tag(&self, purpose: &str, parts: &[&[u8]]) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        for part in [purpose.as_bytes()].iter().chain(parts) {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
        hasher.finish()
    }
}

fn parse(digits: &str) -> Option<[u8; 16]> {
    let mut key = [0; 16];
    let digits = digits.as_bytes();
    if digits.len() != 2 * key.len() {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(key)
}

/// Bytes that nobody else has had.
pub fn nonce() -> std::io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_others_can_read_is_refused_with_what_to_do() {
        let path = std::env::temp_dir().join(format!("hitless-key-{}", std::process::id()));
        fs::write(&path, "000102030405060708090A0b0c0d0e0f\n").unwrap();
        let with_mode = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            OrderKey::read(&path)
        };
        let key = with_mode(0o600).unwrap();
        assert_eq!(key, OrderKey::new(std::array::from_fn(|nth| nth as u8)));
        assert!(!format!("{key:?}").contains('1'));
        for mode in [0o640, 0o604, 0o620] {
            assert!(with_mode(mode).unwrap_err().contains("chmod 600"), "{mode:o}");
        }
        for text in ["", "0011", "000102030405060708090a0b0c0d0e0g", "000102030405060708090a0b0c0d0e0f00"] {
            fs::write(&path, text).unwrap();
            assert!(with_mode(0o600).unwrap_err().contains("expected 32 hexadecimal digits"), "{text}");
        }
        fs::remove_file(&path).unwrap();
        assert!(OrderKey::read(&path).unwrap_err().contains("No such file"));
    }

    #[test]
    fn a_tag_fits_one_purpose_one_text_and_one_way_to_divide_it() {
        let key = OrderKey::new([7; 16]);
        let tags = [
            key.tag("order", &[b"ab", b"c"]),
            key.tag("order", &[b"a", b"bc"]),
            key.tag("order", &[b"abc"]),
            key.tag("report", &[b"ab", b"c"]),
            OrderKey::new([8; 16]).tag("order", &[b"ab", b"c"]),
        ];
        let different: std::collections::BTreeSet<u64> = tags.into();
        assert_eq!(different.len(), tags.len());
    }
}
