//! Results computed without simulating, as users see them: timeouts of RDMA flows, memory of NICs, HPCC, reservations in a
//! rack.

mod answer;
mod hpcc;
mod pl2;
mod text;

pub use answer::RdmaAnswer;
pub use hpcc::{HpccAnswer, HpccQuestion, hpcc_text};
pub use pl2::{Pl2Answer, Pl2Question, pl2_text};
pub use text::rdma_text;

use roce::melo::ChipMemory;
use roce::model::{Advice, Goal, PenaltyTiming, TimeoutModel, TimeoutSetting};
use serde::Serialize;

/// Question about RDMA, in the model's words.
#[derive(Debug)]
pub struct RdmaQuestion {
    pub model: TimeoutModel,
    pub setting: TimeoutSetting,
    pub timing: PenaltyTiming,
    pub goal: Option<Goal>,
}

impl RdmaQuestion {
    fn advice(&self) -> Option<(Goal, Advice)> {
        let goal = self.goal?;
        Some((goal, self.model.advise(&goal, &self.timing, self.setting.obeys_copies)))
    }
}

/// Share of simulated flows that timed out.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutShare {
    pub share: f64,
    pub flows: u64,
    /// 95 % confidence interval of the true share.
    pub interval: Option<(f64, f64)>,
}

/// Shares of flows that timed out, without help and with it.
#[derive(Debug)]
pub struct TimeoutShares {
    pub without: TimeoutShare,
    pub with: TimeoutShare,
}

/// Output of `--json` for MELO's memory.
#[derive(Debug, Serialize)]
pub struct MeloAnswer {
    connections: u32,
    bdp_bytes: u64,
    mtu_bytes: u32,
    block_bits: u32,
    /// Bytes for each connection.
    hole_bytes: u32,
    number_bytes: u32,
    pointer_bytes: u32,
    sender_bytes: u32,
    /// Bits for one side.
    pool_bits: u32,
    next_bits: u32,
    free_bits: u32,
    side_bits: u32,
    bytes_per_connection: f64,
    bytes_per_connection_with_sender: f64,
    bytes_per_connection_with_bitmaps: f64,
    share_of_context: f64,
}

impl From<&ChipMemory> for MeloAnswer {
    fn from(account: &ChipMemory) -> Self {
        Self {
            connections: account.connections,
            bdp_bytes: account.bdp.get(),
            mtu_bytes: account.mtu,
            block_bits: account.pool.block,
            hole_bytes: account.hole_bytes,
            number_bytes: account.number_bytes,
            pointer_bytes: account.pointer_bytes,
            sender_bytes: account.sender_bytes,
            pool_bits: account.pool_bits,
            next_bits: account.next_bits,
            free_bits: account.free_bits,
            side_bits: account.side_bits(),
            bytes_per_connection: account.per_connection(),
            bytes_per_connection_with_sender: account.per_connection_with_sender(),
            bytes_per_connection_with_bitmaps: account.per_connection_with_bitmaps(),
            share_of_context: account.share_of_context(),
        }
    }
}
