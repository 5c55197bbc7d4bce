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

use settings::tree::TreeNode;
use settings::{KeyError, TableReader};
use topology::HostLinks;
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
            Some(fabric) if fabric.needed_text("kind")?.0 == "jupiter" => TomlTopology::Jupiter(jupiter(&fabric)?.0),
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

type LineResult<T> = Result<T, LineError>;

impl From<KeyError> for LineError {
    fn from(KeyError { place, key, problem }: KeyError) -> Self {
        let line = place.line();
        match key.as_str() {
            "" => Self { line, problem },
            key => Self::new(line, format_args!("{key}: {problem}")),
        }
    }
}

fn within<T>(text: &str, read: impl FnOnce(&TableReader<'_>) -> LineResult<T>) -> LineResult<T> {
    let root = TreeNode::parse(text)?;
    let root = TableReader::new(&root);
    check(&root, &FILE)?;
    read(&root)
}

/// Fails if there are other keys.
fn check(table: &TableReader<'_>, known: &[&str]) -> LineResult<()> {
    match table.keys().find(|(key, _)| !known.contains(key)) {
        Some((key, line)) => Err(LineError::new(line, unknown("key", key, known))),
        None => Ok(()),
    }
}

fn rate(table: &TableReader<'_>) -> LineResult<Rate> {
    let Some((text, _)) = table.text("rate")? else { return Ok(DEFAULT_RATE) };
    Ok(text.parse().map_err(|error| table.wrong("rate", format_args!("'{text}': {error}")))?)
}

/// The table of a fabric of some kind, if links are not listed instead.
fn kind<'a>(root: &TableReader<'a>) -> LineResult<Option<TableReader<'a>>> {
    match (root.table("fabric")?, root.line_of("link"), root.line_of("switch").or(root.line_of("tors"))) {
        (Some(_), Some(line), _) | (Some(_), _, Some(line)) => {
            Err(LineError::new(line, "expected either [fabric] or links and switches, not both"))
        }
        (fabric, ..) => Ok(fabric),
    }
}

fn domains(root: &TableReader<'_>) -> LineResult<Vec<DomainEntry>> {
    let entry = |domain: TableReader<'_>| {
        check(&domain, &DOMAIN)?;
        let (name, _) = domain.needed_text("name")?;
        let members = domain.texts("members")?.ok_or_else(|| domain.wrong("members", "missing"))?;
        let members = members.into_iter().map(|(member, line)| (member.to_owned(), line)).collect();
        Ok(DomainEntry { name: name.to_owned(), members })
    };
    root.tables("domain")?.into_iter().map(entry).collect()
}

/// A fabric of a kind.
fn known(fabric: &TableReader<'_>) -> Result<Fabric, LineError> {
    let (kind, line) = fabric.needed_text("kind")?;
    let rate = |known: &[&str]| check(fabric, known).and_then(|()| rate(fabric));
    let whole = |key| fabric.count(key);
    let built = match kind {
        "facebook" => {
            let rate = rate(&FACEBOOK)?;
            let usual = Facebook::pods(fabric.needed_count("pods")?);
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
            Fabric::fat_tree(fabric.needed_count("k")?, rate)
        }
        "jupiter" => Fabric::jupiter(jupiter(fabric)?.1),
        "leaf-spine" => {
            let rate = rate(&LEAF_SPINE)?;
            Fabric::leaf_spine(fabric.needed_count("leaves")?, fabric.needed_count("spines")?, rate)
        }
        _ => return Err(LineError::new(line, unknown("kind of fabric", kind, &KINDS))),
    };
    built.map_err(|error| LineError::new(fabric.line(), error))
}

/// Reads how its hosts are linked, and the rate of its links.
fn jupiter(fabric: &TableReader<'_>) -> LineResult<(HostLinks, Rate)> {
    check(fabric, &JUPITER)?;
    let hosts = match fabric.text("hosts")? {
        None => HostLinks::Dual,
        Some((hosts, line)) => {
            let known = HOSTS.iter().find(|(name, _)| *name == hosts).map(|(_, links)| *links);
            known.ok_or_else(|| {
                LineError::new(line, unknown("kind of host links", hosts, &HOSTS.map(|(name, _)| name)))
            })?
        }
    };
    Ok((hosts, rate(fabric)?))
}

fn listed(root: &TableReader<'_>) -> Result<FileDraft, LineError> {
    let [switches, links] = [root.tables("switch")?, root.tables("link")?];
    let mut draft = FileDraft::default();
    for switch in &switches {
        check(switch, &SWITCH)?;
        let (name, line) = switch.needed_text("name")?;
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
        check(link, &LINK)?;
        let mut end = |key| {
            let (name, line) = link.needed_text(key)?;
            if is_complete { draft.declared(name, line) } else { Ok(draft.switch(name, line)) }
        };
        let [lower, upper] = [end("lower")?, end("upper")?];
        let ports = match link.texts("ports")?.as_deref() {
            None => None,
            Some([(lower, _), (upper, _)]) => Some([Box::from(*lower), Box::from(*upper)]),
            Some(_) => return Err(link.wrong("ports", "expected two: at the lower and at the upper switch").into()),
        };
        draft.wire(FabricWire { lower, upper, rate: rate(link)?, ports }, link.line());
    }
    if links.is_empty() && switches.is_empty() {
        return Err(LineError::new(1, format_args!("{}: [[link]], or a [fabric] of some kind", FabricError::NoLinks)));
    }
    Ok(draft)
}
