//! Settings of a link, from the command line or a file, checked once.
//!
//! ```toml
//! interface = "eth1"
//! name = "hit0"
//! mode = "ordered"
//! rate = "10G"
//! metrics = "127.0.0.1:9464"
//! ```

mod options;

use std::fmt;
use std::fs::{File, Metadata};
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use units::{Bytes, Prob, Rate, Span};

pub use options::{LinkOptions, read_options};

use crate::datapath::InitAction;
use crate::frame::Mac;
use crate::seal::Seal;
use linux::clock;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkMode {
    #[default]
    Ordered,
    NonBlocking,
    Auto,
}

/// Kind of interface through which the host meets the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostBackend {
    /// The best that works.
    #[default]
    Auto,
    Tap,
    Veth,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireBackend {
    /// The best that works.
    #[default]
    Auto,
    Packet,
    #[cfg(feature = "xdp")]
    Xdp,
}

/// Use of stamps: numbers in the addresses of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StampUse {
    /// Stamps are used where both ends and the cable between them can.
    #[default]
    Auto,
    Off,
}

macro_rules! named {
    ($type:ty, $what:literal, $($name:literal => $value:expr,)*) => {
        impl FromStr for $type {
            type Err = units::ParseError;
            fn from_str(text: &str) -> Result<Self, units::ParseError> {
                match text {
                    $($name => Ok($value),)*
                    _ => Err(units::ParseError::new($what)),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match *self {
                    $(value if value == $value => $name,)*
                    _ => unreachable!("every value has a name"),
                })
            }
        }
    };
}

named!(LinkMode, "ordered, nonblocking or auto",
    "ordered" => Self::Ordered, "nonblocking" => Self::NonBlocking, "auto" => Self::Auto,);
named!(HostBackend, "auto, tap or veth",
    "auto" => Self::Auto, "tap" => Self::Tap, "veth" => Self::Veth,);
#[cfg(not(feature = "xdp"))]
named!(WireBackend, "auto or packet, or, for xdp, a program built with: cargo build --release --features xdp",
    "auto" => Self::Auto, "packet" => Self::Packet,);
#[cfg(feature = "xdp")]
named!(WireBackend, "auto, packet or xdp",
    "auto" => Self::Auto, "packet" => Self::Packet, "xdp" => Self::Xdp,);
named!(StampUse, "auto or off",
    "auto" => Self::Auto, "off" => Self::Off,);
named!(InitAction, "best-effort, block or discard",
    "best-effort" => Self::BestEffort, "block" => Self::Block, "discard" => Self::Discard,);

/// Seal of frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sealing {
    #[default]
    None,
    Crc,
    /// Seal with the key in this file.
    Key(PathBuf),
}

impl fmt::Display for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::Crc => "crc",
            Self::Key(_) => "key",
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    pub interface: String,
    pub name: String,
    /// `None`: any peer that answers.
    pub peer: Option<Mac>,
    pub mode: LinkMode,
    pub target_loss: Prob,
    /// `None`: what the interface says its speed is.
    pub rate: Option<Rate>,
    /// `None`: what the interface leaves room for.
    pub mtu: Option<u32>,
    pub sealing: Sealing,
    pub init_action: InitAction,
    pub take_over: bool,
    /// Taking over, the interface keeps its name, and the stand-in has its own.
    pub keep_name: bool,
    /// Frames pass as they are until somebody asks for protection.
    pub dormant: bool,
    /// An interface that is down or absent is waited for.
    pub wait: bool,
    pub host: HostBackend,
    pub wire: WireBackend,
    pub stamp: StampUse,
    pub pin: Option<usize>,
    pub give_up_after: Span,
    /// Frames that may be unacknowledged; below the peer's ring.
    pub window: u32,
    /// Most bytes that may wait for the wire.
    pub queue: Option<Bytes>,
    pub metrics: Option<SocketAddr>,
}

impl LinkConfig {
    /// Reason why frames are not stamped, whatever the peer says; in one line.
    pub(crate) fn no_stamps(&self) -> Option<&'static str> {
        #[cfg(feature = "xdp")]
        if self.wire == WireBackend::Xdp {
            return Some("AF_XDP has no super-frames");
        }
        match (self.stamp, &self.sealing) {
            (StampUse::Off, _) => Some("switched off (--stamp off)"),
            (StampUse::Auto, Sealing::Crc | Sealing::Key(_)) => Some("frames are sealed"),
            (StampUse::Auto, Sealing::None) => None,
        }
    }

    pub(crate) const MOST_FRAMES: u32 = 4_096;
    /// The least that every IPv4 host must be able to receive.
    pub(crate) const LEAST_MTU: u32 = 576;
    /// A queue that has no room for a frame is a hole.
    pub(crate) const LEAST_QUEUE: Bytes = Bytes::new(16_384);

    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            name: "hit0".to_owned(),
            peer: None,
            mode: LinkMode::default(),
            target_loss: Prob::literal(1e-8),
            rate: None,
            mtu: None,
            sealing: Sealing::default(),
            init_action: InitAction::BestEffort,
            take_over: false,
            keep_name: false,
            dormant: false,
            wait: false,
            host: HostBackend::default(),
            wire: WireBackend::default(),
            stamp: StampUse::default(),
            pin: None,
            give_up_after: Span::from_ms(50),
            window: 1_024,
            queue: None,
            metrics: None,
        }
    }
}

/// A port alone means this machine only.
pub fn parse_address(text: &str) -> Option<SocketAddr> {
    match text.parse::<u16>() {
        Ok(port) => Some(SocketAddr::from(([127, 0, 0, 1], port))),
        Err(_) => text.strip_prefix(':').map_or_else(|| text.parse().ok(), parse_address),
    }
}

impl Sealing {
    /// The seal itself, at the start of a new incarnation.
    pub fn seal(&self) -> Result<Seal, String> {
        match self {
            Self::None => Ok(Seal::None),
            Self::Crc => Ok(Seal::Crc),
            Self::Key(path) => {
                let life = clock::random().map_err(|error| format!("random numbers for --key: {error}"))?;
                Ok(Seal::keyed(read_key(path)?, life))
            }
        }
    }
}

/// 32 hexadecimal digits, as `head -c16 /dev/urandom | xxd -p` prints them.
pub fn read_key(path: &Path) -> Result<[u8; 16], String> {
    let named = |what: &dyn fmt::Display| format!("key {}: {what}", path.display());
    let mut file = File::open(path).map_err(|error| named(&error))?;
    // Of the file that is read, before it is: what the path names may change meanwhile.
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

    fn checked(text: &str) -> Result<LinkConfig, String> {
        toml::from_str::<LinkOptions>(text).map_err(|error| error.message().to_owned())?.check()
    }

    #[test]
    fn a_file_says_what_the_command_line_can() {
        let text = r#"
            interface = "eth1"
            name = "hit7"
            peer = "02:00:00:00:00:01"
            mode = "auto"
            rate = "10G"
            crc = true
            init-action = "block"
            give-up-after = "30ms"
            metrics = "9464"
        "#;
        let config = checked(text).unwrap();
        assert_eq!((config.name.as_str(), config.mode, config.sealing), ("hit7", LinkMode::Auto, Sealing::Crc));
        assert_eq!(config.init_action, InitAction::Block);
        assert_eq!(config.metrics.unwrap().to_string(), "127.0.0.1:9464");
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_accepted() {
        let said = |text: &str| checked(text).unwrap_err();
        assert!(said("").contains("which interface"));
        assert!(said("interface = \"e\"\nmode = \"fast\"").contains("mode: 'fast': expected ordered, nonblocking"));
        assert!(said("interface = \"e\"\nspeed = 3").contains("unknown field `speed`"));
        assert!(said("interface = \"e\"\nname = \"much-too-long-a-name\"").contains("1 to 13"));
        assert!(said("interface = \"e\"\nwindow = 5").contains("window: expected 16 to"));
        assert!(said("interface = \"e\"\npeer = \"me\"").contains("peer: 'me': expected an Ethernet address"));
        assert!(said("interface = \"e\"\nmetrics = \"here\"").contains("metrics"));
        assert!(said("interface = \"e\"\ngive-up-after = \"1s\"").contains("4ms to 150ms"));
    }

    #[cfg(not(feature = "xdp"))]
    #[test]
    fn a_build_without_af_xdp_says_how_to_get_it() {
        let said = checked("interface = \"e\"\nwire = \"xdp\"").unwrap_err();
        assert!(said.contains("wire: 'xdp': expected auto or packet") && said.contains("--features xdp"), "{said}");
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let file = LinkOptions { name: Some("a".into()), mode: Some("auto".into()), ..LinkOptions::default() };
        let line = LinkOptions { name: Some("b".into()), interface: Some("e".into()), ..LinkOptions::default() };
        let config = line.or(file).check().unwrap();
        assert_eq!((config.name.as_str(), config.mode), ("b", LinkMode::Auto));
    }

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
