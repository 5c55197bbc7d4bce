//! Fabrics from files and to files: a CSV of links, or TOML.
//!
//! ```text
//! lower,upper,lower_port,upper_port,rate
//! leaf0,spine0,eth1,eth0,100G
//! leaf0,spine1,,,
//! ```
//!
//! Only `lower` and `upper` must be there; a link is 100G unless it says otherwise. Only ports distinguish parallel
//! links. For TOML, see `toml`.
//!
//! A file is an inventory, and a line may be missing. So, beyond what [`Fabric::new`] checks, all switches must be
//! connected; and unless the file says which switches are the top, those with nothing above them must all be equally
//! high: one that is lower has probably lost its links.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use units::{Rate, nearest};

use super::table::{FileError, LineError, TextTable, read};
use super::{Fabric, FabricError, FabricNode, FabricWire, LinkId, Role, SwitchId, toml};

const COLUMNS: [&str; 5] = ["lower", "upper", "lower_port", "upper_port", "rate"];

pub(super) const DEFAULT_RATE: Rate = Rate::gbps(100);

impl Fabric {
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let (file, text) = read(path)?;
        Self::parse(&file, &text)
    }

    /// Parses a file, TOML or CSV as its name says.
    pub fn parse(file: &str, text: &str) -> Result<Self, FileError> {
        let fabric = match Path::new(file).extension().and_then(|extension| extension.to_str()) {
            Some("csv") => csv(text).and_then(FileDraft::finish),
            Some("toml") => toml::read(text),
            _ => {
                let problem = "expected a file whose name ends in .toml or .csv".to_owned();
                return Err(FileError { file: file.to_owned(), line: None, problem });
            }
        };
        fabric.map_err(|wrong| wrong.in_file(file))
    }

    /// Writes CSV; links keep their numbers when it is read. Roles that do not follow from the links are not written.
    pub fn write_csv(&self, out: &mut impl io::Write) -> io::Result<()> {
        writeln!(out, "{}", COLUMNS.join(","))?;
        for link in self.links() {
            let [lower, upper] = [link.lower, link.upper].map(|end| &self.switch(end).name);
            let [lower_port, upper_port] = link.ports.as_ref().map_or(["", ""], |[lower, upper]| [lower, upper]);
            writeln!(out, "{lower},{upper},{lower_port},{upper_port},{}", link.rate)?;
        }
        Ok(())
    }
}

pub(super) fn csv(text: &str) -> Result<FileDraft, LineError> {
    let table = TextTable::parse(text, &COLUMNS, 2)?;
    let mut draft = FileDraft::default();
    for row in table.rows() {
        let wrong = |problem: String| LineError { line: row.line, problem };
        let cell = |column| table.cell(row, column);
        let end = |column: usize| cell(column).ok_or_else(|| wrong(format!("no {} switch", COLUMNS[column])));
        let [lower, upper] = [end(0)?, end(1)?].map(|name| draft.switch(name, row.line));
        let ports = match (cell(2), cell(3)) {
            (Some(lower), Some(upper)) => Some([lower.into(), upper.into()]),
            (None, None) => None,
            _ => return Err(wrong("expected the ports at both ends, or neither".to_owned())),
        };
        let rate = match cell(4) {
            Some(text) => text.parse().map_err(|error| wrong(format!("rate: '{text}': {error}")))?,
            None => DEFAULT_RATE,
        };
        draft.wire(FabricWire { lower, upper, rate, ports }, row.line);
    }
    Ok(draft)
}

/// Contents of a file that have been read so far, with their lines.
#[derive(Debug, Default)]
pub(super) struct FileDraft {
    pub(super) nodes: Vec<FabricNode>,
    pub(super) node_lines: Vec<usize>,
    numbers: HashMap<String, SwitchId>,
    pub(super) wires: Vec<FabricWire>,
    pub(super) wire_lines: Vec<usize>,
}

impl FileDraft {
    /// A switch by its name, which may be new.
    pub(crate) fn switch(&mut self, name: &str, line: usize) -> SwitchId {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        let number = SwitchId(self.nodes.len() as u32);
        self.nodes.push(name.into());
        self.node_lines.push(line);
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// A switch that must have been declared.
    pub(crate) fn declared(&self, name: &str, line: usize) -> Result<SwitchId, LineError> {
        self.numbers.get(name).copied().ok_or_else(|| {
            let none = format!("no switch is called '{name}'");
            LineError::new(
                line,
                match nearest(name, self.nodes.iter().map(|node| node.name.as_str())) {
                    Some(nearest) => format!("{none}: did you mean '{nearest}'?"),
                    None => none,
                },
            )
        })
    }

    /// Declares a switch.
    pub(crate) fn declare(&mut self, name: &str, line: usize) -> Result<SwitchId, LineError> {
        match self.numbers.get(name) {
            Some(_) => Err(LineError::new(line, FabricError::DuplicateName(name.to_owned()))),
            None => Ok(self.switch(name, line)),
        }
    }

    pub(crate) fn set_role(&mut self, switch: SwitchId, role: Role, line: usize) -> Result<(), LineError> {
        let node = &mut self.nodes[switch.index()];
        match node.role.replace(role) {
            Some(other) if other != role => {
                Err(LineError::new(line, format_args!("'{}' is said to be a {other} as well as a {role}", node.name)))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn wire(&mut self, wire: FabricWire, line: usize) {
        self.wires.push(wire);
        self.wire_lines.push(line);
    }

    pub(crate) fn finish(self) -> Result<Fabric, LineError> {
        let Self { nodes, node_lines, numbers, wires, wire_lines } = self;
        let line_of = |name: &str| numbers.get(name).map_or(1, |switch| node_lines[switch.index()]);
        let tops_declared = nodes.iter().any(|node| node.role == Some(Role::Top));
        let fabric = Fabric::new(nodes, wires).map_err(|error| {
            let line = match error.wires() {
                (Some(wire), _) => wire_lines[wire],
                _ => error.switch().map_or(1, line_of),
            };
            let first = error.wires().1.map(|first| format!(" (line {})", wire_lines[first]));
            LineError::new(line, format_args!("{error}{}", first.unwrap_or_default()))
        })?;
        let wrong = |switch: SwitchId, problem: String| LineError::new(line_of(&fabric.switch(switch).name), problem);
        check_whole(&fabric).map_err(|(switch, problem)| wrong(switch, problem))?;
        if !tops_declared {
            check_tops(&fabric).map_err(|(switch, problem)| wrong(switch, problem))?;
        }
        Ok(fabric)
    }
}

fn ids(fabric: &Fabric) -> impl DoubleEndedIterator<Item = SwitchId> + use<> {
    (0..fabric.switches().len() as u32).map(SwitchId)
}

/// Every switch can be reached from the first, by links in either direction.
fn check_whole(fabric: &Fabric) -> Result<(), (SwitchId, String)> {
    let mut reached = vec![false; fabric.switches().len()];
    reached[0] = true;
    let mut found = vec![SwitchId(0)];
    while let Some(switch) = found.pop() {
        let upper = |link: &LinkId| fabric.link(*link).upper;
        let lower = |link: &LinkId| fabric.link(*link).lower;
        for other in fabric.up(switch).iter().map(upper).chain(fabric.down(switch).iter().map(lower)) {
            if !std::mem::replace(&mut reached[other.index()], true) {
                found.push(other);
            }
        }
    }
    let lonely = |switch: &SwitchId| !reached[switch.index()];
    let tors = fabric.segments().iter().flat_map(|segment| segment.tors.iter().copied());
    match tors.chain(ids(fabric)).find(lonely) {
        Some(switch) => {
            let [name, first] = [switch, SwitchId(0)].map(|switch| &fabric.switch(switch).name);
            Err((switch, format!("'{name}' is disconnected: no links lead from it to '{first}'")))
        }
        None => Ok(()),
    }
}

/// Checks that nothing ends below the top.
fn check_tops(fabric: &Fabric) -> Result<(), (SwitchId, String)> {
    let highest = fabric.switches().iter().map(|switch| switch.level).max().unwrap_or_default();
    let level = |switch: SwitchId| fabric.switch(switch).level;
    let Some(end) = ids(fabric).find(|switch| fabric.is_top(*switch) && level(*switch) < highest) else {
        return Ok(());
    };
    let top = ids(fabric).find(|switch| level(*switch) == highest).unwrap_or(end);
    let [name, top] = [end, top].map(|switch| &fabric.switch(switch).name);
    let below = fabric.down(end).first().map_or(end, |link| fabric.link(*link).lower);
    let problem = format!(
        "'{name}' has no links up, so '{}' does not reach the top through it: expected it as high as '{top}', or a TOML \
         file with [[switch]] whose role is \"top\"",
        fabric.switch(below).name
    );
    Err((end, problem))
}
