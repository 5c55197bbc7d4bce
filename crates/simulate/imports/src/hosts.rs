//! Hosts that stand for the ranks or nodes of a file.

use std::collections::BTreeSet;

/// Names of hosts, the first for rank 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostNames {
    /// This prefix and the number of the rank.
    Numbered(&'static str),
    List(Vec<String>),
}

/// A range may not name more hosts.
const MOST_HOSTS: u32 = 1 << 20;

impl HostNames {
    /// Reads names with commas between them; `h4..h7` are four hosts.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut names = Vec::new();
        for part in text.split(',').map(str::trim) {
            match part.split_once("..") {
                Some((first, last)) => range(first, last, &mut names)?,
                None if part.is_empty() || part.contains(|c: char| c.is_whitespace() || c == '#') => {
                    return Err(format!("'{part}': expected names of hosts such as h0..h15 or h3,h1,h2"));
                }
                None => names.push(part.to_owned()),
            }
        }
        let mut seen = BTreeSet::new();
        match names.iter().find(|name| !seen.insert(*name)) {
            Some(twice) => Err(format!("'{twice}' is there twice: expected each host once")),
            None => Ok(Self::List(names)),
        }
    }

    /// Number of hosts, if it is limited.
    pub fn count(&self) -> Option<usize> {
        match self {
            Self::Numbered(_) => None,
            Self::List(names) => Some(names.len()),
        }
    }

    /// The host of a rank.
    ///
    /// # Panics
    /// If there are fewer hosts.
    pub fn name(&self, rank: u32) -> String {
        match self {
            Self::Numbered(prefix) => format!("{prefix}{rank}"),
            Self::List(names) => names[rank as usize].clone(),
        }
    }
}

fn range(first: &str, last: &str, names: &mut Vec<String>) -> Result<(), String> {
    let wrong = || format!("'{first}..{last}': expected a range such as h0..h15");
    let prefix = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = |name: &str| name.strip_prefix(prefix)?.parse::<u32>().ok();
    let (from, to) = digits(first).zip(digits(last)).ok_or_else(wrong)?;
    if to < from || to - from >= MOST_HOSTS {
        return Err(wrong());
    }
    names.extend((from..=to).map(|number| format!("{prefix}{number}")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_names_become_hosts_in_their_order() {
        let hosts = HostNames::parse("h4..h6, a, b9").unwrap();
        assert_eq!((0..5).map(|rank| hosts.name(rank)).collect::<Vec<_>>(), ["h4", "h5", "h6", "a", "b9"]);
        assert_eq!((hosts.count(), HostNames::Numbered("n").name(7)), (Some(5), "n7".into()));
    }

    #[test]
    fn wrong_names_are_refused() {
        for (text, said) in [
            ("h0,h1,h0", "'h0' is there twice: expected each host once"),
            ("h3..h1", "'h3..h1': expected a range such as h0..h15"),
            ("h0..x9", "'h0..x9': expected a range such as h0..h15"),
            ("h0..h9999999", "'h0..h9999999': expected a range such as h0..h15"),
            ("", "'': expected names of hosts such as h0..h15 or h3,h1,h2"),
        ] {
            assert_eq!(HostNames::parse(text).unwrap_err(), said);
        }
    }
}
