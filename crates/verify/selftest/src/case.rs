//! Ways to slow a connection down, by name.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

macro_rules! cases {
    ($($case:ident $name:literal $about:literal,)*) => {
        /// One way to slow a connection down.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum TestCase { $(#[doc = $about] $case,)* }

        impl TestCase {
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$case),*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$case => $name,)* }
            }
        }
    };
}

cases! {
    Tail "tail" "The last segments of a transfer are lost.",
    LoneTail "lone-tail" "The only segment in flight is lost.",
    WholeWindow "whole-window" "All segments in flight are lost.",
    CopyLost "copy-lost" "A segment is lost, and what is sent again of it, too.",
    Middle "middle" "Single segments are lost in the middle of windows.",
    Burst "burst" "Several segments in a row are lost in the middle of windows.",
    Reordered "reordered" "Single segments arrive more than a round trip late.",
    AcksLost "acks-lost" "All data arrives, and no acknowledgement of it.",
    SynLost "syn-lost" "The first SYN is lost.",
    ZeroWindow "zero-window" "The receiving application does not read for a while.",
    SmallWindow "small-window" "The receiver's buffer is small.",
    NagleDelayedAck "nagle-delayed-ack" "Two small writes, the second of which waits for a delayed acknowledgement.",
    DelayedAckAfterRepair "delayed-ack-after-repair" "The acknowledgement of a segment that was sent again is delayed.",
    SlowClient "slow-client" "The client's application pauses between writes.",
    SlowServer "slow-server" "The server's application thinks before it answers.",
    SlowStart "slow-start" "A transfer over a long path, without losses.",
}

impl fmt::Display for TestCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TestCase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|case| case.name() == text)
            .ok_or_else(|| format!("no such case; expected one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}
