//! Options of a link, on the command line or in a file, by the same names.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use daemon::options::{parse_address, read_options};
use serde::Deserialize;
use standin::StandInConfig;
use units::{Span, whole_within};

use super::{LinkConfig, Sealing};

units::options! {
    #[derive(Clone, Debug, Default, clap::Args, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
    pub struct LinkOptions {
        /// The interface whose link is to be protected.
        pub interface: Option<String>,

        /// The stand-in's name [default: hit0].
        #[arg(long)]
        pub name: Option<String>,

        /// The only address that may drive the link; `auto` takes the first that answers [default: auto].
        #[arg(long, value_name = "MAC|auto")]
        pub peer: Option<String>,

        /// ordered, nonblocking, or auto: as the measured loss demands [default: ordered].
        #[arg(long)]
        pub mode: Option<String>,

        /// Loss that the copies of a retransmission aim for [default: 1e-8].
        #[arg(long, value_name = "LOSS")]
        pub target_loss: Option<String>,

        /// Rate of the wire; what the interface says if not given.
        #[arg(long)]
        pub rate: Option<String>,

        /// MTU of the stand-in; what the header leaves of the interface's if not given.
        #[arg(long)]
        pub mtu: Option<u32>,

        /// Move name, settings, addresses, routes and the place in a bridge to the stand-in, and back at the end.
        #[arg(long)]
        pub take_over: bool,

        /// With --take-over: leave the interface its name; refused if rules of the packet filter name it.
        #[arg(long)]
        pub keep_name: bool,

        /// Let frames pass as they are until somebody asks for protection, here or at the other end.
        #[arg(long)]
        pub dormant: bool,

        /// Wait for the interface if it is down or absent, at the start and whenever it goes away.
        #[arg(long)]
        pub wait: bool,

        /// Until the peer answers frames pass unprotected (best-effort), wait (block) or are dropped (discard)
        /// [default: best-effort].
        #[arg(long, value_name = "ACTION")]
        pub init_action: Option<String>,

        /// A CRC32 in each frame, for wires whose own check cannot be trusted.
        #[arg(long)]
        pub crc: bool,

        /// Authenticate every frame with the key in this file: 32 hexadecimal digits, the same at both ends.
        #[arg(long, value_name = "FILE")]
        pub key: Option<PathBuf>,

        /// Kind of interface for the host: auto, tap or veth [default: auto].
        #[arg(long)]
        pub backend: Option<String>,

        /// Kind of socket on the wire: auto or packet [default: auto].
        #[arg(long)]
        pub wire: Option<String>,

        /// Numbers in the Ethernet addresses of frames, so that super-frames stay whole: auto or off [default: auto].
        #[arg(long)]
        pub stamp: Option<String>,

        /// Keep the loop on this processor.
        #[arg(long, value_name = "CPU")]
        pub pin: Option<usize>,

        /// Time after which a missing frame is given up [default: 50ms].
        #[arg(long, value_name = "TIME")]
        pub give_up_after: Option<String>,

        /// Frames that may be unacknowledged [default: 1024].
        #[arg(long, value_name = "FRAMES", value_parser = whole_within::<u32>(..))]
        pub window: Option<u32>,

        /// Most bytes that may wait for the wire [default: 4MB]; a queue that stands is kept to about a millisecond.
        #[arg(long, value_name = "BYTES")]
        pub queue: Option<String>,

        /// Serve metrics for Prometheus here; a port alone means this machine only.
        #[arg(long, value_name = "ADDR:PORT")]
        pub metrics: Option<String>,
    }
}

impl LinkOptions {
    /// Reads a file; an error is one line that names the file and the place.
    pub fn read(path: &Path) -> Result<Self, String> {
        read_options(path)
    }

    /// The configuration that they make; an error is one line that names the key and what it accepts.
    pub fn check(self) -> Result<LinkConfig, String> {
        let interface = self.interface.ok_or("which interface? `hitless link up IFACE`, or `interface` in the file")?;
        if interface == "lo" {
            return Err("lo is no link between two machines; name the interface that the cable is in".to_owned());
        }
        let mut config = LinkConfig::new(StandInConfig::new(interface));
        if let Some(name) = self.name {
            let fine = (1..=13).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
            config.stand_in.name =
                if fine { name } else { return Err("name: expected 1 to 13 letters, digits, -, _ or .".to_owned()) };
        }
        config.peer = match self.peer.as_deref() {
            None | Some("auto") => None,
            Some(mac) => Some(parse("peer", mac)?),
        };
        set("mode", self.mode, &mut config.mode)?;
        set("target-loss", self.target_loss, &mut config.target_loss)?;
        set("init-action", self.init_action, &mut config.init_action)?;
        set("backend", self.backend, &mut config.stand_in.host)?;
        set("wire", self.wire, &mut config.stand_in.wire)?;
        set("stamp", self.stamp, &mut config.stamp)?;
        set("give-up-after", self.give_up_after, &mut config.give_up_after)?;
        config.stand_in.rate = self.rate.as_deref().map(|rate| parse("rate", rate)).transpose()?;
        config.queue = self.queue.as_deref().map(|queue| parse("queue", queue)).transpose()?;
        let address = |text: &str| parse_address(text).ok_or(format!("metrics: '{text}': expected PORT or ADDR:PORT"));
        config.stand_in.metrics = self.metrics.as_deref().map(address).transpose()?;
        config.sealing = match (self.crc, self.key) {
            (false, None) => Sealing::None,
            (true, None) => Sealing::Crc,
            (false, Some(file)) => Sealing::Key(file),
            (true, Some(_)) => return Err("crc and key: a key covers what crc does, leave crc out".to_owned()),
        };
        (config.stand_in.take_over, config.stand_in.mtu, config.pin) = (self.take_over, self.mtu, self.pin);
        config.stand_in.keep_name = self.keep_name;
        if config.stand_in.keep_name && !config.stand_in.take_over {
            return Err("keep-name: only with take-over; without it the interface keeps its name anyway".to_owned());
        }
        (config.dormant, config.stand_in.wait) = (self.dormant, self.wait);
        if let Some(mtu) = config.stand_in.mtu.filter(|mtu| !(StandInConfig::LEAST_MTU..=65_535).contains(mtu)) {
            return Err(format!("mtu: {mtu}: expected {} to 65535", StandInConfig::LEAST_MTU));
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
