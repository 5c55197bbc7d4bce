//! Files with a shared key.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// 32 hexadecimal digits, as `head -c16 /dev/urandom | xxd -p` prints them.
pub fn read_key(path: &Path) -> Result<[u8; 16], String> {
    let named = |what: &dyn fmt::Display| format!("key {}: {what}", path.display());
    let mut file = File::open(path).map_err(|error| named(&error))?;
    // Checks the opened file, because the path may name another one meanwhile.
    let metadata = file.metadata().map_err(|error| named(&error))?;
    check_secret(&metadata, effective_user()).map_err(|what| named(&what))?;
    let mut text = String::new();
    (&mut file).take(LONGEST_KEY_FILE).read_to_string(&mut text).map_err(|error| named(&error))?;
    parse_key(text.trim().as_bytes()).ok_or_else(|| named(&"expected 32 hexadecimal digits"))
}

/// More than any key file has; enough to see that it is none.
const LONGEST_KEY_FILE: u64 = 4_096;

/// Checks that nobody but root and `user` can have read or written a file.
fn check_secret(metadata: &Metadata, user: u32) -> Result<(), String> {
    let (mode, owner) = (metadata.mode() & 0o7777, metadata.uid());
    if mode & 0o077 != 0 {
        return Err(format!("others than its owner may use it (mode {mode:04o}); `chmod 600` it first"));
    }
    if owner != 0 && owner != user {
        return Err(format!("it belongs to user {owner}; it must belong to root or to user {user}, who runs this"));
    }
    Ok(())
}

#[expect(unsafe_code, reason = "the standard library has no door to it")]
fn effective_user() -> u32 {
    // SAFETY: no pointer is passed, and the call cannot fail.
    unsafe { libc::geteuid() }
}

fn parse_key(digits: &[u8]) -> Option<[u8; 16]> {
    let mut key = [0; 16];
    if digits.len() != 2 * key.len() {
        return None;
    }
    let digit = |digit: u8| (digit as char).to_digit(16);
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("hitless-key-{}", std::process::id()));
        std::fs::write(&path, "0123456789abcdef0123456789ABCDEF\n").unwrap();
        for mode in (0..0o1000).filter(|mode| mode & 0o400 != 0) {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = read_key(&path);
            assert_eq!(read.is_ok(), mode & 0o077 == 0, "{mode:04o}: {read:?}");
            assert!(read.is_ok() || read.unwrap_err().contains("chmod 600"));
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        let owner = metadata.uid();
        assert_eq!(check_secret(&metadata, owner), Ok(()));
        // Root's own may be read by any user that can.
        assert_eq!(check_secret(&metadata, owner + 1).is_ok(), owner == 0);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_key_is_32_hexadecimal_digits() {
        assert_eq!(parse_key(b"000102030405060708090a0b0c0d0e0f"), Some(std::array::from_fn(|n| n as u8)));
        for wrong in ["", "00", "000102030405060708090a0b0c0d0e0", "000102030405060708090a0b0c0d0e0g"] {
            assert_eq!(parse_key(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
