//! Fabrics in TOML: one that is well known, or switch by switch and link by link.
//!
//! ```toml
//! [fabric]
//! kind = "facebook"       # or "fat-tree" with k, "leaf-spine" with leaves and spines, "jupiter" with hosts
//! pods = 261
//! ```
//!
//! ```toml
//! tors = ["leaf0"]        # if not all switches with nothing below them are
//!
//! [[switch]]              # if there is one, no others may be linked
//! name = "leaf0"
//! role = "tor"            # or "inner", or "top"; may be left out
//!
//! [[link]]
//! lower = "leaf0"
//! upper = "spine0"
//! ports = ["eth1", "eth7"]
//! rate = "100G"
//!
//! [[domain]]              # what fails together, for `clock plan`
//! name = "duct3"
//! members = ["leaf0--spine0", "spine1"]
//! ```

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};
use clock::graph::HostLinks;
use settings::{LineIndex, TomlError};
use units::Rate;

use super::file::{DEFAULT_RATE, FileDraft};
use super::table::{LineError, unknown};
use super::{Fabric, FabricError, FabricWire, Facebook, Role};

const FILE: [&str; 5] = ["domain", "fabric", "link", "switch", "tors"];
const DOMAIN: [&str; 2] = ["name", "members"];
const LINK: [&str; 4] = ["lower", "upper", "ports", "rate"];
const SWITCH: [&str; 2] = ["name", "role"];
const KINDS: [&str; 4] = ["facebook", "fat-tree", "jupiter", "leaf-spine"];
const FACEBOOK: [&str; 6] = ["kind", "pods", "tors", "fabrics", "spines", "rate"];
const FAT_TREE: [&str; 3] = ["kind", "k", "rate"];
const JUPITER: [&str; 3] = ["kind", "hosts", "rate"];
const HOSTS: [(&str, HostLinks); 3] =
    [("dual", HostLinks::Dual), ("single", HostLinks::Single), ("none", HostLinks::None)];
const LEAF_SPINE: [&str; 4] = ["kind", "leaves", "spines", "rate"];
const ROLES: [(&str, Role); 3] = [("tor", Role::Tor), ("inner", Role::Inner), ("top", Role::Top)];

pub(super) fn read(text: &str) -> Result<Fabric, LineError> {
    within(text, |root| match kind(root)? {
        Some(fabric) => known(&fabric),
        None => listed(root)?.finish(),
    })
}

/// A file with all that it says, for those who want more of it than a fabric.
pub(super) enum TomlTopology {
    Known(Fabric),
    /// A builder whose hosts a fabric does not have.
    Jupiter(HostLinks),
    Listed(FileDraft),
}

/// A domain as it is written: its name, and its members with their lines.
pub(super) struct DomainEntry {
    pub(super) name: String,
    pub(super) members: Vec<(String, usize)>,
}

pub(super) fn read_with_domains(text: &str) -> Result<(TomlTopology, Vec<DomainEntry>), LineError> {
    within(text, |root| {
        let topology = match kind(root)? {
            Some(fabric) if fabric.required("kind")?.0 == "jupiter" => TomlTopology::Jupiter(jupiter(&fabric)?.0),
            Some(fabric) => TomlTopology::Known(known(&fabric)?),
            None => TomlTopology::Listed(listed(root)?),
        };
        Ok((topology, domains(root)?))
    })
}

/// Reads only the domains of a file.
pub(super) fn read_domains(text: &str) -> Result<Vec<DomainEntry>, LineError> {
    within(text, domains)
}

fn within<T>(text: &str, read: impl FnOnce(&TomlEntries<'_>) -> LineResult<T>) -> LineResult<T> {
    let lines = LineIndex::of(text);
    let root = DeTable::parse(text).map_err(|error| {
        let TomlError { line, problem } = TomlError::new(text, &error);
        LineError::new(line, problem)
    })?;
    let root = TomlEntries { table: root.get_ref(), line: 1, lines: &lines };
    root.check(&FILE)?;
    read(&root)
}

/// The table of a fabric of some kind, if links are not listed instead.
fn kind<'a>(root: &TomlEntries<'a>) -> LineResult<Option<TomlEntries<'a>>> {
    match (root.table("fabric")?, root.get("link"), root.get("switch").or(root.get("tors"))) {
        (Some(_), Some((_, line)), _) | (Some(_), _, Some((_, line))) => {
            Err(LineError::new(line, "expected either [fabric] or links and switches, not both"))
        }
        (fabric, ..) => Ok(fabric),
    }
}

fn domains(root: &TomlEntries<'_>) -> LineResult<Vec<DomainEntry>> {
    let entry = |domain: TomlEntries<'_>| {
        domain.check(&DOMAIN)?;
        let (name, _) = domain.required("name")?;
        let members = domain.texts("members")?.ok_or_else(|| domain.wrong("members", "missing"))?;
        let members = members.into_iter().map(|(member, line)| (member.to_owned(), line)).collect();
        Ok(DomainEntry { name: name.to_owned(), members })
    };
    root.tables("domain")?.into_iter().map(entry).collect()
}

/// A fabric of a kind.
fn known(fabric: &TomlEntries<'_>) -> Result<Fabric, LineError> {
    let (kind, line) = fabric.required("kind")?;
    let rate = |known: &[&str]| fabric.check(known).and_then(|()| fabric.rate("rate"));
    let whole = |key| fabric.whole(key);
    let built = match kind {
        "facebook" => {
            let rate = rate(&FACEBOOK)?;
            let usual = Facebook::pods(fabric.required_whole("pods")?);
            Fabric::facebook(&Facebook {
                tors: whole("tors")?.unwrap_or(usual.tors),
                fabrics: whole("fabrics")?.unwrap_or(usual.fabrics),
                spines: whole("spines")?.unwrap_or(usual.spines),
                rate,
                ..usual
            })
        }
        "fat-tree" => {
            let rate = rate(&FAT_TREE)?;
            Fabric::fat_tree(fabric.required_whole("k")?, rate)
        }
        "jupiter" => Fabric::jupiter(jupiter(fabric)?.1),
        "leaf-spine" => {
            let rate = rate(&LEAF_SPINE)?;
            Fabric::leaf_spine(fabric.required_whole("leaves")?, fabric.required_whole("spines")?, rate)
        }
        _ => return Err(LineError::new(line, unknown("kind of fabric", kind, &KINDS))),
    };
    built.map_err(|error| LineError::new(fabric.line, error))
}

/// Reads how its hosts are linked, and the rate of its links.
fn jupiter(fabric: &TomlEntries<'_>) -> LineResult<(HostLinks, Rate)> {
    fabric.check(&JUPITER)?;
    let hosts = match fabric.text("hosts")? {
        None => HostLinks::Dual,
        Some((hosts, line)) => {
            let known = HOSTS.iter().find(|(name, _)| *name == hosts).map(|(_, links)| *links);
            known.ok_or_else(|| {
                LineError::new(line, unknown("kind of host links", hosts, &HOSTS.map(|(name, _)| name)))
            })?
        }
    };
    Ok((hosts, fabric.rate("rate")?))
}

fn listed(root: &TomlEntries<'_>) -> Result<FileDraft, LineError> {
    let [switches, links] = [root.tables("switch")?, root.tables("link")?];
    let mut draft = FileDraft::default();
    for switch in &switches {
        switch.check(&SWITCH)?;
        let (name, line) = switch.required("name")?;
        let number = draft.declare(name, line)?;
        if let Some((text, line)) = switch.text("role")? {
            let Some((_, role)) = ROLES.iter().find(|(name, _)| *name == text) else {
                return Err(LineError::new(line, unknown("role", text, &ROLES.map(|(name, _)| name))));
            };
            draft.set_role(number, *role, line)?;
        }
    }
    let is_complete = !switches.is_empty();
    for (name, line) in root.texts("tors")?.unwrap_or_default() {
        let tor = if is_complete { draft.declared(name, line)? } else { draft.switch(name, line) };
        draft.set_role(tor, Role::Tor, line)?;
    }
    for link in &links {
        link.check(&LINK)?;
        let mut end = |key| {
            let (name, line) = link.required(key)?;
            if is_complete { draft.declared(name, line) } else { Ok(draft.switch(name, line)) }
        };
        let [lower, upper] = [end("lower")?, end("upper")?];
        let ports = match link.texts("ports")?.as_deref() {
            None => None,
            Some([(lower, _), (upper, _)]) => Some([Box::from(*lower), Box::from(*upper)]),
            Some(_) => return Err(link.wrong("ports", "expected two: at the lower and at the upper switch")),
        };
        draft.wire(FabricWire { lower, upper, rate: link.rate("rate")?, ports }, link.line);
    }
    if links.is_empty() && switches.is_empty() {
        return Err(LineError::new(1, format_args!("{}: [[link]], or a [fabric] of some kind", FabricError::NoLinks)));
    }
    Ok(draft)
}

/// A table, and the line in which it begins.
struct TomlEntries<'a> {
    table: &'a DeTable<'a>,
    line: usize,
    lines: &'a LineIndex,
}

type LineResult<T> = Result<T, LineError>;

impl<'a> TomlEntries<'a> {
    fn get(&self, key: &str) -> Option<(&'a DeValue<'a>, usize)> {
        let value = self.table.get(key)?;
        Some((value.get_ref(), self.lines.at(value.span().start)))
    }

    fn wrong(&self, key: &str, problem: &str) -> LineError {
        LineError::new(self.get(key).map_or(self.line, |(_, line)| line), format_args!("{key}: {problem}"))
    }

    /// Fails if there are other keys.
    fn check(&self, known: &[&str]) -> LineResult<()> {
        // The order of a table is not that of the file.
        let mut keys: Vec<_> = self.table.keys().collect();
        keys.sort_by_key(|key| key.span().start);
        match keys.into_iter().find(|key| !known.contains(&key.get_ref().as_ref())) {
            Some(key) => Err(LineError::new(self.lines.at(key.span().start), unknown("key", key.get_ref(), known))),
            None => Ok(()),
        }
    }

    fn text(&self, key: &str) -> LineResult<Option<(&'a str, usize)>> {
        match self.get(key) {
            None => Ok(None),
            Some((DeValue::String(text), line)) => Ok(Some((text.as_ref(), line))),
            Some(_) => Err(self.wrong(key, "expected text in quotes")),
        }
    }

    fn required(&self, key: &str) -> LineResult<(&'a str, usize)> {
        self.text(key)?.ok_or_else(|| self.wrong(key, "missing"))
    }

    fn rate(&self, key: &str) -> LineResult<Rate> {
        let Some((text, _)) = self.text(key)? else { return Ok(DEFAULT_RATE) };
        text.parse().map_err(|error| self.wrong(key, &format!("'{text}': {error}")))
    }

    /// A number of something.
    fn whole(&self, key: &str) -> LineResult<Option<u32>> {
        let number = match self.get(key) {
            None => return Ok(None),
            Some((DeValue::Integer(number), _)) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
            Some(_) => None,
        };
        let expected = || self.wrong(key, "expected a whole number of at least 1, below 2^32");
        number.filter(|number| *number > 0).map(Some).ok_or_else(expected)
    }

    fn required_whole(&self, key: &str) -> LineResult<u32> {
        self.whole(key)?.ok_or_else(|| self.wrong(key, "missing"))
    }

    fn texts(&self, key: &str) -> LineResult<Option<Vec<(&'a str, usize)>>> {
        let wrong = || self.wrong(key, "expected a list of texts in quotes");
        let items = match self.get(key) {
            None => return Ok(None),
            Some((DeValue::Array(items), _)) => items,
            Some(_) => return Err(wrong()),
        };
        let text = |item: &'a Spanned<DeValue<'a>>| match item.get_ref() {
            DeValue::String(text) => Ok((text.as_ref(), self.lines.at(item.span().start))),
            _ => Err(wrong()),
        };
        items.iter().map(text).collect::<LineResult<_>>().map(Some)
    }

    fn table(&self, key: &str) -> LineResult<Option<Self>> {
        match self.get(key) {
            None => Ok(None),
            Some((DeValue::Table(table), line)) => Ok(Some(TomlEntries { table, line, lines: self.lines })),
            Some(_) => Err(self.wrong(key, &format!("expected a table: [{key}]"))),
        }
    }

    fn tables(&self, key: &str) -> LineResult<Vec<Self>> {
        let wrong = || self.wrong(key, &format!("expected a list of tables: [[{key}]]"));
        let items = match self.get(key) {
            None => return Ok(Vec::new()),
            Some((DeValue::Array(items), _)) => items,
            Some(_) => return Err(wrong()),
        };
        let entries = |item: &'a Spanned<DeValue<'a>>| match item.get_ref() {
            DeValue::Table(table) => {
                Ok(TomlEntries { table, line: self.lines.at(item.span().start), lines: self.lines })
            }
            _ => Err(wrong()),
        };
        items.iter().map(entries).collect()
    }
}
