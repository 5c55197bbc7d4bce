//! Claims among files, with the scenarios that they run.

use super::{Claim, ClaimError};

/// The path below `experiments/` and the text of a file that is part of the program.
pub type EmbeddedFile = (&'static str, &'static str);

pub fn find(files: &[EmbeddedFile], path: &str) -> Option<EmbeddedFile> {
    files.iter().copied().find(|(known, _)| *known == path)
}

/// The claims among some files, each with the text of its scenario, in their order. A file without an id is a scenario.
pub fn claims(files: &[EmbeddedFile]) -> Result<Vec<Claim>, ClaimError> {
    let mut claims = Vec::new();
    for (path, text) in files {
        let keys: toml::Table =
            toml::from_str(text).map_err(|error| ClaimError::new(format_args!("{path}: {error}")))?;
        if keys.contains_key("id") {
            let mut claim = Claim::parse(path, text)?;
            if !claim.scenario.is_empty() {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let scenario = format!("{folder}/{}", claim.scenario);
                let missing = || ClaimError::new(format_args!("{path}: no file {scenario}"));
                claim.scenario_text = find(files, &scenario).ok_or_else(missing)?.1;
            }
            claims.push(claim);
        }
    }
    claims.sort_by_key(|claim| claim.order);
    Ok(claims)
}
