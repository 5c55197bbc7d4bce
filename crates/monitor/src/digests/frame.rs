//! Reports on a TCP connection.
//!
//! ```text
//!   both ways, first    "HLRM"  version:8  0:24
//!   then, to the collector, again and again
//!                       length:32  life:64  number:64  report …
//! ```
//!
//! Numbers are little-endian; `length` is that of everything behind it. The collector says who it is and nothing more.

use std::fmt;
use std::io::{self, Read, Write};

use super::Envelope;

pub const GREETING: [u8; 8] = *b"HLRM\x01\0\0\0";
const HEAD: usize = 16;
/// The longest report. What a peer announces beyond that is not read.
pub const LONGEST: usize = 2 << 20;

/// Why a peer is not listened to any longer.
#[derive(Debug)]
pub enum Broken {
    /// It does not greet like one of ours; what it said instead.
    Foreign([u8; 8]),
    Version(u8),
    /// A report that is longer or shorter than any.
    Length(u32),
    Io(io::Error),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(said) => write!(f, "speaks something else: it began with `{}`", said.escape_ascii()),
            Self::Version(version) => {
                write!(f, "speaks version {version} and we speak {}: use the same hitless at both ends", GREETING[4])
            }
            Self::Length(length) => write!(f, "announced a report of {length} bytes; expected at most {LONGEST}"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub fn check_greeting(said: [u8; 8]) -> Result<(), Broken> {
    if said[..4] != GREETING[..4] {
        return Err(Broken::Foreign(said));
    }
    if said[4] == GREETING[4] { Ok(()) } else { Err(Broken::Version(said[4])) }
}

pub fn write(to: &mut impl Write, envelope: &Envelope) -> io::Result<()> {
    let Envelope { life, number, report } = envelope;
    let length = (HEAD + report.len()) as u32;
    let mut bytes = Vec::with_capacity(4 + HEAD + report.len());
    bytes.extend(length.to_le_bytes());
    bytes.extend(life.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    bytes.extend(report);
    to.write_all(&bytes)
}

/// The next report; `None` where the peer has ended between two. Memory grows with what arrives, not with what is announced.
pub fn read(from: &mut impl Read) -> Result<Option<Envelope>, Broken> {
    let mut length = [0; 4];
    match from.read_exact(&mut length[..1]) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    from.read_exact(&mut length[1..])?;
    let length = u32::from_le_bytes(length);
    let Some(report_len) = (length as usize).checked_sub(HEAD).filter(|len| *len <= LONGEST) else {
        return Err(Broken::Length(length));
    };
    let mut word = [0; 8];
    let mut next = || from.read_exact(&mut word).map(|()| u64::from_le_bytes(word));
    let (life, number) = (next()?, next()?);
    let mut report = Vec::new();
    if from.by_ref().take(report_len as u64).read_to_end(&mut report)? < report_len {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(Some(Envelope { life, number, report }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn envelopes(mut bytes: &[u8]) -> (Vec<Envelope>, Option<Broken>) {
        let mut found = Vec::new();
        loop {
            match read(&mut bytes) {
                Ok(Some(envelope)) => found.push(envelope),
                Ok(None) => return (found, None),
                Err(broken) => return (found, Some(broken)),
            }
        }
    }

    #[test]
    fn reports_arrive_as_they_were_sent() {
        let sent: Vec<Envelope> = (0..3)
            .map(|number| Envelope { life: 7, number, report: vec![number as u8; 5 * number as usize] })
            .collect();
        let mut bytes = Vec::new();
        sent.iter().for_each(|envelope| write(&mut bytes, envelope).unwrap());
        let (found, broken) = envelopes(&bytes);
        assert!(found == sent && broken.is_none());
        for cut in [1, 3, 4, 19, 21] {
            let (found, broken) = envelopes(&bytes[..bytes.len() - cut]);
            assert!(found == sent[..2] && matches!(broken, Some(Broken::Io(_))), "{cut}: {broken:?}");
        }
    }

    #[test]
    fn a_peer_that_announces_too_much_is_not_believed() {
        for length in [0, 15, (LONGEST + HEAD + 1) as u32, u32::MAX] {
            assert!(matches!(envelopes(&length.to_le_bytes()).1, Some(Broken::Length(said)) if said == length));
        }
    }

    #[test]
    fn who_greets_otherwise_is_told_apart_from_an_older_program() {
        assert!(check_greeting(GREETING).is_ok());
        assert!(matches!(check_greeting(*b"HLRM\x02\0\0\0"), Err(Broken::Version(2))));
        let foreign = check_greeting(*b"GET / HT").unwrap_err().to_string();
        assert!(foreign.contains("`GET / HT`"), "{foreign}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_come_to_an_end(bytes in prop::collection::vec(prop_oneof![Just(0), Just(16), any::<u8>()], 0..200)) {
            let (found, _) = envelopes(&bytes);
            let taken: usize = found.iter().map(|envelope| 4 + HEAD + envelope.report.len()).sum();
            prop_assert!(taken <= bytes.len());
        }
    }
}
