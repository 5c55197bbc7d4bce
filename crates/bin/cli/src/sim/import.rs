//! `hitless sim import`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use imports::{HostNames, ImportFormat, ImportGraph, StartUnit, TraceEncoding, import_file, import_traces};

use crate::args::{ImportArgs, StartUnitArg};
use crate::output::{CommandResult, Failure, print, say};

pub(super) fn run(args: &ImportArgs, json: bool) -> CommandResult {
    if args.start_unit.is_some() && args.from != ImportFormat::Htsim {
        return Err(Failure::Usage(format!(
            "--start-unit: only htsim needs it, expected none with --from {}",
            args.from
        )));
    }
    let graph = match args.from {
        ImportFormat::Chakra => traces(&args.file)?,
        format => {
            let unit = args.start_unit.map(|unit| match unit {
                StartUnitArg::Ps => StartUnit::Picoseconds,
                StartUnitArg::Us => StartUnit::Microseconds,
            });
            let mut file = open(&args.file).map_err(|error| refused(&args.file, &error))?;
            import_file(format, &mut file, unit).map_err(|error| refused(&args.file, &error))?
        }
    };
    let default = if args.from == ImportFormat::Hpcc { "n" } else { "h" };
    let hosts = args.hosts.clone().unwrap_or(HostNames::Numbered(default));
    if let Some(count) = hosts.count().filter(|count| *count < graph.ranks as usize) {
        let ranks = graph.ranks;
        return Err(Failure::Usage(format!(
            "--hosts names {count} hosts: expected at least {ranks}, the ranks of the file"
        )));
    }
    graph.left_out.iter().for_each(|line| say(&format!("left out: {line}")));
    if json { print(true, &graph.answer(&hosts), String::new) } else { write(&graph, &hosts) }
}

fn write(graph: &ImportGraph, hosts: &HostNames) -> CommandResult {
    let mut out = BufWriter::new(std::io::stdout().lock());
    match graph.write_csv(hosts, &mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Outside(error.to_string())),
        _ => Ok(()),
    }
}

fn refused(file: &Path, problem: &dyn std::fmt::Display) -> Failure {
    Failure::Usage(format!("{}: {problem}", file.display()))
}

/// A folder opens like a file, and says so only when it is read.
fn open(path: &Path) -> std::io::Result<BufReader<File>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(std::io::Error::other("is a folder; expected a file"));
    }
    Ok(BufReader::with_capacity(1 << 16, file))
}

/// Files of a trace by the rank in their names.
struct TraceFiles {
    folder: PathBuf,
    /// The parts of a name before and behind the rank.
    before: String,
    behind: String,
}

impl TraceFiles {
    /// Takes `NAME.%d.et`, one of the files by its own name, or `NAME` alone.
    fn named(file: &Path) -> Result<Self, Failure> {
        let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let split = name.split_once("%d").map(|(before, behind)| (before.to_owned(), behind.to_owned()));
        let (before, behind) = match split {
            Some(parts) => parts,
            None => of_one(&name).unwrap_or((format!("{name}."), ".et".into())),
        };
        if before.is_empty() && behind.is_empty() {
            return Err(refused(file, &"expected files of ranks by a name such as trace.%d.et"));
        }
        Ok(Self { folder, before, behind })
    }

    fn path(&self, rank: u32) -> PathBuf {
        self.folder.join(format!("{}{rank}{}", self.before, self.behind))
    }

    /// Ranks that there are files of.
    fn ranks(&self) -> std::io::Result<Vec<u32>> {
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        let mut ranks = Vec::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            let rank = name.strip_prefix(&self.before).and_then(|rest| rest.strip_suffix(&self.behind));
            ranks.extend(rank.and_then(|rank| rank.parse::<u32>().ok()));
        }
        ranks.sort_unstable();
        Ok(ranks)
    }
}

/// The parts of `trace.3.et` around its rank.
fn of_one(name: &str) -> Option<(String, String)> {
    let (rest, ending) = name.rsplit_once('.')?;
    let (before, rank) = rest.rsplit_once('.')?;
    rank.parse::<u32>().ok()?;
    Some((format!("{before}."), format!(".{ending}")))
}

fn traces(file: &Path) -> Result<ImportGraph, Failure> {
    let files = TraceFiles::named(file)?;
    let ranks = files.ranks().map_err(|error| refused(file, &error))?;
    let Some(last) = ranks.last() else {
        let first = files.path(0);
        return Err(refused(file, &format!("expected a file for each rank, such as {}", first.display())));
    };
    let missing = (0..*last).zip(&ranks).find(|(rank, found)| rank != *found);
    if let Some((rank, _)) = missing {
        return Err(refused(file, &format!("there is a file of rank {last} and none of rank {rank}")));
    }
    let encoding = if files.behind.trim_end_matches(".gz").ends_with(".json") {
        TraceEncoding::Json
    } else {
        TraceEncoding::Protobuf
    };
    let open = |rank| open(&files.path(rank)).map(|file| Box::new(file) as Box<dyn BufRead>);
    import_traces(last + 1, encoding, open).map_err(|error| refused(file, &error))
}
