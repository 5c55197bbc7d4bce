//! A bus for many hosts: LinkGuardian App. C, over Redis 6 or later, or Valkey.
//!
//! | key | what is under it |
//! | --- | --- |
//! | `PREFIX:port:HOST/PORT` | the latest state of a port, JSON |
//! | `PREFIX:order:HOST/PORT` | the latest order for a port, JSON |
//! | `PREFIX:events` | a stream of all messages: `message` is the JSON, `number` counts them without gaps |
//! | `PREFIX:last` | the number of the last of them |
//! | `PREFIX:host:HOST` | `alive`, with a time to live |
//!
//! **Publishing** is one script: it compares what is under the key with what this end believes to be there, and writes
//! state and history together, or returns what it found. Whether that is older, newer or not ours is decided
//! here, where numbers have 64 bits, and not in Lua, where they have 53. A transaction with `WATCH` would do the same
//! with one round trip more.
//!
//! **Receiving** starts with the end of the stream, then reads all keys, then the stream from that end on: what is
//! published meanwhile is in both and never in neither. The numbers show when entries are missing in between, because
//! the stream was trimmed, deleted, flushed, or because Redis restarted without its data: then the keys are read again,
//! after what is left of the history.
//!
//! Data that is not ours (another type, another text, an entry without our fields) is reported by
//! [`foreign`](Bus::foreign), never acted upon, never changed, but for two things that would silence others for ever: a
//! message with an incarnation from the future is overwritten by the next one, and a `PREFIX:last` that is not a number
//! begins a new history.
//!
//! **Answers are bounded** in bytes, in values and in time, before they are kept (`reply`): a server that sends without end is
//! let go with a line, and is asked again later, as one that is away.
//!
//! The user needs the commands EVAL, GET, GETRANGE, SCAN, XREAD and XREVRANGE, and in scripts also TYPE, STRLEN, TIME,
//! XADD and SET. In a cluster all keys must be in one slot: `prefix={hitless}`, and the address that of its primary.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::time::time_of_day;
use redis::{Cmd, cmd};
use units::Moment;

use self::address::RedisAddress;
use self::answer::ScriptResult;
use self::history::{HistoryPosition, RetryTimer};
use self::line::RedisConnection;
use crate::message::{Message, PortState};
use crate::remarks::WarnOnce;
use crate::{Bus, BusError, PublishResult};

pub mod address;
mod answer;
pub mod collectors;
mod history;
mod keys;
pub mod line;
mod reply;
mod stream;

const PUBLISH: &str = include_str!("redis/publish.lua");
const HEARTBEAT: &str = include_str!("redis/heartbeat.lua");
const ALIVE: &str = "alive";

const FUTURE: &str = "has a life from the future";

fn now() -> Moment {
    Moment::ZERO.after(time_of_day())
}

/// Longest life of a key, in ms: one that is forgotten after ten years may as well be kept.
const LONGEST_LIFE: u64 = 10 * 365 * 86_400_000;
/// Number of times that another may get in between before publishing is called off.
const CONTENDED: usize = 16;

/// One end; connects when first asked for something.
#[derive(Debug)]
pub struct RedisBus {
    line: RedisConnection,
    /// Messages that this end believes to be under a key, each with its version.
    believed: BTreeMap<String, ((u64, u64), String)>,
    place: Option<HistoryPosition>,
    /// Entries were missing: the keys are to be read again once the stream is read to its end.
    keys_due: bool,
    foreign: WarnOnce,
    gaps: WarnOnce,
    turn: RetryTimer,
}

/// Age of the message under a key, compared with the one to be published.
enum KeyAge {
    Older(String),
    Same,
    Newer,
}

impl RedisBus {
    /// `redis://[USER:PASSWORD@]HOST[:PORT][/DB][?prefix=NAME&history=COUNT]`, or `rediss://…` with TLS: by default port 6379,
    /// database 0, prefix `hitless`, 100,000 messages of history. An error if that is not what it is; Redis need not be there.
    pub fn open(url: &str) -> Result<Self, BusError> {
        Self::open_with_ca(url, None)
    }

    /// Opens a bus and trusts a certificate authority in PEM instead of those of the system.
    pub fn open_with_ca(url: &str, ca: Option<&Path>) -> Result<Self, BusError> {
        Ok(Self::end(RedisConnection::new(RedisAddress::parse(url, ca)?)))
    }

    /// Sets the time to wait for a connection and for each answer, which is two seconds by default. Not zero.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.line.set_patience(patience.max(Duration::from_millis(1)));
        self
    }

    fn end(line: RedisConnection) -> Self {
        Self {
            line,
            believed: BTreeMap::new(),
            place: None,
            keys_due: false,
            foreign: WarnOnce::default(),
            gaps: WarnOnce::default(),
            turn: RetryTimer::default(),
        }
    }

    fn name(&self, key: &str) -> String {
        format!("{}:{key}", self.line.address().prefix)
    }

    /// Is what is under a key of ours older than what is to be published?
    fn judge(&mut self, message: &Message, text: &str, there: Vec<u8>) -> Result<KeyAge, BusError> {
        let key = message.key();
        let readable = String::from_utf8(there).map_err(|_| "is not text".to_owned());
        match readable.and_then(|there| Ok((answer::decode(&key, there.as_bytes())?, there))) {
            Ok((_, there)) if there == text => Ok(KeyAge::Same),
            // Otherwise no later message could ever replace that one.
            Ok((found, there)) if found.is_from_the_future(now()) => {
                self.foreign.add(format!("`{}` {FUTURE}: overwritten", self.name(&key)));
                Ok(KeyAge::Older(there))
            }
            Ok((found, _)) if found.version() >= message.version() => Ok(KeyAge::Newer),
            Ok((_, there)) => Ok(KeyAge::Older(there)),
            Err(why) => {
                let key = self.name(&key);
                self.foreign.add(format!("`{key}` {why}"));
                Err(BusError::Key { key, why: format!("{why}: left as it is") })
            }
        }
    }

    /// A key of our own that another has taken concerns what is published there; the history concerns everything.
    fn not_ours(&mut self, name: &str, key: String, what: &str) -> BusError {
        let why = format!("is {what}, not ours: left as it is");
        self.foreign.add(format!("`{key}` {why}"));
        if key == name {
            BusError::Key { key, why }
        } else {
            BusError::Down(format!("{}: `{key}` {why}", self.line.address()))
        }
    }

    /// A script about a key of ours, and what it did.
    fn run(&mut self, doing: &str, script: &Cmd) -> Result<ScriptResult, BusError> {
        let answer = self.line.ask(doing, script, Duration::ZERO)?;
        answer::outcome(&answer).ok_or_else(|| self.line.nonsense(doing, &answer))
    }
}

impl Bus for RedisBus {
    fn publish(&mut self, message: &Message) -> Result<PublishResult, BusError> {
        let key = message.key();
        let (name, doing) = (self.name(&key), format!("telling `{}`", self.name(&key)));
        let text = answer::encode(message).map_err(|why| BusError::Key { key: name.clone(), why })?;
        // A message that is not older than this one must be examined, not overwritten.
        let believed = self.believed.remove(&key).filter(|(version, _)| *version < message.version());
        let mut believed = believed.map(|(_, text)| text);
        for _ in 0..CONTENDED {
            let mut script = cmd("EVAL");
            script.arg(PUBLISH).arg(3).arg(&name).arg(self.name("events")).arg(self.name("last"));
            script.arg(believed.as_ref().map_or(String::new(), |text| format!("={text}")));
            script.arg(&text).arg(self.line.address().history);
            let told = match self.run(&doing, &script)? {
                ScriptResult::Told => PublishResult::Now,
                ScriptResult::There(None) => {
                    believed = None;
                    continue;
                }
                ScriptResult::There(Some(there)) => match self.judge(message, &text, there)? {
                    KeyAge::Older(there) => {
                        believed = Some(there);
                        continue;
                    }
                    KeyAge::Same => PublishResult::Before,
                    KeyAge::Newer => return Ok(PublishResult::Outdated),
                },
                ScriptResult::Foreign { key, what } => return Err(self.not_ours(&name, key, &what)),
            };
            self.believed.insert(key, (message.version(), text));
            return Ok(told);
        }
        Err(BusError::Down(format!("{}: {doing}: others change it all the time", self.line.address())))
    }

    fn catch_up(&mut self) -> Result<Vec<Message>, BusError> {
        let end = self.end_of_history()?;
        let messages = self.all("")?;
        self.place = Some(end);
        self.keys_due = false;
        Ok(messages)
    }

    fn receive(&mut self, patience: Duration) -> Result<Vec<Message>, BusError> {
        let patience = self.turn.wait(patience)?;
        let received = self.receive_now(patience);
        self.turn.note(&received);
        received
    }

    fn latest(&mut self, keys: &[String]) -> Result<Vec<Option<Message>>, BusError> {
        let mut messages = self.read(keys)?;
        let now = now();
        for (key, message) in keys.iter().zip(&mut messages) {
            if message.take_if(|message| message.is_from_the_future(now)).is_some() {
                self.foreign.add(format!("`{}` {FUTURE}: counts as if it were not there", self.name(key)));
            }
        }
        Ok(messages)
    }

    fn recall(&mut self, host: &str) -> Result<Vec<PortState>, BusError> {
        let of_host = |message| match message {
            Message::Port(port) if port.id.host == host => Some(port),
            Message::Port(_) | Message::Order(_) => None,
        };
        Ok(self.all(&format!("port:{host}/"))?.into_iter().filter_map(of_host).collect())
    }

    fn heartbeat(&mut self, host: &str, interval: Duration) -> Result<(), BusError> {
        let name = self.name(&format!("host:{host}"));
        let life = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX).clamp(1, LONGEST_LIFE / 3) * 3;
        let mut script = cmd("EVAL");
        script.arg(HEARTBEAT).arg(1).arg(&name).arg(ALIVE).arg(life);
        match self.run(&format!("telling `{name}`"), &script)? {
            ScriptResult::Foreign { key, what } => Err(self.not_ours(&name, key, &what)),
            ScriptResult::Told | ScriptResult::There(_) => Ok(()),
        }
    }

    fn hosts(&mut self) -> Result<Vec<String>, BusError> {
        let keys: Vec<String> = self.scan("host:")?.into_iter().collect();
        let mut hosts = Vec::new();
        self.texts(&keys, |bus, key, text| {
            match key.strip_prefix("host:") {
                Some(host) if text == ALIVE.as_bytes() => hosts.push(host.to_owned()),
                _ if text.is_empty() => {}
                _ => bus.foreign.add(format!("`{}` says something else than `{ALIVE}`", bus.name(key))),
            }
            Ok(())
        })?;
        Ok(hosts)
    }

    fn foreign(&mut self) -> Vec<String> {
        self.foreign.take()
    }

    fn gaps(&mut self) -> Vec<String> {
        self.gaps.take()
    }

    fn another(&self) -> Box<dyn Bus> {
        Box::new(Self::end(self.line.another()))
    }
}
