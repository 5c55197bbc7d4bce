//! Prints the measurements of the workspace: a table of its crates, or one of the lists behind it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;

use tidy::docs::{DocPage, read_pages};
use tidy::duplicates::duplicates;
use tidy::manifests::{read_packages, unused_dependencies};
use tidy::measure::{Measures, files_without_docs, long_files, long_functions};
use tidy::names::{Definition, count_names, percent, public_items, types_by_name, unused_public};
use tidy::prose::{DocLine, comment_openings, doc_lines, sample};
use tidy::references::{broken_names, broken_paths};
use tidy::source::{SourceFile, parse_workspace, read_workspace};
use tidy::walks::{Jumps, Walk, walks};

const USAGE: &str = "Usage: cargo run -p hitless-tidy [-- OPTION]

Prints lines, functions, documentation and names of every crate.

  --types       type names that are used more than once
  --unused      public items of libraries that no other crate and no test names
  --long        functions over 40 lines, files over 400 without their tests, files without `//!`
  --duplicates  equal runs of six lines or more
  --walks       files, crates, crate switches and revisits of each walk of ARCHITECTURE.md
  --odd         documentation lines, and plain comments, that begin with What, How, Of, The same and the like
  --sample N --seed N
                sentences drawn at random, half from comments, half from pages
";

fn main() -> io::Result<ExitCode> {
    let texts = read_workspace(&tidy::root())?;
    let files = parse_workspace(&texts);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let lines = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => [table(&files), longest(&files), pages(&files)?].concat(),
        ["--types"] => shared_types(&files),
        ["--unused"] => unused_public(&files).iter().map(described).collect(),
        ["--long"] => long(&files),
        ["--duplicates"] => repeated(&files),
        ["--odd"] => odd(&files),
        ["--walks"] => walk_lines(&files)?,
        ["--sample", count, "--seed", seed] => match (count.parse(), seed.parse()) {
            (Ok(count), Ok(seed)) => sample(&files, &read_pages(&tidy::root())?, count, seed),
            _ => return refused(),
        },
        _ => return refused(),
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(ExitCode::SUCCESS)
}

const HEAD: [&str; 14] = [
    "crate",
    "code",
    "tests",
    "functions",
    "median",
    "p90",
    "p99",
    "max",
    "docs/100",
    "asserts/100",
    "pub",
    "pub(…)",
    "unused",
    "same name",
];

fn table(files: &[SourceFile<'_>]) -> Vec<String> {
    let mut rows: BTreeMap<&str, (Measures, usize, usize)> = BTreeMap::new();
    for file in files {
        rows.entry(file.package).or_default().0 += &Measures::of_file(file);
    }
    for unused in unused_public(files).chunk_by(|(a, _), (b, _)| a.package == b.package) {
        rows.entry(unused[0].0.package).or_default().1 += count_names(unused);
    }
    let by_name = types_by_name(files);
    for (file, _) in by_name.values().filter(|same| same.len() > 1).flatten() {
        rows.entry(file.package).or_default().2 += 1;
    }
    let mut total = (Measures::default(), 0, 0);
    for (measures, unused, same_name) in rows.values() {
        total = (total.0, total.1 + unused, total.2 + same_name);
        total.0 += measures;
    }
    let head = HEAD.map(str::to_owned);
    let rows = rows.iter().chain([(&"total", &total)]).map(|(name, row)| columns(name, row));
    let mut lines: Vec<String> = [head].into_iter().chain(rows).map(|row| aligned(&row)).collect();
    let (types, public) = (by_name.values().map(Vec::len).sum(), count_names(&public_items(files)));
    lines.push(String::new());
    lines.push(format!("types that share their name: {} of {types} ({:.1} %)", total.2, percent(total.2, types)));
    lines.push(format!("public names unused outside: {} of {public} ({:.1} %)", total.1, percent(total.1, public)));
    lines.push(format!("duplicates: {}", duplicates(files).len()));
    let share = |of: &str, lines: Vec<DocLine<'_>>| {
        let odd = lines.iter().filter(|line| line.is_odd()).count();
        format!("{of} with an odd opening: {odd} of {} ({:.1} %)", lines.len(), percent(odd, lines.len()))
    };
    lines.push(share("documentation lines", files.iter().flat_map(doc_lines).collect()));
    lines.push(share("plain comments", files.iter().flat_map(comment_openings).collect()));
    lines
}

fn columns(name: &str, (measures, unused, same_name): &(Measures, usize, usize)) -> [String; 14] {
    let Measures { code_lines, test_lines, doc_lines, functions, asserts, public, restricted } = measures;
    let length = |quantile| measures.function_length(quantile).to_string();
    [
        name.to_owned(),
        code_lines.to_string(),
        test_lines.to_string(),
        functions.len().to_string(),
        length(0.5),
        length(0.9),
        length(0.99),
        length(1.0),
        format!("{:.1}", percent(*doc_lines, *code_lines)),
        format!("{:.1}", percent(*asserts, functions.len())),
        public.to_string(),
        restricted.to_string(),
        unused.to_string(),
        same_name.to_string(),
    ]
}

fn aligned(row: &[String; 14]) -> String {
    let cells = row.iter().zip(HEAD).skip(1).map(|(cell, head)| format!("  {cell:>0$}", head.chars().count().max(6)));
    format!("{:<10}{}", row[0], cells.collect::<String>())
}

fn refused() -> io::Result<ExitCode> {
    io::stderr().write_all(USAGE.as_bytes())?;
    Ok(ExitCode::from(2))
}

fn odd(files: &[SourceFile<'_>]) -> Vec<String> {
    let place = |file: &SourceFile<'_>, doc: DocLine<'_>| format!("{}: {}", file.place(doc.line), doc.text);
    files
        .iter()
        .flat_map(|file| {
            let lines = doc_lines(file).chain(comment_openings(file));
            lines.filter(DocLine::is_odd).map(|doc| place(file, doc)).collect::<Vec<_>>()
        })
        .collect()
}

fn described((file, item): &Definition<'_, '_>) -> String {
    format!("{}: {} {}", file.place(item.line), item.keyword, item.name)
}

fn shared_types(files: &[SourceFile<'_>]) -> Vec<String> {
    let mut shared: Vec<_> = types_by_name(files).into_iter().filter(|(_, same)| same.len() > 1).collect();
    shared.sort_by_key(|(name, same)| (Reverse(same.len()), *name));
    let places = |(name, same): (&str, Vec<Definition<'_, '_>>)| {
        let places: Vec<String> = same.iter().map(|(file, item)| file.place(item.line)).collect();
        format!("{name} {}: {}", same.len(), places.join(" "))
    };
    shared.into_iter().map(places).collect()
}

fn long(files: &[SourceFile<'_>]) -> Vec<String> {
    let functions = long_functions(files, 40).into_iter().map(|it| format!("{}: {}", described(&it), it.1.lines));
    let long = long_files(files, 400).into_iter().map(|file| format!("{}: {}", file.place(1), file.length()));
    let silent = files_without_docs(files).into_iter().map(|file| format!("{}: no `//!`", file.place(1)));
    functions.chain(long).chain(silent).collect()
}

/// The longest function and the longest file.
fn longest(files: &[SourceFile<'_>]) -> Vec<String> {
    let function = long_functions(files, 0).into_iter().next();
    let function = function.map(|found| format!("longest function: {} lines, {}", found.1.lines, described(&found)));
    let file = long_files(files, 0).into_iter().next();
    let file = file.map(|file| format!("longest file: {} lines, {}", file.length(), file.path.display()));
    function.into_iter().chain(file).collect()
}

/// Unused dependencies, words of the pages, and what in them leads nowhere.
fn pages(files: &[SourceFile<'_>]) -> io::Result<Vec<String>> {
    let root = tidy::root();
    let unused = unused_dependencies(&read_packages(&root, files)?, files).len();
    let pages = read_pages(&root)?;
    let paths = broken_paths(&root, &pages, files).len();
    let names = broken_names(&root, &pages, files)?.len();
    let in_docs = pages.iter().filter(|page| page.path.starts_with("docs"));
    let words: usize = in_docs.map(DocPage::words).sum();
    let readme = pages.iter().find(|page| page.path.as_os_str() == "README.md").map_or(0, DocPage::words);
    let broken = pages.iter().map(|page| page.broken_rows().count()).sum::<usize>();
    Ok(vec![
        format!("unused dependencies: {unused}"),
        format!("words in docs: {words}, in README.md: {readme}"),
        format!("broken rows of tables: {broken}"),
        format!("broken paths in pages: {paths}"),
        format!("broken names in pages: {names}"),
    ])
}

fn walk_lines(files: &[SourceFile<'_>]) -> io::Result<Vec<String>> {
    let pages = read_pages(&tidy::root())?;
    let found = pages.iter().filter(|page| page.path.as_os_str() == "ARCHITECTURE.md").flat_map(walks);
    let line = |walk: Walk| match walk.files(files) {
        Ok(files) => {
            let Jumps { files, crates, switches, revisits } = Jumps::of(&files);
            format!("{}: {files} files, {crates} crates, {switches} crate switches, {revisits} revisits", walk.title)
        }
        Err(unknown) => format!("{}: {}", walk.title, unknown.join("; ")),
    };
    Ok(found.map(line).collect())
}

fn repeated(files: &[SourceFile<'_>]) -> Vec<String> {
    let line = |duplicate: tidy::duplicates::Duplicate<'_, '_>| {
        let [one, other] = duplicate.places.map(|(file, line)| file.place(line));
        format!("{one} {other}: {} lines", duplicate.lines)
    };
    duplicates(files).into_iter().map(line).collect()
}
