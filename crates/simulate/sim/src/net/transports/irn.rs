//! IRN: what is missing is remembered in bitmaps of each connection's own.

use roce::irn::{Irn, Timeouts};
use roce::selective::{SelectiveConfig, SelectiveConnection};
use units::Span;

use super::Site;
use super::selective::{SelectiveSetup, SimRecovery};
use super::tcp::LONGEST_RTO;
use settings::KeyShape::One;
use settings::{Keys, ReadResult, SettingsReader};

pub type IrnSetup = SelectiveSetup<Timeouts>;

impl SimRecovery for Irn {
    type Memory = Timeouts;

    const NAME: &'static str = "irn";
    const KEYS: Keys = &[("timeout_low", One)];

    /// IRN's short timeout; the long one is `timeout`.
    fn read(table: &SettingsReader<'_>) -> ReadResult<Timeouts> {
        let usual = Timeouts::default();
        Ok(Timeouts { low: table.span("timeout_low", Span::from_ps(1)..=LONGEST_RTO)?.unwrap_or(usual.low), ..usual })
    }

    fn connect(config: SelectiveConfig, timeouts: &Timeouts, _at: &mut Site<'_>) -> SelectiveConnection<Self> {
        SelectiveConnection::irn(config, *timeouts)
    }
}
