//! The fault file: what is wrong with each direction of a link, and from when.
//!
//! ```toml
//! [[forward]]
//! at = "0s"
//! loss = "1e-3"
//!
//! [[forward]]
//! at = "10ms"
//! loss = "1e-2"
//! burst = 4.0          # frames lost in a row, on average
//!
//! [[reverse]]
//! bit_errors = "1e-9"
//! ```

use std::fmt;

use serde::Deserialize;
use units::{Prob, Span};

use crate::{Model, Schedule};

/// Both directions of a link.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FaultFile {
    pub forward: Schedule,
    pub reverse: Schedule,
}

/// Where a fault file is wrong, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultFileError(String);

impl fmt::Display for FaultFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FaultFileError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    forward: Vec<Step>,
    #[serde(default)]
    reverse: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    at: Option<String>,
    loss: Option<String>,
    burst: Option<f64>,
    bit_errors: Option<String>,
    frames: Option<Vec<u64>>,
}

impl FaultFile {
    pub fn parse(text: &str) -> Result<Self, FaultFileError> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            FaultFileError(format!("line {line}: {}", error.message().replace('\n', " ")))
        })?;
        Ok(Self { forward: schedule("forward", &file.forward)?, reverse: schedule("reverse", &file.reverse)? })
    }
}

fn schedule(direction: &str, steps: &[Step]) -> Result<Schedule, FaultFileError> {
    let mut parsed = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let wrong = |key: &str, what: &dyn fmt::Display| {
            FaultFileError(format!("[[{direction}]] number {}, {key}: {what}", number + 1))
        };
        let at = match &step.at {
            Some(text) => text.parse::<Span>().map_err(|error| wrong("at", &format_args!("'{text}': {error}")))?,
            None => Span::ZERO,
        };
        let prob =
            |key, text: &str| text.parse::<Prob>().map_err(|error| wrong(key, &format_args!("'{text}': {error}")));
        let model = match (&step.loss, step.burst, &step.bit_errors, &step.frames) {
            (Some(loss), None, None, None) => Model::PerFrame(prob("loss", loss)?),
            (Some(loss), Some(length), None, None) => Model::bursts(prob("loss", loss)?, length).ok_or_else(|| {
                wrong("burst", &"expected a mean length of at least 1 that leaves gaps between bursts")
            })?,
            (None, None, Some(rate), None) => Model::PerBit(prob("bit_errors", rate)?),
            (None, None, None, Some(frames)) => Model::Script(frames.clone()),
            (None, None, None, None) => Model::None,
            _ => return Err(wrong("model", &"expected one of loss (with or without burst), bit_errors, frames")),
        };
        parsed.push((at, model));
    }
    Schedule::new(parsed)
        .ok_or_else(|| FaultFileError(format!("[[{direction}]]: expected each `at` to be later than the one before")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_can_be_written() {
        let text = r#"
            forward = [{ loss = "1e-3" }, { at = "1ms", loss = "1%", burst = 4.0 }, { at = "2ms", frames = [3, 5] }, { at = "3ms" }]
            reverse = [{ bit_errors = "1e-9" }]
        "#;
        let file = FaultFile::parse(text).unwrap();
        let models: Vec<&Model> = file.forward.steps().iter().map(|(_, model)| model).collect();
        assert_eq!(models[0], &Model::PerFrame(Prob::literal(1e-3)));
        assert_eq!(models[1], &Model::bursts(Prob::literal(0.01), 4.0).unwrap());
        assert_eq!(models[2..], [&Model::Script(vec![3, 5]), &Model::None]);
        assert_eq!(file.reverse, Schedule::always(Model::PerBit(Prob::literal(1e-9))));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |text| FaultFile::parse(text).unwrap_err().to_string();
        assert!(said("forward = [{ loss = \"1.2\" }]").contains("[[forward]] number 1, loss: '1.2'"));
        assert!(said("forward = [{ los = \"1e-3\" }]").contains("unknown field `los`"));
        assert!(said("reverse = [{ at = \"1s\" }, { at = \"1s\" }]").contains("later than"));
        assert!(said("forward = [{ loss = \"1e-3\", bit_errors = \"1e-9\" }]").contains("expected one of"));
        assert!(said("forward = 3").contains("line 1"));
    }
}
