//! Errors of a workload.

use std::fmt;

use super::sizes::SizeTrace;

#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadError {
    Load(f64),
    /// Description of the value that was expected.
    Expected(&'static str),
    FanIn {
        fan_in: usize,
        others: usize,
    },
    UnknownTrace {
        name: String,
        nearest: Option<&'static str>,
    },
    /// An error in a file, with its line.
    Line {
        line: usize,
        problem: String,
    },
    /// A graph that cannot be carried out.
    Graph(String),
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(load) => {
                write!(f, "load {load}: expected more than 0 and at most 1, a share of the access links")
            }
            Self::Expected(expected) => write!(f, "expected {expected}"),
            Self::FanIn { fan_in, others } => {
                write!(f, "incast of {fan_in}: expected at least 1 and at most the {others} hosts beside the receiver")
            }
            Self::UnknownTrace { name, nearest: Some(nearest) } => {
                write!(f, "no trace is called '{name}': did you mean '{nearest}'?")
            }
            Self::UnknownTrace { name, nearest: None } => {
                write!(
                    f,
                    "no trace is called '{name}': expected one of {}",
                    SizeTrace::ALL.map(SizeTrace::name).join(", ")
                )
            }
            Self::Line { line, problem } => write!(f, "line {line}: {problem}"),
            Self::Graph(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for WorkloadError {}

pub(super) fn check_load(load: f64) -> Result<(), WorkloadError> {
    if load > 0.0 && load <= 1.0 { Ok(()) } else { Err(WorkloadError::Load(load)) }
}

pub(super) fn expect(holds: bool, expected: &'static str) -> Result<(), WorkloadError> {
    if holds { Ok(()) } else { Err(WorkloadError::Expected(expected)) }
}
