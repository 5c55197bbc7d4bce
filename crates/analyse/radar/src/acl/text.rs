//! Access lists as text, one rule on a line as ClassBench writes them, and what to do with what matches:
//!
//! ```text
//!   @10.1.0.0/16  10.2.3.4/32  0 : 65535  443 : 443  0x06/0xFF  accept
//! ```
//!
//! Empty lines and those that begin with `#` are passed over.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use super::{AclAction, AclRule, PortRange, RuleTable, Ternary};

/// A line that is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclError {
    /// Line number, from 1; 0 for a rule that stands alone.
    pub line: usize,
    pub found: String,
    pub expected: &'static str,
}

impl fmt::Display for AclError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, found, expected } = self;
        if *line > 0 {
            write!(f, "line {line}: ")?;
        }
        match found.as_str() {
            "" => write!(f, "it ends where {expected} is expected"),
            found => write!(f, "\"{found}\" where {expected} is expected"),
        }
    }
}

impl std::error::Error for AclError {}

impl RuleTable {
    /// Reads a list, first rule first. `otherwise` is the action on packets that no rule matches.
    pub fn parse(text: &str, otherwise: AclAction) -> Result<Self, AclError> {
        let lines = text.lines().map(str::trim).zip(1..);
        let rules = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        let rule = |(line, nth): (&str, usize)| line.parse().map_err(|error| AclError { line: nth, ..error });
        Ok(Self::new(rules.map(rule).collect::<Result<_, _>>()?, otherwise))
    }
}

const PREFIX: &str = "an address and the length of its prefix such as 10.1.0.0/16";
const PORT: &str = "a port from 0 to 65535";
const PROTOCOL: &str = "a protocol and its mask such as 0x06/0xFF";
const ACTION: &str = "accept or deny";

impl FromStr for AclRule {
    type Err = AclError;

    fn from_str(line: &str) -> Result<Self, AclError> {
        // Some write ranges without spaces.
        let spaced = line.replace(':', " : ");
        let mut words = spaced.split_whitespace();
        let mut next = || words.next().unwrap_or_default();
        let first = next();
        let src = first.strip_prefix('@').ok_or_else(|| error(first, "a rule that begins with @"))?;
        let (src, dst) = (prefix(src)?, prefix(next())?);
        let src_ports = ports([next(), next(), next()])?;
        let dst_ports = ports([next(), next(), next()])?;
        let protocol = protocol(next())?;
        let mut word = next();
        // ClassBench may go on with TCP's flags, which nothing here looks at.
        if word.contains('/') {
            let mask = word.split_once('/').and_then(|(_, mask)| hex(mask));
            mask.filter(|mask| *mask == 0).ok_or_else(|| error(word, "0x0000/0x0000, no flags,"))?;
            word = next();
        }
        let action = match word {
            "accept" | "permit" => AclAction::Accept,
            "deny" | "drop" => AclAction::Deny,
            other => return Err(error(other, ACTION)),
        };
        match next() {
            "" => Ok(Self { src, dst, src_ports, dst_ports, protocol, action }),
            more => Err(error(more, "the end of the line")),
        }
    }
}

fn error(found: &str, expected: &'static str) -> AclError {
    AclError { line: 0, found: found.to_owned(), expected }
}

fn prefix(word: &str) -> Result<Ternary, AclError> {
    let (address, len) = word.split_once('/').ok_or_else(|| error(word, PREFIX))?;
    let address: Ipv4Addr = address.parse().map_err(|_| error(word, PREFIX))?;
    let len: u8 = len.parse().ok().filter(|len| *len <= 32).ok_or_else(|| error(word, PREFIX))?;
    Ok(Ternary::prefix(address.into(), len))
}

fn ports([low, colon, high]: [&str; 3]) -> Result<PortRange, AclError> {
    let port = |word: &str| word.parse::<u16>().map_err(|_| error(word, PORT));
    let low = port(low)?;
    if colon != ":" {
        return Err(error(colon, "a colon between two ports"));
    }
    let range = PortRange { low, high: port(high)? };
    if range.low > range.high { Err(error(high, "a port that is not below the first")) } else { Ok(range) }
}

fn hex(word: &str) -> Option<u32> {
    u32::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

fn protocol(word: &str) -> Result<Ternary, AclError> {
    let parts = word.split_once('/').and_then(|(value, mask)| Some((hex(value)?, hex(mask)?)));
    let (value, mask) = parts.filter(|(value, mask)| value | mask <= 0xff).ok_or_else(|| error(word, PROTOCOL))?;
    Ok(Ternary { value: value & mask, mask })
}

impl fmt::Display for AclAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Accept => "accept",
            Self::Deny => "deny",
        })
    }
}

/// Writes a rule in the form that is parsed; a mask in which a flipped bit has left holes is written as an address.
impl fmt::Display for AclRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = |Ternary { value, mask }: Ternary| match mask.leading_ones() {
            len if len + mask.trailing_zeros() >= 32 => format!("{}/{len}", Ipv4Addr::from(value)),
            _ => format!("{}/{}", Ipv4Addr::from(value), Ipv4Addr::from(mask)),
        };
        let ports = |PortRange { low, high }: PortRange| format!("{low} : {high}");
        let Ternary { value, mask } = self.protocol;
        write!(f, "@{}\t{}\t", address(self.src), address(self.dst))?;
        write!(f, "{}\t{}\t", ports(self.src_ports), ports(self.dst_ports))?;
        write!(f, "0x{value:02x}/0x{mask:02X}\t{}", self.action)
    }
}
