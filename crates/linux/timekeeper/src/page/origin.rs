//! Origin of a page: the boot and the time namespace whose clocks its numbers are readings of.
//!
//! After a reboot the kernel's clocks begin anew, and in a time namespace they are ahead or behind by what it was made with. So a page
//! says where it was written, and is only read there.

use std::fs;
use std::io;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The number of a namespace is used again after its end; what it was made with tells two of one number apart.
const TIME_NAMESPACE: [&str; 2] = ["/proc/self/ns/time", "/proc/self/timens_offsets"];

/// A boot of a machine and a time namespace on it, as digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageOrigin {
    pub(super) boot: u64,
    pub(super) time_namespace: u64,
}

impl PageOrigin {
    /// Boot and time namespace of this process.
    pub(super) fn here() -> io::Result<Self> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{BOOT_ID}: {error}"));
        let boot = digest(DIGEST_OF_NOTHING, &fs::read(BOOT_ID).map_err(named)?);
        // A kernel without time namespaces has neither.
        let link = fs::read_link(TIME_NAMESPACE[0]).unwrap_or_default();
        let offsets = fs::read(TIME_NAMESPACE[1]).unwrap_or_default();
        let time_namespace = digest(digest(DIGEST_OF_NOTHING, link.as_os_str().as_encoded_bytes()), &offsets);
        Ok(Self { boot, time_namespace })
    }
}

const DIGEST_OF_NOTHING: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, for which C needs a line.
fn digest(before: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(before, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
