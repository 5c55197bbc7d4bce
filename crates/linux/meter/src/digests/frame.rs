//! Reports on a TCP connection.
//!
//! ```text
//!   both ways, first    "HLRM"  version:8  sealed:8  0:16, and with a key  nonce:128
//!   with a key then     proof:64 of the meter, and after it proof:64 of the collector
//!   then, again and again
//!                       length:32  kind:8  …, and with a key  tag:64
//!
//!   to the collector    kind 0  report     flags:8  life:64  number:64  report …
//!                       kind 1  reply      question:32  reply …
//!   to the meter        kind 0  answer     what became of reports
//!                       kind 1  question   number:32  question …
//!                       kind 2  word       the collector is alive; announcements, a line each, if there is news
//! ```
//!
//! Numbers are little-endian; `length` is that of everything behind it. Answers are in `answer`, questions in
//! `question`; a meter skips kinds that it does not know. Proofs and tags are described in `seal`.

use std::fmt;
use std::io::{self, Read, Write};

use super::Envelope;
use super::answer::ReportAnswer;
use super::question::LONGEST_QUESTION;
use super::seal::{ReportSession, TAG};

const GREETING: [u8; 8] = *b"HLRM\x02\0\0\0";
/// Bytes of a report and of a reply before their contents, with the kind.
const HEAD: usize = 18;
const REPLY_HEAD: usize = 5;
const REPORT: u8 = 0;
const REPLY: u8 = 1;
const ANSWER: u8 = 0;
const QUESTION: u8 = 1;
const WORD: u8 = 2;
/// The longest report. Longer ones that a peer announces are not read.
pub const LONGEST: usize = 2 << 20;

/// Reason why a peer is not listened to any longer.
#[derive(Debug)]
pub(crate) enum PeerError {
    /// The other side did not send our greeting, but these bytes.
    Foreign([u8; 8]),
    Version(u8),
    /// A report that is longer or shorter than any.
    Length(u32),
    /// One side seals its frames, the other does not.
    Sealed(bool),
    /// The other side does not have the key, or something was changed on the way.
    Forged,
    Io(io::Error),
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(said) => write!(f, "speaks something else: it began with `{}`", said.escape_ascii()),
            Self::Version(version) => {
                write!(f, "speaks version {version} and we speak {}: use the same hitless at both ends", GREETING[4])
            }
            Self::Length(length) => write!(f, "announced a report of {length} bytes; expected at most {LONGEST}"),
            Self::Sealed(true) => f.write_str("has a key and we have none: give both the same --key"),
            Self::Sealed(false) => f.write_str("has no key and we have one: give both the same --key"),
            Self::Forged => f.write_str("does not have our key"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for PeerError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// First bytes of a connection, with a key or without.
pub(crate) fn greeting(is_sealed: bool) -> [u8; 8] {
    let mut greeting = GREETING;
    greeting[5] = u8::from(is_sealed);
    greeting
}

pub(crate) fn check_greeting(said: [u8; 8], is_sealed: bool) -> Result<(), PeerError> {
    if said[..4] != GREETING[..4] {
        return Err(PeerError::Foreign(said));
    }
    if said[4] != GREETING[4] {
        return Err(PeerError::Version(said[4]));
    }
    let theirs = said[5] != 0;
    if theirs == is_sealed { Ok(()) } else { Err(PeerError::Sealed(theirs)) }
}

/// Message to a meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MeterMessage {
    Answer(ReportAnswer),
    Question {
        number: u32,
        body: Vec<u8>,
    },
    /// The collector is alive, and what it knows of others; empty also for a kind that a later version has.
    Word(Vec<u8>),
}

/// Message to a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CollectorMessage {
    Report(Envelope),
    Reply { question: u32, body: Vec<u8> },
}

pub(crate) fn write_answer(
    to: &mut impl Write,
    answer: &ReportAnswer,
    session: Option<&mut ReportSession>,
) -> io::Result<()> {
    write_to_meter(to, ANSWER, &answer.to_bytes(), session)
}

pub(crate) fn write_question(
    to: &mut impl Write,
    number: u32,
    body: &[u8],
    session: Option<&mut ReportSession>,
) -> io::Result<()> {
    write_to_meter(to, QUESTION, &[&number.to_le_bytes(), body].concat(), session)
}

pub(crate) fn write_word(to: &mut impl Write, said: &[u8], session: Option<&mut ReportSession>) -> io::Result<()> {
    write_to_meter(to, WORD, said, session)
}

fn write_to_meter(
    to: &mut impl Write,
    kind: u8,
    contents: &[u8],
    session: Option<&mut ReportSession>,
) -> io::Result<()> {
    let mut bytes = [&[kind], contents].concat();
    if let Some(session) = session {
        let tag = session.answer_tag(&bytes);
        bytes.extend(tag);
    }
    to.write_all(&[&(bytes.len() as u32).to_le_bytes(), &bytes[..]].concat())
}

/// The first message in what has arrived, which is taken out of it; `None` if it is not all there.
pub(crate) fn take_message(
    inbox: &mut Vec<u8>,
    session: Option<&mut ReportSession>,
) -> Result<Option<MeterMessage>, PeerError> {
    let Some(length) = inbox.first_chunk().map(|length| u32::from_le_bytes(*length)) else { return Ok(None) };
    if length as usize > LONGEST_TO_METER {
        return Err(PeerError::Length(length));
    }
    let end = 4 + length as usize;
    let Some(mut bytes) = inbox.get(4..end) else { return Ok(None) };
    if let Some(session) = session {
        let (message, said) = bytes.split_at(bytes.len().saturating_sub(TAG));
        if said != session.answer_tag(message) {
            return Err(PeerError::Forged);
        }
        bytes = message;
    }
    let message = match bytes.split_first().ok_or(PeerError::Length(length))? {
        (&ANSWER, answer) => MeterMessage::Answer(ReportAnswer::parse(answer).ok_or(PeerError::Length(length))?),
        (&QUESTION, question) => {
            let (number, body) = question.split_first_chunk().ok_or(PeerError::Length(length))?;
            MeterMessage::Question { number: u32::from_le_bytes(*number), body: body.to_vec() }
        }
        (&WORD, said) => MeterMessage::Word(said.to_vec()),
        _ => MeterMessage::Word(Vec::new()),
    };
    inbox.drain(..end);
    Ok(Some(message))
}

/// The longest message to a meter, behind its length.
const LONGEST_TO_METER: usize = LONGEST_WORD + 5 + TAG;
/// Room for the announcements of all collectors that there may be.
pub(crate) const LONGEST_WORD: usize = 64 << 10;
const _: () = assert!(ReportAnswer::LONGEST < LONGEST_WORD && LONGEST_QUESTION < LONGEST_WORD);

pub(crate) fn write(to: &mut impl Write, envelope: &Envelope, session: Option<&mut ReportSession>) -> io::Result<()> {
    let Envelope { life, number, flags, report, .. } = envelope;
    let head = [&[REPORT, *flags][..], &life.to_le_bytes(), &number.to_le_bytes()].concat();
    write_to_collector(to, &head, report, session)
}

pub(crate) fn write_reply(
    to: &mut impl Write,
    question: u32,
    body: &[u8],
    session: Option<&mut ReportSession>,
) -> io::Result<()> {
    write_to_collector(to, &[&[REPLY][..], &question.to_le_bytes()].concat(), body, session)
}

fn write_to_collector(
    to: &mut impl Write,
    head: &[u8],
    body: &[u8],
    session: Option<&mut ReportSession>,
) -> io::Result<()> {
    let mut bytes = [&[0; 4], head, body].concat();
    if let Some(session) = session {
        let tag = session.tag(&bytes[4..]);
        bytes.extend(tag);
    }
    let length = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(&bytes)
}

/// The length of what follows; `None` where the peer has ended between two reports.
pub(crate) fn read_length(from: &mut impl Read, is_sealed: bool) -> Result<Option<usize>, PeerError> {
    let mut length = [0; 4];
    match from.read_exact(&mut length[..1]) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    from.read_exact(&mut length[1..])?;
    let length = u32::from_le_bytes(length);
    let tag = if is_sealed { TAG } else { 0 };
    let fits = (REPLY_HEAD + tag..=HEAD + LONGEST + tag).contains(&(length as usize));
    if fits { Ok(Some(length as usize)) } else { Err(PeerError::Length(length)) }
}

/// The message behind its length. Memory grows with what arrives, not with what is announced.
pub(crate) fn read(
    from: &mut impl Read,
    length: usize,
    session: Option<&mut ReportSession>,
) -> Result<CollectorMessage, PeerError> {
    let mut bytes = Vec::new();
    if from.by_ref().take(length as u64).read_to_end(&mut bytes)? < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    if let Some(session) = session {
        let said = bytes.split_off(length.saturating_sub(TAG));
        if said != session.tag(&bytes) {
            return Err(PeerError::Forged);
        }
    }
    let wrong = PeerError::Length(length as u32);
    match bytes.first().copied() {
        Some(REPORT) if bytes.len() >= HEAD => {
            let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            let (flags, life, number) = (bytes[1], word(2), word(10));
            bytes.drain(..HEAD);
            Ok(CollectorMessage::Report(Envelope { life, number, flags, subject: None, report: bytes }))
        }
        Some(REPLY) if bytes.len() >= REPLY_HEAD => {
            let question = bytes[1..].first_chunk().map_or(0, |number| u32::from_le_bytes(*number));
            bytes.drain(..REPLY_HEAD);
            Ok(CollectorMessage::Reply { question, body: bytes })
        }
        _ => Err(wrong),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn envelope(number: u64, report: Vec<u8>) -> Envelope {
        Envelope { life: 7, number, flags: 9, subject: None, report }
    }

    fn envelopes(mut bytes: &[u8]) -> (Vec<Envelope>, Option<PeerError>) {
        let mut found = Vec::new();
        loop {
            match read_length(&mut bytes, false)
                .and_then(|length| length.map(|len| read(&mut bytes, len, None)).transpose())
            {
                Ok(Some(CollectorMessage::Report(envelope))) => found.push(envelope),
                Ok(Some(CollectorMessage::Reply { question, body })) => found.push(envelope(question.into(), body)),
                Ok(None) => return (found, None),
                Err(broken) => return (found, Some(broken)),
            }
        }
    }

    #[test]
    fn reports_arrive_as_they_were_sent() {
        let sent: Vec<Envelope> =
            (0..3).map(|number| envelope(number, vec![number as u8; 5 * number as usize])).collect();
        let mut bytes = Vec::new();
        sent.iter().for_each(|envelope| write(&mut bytes, envelope, None).unwrap());
        let (found, broken) = envelopes(&bytes);
        assert!(found == sent && broken.is_none());
        for cut in [1, 3, 4, 21, 23] {
            let (found, broken) = envelopes(&bytes[..bytes.len() - cut]);
            assert!(found == sent[..2] && matches!(broken, Some(PeerError::Io(_))), "{cut}: {broken:?}");
        }
    }

    #[test]
    fn a_peer_that_announces_too_much_is_not_believed() {
        for length in [0, 4, (LONGEST + HEAD + 1) as u32, u32::MAX] {
            assert!(matches!(envelopes(&length.to_le_bytes()).1, Some(PeerError::Length(said)) if said == length));
        }
    }

    #[test]
    fn who_greets_otherwise_is_told_apart_from_an_older_program() {
        assert!([true, false].into_iter().all(|is_sealed| check_greeting(greeting(is_sealed), is_sealed).is_ok()));
        assert!(matches!(check_greeting(greeting(true), false), Err(PeerError::Sealed(true))));
        assert!(matches!(check_greeting(*b"HLRM\x01\0\x01\0", false), Err(PeerError::Version(1))));
        let foreign = check_greeting(*b"GET / HT", false).unwrap_err().to_string();
        assert!(foreign.contains("`GET / HT`"), "{foreign}");
    }

    #[test]
    fn with_a_key_nothing_that_was_changed_moved_or_played_again_is_taken() {
        let key = bus::key::OrderKey::new([7; 16]);
        let session = || ReportSession::new(&key, [1; 16], [2; 16]);
        let sent: Vec<Envelope> = (0..3).map(|number| envelope(number, vec![9; 5])).collect();
        let mut bytes = Vec::new();
        let mut sender = session();
        sent.iter().for_each(|envelope| write(&mut bytes, envelope, Some(&mut sender)).unwrap());
        let frames: Vec<&[u8]> = bytes.chunks(bytes.len() / 3).collect();
        let hear = |frames: &[&[u8]], mut session: ReportSession| -> Result<Vec<Envelope>, PeerError> {
            let bytes = frames.concat();
            let (mut bytes, mut heard) = (&bytes[..], Vec::new());
            while let Some(length) = read_length(&mut bytes, true)? {
                let CollectorMessage::Report(envelope) = read(&mut bytes, length, Some(&mut session))? else {
                    continue;
                };
                heard.push(envelope);
            }
            Ok(heard)
        };
        assert_eq!(hear(&frames, session()).unwrap(), sent);
        let [one, two, three] = frames[..] else { panic!("three frames") };
        for wrong in [vec![one, one], vec![one, three], vec![two, one, three]] {
            assert!(matches!(hear(&wrong, session()), Err(PeerError::Forged)));
        }
        let later = ReportSession::new(&key, [3; 16], [2; 16]);
        assert!(matches!(hear(&frames, later), Err(PeerError::Forged)), "recorded on another connection");
        for bit in 4 * 8..one.len() * 8 {
            let mut changed = one.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(hear(&[&changed], session()), Err(PeerError::Forged)), "bit {bit}");
        }
    }

    #[test]
    fn what_a_meter_is_told_comes_as_it_was_said() {
        let answer = ReportAnswer { life: 7, taken: 3, ..ReportAnswer::default() };
        let mut bytes = Vec::new();
        write_answer(&mut bytes, &answer, None).unwrap();
        write_question(&mut bytes, 5, b"which?", None).unwrap();
        write_word(&mut bytes, b"others", None).unwrap();
        // A kind of a later version.
        bytes.extend([1, 0, 0, 0, 77]);
        let mut heard = Vec::new();
        while let Some(message) = take_message(&mut bytes, None).unwrap() {
            heard.push(message);
        }
        let question = MeterMessage::Question { number: 5, body: b"which?".to_vec() };
        let words = [&b"others"[..], b""].map(|word| MeterMessage::Word(word.to_vec()));
        let [word, unknown] = words;
        assert_eq!(heard, [MeterMessage::Answer(answer), question, word, unknown]);
        for wrong in [&[0, 0, 0, 0][..], &[2, 0, 0, 0, QUESTION, 1], &[0xff; 4], &[1, 0, 0, 0, ANSWER]] {
            assert!(take_message(&mut wrong.to_vec(), None).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_come_to_an_end(bytes in prop::collection::vec(prop_oneof![Just(0), Just(16), any::<u8>()], 0..200)) {
            let (found, _) = envelopes(&bytes);
            let taken: usize = found.iter().map(|envelope| 4 + REPLY_HEAD + envelope.report.len()).sum();
            prop_assert!(taken <= bytes.len());
        }
    }
}
