//! A collective with one bad cable, and remedies beside each other (`hitless sim collective`, `hitless model collective`).
//!
//! Each remedy is a scenario as TOML text, which the crate `scenario` reads: what is compared here can be printed, changed and
//! run again. The model answers the same question at once.
//!
//! | file | what it does |
//! | --- | --- |
//! | `networks` | the network, its names, the scenario of a remedy |
//! | `model` | closed forms for the same settings, as text and JSON |
//! | `compare`, `text`, `page` | simulations of all remedies, for programs, people and browsers |

mod compare;
mod model;
mod networks;
mod page;
mod text;

use collective::CollectiveShape;
use collective::model::{CollectiveModel, Remedy, RemedySetting};
use units::{Prob, Rate, Span};

pub use compare::{RemedyComparison, RemedyRun, compare};
pub use model::{ModelAnswer, model_text};
pub use networks::{NetworkShape, RankOrder, scenario_text};
pub use page::{IterationOrigin, IterationTrace, PageJob, iterations_page};
pub use text::describe;

/// Settings of a comparison.
#[derive(Clone, Debug)]
pub struct RemedySettings {
    pub shape: CollectiveShape,
    pub network: NetworkShape,
    pub placement: RankOrder,
    pub rate: Rate,
    /// Payload of a full packet.
    pub mtu: u32,
    pub loss: Prob,
    /// Two nodes, from the first to the second; the cable of the first host if not given.
    pub link: Option<String>,
    pub remedies: Vec<Remedy>,
    /// Timeout of queue pairs without a remedy that has its own.
    pub timeout: Span,
    pub per_transfer: bool,
    pub barrier: bool,
    /// Time of each rank between two iterations.
    pub compute: Span,
    pub iterations: u64,
    /// Simulates iterations that lose nothing, too.
    pub exact: bool,
    pub seed: u64,
}

/// Delay of every cable, and forwarding time of every switch.
const CABLE: Span = Span::from_ns(500);
const SWITCH: Span = Span::from_ns(300);
/// Timeouts as those who proposed a recovery have them.
const IRN_TIMEOUT: Span = Span::from_us(320);
const MELO_TIMEOUT: Span = Span::from_us(1_000);
/// Dummies behind a message.
const DUMMIES: u32 = 2;
/// Loss that LinkGuardian aims for.
const TARGET: Prob = Prob::literal(1e-8);

impl RemedySettings {
    /// Words of the model for it.
    pub fn model(&self) -> Result<CollectiveModel, String> {
        self.shape.check(self.mtu).map_err(|error| format!("--{}: {error}", error.key))?;
        let (host, sends) = networks::cable(self)?;
        let network = networks::model(self);
        let rank = network.hosts.iter().position(|it| *it == host).unwrap_or_default() as u32;
        let (loss, per_transfer, barrier) = (self.loss.get(), self.per_transfer, self.barrier);
        Ok(CollectiveModel { shape: self.shape, network, rank, sends, loss, per_transfer, barrier })
    }

    /// Settings of a remedy.
    pub fn setting(&self, remedy: Remedy) -> RemedySetting {
        let timeout = match remedy {
            Remedy::Irn => IRN_TIMEOUT,
            Remedy::Melo => MELO_TIMEOUT,
            _ => self.timeout,
        };
        let effective_loss = match remedy {
            // It retries until a frame has come through.
            Remedy::UecLlr => 0.0,
            _ => guard::copies_for(self.loss, TARGET).map_or(self.loss.get(), |(_, effective)| effective.get()),
        };
        RemedySetting { remedy, timeout, dummies: DUMMIES, effective_loss }
    }
}
