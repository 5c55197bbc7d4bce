//! Results kept as small files, one for each paper and scale: every point with its kind, verdict, value, interval and
//! band, and which commit gave it when. A run that was ended is taken up again from them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use files::whole_file;
use report::claim::{ClaimResult, PointResult, VerdictTally};
use serde::{Deserialize, Serialize};

use crate::Paper;

/// Key of results that belong together: runs with the same key give the same results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRun {
    pub paper: String,
    /// `quick` or `full`.
    pub scale: String,
    pub seed: u64,
    /// Commit of the program that made it; of a file, the latest of those that did.
    pub commit: String,
}

/// Version of the files; one of another is refused.
const VERSION: u32 = 1;

/// An error is its line and what is wrong. The version is read first: a file of another may have any form.
fn parse(text: &str) -> Result<SavedResults, (usize, String)> {
    #[derive(Deserialize)]
    struct ResultsVersion {
        #[serde(default = "first")]
        version: u32,
    }
    let wrong = |error: &serde_json::Error| (error.line(), error.to_string());
    let ResultsVersion { version } = serde_json::from_str(text).map_err(|error| wrong(&error))?;
    if version != VERSION {
        let line = text.lines().position(|line| line.contains("\"version\"")).unwrap_or_default() + 1;
        return Err((line, format!("version {version}")));
    }
    serde_json::from_str(text).map_err(|error| wrong(&error))
}

/// Files before versions were counted.
fn first() -> u32 {
    1
}

/// The file of a paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedResults {
    #[serde(default = "first")]
    version: u32,
    #[serde(flatten)]
    pub run: SavedRun,
    /// Date of the latest claim, such as 2026-11-17.
    pub date: String,
    pub claims: Vec<SavedClaim>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedClaim {
    pub id: String,
    pub seconds: f64,
    pub points: Vec<PointResult>,
    /// Commit of the program that made it, if that is not the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl SavedRun {
    /// Path of the results in a folder.
    pub fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.{}.json", self.paper, self.scale))
    }
}

impl SavedResults {
    pub fn new(run: SavedRun) -> Self {
        Self { version: VERSION, run, date: String::new(), claims: Vec::new() }
    }

    /// `None` if there is no such file.
    pub fn read(path: &Path) -> Result<Option<Self>, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(wrong(&error)),
            Ok(text) => parse(&text).map(Some).map_err(|(line, what)| {
                wrong(&format_args!(
                    "line {line}: {what}: expected results that `hitless reproduce --save` of this version wrote"
                ))
            }),
        }
    }

    /// All of a folder, in the order of the papers, `full` before `quick` of the same paper.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>, String> {
        let mut all = Vec::new();
        for paper in crate::PAPERS {
            for scale in ["full", "quick"] {
                all.extend(Self::read(&folder.join(format!("{}.{scale}.json", paper.name)))?);
            }
        }
        Ok(all)
    }

    /// Replaces the file of the same run.
    pub fn write(&self, folder: &Path) -> Result<(), String> {
        let path = self.run.path(folder);
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = serde_json::to_string(self).map_err(|error| wrong(&error))?;
        whole_file(&path, |out| writeln!(out, "{text}")).map_err(|error| error.to_string())
    }

    /// Goes on as results of `run`. Claims of another program stay and name its commit; those of another seed or scale do
    /// not.
    #[must_use]
    pub fn continued(self, run: &SavedRun) -> Self {
        let Self { version, run: before, date, mut claims } = self;
        if (SavedRun { commit: run.commit.clone(), ..before.clone() }) != *run {
            return Self::new(run.clone());
        }
        for claim in &mut claims {
            let commit = claim.commit.take().unwrap_or_else(|| before.commit.clone());
            claim.commit = Some(commit).filter(|commit| *commit != run.commit);
        }
        Self { version, run: run.clone(), date, claims }
    }

    /// Commits of all programs that made it, the latest first.
    pub(crate) fn commits(&self) -> Vec<&str> {
        let mut commits = vec![self.run.commit.as_str()];
        for commit in self.claims.iter().filter_map(|claim| claim.commit.as_deref()) {
            if !commits.contains(&commit) {
                commits.push(commit);
            }
        }
        commits
    }

    /// Replaces what is known of the claim.
    pub fn add(&mut self, result: &ClaimResult, date: &str) {
        date.clone_into(&mut self.date);
        let claim = SavedClaim {
            id: result.id.clone(),
            seconds: (result.seconds * 10.0).round() / 10.0,
            points: result.points.clone(),
            commit: None,
        };
        match self.claims.iter_mut().find(|known| known.id == claim.id) {
            Some(known) => *known = claim,
            None => self.claims.push(claim),
        }
    }

    /// The claims of a paper that are not there, or have other points by now, have to be run.
    pub fn claim(&self, id: &str) -> Option<&SavedClaim> {
        self.claims.iter().find(|claim| claim.id == id)
    }

    /// A point by its full id.
    pub fn row(&self, id: &str) -> Option<&PointResult> {
        self.claims.iter().flat_map(|claim| &claim.points).find(|point| point.id == id)
    }

    /// Claims with their points, as figures count them.
    pub fn results(&self) -> impl Iterator<Item = (&str, &[PointResult])> {
        self.claims.iter().map(|claim| (claim.id.as_str(), claim.points.as_slice()))
    }

    pub fn tally(&self) -> VerdictTally {
        VerdictTally::of(self.claims.iter().flat_map(|claim| &claim.points))
    }

    pub fn paper(&self) -> Option<Paper> {
        Paper::named(&self.run.paper)
    }
}
