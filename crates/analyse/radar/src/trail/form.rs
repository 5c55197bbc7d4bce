//! Questions about a trail, and their answers, as bytes.
//!
//! ```text
//!   question   asked:8 (2 lost, 3 arrivals)  batch:16 (lowest bits)  batches:8  hash:40 …
//!   lost       for each hash  0, if it is gone or was there twice; or
//!              1|told:8  time:32  ttl:8  place:32  number:16  flow:8  others:8
//!              survivor:40  before:24  sample:40  time:32  flow:8
//!   arrivals   for each hash  time:32, all ones if it is gone
//! ```
//!
//! Numbers are little-endian; times count 64 ns from the beginning of the question's first batch, and `before` so many from
//! the survivor to the lost packet, zero if there is none.

use super::TrailHash;

/// Hashes in a question.
pub const MOST_HASHES: usize = 256;
const HASH: usize = 5;
const HEAD: usize = 4;
const ASKED_LOST: u8 = 2;
const ASKED_ARRIVALS: u8 = 3;
/// Bytes of the answer about one lost packet.
const LOST: usize = 32;
const GONE: u32 = u32::MAX;
const KNOWN: u8 = 1;
const TOLD: u8 = 2;

/// Question about packets of some batches, by their hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrailQuestion {
    /// Asks when these left, and what was around them.
    Lost { batch: u16, batches: u8, hashes: Vec<TrailHash> },
    /// Asks when these arrived.
    Arrivals { batch: u16, batches: u8, hashes: Vec<TrailHash> },
}

/// Knowledge of an upstream meter about a lost packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostAnswer {
    /// Units of [`TICK`](super::TICK) since the question's first batch.
    pub time: u32,
    pub ttl: u8,
    /// Number among all packets of the way, its lowest bits.
    pub place: u32,
    /// Number in its flow, modulo 65,536.
    pub number: u16,
    /// Eight bits that stand for its flow.
    pub tag: u8,
    /// Packets of other flows within eight places.
    pub others: u8,
    /// A router said that a packet of the flow had expired.
    pub is_told: bool,
    /// The nearest packet before it that is not in the question, and its time.
    pub survivor: Option<(TrailHash, u32)>,
    /// A packet of this batch or one before it, drawn at random; its time and flow.
    pub sample: (TrailHash, u32),
    pub sample_tag: u8,
}

/// Time at which a packet arrived, if the meter still knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalAnswer(pub Option<u32>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrailAnswer {
    Lost(Vec<Option<LostAnswer>>),
    Arrivals(Vec<ArrivalAnswer>),
}

impl TrailQuestion {
    pub fn hashes(&self) -> &[TrailHash] {
        let (Self::Lost { hashes, .. } | Self::Arrivals { hashes, .. }) = self;
        hashes
    }

    pub(super) fn batch(&self) -> u16 {
        let (Self::Lost { batch, .. } | Self::Arrivals { batch, .. }) = self;
        *batch
    }

    pub(super) fn batches(&self) -> u8 {
        let (Self::Lost { batches, .. } | Self::Arrivals { batches, .. }) = self;
        *batches
    }

    /// The answer of a meter that knows none of them.
    pub fn unanswered(&self) -> TrailAnswer {
        match self {
            Self::Lost { hashes, .. } => TrailAnswer::Lost(vec![None; hashes.len()]),
            Self::Arrivals { hashes, .. } => TrailAnswer::Arrivals(vec![ArrivalAnswer(None); hashes.len()]),
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let asked = if matches!(self, Self::Lost { .. }) { ASKED_LOST } else { ASKED_ARRIVALS };
        let mut out = vec![asked];
        out.extend(self.batch().to_le_bytes());
        out.push(self.batches());
        self.hashes().iter().for_each(|hash| put_hash(*hash, &mut out));
        out
    }

    /// `None` for bytes that are no question, or ask for too much.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD)?;
        let batch = u16::from_le_bytes([head[1], head[2]]);
        let (batches, count) = (head[3], rest.len() / HASH);
        if rest.len() % HASH != 0 || count > MOST_HASHES || batches == 0 {
            return None;
        }
        let hashes = rest.chunks_exact(HASH).filter_map(hash).collect();
        match head[0] {
            ASKED_LOST => Some(Self::Lost { batch, batches, hashes }),
            ASKED_ARRIVALS => Some(Self::Arrivals { batch, batches, hashes }),
            _ => None,
        }
    }
}

impl TrailAnswer {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Lost(lost) => lost.iter().for_each(|lost| match lost {
                Some(lost) => lost.put(&mut out),
                None => out.push(0),
            }),
            Self::Arrivals(arrivals) => {
                arrivals.iter().for_each(|arrival| out.extend(arrival.0.unwrap_or(GONE).to_le_bytes()));
            }
        }
        out
    }

    /// Reads the answer to this question; `None` for bytes that are not one.
    pub fn from_bytes(question: &TrailQuestion, mut bytes: &[u8]) -> Option<Self> {
        let count = question.hashes().len();
        match question {
            TrailQuestion::Lost { .. } => {
                let lost: Option<Vec<_>> = (0..count).map(|_| LostAnswer::take(&mut bytes)).collect();
                Some(Self::Lost(lost.filter(|_| bytes.is_empty())?))
            }
            TrailQuestion::Arrivals { .. } if bytes.len() == 4 * count => {
                let times =
                    bytes.chunks_exact(4).filter_map(|time| time.first_chunk()).map(|time| u32::from_le_bytes(*time));
                let arrivals = times.map(|time| ArrivalAnswer(Some(time).filter(|time| *time != GONE)));
                Some(Self::Arrivals(arrivals.collect()))
            }
            TrailQuestion::Arrivals { .. } => None,
        }
    }
}

impl LostAnswer {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(KNOWN | if self.is_told { TOLD } else { 0 });
        out.extend(self.time.to_le_bytes());
        out.push(self.ttl);
        out.extend(self.place.to_le_bytes());
        out.extend(self.number.to_le_bytes());
        out.extend([self.tag, self.others]);
        let before = self.survivor.map(|(_, time)| self.time.wrapping_sub(time).clamp(1, (1 << 24) - 1));
        put_hash(self.survivor.map_or(TrailHash(0), |(hash, _)| hash), out);
        out.extend(&before.unwrap_or(0).to_le_bytes()[..3]);
        put_hash(self.sample.0, out);
        out.extend(self.sample.1.to_le_bytes());
        out.push(self.sample_tag);
    }

    /// The next answer; `Some(None)` for a packet that is gone, `None` for bytes that are no answer.
    fn take(bytes: &mut &[u8]) -> Option<Option<Self>> {
        let (flags, rest) = bytes.split_first()?;
        if *flags == 0 {
            *bytes = rest;
            return Some(None);
        }
        let (it, rest) = rest.split_at_checked(LOST - 1)?;
        if flags & !(KNOWN | TOLD) != 0 || flags & KNOWN == 0 {
            return None;
        }
        *bytes = rest;
        let word = |at: usize| it.get(at..).and_then(<[u8]>::first_chunk).map(|word| u32::from_le_bytes(*word));
        let time = word(0)?;
        let before = u32::from_le_bytes([it[18], it[19], it[20], 0]);
        let survivor = hash(&it[13..18]).filter(|_| before > 0).map(|hash| (hash, time.wrapping_sub(before)));
        Some(Some(Self {
            time,
            ttl: it[4],
            place: word(5)?,
            number: u16::from_le_bytes([it[9], it[10]]),
            tag: it[11],
            others: it[12],
            is_told: flags & TOLD != 0,
            survivor,
            sample: (hash(&it[21..26])?, word(26)?),
            sample_tag: it[30],
        }))
    }
}

fn put_hash(TrailHash(hash): TrailHash, out: &mut Vec<u8>) {
    out.extend(&hash.to_le_bytes()[..HASH]);
}

fn hash(bytes: &[u8]) -> Option<TrailHash> {
    let mut word = [0; 8];
    word.get_mut(..HASH)?.copy_from_slice(bytes.get(..HASH)?);
    Some(TrailHash(u64::from_le_bytes(word)))
}
