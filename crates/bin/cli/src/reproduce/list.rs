//! `hitless reproduce list`.

use papers::{Overview, Paper, SavedResults};
use report::claim::RunScale;

use super::refused;
use crate::args::ReproduceArgs;
use crate::output::{CommandResult, Failure, print, put};

pub(super) fn run(args: &ReproduceArgs, json: bool) -> CommandResult {
    let others = [("--out", args.out.is_some()), ("--save", args.save.is_some()), ("--only", args.only.is_some())];
    if let Some((option, _)) = others.iter().find(|(_, given)| *given) {
        return Err(Failure::Usage(format!("{option}: list runs nothing")));
    }
    let saved = match &args.results {
        Some(folder) if !folder.is_dir() => {
            return Err(Failure::Usage(format!("--results {}: expected a folder", folder.display())));
        }
        Some(folder) => SavedResults::read_all(folder).map_err(Failure::Usage)?,
        None => Vec::new(),
    };
    let overview = Overview::new(&saved).map_err(refused)?;
    if args.markdown {
        // What is published gives a reason for every row that differs.
        for kept in saved.iter().filter(|kept| kept.run.scale == RunScale::Full.to_string()) {
            let claims = kept.paper().map(Paper::claims).transpose().map_err(refused)?;
            claims.map_or(Ok(()), |claims| claims.check_reasons(kept)).map_err(refused)?;
        }
        return put(overview.markdown().trim_end());
    }
    print(json, &overview, || overview.text())
}
