//! What a link is to be, from the command line or a file, checked once.
//!
//! ```toml
//! interface = "eth1"
//! name = "hit0"
//! mode = "ordered"
//! rate = "10G"
//! metrics = "127.0.0.1:9464"
//! ```

use std::fmt;
use std::fs::{File, Metadata};
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;
use units::{Bytes, Prob, Rate, Span};

use crate::datapath::InitAction;
use crate::frame::Mac;
use crate::seal::Seal;
use linux::clock;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Ordered,
    NonBlocking,
    Auto,
}

/// Where the stand-in interface meets the daemon.
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

named!(Mode, "ordered, nonblocking or auto",
    "ordered" => Self::Ordered, "nonblocking" => Self::NonBlocking, "auto" => Self::Auto,);
named!(HostBackend, "auto, tap or veth",
    "auto" => Self::Auto, "tap" => Self::Tap, "veth" => Self::Veth,);
#[cfg(not(feature = "xdp"))]
named!(WireBackend, "auto or packet, or, for xdp, a program built with: cargo build --release --features xdp",
    "auto" => Self::Auto, "packet" => Self::Packet,);
#[cfg(feature = "xdp")]
named!(WireBackend, "auto, packet or xdp",
    "auto" => Self::Auto, "packet" => Self::Packet, "xdp" => Self::Xdp,);
named!(InitAction, "best-effort, block or discard",
    "best-effort" => Self::BestEffort, "block" => Self::Block, "discard" => Self::Discard,);

/// How frames are sealed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sealing {
    #[default]
    None,
    Crc,
    /// With the key in this file.
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
    /// `None`: whoever answers.
    pub peer: Option<Mac>,
    pub mode: Mode,
    pub target_loss: Prob,
    /// `None`: what the interface says its speed is.
    pub rate: Option<Rate>,
    /// `None`: what the interface leaves room for.
    pub mtu: Option<u32>,
    pub sealing: Sealing,
    pub init_action: InitAction,
    pub take_over: bool,
    /// Frames pass as they are until somebody asks for protection.
    pub dormant: bool,
    /// An interface that is down or absent is waited for.
    pub wait: bool,
    pub host: HostBackend,
    pub wire: WireBackend,
    pub pin: Option<usize>,
    pub give_up_after: Span,
    /// Frames that may be unacknowledged; below the peer's ring.
    pub window: u32,
    /// What may wait for the wire, at most.
    pub queue: Option<Bytes>,
    pub metrics: Option<SocketAddr>,
}

impl LinkConfig {
    pub const MOST_FRAMES: u32 = 4_096;
    /// The least that every IPv4 host must be able to receive.
    pub const LEAST_MTU: u32 = 576;
    /// A queue that has no room for a frame is a hole.
    pub const LEAST_QUEUE: Bytes = Bytes::new(16_384);

    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            name: "hit0".to_owned(),
            peer: None,
            mode: Mode::default(),
            target_loss: Prob::literal(1e-8),
            rate: None,
            mtu: None,
            sealing: Sealing::default(),
            init_action: InitAction::BestEffort,
            take_over: false,
            dormant: false,
            wait: false,
            host: HostBackend::default(),
            wire: WireBackend::default(),
            pin: None,
            give_up_after: Span::from_ms(50),
            window: 1_024,
            queue: None,
            metrics: None,
        }
    }
}

/// What a file may say: the same names and values as on the command line.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Wishes {
    pub interface: Option<String>,
    pub name: Option<String>,
    pub peer: Option<String>,
    pub mode: Option<String>,
    pub target_loss: Option<String>,
    pub rate: Option<String>,
    pub mtu: Option<u32>,
    pub crc: Option<bool>,
    pub key: Option<PathBuf>,
    pub init_action: Option<String>,
    pub take_over: Option<bool>,
    pub dormant: Option<bool>,
    pub wait: Option<bool>,
    pub backend: Option<String>,
    pub wire: Option<String>,
    pub pin: Option<usize>,
    pub give_up_after: Option<String>,
    pub window: Option<u32>,
    pub queue: Option<String>,
    pub metrics: Option<String>,
}

impl Wishes {
    /// Reads a file; an error is one line that names the file and the place.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            format!("{}, line {line}: {}", path.display(), error.message().replace('\n', " "))
        })
    }

    /// What these say, and where they say nothing, the other ones.
    pub fn or(self, other: Self) -> Self {
        Self {
            interface: self.interface.or(other.interface),
            name: self.name.or(other.name),
            peer: self.peer.or(other.peer),
            mode: self.mode.or(other.mode),
            target_loss: self.target_loss.or(other.target_loss),
            rate: self.rate.or(other.rate),
            mtu: self.mtu.or(other.mtu),
            crc: self.crc.or(other.crc),
            key: self.key.or(other.key),
            init_action: self.init_action.or(other.init_action),
            take_over: self.take_over.or(other.take_over),
            dormant: self.dormant.or(other.dormant),
            wait: self.wait.or(other.wait),
            backend: self.backend.or(other.backend),
            wire: self.wire.or(other.wire),
            pin: self.pin.or(other.pin),
            give_up_after: self.give_up_after.or(other.give_up_after),
            window: self.window.or(other.window),
            queue: self.queue.or(other.queue),
            metrics: self.metrics.or(other.metrics),
        }
    }

    /// The configuration that they make; an error is one line that names the key and what it accepts.
    pub fn check(self) -> Result<LinkConfig, String> {
        let interface = self.interface.ok_or("which interface? `hitless link up IFACE`, or `interface` in the file")?;
        if interface == "lo" {
            return Err("lo is no link between two machines; name the interface that the cable is in".to_owned());
        }
        let mut config = LinkConfig::new(interface);
        if let Some(name) = self.name {
            let fine = (1..=13).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
            config.name =
                if fine { name } else { return Err("name: expected 1 to 13 letters, digits, -, _ or .".to_owned()) };
        }
        config.peer = match self.peer.as_deref() {
            None | Some("auto") => None,
            Some(mac) => Some(parse("peer", mac)?),
        };
        set("mode", self.mode, &mut config.mode)?;
        set("target-loss", self.target_loss, &mut config.target_loss)?;
        set("init-action", self.init_action, &mut config.init_action)?;
        set("backend", self.backend, &mut config.host)?;
        set("wire", self.wire, &mut config.wire)?;
        set("give-up-after", self.give_up_after, &mut config.give_up_after)?;
        config.rate = self.rate.as_deref().map(|rate| parse("rate", rate)).transpose()?;
        config.queue = self.queue.as_deref().map(|queue| parse("queue", queue)).transpose()?;
        let address = |text: &str| parse_address(text).ok_or(format!("metrics: '{text}': expected PORT or ADDR:PORT"));
        config.metrics = self.metrics.as_deref().map(address).transpose()?;
        config.sealing = match (self.crc.unwrap_or(false), self.key) {
            (false, None) => Sealing::None,
            (true, None) => Sealing::Crc,
            (false, Some(file)) => Sealing::Key(file),
            (true, Some(_)) => return Err("crc and key: a key covers what crc does, leave crc out".to_owned()),
        };
        (config.take_over, config.mtu, config.pin) = (self.take_over.unwrap_or(false), self.mtu, self.pin);
        (config.dormant, config.wait) = (self.dormant.unwrap_or(false), self.wait.unwrap_or(false));
        if let Some(mtu) = config.mtu.filter(|mtu| !(LinkConfig::LEAST_MTU..=65_535).contains(mtu)) {
            return Err(format!("mtu: {mtu}: expected {} to 65535", LinkConfig::LEAST_MTU));
        }
        if let Some(queue) = config.queue.filter(|queue| *queue < LinkConfig::LEAST_QUEUE) {
            return Err(format!("queue: {queue}: expected at least {}", LinkConfig::LEAST_QUEUE));
        }
        config.window = self.window.unwrap_or(config.window);
        if !(16..=LinkConfig::MOST_FRAMES).contains(&config.window) {
            return Err(format!("window: expected 16 to {} frames", LinkConfig::MOST_FRAMES));
        }
        if !(Span::from_ms(4)..=Span::from_ms(150)).contains(&config.give_up_after) {
            return Err("give-up-after: expected 4ms to 150ms; beyond that TCP has given up itself".to_owned());
        }
        Ok(config)
    }
}

fn parse<T: FromStr<Err = units::ParseError>>(key: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{key}: '{text}': {error}"))
}

fn set<T: FromStr<Err = units::ParseError>>(key: &str, text: Option<String>, value: &mut T) -> Result<(), String> {
    if let Some(text) = text {
        *value = parse(key, &text)?;
    }
    Ok(())
}

/// A port alone means this machine only.
pub fn parse_address(text: &str) -> Option<SocketAddr> {
    match text.parse::<u16>() {
        Ok(port) => Some(SocketAddr::from(([127, 0, 0, 1], port))),
        Err(_) => text.strip_prefix(':').map_or_else(|| text.parse().ok(), parse_address),
    }
}

impl Sealing {
    /// The seal itself, at the start of its life.
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
fn read_key(path: &Path) -> Result<[u8; 16], String> {
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

/// Whether nobody but root and `user` can have read or written a file.
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
        toml::from_str::<Wishes>(text).map_err(|error| error.message().to_owned())?.check()
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
        assert_eq!((config.name.as_str(), config.mode, config.sealing), ("hit7", Mode::Auto, Sealing::Crc));
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

    #[test]
    fn the_command_line_goes_before_the_file() {
        let file = Wishes { name: Some("a".into()), mode: Some("auto".into()), ..Wishes::default() };
        let line = Wishes { name: Some("b".into()), interface: Some("e".into()), ..Wishes::default() };
        let config = line.or(file).check().unwrap();
        assert_eq!((config.name.as_str(), config.mode), ("b", Mode::Auto));
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
