//! Facts that a meter reports beside its digests.
//!
//! ```text
//!   kind:8  length:16  body …      again and again; a kind that is not known is skipped
//!   kind 1  packets that came round     way:8  passes:32  time to live:8  family:8  source:128  destination:128
//!                                       protocol:8  source port:16  destination port:16
//! ```

use std::net::{IpAddr, Ipv6Addr};

use super::ReportError;
use super::form::ByteReader;
use crate::packet::Flow;
use crate::rounds::SeenRound;

const ROUND: u8 = 1;
const FAMILY_V4: u8 = 4;
/// Facts of a report; more are not read.
const MOST: usize = 64;

/// Facts about one batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportFacts {
    /// Packets that passed again with less time to live: at most one entry for each way.
    pub rounds: Vec<SeenRound>,
}

impl ReportFacts {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        self.rounds.iter().for_each(|round| put_fact(ROUND, &round_bytes(round), out));
    }

    /// Reads all that is left of a report.
    pub(super) fn read(rest: &mut ByteReader<'_>) -> Result<Self, ReportError> {
        let mut facts = Self::default();
        for _ in 0..MOST {
            if rest.is_empty() {
                return Ok(facts);
            }
            let ([kind], length) = (rest.array()?, u16::from_le_bytes(rest.array()?));
            let mut body = ByteReader::new(rest.take(length.into())?);
            if kind == ROUND {
                facts.rounds.push(read_round(&mut body)?);
                if facts.rounds.len() > 2 || !body.is_empty() {
                    return Err(ReportError::Malformed);
                }
            }
        }
        Err(ReportError::Malformed)
    }
}

fn put_fact(kind: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend((body.len() as u16).to_le_bytes());
    out.extend(body);
}

fn round_bytes(round: &SeenRound) -> Vec<u8> {
    let Flow { src, dst, protocol, src_port, dst_port } = round.flow;
    let mut out = vec![round.way];
    out.extend(round.passes.to_le_bytes());
    out.extend([round.ttl, if src.is_ipv4() { FAMILY_V4 } else { 6 }]);
    for address in [src, dst] {
        let wide = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        out.extend(wide.octets());
    }
    out.push(protocol);
    [src_port, dst_port].iter().for_each(|port| out.extend(port.to_le_bytes()));
    out
}

fn read_round(body: &mut ByteReader<'_>) -> Result<SeenRound, ReportError> {
    let [way] = body.array()?;
    let passes = u32::from_le_bytes(body.array()?);
    let [ttl, family] = body.array()?;
    let address = |bytes: [u8; 16]| match (family, Ipv6Addr::from(bytes)) {
        (FAMILY_V4, wide) => wide.to_ipv4_mapped().map(IpAddr::V4),
        (6, wide) => Some(IpAddr::V6(wide)),
        _ => None,
    };
    let [src, dst] = [body.array()?, body.array()?].map(address);
    let [protocol] = body.array()?;
    let [src_port, dst_port] = [body.array()?, body.array()?].map(u16::from_le_bytes);
    let (Some(src), Some(dst)) = (src, dst) else { return Err(ReportError::Malformed) };
    if way > 1 {
        return Err(ReportError::Malformed);
    }
    Ok(SeenRound { way, passes, flow: Flow { src, dst, protocol, src_port, dst_port }, ttl })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::tests::packet;

    fn read(bytes: &[u8]) -> Result<ReportFacts, ReportError> {
        ReportFacts::read(&mut ByteReader::new(bytes))
    }

    #[test]
    fn facts_are_read_as_they_were_written_and_unknown_ones_are_skipped() {
        let v4 = packet(1).flow;
        let v6 = Flow { src: "2001:db8::1".parse().unwrap(), dst: "2001:db8::2".parse().unwrap(), ..v4 };
        let rounds = vec![
            SeenRound { way: 0, passes: 7, flow: v4, ttl: 9 },
            SeenRound { way: 1, passes: u32::MAX, flow: v6, ttl: 255 },
        ];
        let facts = ReportFacts { rounds };
        let mut bytes = Vec::new();
        put_fact(200, b"of a later version", &mut bytes);
        facts.put(&mut bytes);
        assert_eq!(read(&bytes), Ok(facts));
        let end = bytes.len();
        assert!((1..end).filter(|cut| read(&bytes[..*cut]).is_ok()).count() <= 2, "cut between two facts only");
        let mut wrong = bytes.clone();
        wrong[end - 44] = 2;
        assert_eq!(read(&wrong), Err(ReportError::Malformed));
        assert_eq!(read(&[200, 0, 0].repeat(MOST + 1)), Err(ReportError::Malformed));
    }
}
