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
use std::path::PathBuf;

use daemon::key::read_key;
use standin::StandInConfig;
use units::{Bytes, Prob, Span};

pub use options::LinkOptions;

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

/// Use of stamps: numbers in the addresses of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StampUse {
    /// Stamps are used where both ends and the cable between them can.
    #[default]
    Auto,
    Off,
}

units::named!(LinkMode, "ordered, nonblocking or auto",
    "ordered" => Self::Ordered, "nonblocking" => Self::NonBlocking, "auto" => Self::Auto,);
units::named!(StampUse, "auto or off",
    "auto" => Self::Auto, "off" => Self::Off,);
units::named!(InitAction, "best-effort, block or discard",
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
    pub stand_in: StandInConfig,
    /// `None`: any peer that answers.
    pub peer: Option<Mac>,
    pub mode: LinkMode,
    pub target_loss: Prob,
    pub sealing: Sealing,
    pub init_action: InitAction,
    /// Frames pass as they are until somebody asks for protection.
    pub dormant: bool,
    pub stamp: StampUse,
    pub pin: Option<usize>,
    pub give_up_after: Span,
    /// Frames that may be unacknowledged; below the peer's ring.
    pub window: u32,
    /// Most bytes that may wait for the wire.
    pub queue: Option<Bytes>,
}

impl LinkConfig {
    /// Reason why frames are not stamped, whatever the peer says; in one line.
    pub(crate) fn no_stamps(&self) -> Option<&'static str> {
        match (self.stamp, &self.sealing) {
            (StampUse::Off, _) => Some("switched off (--stamp off)"),
            (StampUse::Auto, Sealing::Crc | Sealing::Key(_)) => Some("frames are sealed"),
            (StampUse::Auto, Sealing::None) => None,
        }
    }

    pub(crate) const MOST_FRAMES: u32 = 4_096;
    /// A queue that has no room for a frame is a hole.
    pub(crate) const LEAST_QUEUE: Bytes = Bytes::new(16_384);

    pub fn new(stand_in: StandInConfig) -> Self {
        Self {
            stand_in,
            peer: None,
            mode: LinkMode::default(),
            target_loss: Prob::literal(1e-8),
            sealing: Sealing::default(),
            init_action: InitAction::BestEffort,
            dormant: false,
            stamp: StampUse::default(),
            pin: None,
            give_up_after: Span::from_ms(50),
            window: 1_024,
            queue: None,
        }
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
        assert_eq!(
            (config.stand_in.name.as_str(), config.mode, config.sealing),
            ("hit7", LinkMode::Auto, Sealing::Crc)
        );
        assert_eq!(config.init_action, InitAction::Block);
        assert_eq!(config.stand_in.metrics.unwrap().to_string(), "127.0.0.1:9464");
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
    fn a_socket_of_an_unknown_kind_is_refused_with_those_there_are() {
        let said = checked("interface = \"e\"\nwire = \"xdp\"").unwrap_err();
        assert!(said.contains("wire: 'xdp': expected auto or packet"), "{said}");
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let file = LinkOptions { name: Some("a".into()), mode: Some("auto".into()), ..LinkOptions::default() };
        let line = LinkOptions { name: Some("b".into()), interface: Some("e".into()), ..LinkOptions::default() };
        let config = line.or(file).check().unwrap();
        assert_eq!((config.stand_in.name.as_str(), config.mode), ("b", LinkMode::Auto));
    }
}
