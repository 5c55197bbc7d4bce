//! Options of a monitor, on the command line or in a file, by the same names.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use units::{Count, ParseError, Span, nearest};

use super::{MonitorConfig, SourceKind, source_names};
use crate::act::PortRule;
use crate::detect::Flaps;
use bus::key::OrderKey;
use bus::message::PortId;

/// A value as somebody wrote it: with quotation marks or, if it is a number, without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextOrNumber(pub String);

impl From<String> for TextOrNumber {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl<'de> Deserialize<'de> for TextOrNumber {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct AnyScalar;
        impl Visitor<'_> for AnyScalar {
            type Value = TextOrNumber;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a number")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TextOrNumber, E> {
                Ok(TextOrNumber(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<TextOrNumber, E> {
                Ok(TextOrNumber(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<TextOrNumber, E> {
                Ok(TextOrNumber(number.to_string()))
            }
        }
        from.deserialize_any(AnyScalar)
    }
}

/// One or several.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    Ok(Some(match OneOrMore::deserialize(from)? {
        OneOrMore::One(text) => vec![text],
        OneOrMore::More(texts) => texts,
    }))
}

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PortOptions {
    pub name: String,
    pub peer: Option<String>,
    pub link: Option<String>,
}

units::options! {
    #[derive(Clone, Debug, Default, clap::Args, serde::Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
    pub struct MonitorOptions {
        /// The name by which other hosts know this one; what the kernel says if not given.
        #[arg(long)]
        pub host: Option<String>,

        /// Ports to watch, with * for anything; all that are physical if not given.
        #[serde(deserialize_with = "one_or_more")]
        pub ports: Option<Vec<String>>,

        /// Time between two polls [default: 1s].
        #[arg(long, value_name = "TIME")]
        pub interval: Option<TextOrNumber>,

        /// Source of counters: kernel, sysfs, links or a file, FIFO or - with samples; several times if need be [default:
        /// kernel].
        #[arg(long, value_name = "SOURCE")]
        #[serde(deserialize_with = "one_or_more")]
        pub source: Option<Vec<String>>,

        /// Counters from a directory that looks like /sys/class/net, as `hitless wire --counters` writes one.
        #[arg(long, value_name = "DIR")]
        pub sysfs: Option<PathBuf>,

        /// Leave these ports alone, with * and ? for anything; several times if need be.
        #[arg(long, value_name = "PORT")]
        #[serde(deserialize_with = "one_or_more")]
        pub exclude: Option<Vec<String>>,

        /// Keep what is read, to be replayed with --source FILE.
        #[arg(long, value_name = "FILE")]
        pub record: Option<PathBuf>,

        /// Bus on which hosts exchange messages: `local`, or `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, with TLS
        /// `rediss://…`; local if not given.
        #[arg(long, value_name = "URL")]
        pub bus: Option<String>,

        /// The certificate authority of a rediss:// bus, in PEM; those of the system if not given.
        #[arg(long, value_name = "FILE")]
        pub bus_ca: Option<PathBuf>,

        /// Obey only orders that are signed with this key, as `hitless fleet watch --order-key` does: a file with 32 hexadecimal
        /// digits.
        #[arg(long, value_name = "FILE")]
        pub order_key: Option<PathBuf>,

        /// Say in every message between which times its condition was found, as far as this host's clock is vouched for
        /// (hitless clock, chrony, ntpd). Older planners and monitors refuse such messages: update them first.
        #[arg(long)]
        pub time_bounds: bool,

        /// Ports of this host that may be switched off by orders at a time [default: 1].
        #[arg(long, value_name = "N")]
        pub most_off: Option<u32>,

        /// none: observe and report; protect: activate the links of corrupting ports, and end that when they are
        /// healthy again [default: none].
        #[arg(long)]
        pub action: Option<String>,

        /// Loss above which a port is corrupting [default: 1e-8].
        #[arg(long, value_name = "LOSS")]
        pub threshold: Option<TextOrNumber>,

        /// Bad polls before an alarm [default: 2].
        #[arg(long, value_name = "N")]
        pub raise_after: Option<u32>,

        /// Clean polls before it ends [default: 3].
        #[arg(long, value_name = "N")]
        pub clear_after: Option<u32>,

        /// The window ends after this many frames [default: 100M].
        #[arg(long, value_name = "FRAMES")]
        pub window_frames: Option<TextOrNumber>,

        /// ... or after this time [default: 1h].
        #[arg(long, value_name = "TIME")]
        pub window: Option<TextOrNumber>,

        /// An alarm also ends after so long without a bad frame, if enough frames came; or never [default: 1h].
        #[arg(long, value_name = "TIME")]
        pub quiet: Option<TextOrNumber>,

        /// The other end of a port's cable, such as eth1=leaf3/eth7; several times if need be.
        #[arg(long, value_name = "PORT=HOST/PORT", value_parser = pair)]
        #[serde(skip)]
        pub peer: Vec<(String, String)>,

        /// The protected link of a port, such as eth1=hit0, if not clear from its interface; several times if need be.
        #[arg(long, value_name = "PORT=NAME", value_parser = pair)]
        #[serde(skip)]
        pub link: Vec<(String, String)>,

        /// Serve metrics for Prometheus and /healthz here; a port alone means this machine only.
        #[arg(long, value_name = "ADDR:PORT")]
        pub metrics: Option<TextOrNumber>,

        /// Append events to this file, as lines of JSON; without it they go to standard output unless that is a terminal.
        #[arg(long, value_name = "FILE")]
        pub journal: Option<PathBuf>,

        /// On exit, end the protection that the monitor began as well.
        #[arg(long)]
        pub unprotect_on_exit: bool,

        // In files only.
        #[arg(skip)]
        pub least_bad: Option<u64>,

        #[arg(skip)]
        pub flaps: Option<TextOrNumber>,

        #[arg(skip)]
        pub flaps_within: Option<TextOrNumber>,

        #[arg(skip)]
        pub penalty: Option<f64>,

        #[arg(skip)]
        pub half_life: Option<TextOrNumber>,

        #[arg(skip)]
        pub suppress: Option<f64>,

        #[arg(skip)]
        pub reuse: Option<f64>,

        #[arg(skip)]
        pub gone_after: Option<u32>,

        #[arg(skip)]
        pub keep: Option<TextOrNumber>,

        #[arg(skip)]
        pub obey: bool,

        #[arg(skip)]
        pub state: Option<PathBuf>,

        #[arg(skip)]
        pub port: Vec<PortOptions>,
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((port, other)) if !port.is_empty() && !other.is_empty() => Ok((port.to_owned(), other.to_owned())),
        _ => Err("expected PORT=OTHER, such as eth1=leaf3/eth7".to_owned()),
    }
}

impl MonitorOptions {
    /// Reads a file; an error is one line that names the file and the place.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|(line, why)| format!("{}, line {line}: {why}", path.display()))
    }

    /// An error is the number of a line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        settings::from_toml(text).map_err(|error| (error.line, in_words(&error.problem)))
    }

    /// The configuration that they make; an error is one line that names the key and what it accepts. What they say
    /// nothing of stays as it is in `config`.
    pub fn check(self, mut config: MonitorConfig) -> Result<MonitorConfig, String> {
        config.host = self.host.clone().unwrap_or(config.host);
        if config.host.is_empty() || config.host.chars().any(char::is_whitespace) {
            return Err(format!("host: '{}': expected a name without spaces", config.host));
        }
        self.check_sources(&mut config)?;
        self.check_ports(&mut config)?;
        self.check_limits(&mut config)?;
        config.bus = self.bus.unwrap_or(config.bus);
        config.bus_ca = self.bus_ca.or(config.bus_ca);
        bus::open_with_ca(&config.bus, config.bus_ca.as_deref()).map_err(|error| format!("bus: {error}"))?;
        if let Some(path) = self.order_key {
            let key = OrderKey::read(&path).map_err(|error| format!("order-key: {error}"))?;
            config.order_key = Some((path, key));
        }
        config.time_bounds |= self.time_bounds;
        config.most_off = self.most_off.unwrap_or(config.most_off);
        set("interval", self.interval.as_ref(), &mut config.interval)?;
        if !(Duration::from_millis(10)..=Duration::from_secs(3_600)).contains(&config.interval) {
            return Err("interval: expected 10ms to 1h".to_owned());
        }
        if let Some(action) = self.action {
            config.action = action.parse().map_err(|error| format!("action: '{action}': {error}"))?;
        }
        if let Some(TextOrNumber(text)) = self.metrics {
            let address = daemon::options::parse_address(&text);
            config.metrics = Some(address.ok_or(format!("metrics: '{text}': expected PORT or ADDR:PORT"))?);
        }
        config.obey |= self.obey;
        config.unprotect_on_exit |= self.unprotect_on_exit;
        config.journal = self.journal.or(config.journal);
        config.record = self.record.or(config.record);
        config.state = self.state.unwrap_or(config.state);
        Ok(config)
    }

    fn check_sources(&self, config: &mut MonitorConfig) -> Result<(), String> {
        if let Some(root) = &self.sysfs {
            (config.sysfs, config.sources) = (root.clone(), vec![SourceKind::Named("sysfs")]);
        }
        if let Some(sources) = &self.source {
            let parsed: Result<_, String> = sources.iter().map(|source| source.parse()).collect();
            config.sources = parsed.map_err(|error| format!("source: {error}"))?;
            if config.sources.is_empty() {
                return Err(format!("source: expected at least one: {} or a file of samples", source_names()));
            }
            if config.replays() && config.sources.len() > 1 {
                return Err("source: samples have a time of their own; give one file alone".to_owned());
            }
        }
        Ok(())
    }

    /// Options of single ports. Those on the command line take precedence over those in the file.
    fn port_options(&self) -> Vec<PortOptions> {
        let mut ports = self.port.clone();
        let mut of =
            |name: &String, set: &dyn Fn(&mut PortOptions)| match ports.iter_mut().find(|port| port.name == *name) {
                Some(port) => set(port),
                None => {
                    let mut port = PortOptions { name: name.clone(), ..PortOptions::default() };
                    set(&mut port);
                    ports.push(port);
                }
            };
        self.peer.iter().for_each(|(name, peer)| of(name, &|port| port.peer = Some(peer.clone())));
        self.link.iter().for_each(|(name, link)| of(name, &|port| port.link = Some(link.clone())));
        ports
    }

    fn check_ports(&self, config: &mut MonitorConfig) -> Result<(), String> {
        config.ports = self.ports.clone().unwrap_or_default();
        for pattern in self.exclude.iter().flatten() {
            config.exclude.push(pattern.parse().map_err(|error| format!("exclude: {error}"))?);
        }
        for PortOptions { name, peer, link } in self.port_options() {
            if name.is_empty() || name.contains('*') {
                return Err(format!("port: name '{name}': expected the name of one interface"));
            }
            if config.exclude.iter().any(|pattern| pattern.matches(&name)) {
                return Err(format!("port: {name} is among those to exclude; take it out of one of the two"));
            }
            let peer: Option<PortId> = peer
                .as_ref()
                .map(|peer| peer.parse().map_err(|error| format!("port {name}: peer: {error}")))
                .transpose()?;
            if let Some(peer) = &peer {
                let other = config.rules.iter().find(|(_, rule)| rule.peer.as_ref() == Some(peer));
                if let Some((other, _)) = other {
                    return Err(format!("port {name}: peer {peer}: is the peer of {other} already"));
                }
                if *peer == PortId::new(&config.host, &name) {
                    return Err(format!("port {name}: peer {peer}: is the port itself"));
                }
            }
            let rule = PortRule { peer, link };
            if config.rules.insert(name.clone(), rule).is_some() {
                return Err(format!("port: {name} is there twice"));
            }
        }
        Ok(())
    }

    fn check_limits(&self, config: &mut MonitorConfig) -> Result<(), String> {
        let limits = &mut config.limits;
        if let Some(TextOrNumber(text)) = &self.threshold {
            limits.threshold = text.parse().map_err(|error| format!("threshold: '{text}': {error}"))?;
        }
        if let Some(TextOrNumber(text)) = &self.window_frames {
            let Count(frames) = text.parse().map_err(|error| format!("window-frames: '{text}': {error}"))?;
            limits.frames = frames;
        }
        set("window", self.window.as_ref(), &mut limits.time)?;
        limits.raise_after = self.raise_after.unwrap_or(limits.raise_after);
        limits.clear_after = self.clear_after.unwrap_or(limits.clear_after);
        limits.least_bad = self.least_bad.unwrap_or(limits.least_bad);
        limits.gone_after = self.gone_after.unwrap_or(limits.gone_after);
        set("keep", self.keep.as_ref(), &mut limits.keep)?;
        match &self.quiet {
            Some(TextOrNumber(never)) if never == "never" => limits.quiet = None,
            quiet => {
                let mut time = limits.quiet.unwrap_or_default();
                set("quiet", quiet.as_ref(), &mut time)?;
                limits.quiet = limits.quiet.map(|_| time);
            }
        }
        let damping = &mut limits.damping;
        damping.penalty = self.penalty.unwrap_or(damping.penalty);
        damping.suppress = self.suppress.unwrap_or(damping.suppress);
        damping.reuse = self.reuse.unwrap_or(damping.reuse);
        set("half-life", self.half_life.as_ref(), &mut damping.half_life)?;
        let mut flaps = limits.flaps.unwrap_or(Flaps { count: 3, within: Duration::from_secs(7_200) });
        set("flaps-within", self.flaps_within.as_ref(), &mut flaps.within)?;
        limits.flaps = match &self.flaps {
            Some(TextOrNumber(never)) if never == "never" => None,
            Some(TextOrNumber(text)) => {
                flaps.count = text.parse().map_err(|_| format!("flaps: '{text}': expected a number, or never"))?;
                Some(flaps)
            }
            None => Some(flaps),
        };
        limits.check().map_err(|error| error.to_string().replace('_', "-"))
    }
}

fn set(key: &str, text: Option<&TextOrNumber>, time: &mut Duration) -> Result<(), String> {
    if let Some(TextOrNumber(text)) = text {
        let span = Span::from_str(text).map_err(|error: ParseError| format!("{key}: '{text}': {error}"))?;
        *time = Duration::from_nanos(span.as_ps() / 1_000);
    }
    Ok(())
}

/// A key that there is not is most often a slip of the pen, and then the reader wants one word, not all there are.
fn in_words(message: &str) -> String {
    let message = message.replace('\n', " ");
    let Some((key, rest)) = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) else {
        return message;
    };
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    match nearest(key, known.iter().copied()) {
        Some(meant) => format!("no such key '{key}': did you mean '{meant}'?"),
        None => format!("no such key '{key}'; there are {}", known.join(", ")),
    }
}
