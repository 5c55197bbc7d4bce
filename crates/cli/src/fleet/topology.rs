//! `hitless fleet topology`: a file to start from.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use report::flows::whole_file;
use serde::Serialize;

use crate::args::TopologyArgs;
use crate::output::{Done, Failure, print};

#[derive(Serialize)]
struct Written {
    file: String,
    switches: usize,
    links: usize,
    segments: usize,
}

pub fn run(args: &TopologyArgs, json: bool) -> Done {
    let fabric = super::fabric(&args.fabric)?;
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
    whole_file(&args.write, |out| fabric.write_csv(out)).map_err(|error| Failure::Outside(error.to_string()))?;
    let written = Written {
        file,
        switches: fabric.switches().len(),
        links: fabric.links().len(),
        segments: fabric.segments().len(),
    };
    print(json, &written, || {
        let Written { file, switches, links, segments } = &written;
        format!("{file}: {switches} switches and {links} links in {segments} segments")
    })
}
