//! The files under `experiments/`, as part of the program: claims, and the scenarios that they run.

use super::{Claim, ClaimError};

/// The path below `experiments/` and the text of a file.
pub(crate) type EmbeddedFile = (&'static str, &'static str);

/// All of them, by path.
const FILES: &[EmbeddedFile] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// The files of a paper.
pub(crate) fn of_paper(name: &str) -> Vec<EmbeddedFile> {
    let is_its = |path: &str| path.split_once('/').is_some_and(|(paper, _)| paper == name);
    FILES.iter().copied().filter(|(path, _)| is_its(path)).collect()
}

pub(crate) fn named(path: &str) -> Result<EmbeddedFile, ClaimError> {
    find(FILES, path).ok_or_else(|| ClaimError::new(format_args!("no file {path}")))
}

fn find(files: &[EmbeddedFile], path: &str) -> Option<EmbeddedFile> {
    files.iter().copied().find(|(known, _)| *known == path)
}

/// The claims among some files, each with the text of its scenario, in their order. A file without an id is a scenario.
pub(crate) fn claims(files: &[EmbeddedFile]) -> Result<Vec<Claim>, ClaimError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::Paper;

    #[test]
    fn every_claim_belongs_to_a_paper() {
        for (path, text) in FILES {
            let keys: toml::Table = toml::from_str(text).unwrap();
            let paper = path.split('/').next().and_then(Paper::named);
            assert!(paper.is_some() || !keys.contains_key("id"), "{path}");
        }
    }
}
