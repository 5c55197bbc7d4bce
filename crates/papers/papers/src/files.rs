//! The files under `experiments/`, as part of the program: claims, and the scenarios that they run.

use report::claim::ClaimError;
use report::claim::files::{EmbeddedFile, find};
use scenario::Scenario;
use sim::net::NetworkSetup;

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

/// The setup of a scenario's first point.
pub(crate) fn setup(path: &str, sets: &[String], seed: u64) -> Result<NetworkSetup, ClaimError> {
    let (name, text) = named(path)?;
    let scenario = Scenario::parse(name, text, sets).map_err(ClaimError::new)?;
    let point = scenario.points.first().ok_or_else(|| ClaimError::new("no point"))?;
    Ok(point.setup(seed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Paper;

    #[test]
    fn every_claim_belongs_to_a_paper() {
        for (path, text) in FILES {
            let keys: toml::Table = toml::from_str(text).unwrap();
            let paper = path.split('/').next().and_then(Paper::named);
            assert!(paper.is_some() || !keys.contains_key("id"), "{path}");
        }
    }
}
