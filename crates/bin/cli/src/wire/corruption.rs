//! Corruption of a wire, as the command line and fault files describe it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use faults::{FaultFile, LossModel};
use units::Prob;

use crate::output::Failure;

/// One direction's loss model.
pub(crate) fn model(loss: Prob, burst: Option<f64>, bit_errors: Option<Prob>) -> Result<LossModel, Failure> {
    match (bit_errors, burst) {
        (Some(rate), _) => Ok(LossModel::PerBit(rate)),
        (None, None) => Ok(LossModel::PerFrame(loss)),
        (None, Some(length)) => LossModel::bursts(loss, length).ok_or_else(|| {
            Failure::Usage(format!(
                "--burst {length}: expected a mean of at least 1 frame, with room between bursts at --loss {loss}"
            ))
        }),
    }
}

pub(crate) fn file(path: &Path) -> Result<FaultFile, Failure> {
    let wrong = |what: &dyn std::fmt::Display| Failure::Usage(format!("--faults {}: {what}", path.display()));
    let text = read(path).map_err(|error| wrong(&error))?;
    FaultFile::parse(&text).map_err(|error| wrong(&error))
}

/// A fault file is short; anything longer is not one.
fn read(path: &Path) -> std::io::Result<String> {
    const LONGEST: u64 = 1 << 20;
    let mut text = String::new();
    let read = File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if read as u64 > LONGEST { Err(std::io::Error::other("expected at most 1 MiB")) } else { Ok(text) }
}
