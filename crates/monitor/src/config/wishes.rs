//! What a file may say: the same names and values as on the command line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use units::{Count, ParseError, Span, nearest};

use super::{Config, SourceKind};
use crate::act::PortRule;
use crate::detect::Flaps;
use bus::key::Key;
use bus::message::PortId;

/// A value as somebody wrote it: with quotation marks or, if it is a number, without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written(pub String);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Written;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a number")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Written, E> {
                Ok(Written(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Written, E> {
                Ok(Written(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Written, E> {
                Ok(Written(number.to_string()))
            }
        }
        from.deserialize_any(Any)
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
pub struct PortWish {
    pub name: String,
    pub peer: Option<String>,
    pub link: Option<String>,
}

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Wishes {
    pub host: Option<String>,
    #[serde(deserialize_with = "one_or_more")]
    pub source: Option<Vec<String>>,
    pub sysfs: Option<PathBuf>,
    pub interval: Option<Written>,
    #[serde(deserialize_with = "one_or_more")]
    pub ports: Option<Vec<String>>,
    #[serde(deserialize_with = "one_or_more")]
    pub exclude: Option<Vec<String>>,
    pub threshold: Option<Written>,
    pub window_frames: Option<Written>,
    pub window: Option<Written>,
    pub raise_after: Option<u32>,
    pub clear_after: Option<u32>,
    pub least_bad: Option<u64>,
    pub quiet: Option<Written>,
    pub flaps: Option<Written>,
    pub flaps_within: Option<Written>,
    pub penalty: Option<f64>,
    pub half_life: Option<Written>,
    pub suppress: Option<f64>,
    pub reuse: Option<f64>,
    pub gone_after: Option<u32>,
    pub keep: Option<Written>,
    pub bus: Option<String>,
    pub action: Option<String>,
    pub obey: Option<bool>,
    pub most_off: Option<u32>,
    pub order_key: Option<PathBuf>,
    pub bus_ca: Option<PathBuf>,
    pub unprotect_on_exit: Option<bool>,
    pub metrics: Option<Written>,
    pub journal: Option<PathBuf>,
    pub record: Option<PathBuf>,
    pub state: Option<PathBuf>,
    pub port: Vec<PortWish>,
}

impl Wishes {
    /// Reads a file; an error is one line that names the file and the place.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|(line, why)| format!("{}, line {line}: {why}", path.display()))
    }

    /// An error is the number of a line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            (line, in_words(error.message()))
        })
    }

    /// What these say, and where they say nothing, the other ones. Ports are those of both, and what these say of one
    /// goes before what the other ones do.
    pub fn or(self, other: Self) -> Self {
        let mut port = other.port;
        for wish in self.port {
            match port.iter_mut().find(|before| before.name == wish.name) {
                Some(before) => {
                    before.peer = wish.peer.or(before.peer.take());
                    before.link = wish.link.or(before.link.take());
                }
                None => port.push(wish),
            }
        }
        Self {
            host: self.host.or(other.host),
            source: self.source.or(other.source),
            sysfs: self.sysfs.or(other.sysfs),
            interval: self.interval.or(other.interval),
            ports: self.ports.or(other.ports),
            exclude: self.exclude.or(other.exclude),
            threshold: self.threshold.or(other.threshold),
            window_frames: self.window_frames.or(other.window_frames),
            window: self.window.or(other.window),
            raise_after: self.raise_after.or(other.raise_after),
            clear_after: self.clear_after.or(other.clear_after),
            least_bad: self.least_bad.or(other.least_bad),
            quiet: self.quiet.or(other.quiet),
            flaps: self.flaps.or(other.flaps),
            flaps_within: self.flaps_within.or(other.flaps_within),
            penalty: self.penalty.or(other.penalty),
            half_life: self.half_life.or(other.half_life),
            suppress: self.suppress.or(other.suppress),
            reuse: self.reuse.or(other.reuse),
            gone_after: self.gone_after.or(other.gone_after),
            keep: self.keep.or(other.keep),
            bus: self.bus.or(other.bus),
            action: self.action.or(other.action),
            obey: self.obey.or(other.obey),
            most_off: self.most_off.or(other.most_off),
            order_key: self.order_key.or(other.order_key),
            bus_ca: self.bus_ca.or(other.bus_ca),
            unprotect_on_exit: self.unprotect_on_exit.or(other.unprotect_on_exit),
            metrics: self.metrics.or(other.metrics),
            journal: self.journal.or(other.journal),
            record: self.record.or(other.record),
            state: self.state.or(other.state),
            port,
        }
    }

    /// The configuration that they make; an error is one line that names the key and what it accepts. What they say
    /// nothing of stays as it is in `config`.
    pub fn check(self, mut config: Config) -> Result<Config, String> {
        config.host = self.host.clone().unwrap_or(config.host);
        if config.host.is_empty() || config.host.chars().any(char::is_whitespace) {
            return Err(format!("host: '{}': expected a name without spaces", config.host));
        }
        self.check_ports(&mut config)?;
        self.check_limits(&mut config)?;
        config.bus = self.bus.unwrap_or(config.bus);
        config.bus_ca = self.bus_ca.or(config.bus_ca);
        bus::open_with_ca(&config.bus, config.bus_ca.as_deref()).map_err(|error| format!("bus: {error}"))?;
        if let Some(path) = self.order_key {
            let key = Key::read(&path).map_err(|error| format!("order-key: {error}"))?;
            config.order_key = Some((path, key));
        }
        config.most_off = self.most_off.unwrap_or(config.most_off);
        set("interval", self.interval.as_ref(), &mut config.interval)?;
        if !(Duration::from_millis(10)..=Duration::from_secs(3_600)).contains(&config.interval) {
            return Err("interval: expected 10ms to 1h".to_owned());
        }
        if let Some(action) = self.action {
            config.action = action.parse().map_err(|error| format!("action: '{action}': {error}"))?;
        }
        if let Some(Written(text)) = self.metrics {
            let address = link::config::parse_address(&text);
            config.metrics = Some(address.ok_or(format!("metrics: '{text}': expected PORT or ADDR:PORT"))?);
        }
        config.obey = self.obey.unwrap_or(config.obey);
        config.unprotect_on_exit = self.unprotect_on_exit.unwrap_or(config.unprotect_on_exit);
        config.journal = self.journal.or(config.journal);
        config.record = self.record.or(config.record);
        config.state = self.state.unwrap_or(config.state);
        Ok(config)
    }

    fn check_ports(&self, config: &mut Config) -> Result<(), String> {
        if let Some(root) = &self.sysfs {
            (config.sysfs, config.sources) = (root.clone(), vec![SourceKind::Sysfs]);
        }
        if let Some(sources) = &self.source {
            let parsed: Result<_, String> = sources.iter().map(|source| source.parse()).collect();
            config.sources = parsed.map_err(|error| format!("source: {error}"))?;
            if config.sources.is_empty() {
                return Err("source: expected at least one: kernel, sysfs, links or a file of samples".to_owned());
            }
            if config.replays() && config.sources.len() > 1 {
                return Err("source: samples have a time of their own; give one file alone".to_owned());
            }
        }
        config.ports = self.ports.clone().unwrap_or_default();
        for pattern in self.exclude.iter().flatten() {
            config.exclude.push(pattern.parse().map_err(|error| format!("exclude: {error}"))?);
        }
        for wish in &self.port {
            let name = &wish.name;
            if name.is_empty() || name.contains('*') {
                return Err(format!("port: name '{name}': expected the name of one interface"));
            }
            if config.exclude.iter().any(|pattern| pattern.matches(name)) {
                return Err(format!("port: {name} is among those to exclude; take it out of one of the two"));
            }
            let peer: Option<PortId> = wish
                .peer
                .as_ref()
                .map(|peer| peer.parse().map_err(|error| format!("port {name}: peer: {error}")))
                .transpose()?;
            if let Some(peer) = &peer {
                let other = config.rules.iter().find(|(_, rule)| rule.peer.as_ref() == Some(peer));
                if let Some((other, _)) = other {
                    return Err(format!("port {name}: peer {peer}: is the peer of {other} already"));
                }
                if *peer == PortId::new(&config.host, name) {
                    return Err(format!("port {name}: peer {peer}: is the port itself"));
                }
            }
            let rule = PortRule { peer, link: wish.link.clone() };
            if config.rules.insert(name.clone(), rule).is_some() {
                return Err(format!("port: {name} is there twice"));
            }
        }
        Ok(())
    }

    fn check_limits(&self, config: &mut Config) -> Result<(), String> {
        let limits = &mut config.limits;
        if let Some(Written(text)) = &self.threshold {
            limits.threshold = text.parse().map_err(|error| format!("threshold: '{text}': {error}"))?;
        }
        if let Some(Written(text)) = &self.window_frames {
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
            Some(Written(never)) if never == "never" => limits.quiet = None,
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
            Some(Written(never)) if never == "never" => None,
            Some(Written(text)) => {
                flaps.count = text.parse().map_err(|_| format!("flaps: '{text}': expected a number, or never"))?;
                Some(flaps)
            }
            None => Some(flaps),
        };
        limits.check().map_err(|error| error.to_string().replace('_', "-"))
    }
}

fn set(key: &str, text: Option<&Written>, time: &mut Duration) -> Result<(), String> {
    if let Some(Written(text)) = text {
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
