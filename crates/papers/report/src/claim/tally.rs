//! Number of points by kind and verdict: only claims count as matches of a paper.

use std::fmt;

use super::{PointKind, PointResult, Verdict};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictTally([[usize; Verdict::ALL.len()]; PointKind::ALL.len()]);

impl VerdictTally {
    pub fn of<'a>(points: impl IntoIterator<Item = &'a PointResult>) -> Self {
        let mut tally = Self::default();
        for point in points {
            tally.0[point.kind as usize][point.verdict as usize] += 1;
        }
        tally
    }

    pub fn count(&self, kind: PointKind, verdict: Verdict) -> usize {
        self.0[kind as usize][verdict as usize]
    }

    /// Points of a kind that have a band.
    pub fn judged(&self, kind: PointKind) -> usize {
        [Verdict::Match, Verdict::Differs, Verdict::TooFew].map(|verdict| self.count(kind, verdict)).iter().sum()
    }

    /// Verdict of a whole figure or claim: it differs if one of its points does, and matches if all that are judged do.
    /// Claims decide; where there is none, points of other kinds.
    pub fn verdict(&self) -> Verdict {
        let decides = |kind: &PointKind| self.judged(*kind) > 0;
        let kind = PointKind::ALL.into_iter().find(decides).unwrap_or(PointKind::Claim);
        let has = |verdict: &Verdict| self.count(kind, *verdict) > 0;
        [Verdict::Differs, Verdict::TooFew, Verdict::Match].into_iter().find(has).unwrap_or(Verdict::Noted)
    }
}

impl std::ops::AddAssign for VerdictTally {
    fn add_assign(&mut self, other: Self) {
        for (counts, others) in self.0.iter_mut().zip(other.0) {
            for (count, other) in counts.iter_mut().zip(others) {
                *count += other;
            }
        }
    }
}

/// `30 claims match, 4 differ, 3 too few; arithmetic 5 match; 12 noted`.
impl fmt::Display for VerdictTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for kind in PointKind::ALL {
            let counts =
                [Verdict::Match, Verdict::Differs, Verdict::TooFew].map(|verdict| (verdict, self.count(kind, verdict)));
            let said = counts
                .iter()
                .filter(|(verdict, count)| *count > 0 || (kind == PointKind::Claim && *verdict != Verdict::TooFew));
            let said: Vec<String> = said.map(|(verdict, count)| format!("{count} {}", verb(*verdict))).collect();
            if !said.is_empty() {
                parts.push(format!("{kind}: {}", said.join(", ")));
            }
        }
        let noted: usize = PointKind::ALL.map(|kind| self.count(kind, Verdict::Noted)).iter().sum();
        if noted > 0 {
            parts.push(format!("{noted} noted"));
        }
        f.write_str(&parts.join("; "))
    }
}

fn verb(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Match => "match",
        Verdict::Differs => "differ",
        Verdict::TooFew => "too few",
        Verdict::Noted => "noted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(counts: &[(PointKind, Verdict, usize)]) -> VerdictTally {
        let mut tally = VerdictTally::default();
        for (kind, verdict, count) in counts {
            tally.0[*kind as usize][*verdict as usize] += count;
        }
        tally
    }

    #[test]
    fn kinds_are_told_apart() {
        use PointKind::{Calibrated, Claim};
        let mut sum =
            tally(&[(Claim, Verdict::Match, 3), (Calibrated, Verdict::Differs, 1), (Claim, Verdict::Noted, 2)]);
        assert_eq!(sum.to_string(), "claims: 3 match, 0 differ; calibrated: 1 differ; 2 noted");
        assert_eq!((sum.judged(Claim), sum.verdict()), (3, Verdict::Match));
        sum += tally(&[(Claim, Verdict::TooFew, 1)]);
        assert_eq!(sum.verdict(), Verdict::TooFew);
        assert_eq!(tally(&[(Calibrated, Verdict::Differs, 1)]).verdict(), Verdict::Differs);
        assert_eq!(VerdictTally::default().verdict(), Verdict::Noted);
    }
}
