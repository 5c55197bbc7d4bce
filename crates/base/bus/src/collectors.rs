//! Collectors of a network on the bus: which there are, and which of them takes a metered segment.
//!
//! A collector announces itself again and again, with the time at which the announcement expires. Meters send each segment to
//! one of the collectors: the one whose name has the highest hash with the segment's (rendezvous hashing). So all
//! who know the same names choose alike without asking, and a collector that leaves moves its own segments and no others.
//!
//! ```text
//!   segment ──hash with each name──▶  south 0.91   north 0.64   east 0.12      south takes it, north is its heir
//! ```
//!
//! A change that is planned is announced before: a collector takes segments `from` a time, and `until` one.
//!
//! Invariants: no text of a stranger is longer than [`LONGEST`] or is believed beyond its expiry; of any number of
//! announcements at most [`MOST_COLLECTORS`] count.

use std::collections::BTreeMap;
use std::hash::Hasher;

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;

use crate::key::OrderKey;

/// Collectors that count; of more, those with the first names.
pub const MOST_COLLECTORS: usize = 64;
/// Bytes of an announcement or a finding on the bus.
pub const LONGEST: usize = 2_048;
/// Bytes of a collector's name.
pub const LONGEST_NAME: usize = 64;
/// An announcement that claims to hold for longer is none of ours.
const LONGEST_LIFE_MS: u64 = 60_000;

/// A collector's word about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    pub name: String,
    /// Address at which it listens: HOST:PORT.
    pub address: String,
    /// A number that no other run of a collector has.
    pub incarnation: u64,
    /// Milliseconds since 1970 at which this is not true any more, unless it is said again.
    pub expires_ms: u64,
    /// It takes segments from this time on, in milliseconds since 1970.
    pub from_ms: u64,
    /// It leaves at this time.
    pub until_ms: Option<u64>,
    /// Batches that it lets a packet be on its way.
    pub patience: u64,
}

/// A text on the bus: an announcement or a finding, and its tag if there is a key.
#[derive(Serialize, Deserialize)]
struct Tagged<T> {
    #[serde(flatten)]
    said: T,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag: Option<u64>,
}

/// Reason why a text on the bus is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignText {
    /// It is nothing of ours.
    Malformed,
    /// We have a key, and it was not sealed with that.
    Forged,
}

impl Announcement {
    /// The text for the bus; with a key, sealed.
    pub fn to_text(&self, key: Option<&OrderKey>) -> String {
        to_text(self, key.map(|key| self.tag(key)))
    }

    pub fn parse(text: &str, key: Option<&OrderKey>) -> Result<Self, ForeignText> {
        let Tagged::<Self> { said, tag } = from_text(text)?;
        if !said.is_plain() {
            return Err(ForeignText::Malformed);
        }
        if key.is_some_and(|key| tag != Some(said.tag(key))) { Err(ForeignText::Forged) } else { Ok(said) }
    }

    fn tag(&self, key: &OrderKey) -> u64 {
        let Self { name, address, incarnation, expires_ms, from_ms, until_ms, patience } = self;
        let until_ms = until_ms.unwrap_or(u64::MAX);
        let numbers = [*incarnation, *expires_ms, *from_ms, until_ms, *patience].map(u64::to_le_bytes).concat();
        key.tag("radar announcement", &[name.as_bytes(), address.as_bytes(), &numbers])
    }

    fn is_plain(&self) -> bool {
        let is_plain = |text: &str, most: usize| {
            !text.is_empty() && text.len() <= most && !text.contains(|c: char| c.is_control() || c == ' ')
        };
        let has_port =
            self.address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0));
        is_plain(&self.name, LONGEST_NAME) && is_plain(&self.address, 255) && has_port && self.patience <= 1_000
    }

    /// True if it has expired by a clock that may be wrong by a second, or holds for longer than any of ours.
    pub fn is_over(&self, now_ms: u64) -> bool {
        now_ms > self.expires_ms.saturating_add(1_000) || self.expires_ms > now_ms.saturating_add(LONGEST_LIFE_MS)
    }

    /// True if it takes segments at this time.
    pub fn takes(&self, at_ms: u64) -> bool {
        self.from_ms <= at_ms && self.until_ms.is_none_or(|until| at_ms < until)
    }
}

/// Latest result of comparing a segment, as a collector publishes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestFinding {
    pub segment: String,
    pub collector: String,
    /// Time of the finding, in milliseconds since 1970.
    pub at_ms: u64,
    /// Time up to which everything has been compared, in nanoseconds since 1970.
    pub until_ns: u64,
    pub packets: u64,
    pub skipped: u64,
    pub late: u64,
    pub extra: u64,
    pub unsure: u64,
    pub unnamed: u64,
    pub lost: u64,
}

impl LatestFinding {
    pub fn to_text(&self, key: Option<&OrderKey>) -> String {
        to_text(self, key.map(|key| self.tag(key)))
    }

    pub fn parse(text: &str, key: Option<&OrderKey>) -> Result<Self, ForeignText> {
        let Tagged::<Self> { said, tag } = from_text(text)?;
        let names = [&said.segment, &said.collector];
        if names.into_iter().any(|name| name.is_empty() || name.len() > 255 || name.contains(char::is_control)) {
            return Err(ForeignText::Malformed);
        }
        if key.is_some_and(|key| tag != Some(said.tag(key))) { Err(ForeignText::Forged) } else { Ok(said) }
    }

    fn tag(&self, key: &OrderKey) -> u64 {
        let Self { segment, collector, at_ms, until_ns, packets, lost, unnamed, unsure, extra, late, skipped } = self;
        let numbers = [at_ms, until_ns, packets, lost, unnamed, unsure, extra, late, skipped];
        let numbers = numbers.map(|number| number.to_le_bytes()).concat();
        key.tag("radar finding", &[segment.as_bytes(), collector.as_bytes(), &numbers])
    }
}

fn to_text<T: Serialize>(said: &T, tag: Option<u64>) -> String {
    serde_json::to_string(&Tagged { said, tag }).unwrap_or_default()
}

fn from_text<T: for<'a> Deserialize<'a>>(text: &str) -> Result<Tagged<T>, ForeignText> {
    if text.len() > LONGEST {
        return Err(ForeignText::Malformed);
    }
    serde_json::from_str(text).map_err(|_| ForeignText::Malformed)
}

/// Announcements that are known, the latest of each name.
#[derive(Clone, Debug, Default)]
pub struct CollectorSet(BTreeMap<String, Announcement>);

impl CollectorSet {
    /// Learns of a collector, unless something later is known of that name.
    pub fn learn(&mut self, announcement: Announcement) {
        let is_later = self.0.get(&announcement.name).is_none_or(|known| known.expires_ms <= announcement.expires_ms);
        if is_later {
            self.0.insert(announcement.name.clone(), announcement);
        }
        while self.0.len() > MOST_COLLECTORS {
            self.0.pop_last();
        }
    }

    /// Forgets those that expired long ago.
    pub fn forget_old(&mut self, now_ms: u64) {
        self.0.retain(|_, known| now_ms < known.expires_ms.saturating_add(LONGEST_LIFE_MS));
    }

    pub fn get(&self, name: &str) -> Option<&Announcement> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Announcement> {
        self.0.values()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Names of collectors in the order in which they take a segment: its collector, and then its heirs.
///
/// ```
/// use bus::collectors::in_order;
///
/// let all = in_order("cable7", ["north", "south", "east"]);
/// let without_first = in_order("cable7", all[1..].iter().copied());
/// assert_eq!(without_first, all[1..]);
/// ```
pub fn in_order<'a>(segment: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_cached_key(|name| (std::cmp::Reverse(weight(segment, name)), *name));
    names
}

fn weight(segment: &str, name: &str) -> u64 {
    let mut hasher = SipHasher24::new();
    for part in [segment, name] {
        hasher.write(&(part.len() as u64).to_le_bytes());
        hasher.write(part.as_bytes());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement(name: &str) -> Announcement {
        Announcement {
            name: name.to_owned(),
            address: "10.0.0.1:7070".to_owned(),
            incarnation: 7,
            expires_ms: 10_000,
            from_ms: 5_000,
            until_ms: None,
            patience: 2,
        }
    }

    #[test]
    fn segments_are_shared_out_evenly_and_who_leaves_moves_its_own_only() {
        let names = ["north", "south", "east"];
        let mut counts = BTreeMap::new();
        for nth in 0..900 {
            let segment = format!("cable{nth}");
            let order = in_order(&segment, names);
            *counts.entry(order[0]).or_insert(0) += 1;
            for gone in names {
                let left = in_order(&segment, names.into_iter().filter(|name| *name != gone));
                assert_eq!(left[0], if order[0] == gone { order[1] } else { order[0] });
            }
        }
        assert!(counts.values().all(|count| (240..360).contains(count)), "{counts:?}");
    }

    #[test]
    fn with_a_key_every_field_of_an_announcement_is_sealed() {
        let (key, other) = (OrderKey::new([7; 16]), OrderKey::new([8; 16]));
        let said = announcement("north");
        let text = said.to_text(Some(&key));
        assert_eq!(Announcement::parse(&text, Some(&key)), Ok(said.clone()));
        assert_eq!(Announcement::parse(&text, None), Ok(said.clone()), "who has no key believes what is there");
        for forged in [
            said.to_text(None),
            said.to_text(Some(&other)),
            text.replacen("north", "south", 1),
            text.replacen("10.0.0.1:7070", "10.0.0.9:7070", 1),
            text.replacen("10000", "99999", 1),
            text.replacen("5000", "4000", 1),
            text.replacen("\"until_ms\":null", "\"until_ms\":9000", 1),
            text.replacen("\"incarnation\":7", "\"incarnation\":8", 1),
        ] {
            assert_ne!(forged, text);
            assert_eq!(Announcement::parse(&forged, Some(&key)), Err(ForeignText::Forged), "{forged}");
        }
        let finding =
            LatestFinding { segment: "cable".into(), collector: "north".into(), lost: 3, ..Default::default() };
        let text = finding.to_text(Some(&key));
        assert_eq!(LatestFinding::parse(&text, Some(&key)), Ok(finding));
        let forged = text.replacen("\"lost\":3", "\"lost\":0", 1);
        assert_eq!(LatestFinding::parse(&forged, Some(&key)), Err(ForeignText::Forged));
    }

    #[test]
    fn what_is_no_announcement_of_ours_is_not_read() {
        let with = |change: fn(&mut Announcement)| {
            let mut said = announcement("north");
            change(&mut said);
            said.to_text(None)
        };
        let long = "x".repeat(LONGEST + 1);
        for text in [
            String::new(),
            "{}".to_owned(),
            long,
            with(|said| said.name.clear()),
            with(|said| said.name = "no\u{1b}[2J".to_owned()),
            with(|said| said.name = "x".repeat(65)),
            with(|said| said.address = "10.0.0.1".to_owned()),
            with(|said| said.address = "10.0.0.1:0".to_owned()),
            with(|said| said.patience = 1_001),
        ] {
            assert_eq!(Announcement::parse(&text, None), Err(ForeignText::Malformed), "{text}");
        }
    }

    #[test]
    fn an_announcement_ends_and_none_is_believed_for_ever() {
        let said = announcement("north");
        assert!(!said.is_over(11_000) && said.is_over(11_001) && !said.takes(4_999) && said.takes(5_000));
        assert!(Announcement { expires_ms: u64::MAX, ..said.clone() }.is_over(10_000));
        let leaving = Announcement { until_ms: Some(8_000), ..said };
        assert!(leaving.takes(7_999) && !leaving.takes(8_000));
    }

    #[test]
    fn no_more_collectors_count_than_there_may_be() {
        let mut set = CollectorSet::default();
        (0..1_000).for_each(|nth| set.learn(announcement(&format!("c{nth:04}"))));
        assert_eq!(set.iter().count(), MOST_COLLECTORS);
        set.learn(Announcement { expires_ms: 1, incarnation: 9, ..announcement("c0000") });
        assert_eq!(set.get("c0000").map(|known| known.incarnation), Some(7), "a replayed one changes nothing");
        set.forget_old(10_000 + LONGEST_LIFE_MS);
        assert!(set.is_empty());
    }
}
