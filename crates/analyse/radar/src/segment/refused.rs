//! Why a report is not compared, and what to do about it.

use std::fmt;

use crate::digest::DigestMismatch;

/// A report that cannot be compared with the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportRefusal {
    Shape {
        end: String,
        mismatch: DigestMismatch,
    },
    Length {
        end: String,
        ours: u64,
        theirs: u64,
    },
    /// One end too many.
    Ends {
        end: String,
        known: Vec<String>,
    },
    /// An end of a black box that knows packets otherwise when they leave than when they arrive.
    Ways {
        end: String,
    },
}

impl fmt::Display for ReportRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape { end, mismatch } => write!(f, "end {end}: {mismatch}"),
            Self::Length { end, ours, theirs } => {
                let ms = |ns: &u64| *ns as f64 / 1e6;
                write!(f, "end {end} has batches of {} ms, others of {} ms: give all the same", ms(theirs), ms(ours))
            }
            Self::Ways { end } => write!(
                f,
                "end {end} leaves out other fields of what leaves than of what arrives; with more than two ends: --nat both"
            ),
            Self::Ends { end, known } => {
                let known = known.join(" and ");
                write!(
                    f,
                    "end {end} is one too many, {known} are known: name segments apart, or say how many ends it has"
                )
            }
        }
    }
}

impl std::error::Error for ReportRefusal {}
