//! Choice of the interfaces that are read.

use crate::detect::NamePattern;

/// Interfaces by name or [`NamePattern`]. With nothing named: all that have a physical port.
///
/// A named interface is read, of any kind, so a veth can be watched by naming it. An excluded one is never read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub named: Vec<String>,
    pub excluded: Vec<String>,
}

impl Selection {
    /// Selects all interfaces with a physical port.
    pub fn physical() -> Self {
        Self::default()
    }

    pub fn named<T: Into<String>>(names: impl IntoIterator<Item = T>) -> Self {
        Self { named: names.into_iter().map(Into::into).collect(), excluded: Vec::new() }
    }

    pub fn except<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.excluded.extend(names.into_iter().map(Into::into));
        self
    }

    /// True if an interface is read; `is_physical` is asked only if nothing was named.
    pub fn takes(&self, name: &str, is_physical: impl FnOnce() -> bool) -> bool {
        let among = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        !among(&self.excluded) && if self.named.is_empty() { is_physical() } else { among(&self.named) }
    }

    /// Names that no interface has: a slip of the pen would otherwise turn monitoring off without a word. A pattern
    /// may fit nothing today.
    pub(super) fn tell_missing<'a>(&self, present: impl Iterator<Item = &'a str> + Clone, troubles: &mut Vec<String>) {
        let plain = self.named.iter().filter(|name| !name.contains(['*', '?']) && !self.excluded.contains(name));
        for name in plain.filter(|name| !present.clone().any(|other| other == *name)) {
            let meant = units::nearest(name, present.clone());
            let hint = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
            troubles.push(format!("{name}: there is no such interface{hint}"));
        }
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.parse().is_ok_and(|pattern: NamePattern| pattern.matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_and_nothing() {
        for (pattern, name, fits) in [
            ("eth0", "eth0", true),
            ("eth0", "eth01", false),
            ("eth*", "eth", true),
            ("eth*", "veth1", false),
            ("*eth*1", "veth11", true),
            ("swp*s*", "swp3s2", true),
            ("swp*s*", "swp3", false),
            ("*", "é", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} and {name}");
        }
    }

    #[test]
    fn nothing_named_means_physical_ports_and_naming_one_means_that_one() {
        let takes = |selection: &Selection, name| selection.takes(name, || name.starts_with("eth"));
        let all = Selection::physical().except(["eth9"]);
        assert_eq!(["eth0", "eth9", "veth0"].map(|name| takes(&all, name)), [true, false, false]);
        let one = Selection::named(["veth*"]).except(["veth1"]);
        assert_eq!(["eth0", "veth0", "veth1"].map(|name| takes(&one, name)), [false, true, false]);
    }

    #[test]
    fn a_name_that_no_interface_has_is_told_with_what_was_meant() {
        let mut troubles = Vec::new();
        Selection::named(["eth0", "eht1", "swp*"]).tell_missing(["eth0", "eth1"].into_iter(), &mut troubles);
        assert_eq!(troubles, ["eht1: there is no such interface; did you mean eth1?"]);
    }
}
