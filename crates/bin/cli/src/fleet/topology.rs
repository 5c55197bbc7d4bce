//! `hitless fleet topology`: a file to start from.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use fleet::{Fabric, SwitchId};
use serde::Serialize;

use crate::args::TopologyArgs;
use crate::output::{CommandResult, Failure, print};
use crate::results::write_file;

#[derive(Serialize)]
struct TopologyResult {
    file: String,
    switches: usize,
    links: usize,
    segments: usize,
}

pub(super) fn run(args: &TopologyArgs, json: bool) -> CommandResult {
    let fabric = super::fabric(&args.fabric)?;
    check(&fabric)?;
    if args.write == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        return match fabric.write_csv(&mut out).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::Outside(error.to_string())),
            _ => Ok(()),
        };
    }
    let file = args.write.display().to_string();
    if args.write.extension().is_none_or(|extension| extension != "csv") {
        return Err(Failure::Usage(format!("--write {file}: expected a file whose name ends in .csv")));
    }
    write_file("--write", &args.write, |out| fabric.write_csv(out))?;
    let written = TopologyResult {
        file,
        switches: fabric.switches().len(),
        links: fabric.links().len(),
        segments: fabric.segments().len(),
    };
    print(json, &written, || {
        let TopologyResult { file, switches, links, segments } = &written;
        format!("{file}: {switches} switches and {links} links in {segments} segments")
    })
}

/// Refuses a fabric with a declared ToR or top that does not follow from the links: CSV would lose it.
fn check(fabric: &Fabric) -> CommandResult {
    let mut text = Vec::new();
    fabric.write_csv(&mut text).map_err(|error| Failure::Outside(error.to_string()))?;
    match Fabric::parse("topology.csv", &String::from_utf8_lossy(&text)) {
        Ok(read) if roles(&read) == roles(fabric) => Ok(()),
        _ => Err(Failure::Usage("its roles do not follow from its links, and CSV has no place for them".to_owned())),
    }
}

/// The names of ToRs and of tops. Switches may have other numbers when they are read.
fn roles(fabric: &Fabric) -> [BTreeSet<&str>; 2] {
    let name = |switch: SwitchId| fabric.switch(switch).name.as_str();
    let tors = fabric.segments().iter().flat_map(|segment| segment.tors.iter().copied());
    let tops = (0..fabric.switches().len() as u32).map(SwitchId).filter(|switch| fabric.is_top(*switch));
    [tors.map(name).collect(), tops.map(name).collect()]
}
