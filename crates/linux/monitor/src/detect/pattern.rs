//! Names of ports with wildcards: `eth0`, `mgmt*`, `swp?`.

use std::fmt;
use std::str::FromStr;

/// `*` stands for any characters, `?` for any one. Without a slash it is about ports of any host, `leaf3/eth7` by the part `eth7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern(Vec<char>);

/// An empty pattern matches no port, so its author meant something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPattern;

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an empty pattern: expected the name of a port, with * for any characters and ? for any one")
    }
}

impl std::error::Error for BadPattern {}

impl FromStr for NamePattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        let text = text.trim();
        if text.is_empty() { Err(BadPattern) } else { Ok(Self(text.chars().collect())) }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.iter().collect::<String>())
    }
}

impl NamePattern {
    /// Goes back to the last star only: what an earlier one took need never be taken back.
    pub fn matches(&self, name: &str) -> bool {
        let name = if self.0.contains(&'/') { name } else { name.rsplit('/').next().unwrap_or(name) };
        let (pattern, name) = (&self.0, name.chars().collect::<Vec<_>>());
        let (mut p, mut n) = (0, 0);
        let mut star = None;
        while n < name.len() {
            match (pattern.get(p), star) {
                (Some('*'), _) => {
                    star = Some((p, n));
                    p += 1;
                }
                (Some(c), _) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
                (_, Some((at, taken))) => {
                    star = Some((at, taken + 1));
                    (p, n) = (at + 1, taken + 1);
                }
                (_, None) => return false,
            }
        }
        pattern[p..].iter().all(|c| *c == '*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match_what_people_expect() {
        let matches = |pattern: &str, name| pattern.parse::<NamePattern>().unwrap().matches(name);
        for (pattern, name) in [
            ("eth0", "eth0"),
            ("mgmt*", "mgmt"),
            ("mgmt*", "mgmt17"),
            ("*", "anything"),
            ("swp?", "swp1"),
            ("*.100", "bond0.100"),
            ("e*th*0", "eeth1th0"),
            ("***", "x"),
            ("Ethernet*", "Ethernet128"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("eth0", "eth01"), ("eth0", "eth"), ("mgmt*", "xmgmt"), ("swp?", "swp"), ("*a", "ab")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_take_no_long_time() {
        let pattern: NamePattern = "*a".repeat(50).parse().unwrap();
        assert!(!pattern.matches(&"a".repeat(49).replace('a', "ab")));
    }

    #[test]
    fn nothing_is_no_pattern() {
        assert_eq!(" ".parse::<NamePattern>(), Err(BadPattern));
    }
}
