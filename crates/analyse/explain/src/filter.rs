//! Filter for connections: `10.0.0.1`, `:443`, `10.0.0.1:443`, `10.0.0.0/8`, joined by `and`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// One condition; either end may meet it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EndFilter {
    /// An address and how many of its bits count.
    network: Option<(IpAddr, u8)>,
    port: Option<u16>,
}

/// Conditions that a connection must meet, each by one of its ends; none is met by all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter(Vec<EndFilter>);

/// Error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowFilterError(String);

impl fmt::Display for FlowFilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected =
            "expected ADDRESS, ADDRESS/BITS, :PORT or ADDRESS:PORT ([ADDRESS]:PORT for IPv6), joined by `and`";
        write!(f, "`{}` is no end of a connection; {expected}", self.0)
    }
}

impl std::error::Error for FlowFilterError {}

impl FromStr for FlowFilter {
    type Err = FlowFilterError;

    fn from_str(text: &str) -> Result<Self, FlowFilterError> {
        let words = text.split_whitespace().filter(|word| *word != "and");
        let filters: Vec<EndFilter> = words.map(end_filter).collect::<Result<_, _>>()?;
        if filters.is_empty() { Err(FlowFilterError(text.to_owned())) } else { Ok(Self(filters)) }
    }
}

fn end_filter(word: &str) -> Result<EndFilter, FlowFilterError> {
    let wrong = || FlowFilterError(word.to_owned());
    let whole = |address: IpAddr| (address, if address.is_ipv4() { 32 } else { 128 });
    if let Some(port) = word.strip_prefix(':').and_then(|port| port.parse().ok()) {
        return Ok(EndFilter { network: None, port: Some(port) });
    }
    if let Ok(end) = word.parse::<SocketAddr>() {
        return Ok(EndFilter { network: Some(whole(end.ip())), port: Some(end.port()) });
    }
    let (address, bits) = word.split_once('/').map_or((word, None), |(address, bits)| (address, Some(bits)));
    let (address, most) = whole(address.parse().map_err(|_| wrong())?);
    let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
    if bits > most { Err(wrong()) } else { Ok(EndFilter { network: Some((address, bits)), port: None }) }
}

impl EndFilter {
    fn matches(&self, end: SocketAddr) -> bool {
        let in_network = self.network.is_none_or(|(address, bits)| shares_prefix(address, end.ip(), bits));
        in_network && self.port.is_none_or(|port| port == end.port())
    }
}

fn shares_prefix(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    let differing = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => u128::from(one.to_bits() ^ other.to_bits()) << 96,
        (IpAddr::V6(one), IpAddr::V6(other)) => one.to_bits() ^ other.to_bits(),
        _ => return false,
    };
    differing.leading_zeros() >= u32::from(bits)
}

impl FlowFilter {
    pub(crate) fn matches(&self, one: SocketAddr, other: SocketAddr) -> bool {
        self.0.iter().all(|filter| filter.matches(one) || filter.matches(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(one: &str, other: &str) -> (SocketAddr, SocketAddr) {
        (one.parse().unwrap(), other.parse().unwrap())
    }

    #[test]
    fn either_end_may_meet_a_condition() {
        let (one, other) = ends("10.1.2.3:40000", "192.168.0.1:443");
        for text in ["10.0.0.0/8", ":443", "10.1.2.3 and :443", "192.168.0.1:443", "10.1.2.3 192.168.0.1"] {
            assert!(text.parse::<FlowFilter>().unwrap().matches(one, other), "{text}");
        }
        for text in ["10.2.0.0/16", ":80", "10.1.2.3 and :80", "192.168.0.1:40000", "2001:db8::/32"] {
            assert!(!text.parse::<FlowFilter>().unwrap().matches(one, other), "{text}");
        }
    }

    #[test]
    fn what_is_no_end_is_refused() {
        for text in ["", "and", "443", "10.0.0.1/33", "10.0.0.1:99999", "host"] {
            assert!(text.parse::<FlowFilter>().is_err(), "{text}");
        }
    }
}
