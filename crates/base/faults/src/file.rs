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
//!
//! An entry is a [`FaultStep`]; a link of a scenario file has the same ones.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Deserialize, Deserializer};
use units::{Prob, Span};

use crate::{FaultSchedule, LossModel};

/// Faults of both directions of a link.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FaultFile {
    pub forward: FaultSchedule,
    pub reverse: FaultSchedule,
}

/// Position of an error in a fault file, and the value that was expected there.
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
struct RawFaultFile {
    #[serde(default)]
    forward: Vec<FaultStep>,
    #[serde(default)]
    reverse: Vec<FaultStep>,
}

impl FaultFile {
    pub fn parse(text: &str) -> Result<Self, FaultFileError> {
        let file: RawFaultFile = settings::from_toml(text).map_err(|error| FaultFileError(error.to_string()))?;
        Ok(Self { forward: schedule("forward", &file.forward)?, reverse: schedule("reverse", &file.reverse)? })
    }
}

fn schedule(direction: &str, steps: &[FaultStep]) -> Result<FaultSchedule, FaultFileError> {
    FaultSchedule::from_steps(steps).map_err(|error| {
        FaultFileError(format!("[[{direction}]] number {}, {}: {}", error.step + 1, error.key, error.problem))
    })
}

/// One entry of either list, as written; what is left out is `None`. Nothing but `at` means that nothing is lost.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultStep {
    pub at: Option<String>,
    #[serde(deserialize_with = "with_or_without_quotes")]
    pub loss: Option<String>,
    pub burst: Option<f64>,
    #[serde(deserialize_with = "with_or_without_quotes")]
    pub bit_errors: Option<String>,
    pub frames: Option<Vec<u64>>,
    /// Corrupts each frame of this number in a row.
    pub every: Option<u64>,
}

/// Error in a step of a schedule: the step's number, counted from 0, its key, and the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepError {
    pub step: usize,
    pub key: &'static str,
    pub problem: String,
}

impl FaultStep {
    /// Time at which the step takes over, and the loss model from then on.
    fn read(&self) -> Result<(Span, LossModel), (&'static str, String)> {
        let at = match &self.at {
            Some(text) => text.parse::<Span>().map_err(|error| ("at", format!("'{text}': {error}")))?,
            None => Span::ZERO,
        };
        let prob = |key, text: &str| text.parse::<Prob>().map_err(|error| (key, format!("'{text}': {error}")));
        if let Some(every) = self.every {
            let alone = Self { at: self.at.clone(), every: self.every, ..Self::default() } == *self;
            let frames = NonZeroU64::new(every).filter(|_| alone);
            let expected = "expected one frame in how many is lost, from 1, and no other model beside it";
            return frames.map(|frames| (at, LossModel::Every(frames))).ok_or(("every", expected.to_owned()));
        }
        let model = match (&self.loss, self.burst, &self.bit_errors, &self.frames) {
            (Some(loss), None, None, None) => LossModel::PerFrame(prob("loss", loss)?),
            (Some(loss), Some(length), None, None) => {
                LossModel::bursts(prob("loss", loss)?, length).ok_or_else(|| {
                    ("burst", "expected a mean length of at least 1 that leaves gaps between bursts".to_owned())
                })?
            }
            (None, None, Some(rate), None) => LossModel::PerBit(prob("bit_errors", rate)?),
            (None, None, None, Some(frames)) => LossModel::Script(frames.clone()),
            (None, None, None, None) => LossModel::None,
            _ => {
                let expected = "expected one of loss (with or without burst), bit_errors, frames, every";
                return Err((self.first_model(), expected.to_owned()));
            }
        };
        Ok((at, model))
    }

    /// The key that a contradiction between models is blamed on.
    fn first_model(&self) -> &'static str {
        match self {
            Self { loss: Some(_), .. } => "loss",
            Self { burst: Some(_), .. } => "burst",
            _ => "bit_errors",
        }
    }
}

impl FaultSchedule {
    /// The schedule that these steps make.
    pub fn from_steps(steps: &[FaultStep]) -> Result<Self, StepError> {
        let mut parsed = Vec::new();
        for (step, written) in steps.iter().enumerate() {
            parsed.push(written.read().map_err(|(key, problem)| StepError { step, key, problem })?);
        }
        let early = parsed.windows(2).position(|pair| pair[1].0 <= pair[0].0).map_or(0, |before| before + 1);
        Self::new(parsed).ok_or_else(|| StepError {
            step: early,
            key: "at",
            problem: "expected a later time than in the one before".to_owned(),
        })
    }
}

/// `"1e-3"`, or `1e-3`.
fn with_or_without_quotes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected text or a number")]
    enum FaultScalar {
        Text(String),
        Number(f64),
    }
    FaultScalar::deserialize(from).map(|written| match written {
        FaultScalar::Text(text) => Some(text),
        FaultScalar::Number(number) => Some(number.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_can_be_written() {
        let text = r#"
            forward = [{ loss = "1e-3" }, { at = "1ms", loss = "1%", burst = 4.0 }, { at = "2ms", frames = [3, 5] }, { at = "3ms" }]
            reverse = [{ bit_errors = "1e-9" }, { at = "1ms", every = 700 }]
        "#;
        let file = FaultFile::parse(text).unwrap();
        let models: Vec<&LossModel> = file.forward.steps().iter().map(|(_, model)| model).collect();
        assert_eq!(models[0], &LossModel::PerFrame(Prob::literal(1e-3)));
        assert_eq!(models[1], &LossModel::bursts(Prob::literal(0.01), 4.0).unwrap());
        assert_eq!(models[2..], [&LossModel::Script(vec![3, 5]), &LossModel::None]);
        let models: Vec<&LossModel> = file.reverse.steps().iter().map(|(_, model)| model).collect();
        let every = LossModel::Every(NonZeroU64::new(700).unwrap());
        assert_eq!(models, [&LossModel::PerBit(Prob::literal(1e-9)), &every]);
    }

    #[test]
    fn a_probability_needs_no_quotes() {
        let [quoted, bare] =
            ["\"1e-3\"", "1e-3"].map(|loss| FaultFile::parse(&format!("forward = [{{ loss = {loss} }}]")));
        assert_eq!(quoted, bare);
        assert!(FaultFile::parse("forward = [{ loss = 0 }]").is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |text| FaultFile::parse(text).unwrap_err().to_string();
        assert!(said("forward = [{ loss = \"1.2\" }]").contains("[[forward]] number 1, loss: '1.2'"));
        assert!(said("forward = [{ los = \"1e-3\" }]").contains("unknown field `los`"));
        assert!(
            said("reverse = [{ at = \"1s\" }, { at = \"1s\" }]").contains("[[reverse]] number 2, at: expected a later")
        );
        assert!(said("forward = [{ loss = \"1e-3\", bit_errors = \"1e-9\" }]").contains("expected one of"));
        assert!(said("forward = [{ every = 0 }]").contains("[[forward]] number 1, every: expected one frame"));
        assert!(said("forward = [{ every = 7, loss = \"1e-3\" }]").contains("no other model"));
        assert!(said("forward = [{ loss = true }]").contains("text or a number"));
        assert!(said("forward = 3").contains("line 1"));
    }
}
