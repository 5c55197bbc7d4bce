//! Shape of a collective: its pattern, its algorithm, how many ranks share how many bytes.

use std::fmt;

/// Result that the ranks want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectivePattern {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    /// Stages of a model: each part goes from the first rank to the last, and back.
    Pipeline,
}

units::named!(CollectivePattern, "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast or pipeline",
    "all-reduce" => Self::AllReduce,
    "all-gather" => Self::AllGather,
    "reduce-scatter" => Self::ReduceScatter,
    "all-to-all" => Self::AllToAll,
    "broadcast" => Self::Broadcast,
    "pipeline" => Self::Pipeline,
);

/// Way to get there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveAlgorithm {
    /// Around a ring; of a broadcast or a pipeline, along a chain.
    Ring,
    /// Pairs of ranks whose distance doubles in the first half.
    HalvingNearest,
    /// Halving and doubling with a distance that halves.
    HalvingFarthest,
    /// Two binary trees with half of the data each.
    Tree,
    /// From each rank to each other, all at once.
    Direct,
}

units::named!(CollectiveAlgorithm, "ring, halving-doubling, halving-doubling-farthest, tree or direct",
    "ring" => Self::Ring,
    "halving-doubling" => Self::HalvingNearest,
    "halving-doubling-nearest" => Self::HalvingNearest,
    "halving-doubling-farthest" => Self::HalvingFarthest,
    "tree" => Self::Tree,
    "direct" => Self::Direct,
);

impl CollectivePattern {
    pub const ALL: [Self; 6] =
        [Self::AllReduce, Self::AllGather, Self::ReduceScatter, Self::AllToAll, Self::Broadcast, Self::Pipeline];

    /// CollectiveAlgorithm if none is chosen.
    pub fn usual_algorithm(self) -> CollectiveAlgorithm {
        if self == Self::AllToAll { CollectiveAlgorithm::Direct } else { CollectiveAlgorithm::Ring }
    }

    /// Ratio of the bus bandwidth to the algorithm's, as nccl-tests define them.
    pub fn bus_factor(self, ranks: u32) -> f64 {
        let share = f64::from(ranks - 1) / f64::from(ranks);
        match self {
            Self::AllReduce => 2.0 * share,
            Self::AllGather | Self::ReduceScatter | Self::AllToAll => share,
            Self::Broadcast | Self::Pipeline => 1.0,
        }
    }

    fn has(self, algorithm: CollectiveAlgorithm) -> bool {
        use CollectiveAlgorithm::{Direct, HalvingFarthest, HalvingNearest, Ring, Tree};
        match self {
            Self::AllReduce => algorithm != Direct,
            Self::AllGather | Self::ReduceScatter => matches!(algorithm, Ring | HalvingNearest | HalvingFarthest),
            Self::AllToAll => algorithm == Direct,
            Self::Broadcast => matches!(algorithm, Ring | Tree),
            Self::Pipeline => algorithm == Ring,
        }
    }
}

impl CollectiveAlgorithm {
    pub const ALL: [Self; 5] = [Self::Ring, Self::HalvingNearest, Self::HalvingFarthest, Self::Tree, Self::Direct];

    /// True for both orders of halving and doubling.
    pub fn is_halving(self) -> bool {
        matches!(self, Self::HalvingNearest | Self::HalvingFarthest)
    }
}

/// A collective of some ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveShape {
    pub pattern: CollectivePattern,
    pub algorithm: CollectiveAlgorithm,
    pub ranks: u32,
    /// Bytes as nccl-tests count them: of all-gather and reduce-scatter, the whole array.
    pub size: u64,
    /// Rings or trees side by side, each with its share of the bytes.
    pub channels: u16,
    /// Parts of a step that are sent on as soon as they have come.
    pub pieces: u32,
}

/// Reason why a shape is none, with the key of a scenario that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeError {
    pub key: &'static str,
    problem: String,
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for ShapeError {}

/// Most transfers of an iteration.
const MOST_TRANSFERS: u64 = 1 << 30;

impl CollectiveShape {
    /// Checks that the pattern exists for these ranks, and that no packet is shared by two pieces. `payload` is that of a
    /// full packet.
    pub fn check(&self, payload: u32) -> Result<(), ShapeError> {
        let Self { pattern, algorithm, ranks, size, channels, pieces } = *self;
        let wrong = |key, problem| Err(ShapeError { key, problem });
        if ranks < 2 {
            return wrong("ranks", format!("{ranks} rank: expected at least two"));
        }
        if !pattern.has(algorithm) {
            let known =
                CollectiveAlgorithm::ALL.into_iter().filter(|other| pattern.has(*other)).map(|other| other.to_string());
            let known = known.collect::<Vec<_>>().join(", ");
            return wrong("algorithm", format!("no {algorithm} for {pattern}: expected {known}"));
        }
        if algorithm.is_halving() && !ranks.is_power_of_two() {
            return wrong("ranks", format!("{algorithm} with {ranks} ranks: expected a power of two"));
        }
        if channels == 0 {
            return wrong("channels", "expected at least one".to_owned());
        }
        let shares = self.shares();
        if size < shares {
            return wrong("size", format!("{size} bytes: expected at least one for each of {shares} shares"));
        }
        if pieces == 0 {
            return wrong("pieces", "expected at least one".to_owned());
        }
        if pieces > 1 && (algorithm.is_halving() || algorithm == CollectiveAlgorithm::Direct) {
            return wrong("pieces", format!("{pieces} with {algorithm}: expected 1"));
        }
        let packets = (size / shares).div_ceil(u64::from(payload.max(1)));
        if u64::from(pieces) > packets {
            return wrong("pieces", format!("{pieces}: expected at most {packets}, the packets of a step"));
        }
        let transfers = self.transfers();
        if transfers > MOST_TRANSFERS {
            return wrong("pieces", format!("{transfers} transfers: expected at most {MOST_TRANSFERS}"));
        }
        Ok(())
    }

    /// Parts that the bytes are cut into before pieces.
    fn shares(&self) -> u64 {
        let channels = u64::from(self.channels);
        match (self.pattern, self.algorithm) {
            (_, CollectiveAlgorithm::Tree) => 2 * channels,
            (CollectivePattern::Broadcast | CollectivePattern::Pipeline, _) => channels,
            _ => u64::from(self.ranks) * channels,
        }
    }

    /// Transfers of an iteration.
    fn transfers(&self) -> u64 {
        let (ranks, channels, pieces) = (u64::from(self.ranks), u64::from(self.channels), u64::from(self.pieces));
        let at_once = match self.algorithm {
            CollectiveAlgorithm::Tree => 4 * ranks,
            CollectiveAlgorithm::HalvingNearest | CollectiveAlgorithm::HalvingFarthest => {
                2 * ranks * u64::from(ranks.ilog2())
            }
            CollectiveAlgorithm::Ring
                if matches!(self.pattern, CollectivePattern::Broadcast | CollectivePattern::Pipeline) =>
            {
                2 * ranks
            }
            CollectiveAlgorithm::Ring | CollectiveAlgorithm::Direct => 2 * ranks * ranks,
        };
        at_once.saturating_mul(channels).saturating_mul(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(pattern: CollectivePattern, algorithm: CollectiveAlgorithm, ranks: u32) -> CollectiveShape {
        CollectiveShape { pattern, algorithm, ranks, size: 1 << 20, channels: 1, pieces: 1 }
    }

    fn said(shape: CollectiveShape) -> (&'static str, String) {
        let error = shape.check(4_096).unwrap_err();
        (error.key, error.to_string())
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_key() {
        let ring = shape(CollectivePattern::AllReduce, CollectiveAlgorithm::Ring, 8);
        assert_eq!(ring.check(4_096), Ok(()));
        assert_eq!(said(CollectiveShape { ranks: 1, ..ring }), ("ranks", "1 rank: expected at least two".into()));
        let twelve = CollectiveShape { algorithm: CollectiveAlgorithm::HalvingNearest, ranks: 12, ..ring };
        assert_eq!(said(twelve), ("ranks", "halving-doubling with 12 ranks: expected a power of two".into()));
        let (key, problem) = said(CollectiveShape { size: 7, ..ring });
        assert_eq!((key, problem.as_str()), ("size", "7 bytes: expected at least one for each of 8 shares"));
        let (key, problem) = said(CollectiveShape { pieces: 33, ..ring });
        assert_eq!((key, problem.as_str()), ("pieces", "33: expected at most 32, the packets of a step"));
        let (key, problem) = said(shape(CollectivePattern::AllToAll, CollectiveAlgorithm::Ring, 8));
        assert_eq!((key, problem.as_str()), ("algorithm", "no ring for all-to-all: expected direct"));
    }

    #[test]
    fn bandwidths_are_those_of_nccl_tests() {
        assert_eq!(CollectivePattern::AllReduce.bus_factor(8), 1.75);
        assert_eq!(CollectivePattern::AllGather.bus_factor(8), 0.875);
        assert_eq!(CollectivePattern::Broadcast.bus_factor(8), 1.0);
    }

    #[test]
    fn names_are_read_and_printed() {
        for pattern in CollectivePattern::ALL {
            assert_eq!(pattern.to_string().parse(), Ok(pattern));
        }
        for algorithm in CollectiveAlgorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        assert_eq!("halving-doubling-nearest".parse(), Ok(CollectiveAlgorithm::HalvingNearest));
    }
}
