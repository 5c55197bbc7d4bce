//! IRN: what is missing is remembered in bitmaps of each connection's own.

use transport::roce::irn::{Irn, Timeouts};
use transport::roce::selective::{Config, Connection};
use units::Span;

use super::Site;
use super::selective::{SelectiveSetup, SimRecovery};
use super::tcp::LONGEST_RTO;
use crate::scenario::Shape::One;
use crate::scenario::{Keys, Read, Reader};

pub type IrnSetup = SelectiveSetup<Timeouts>;

impl SimRecovery for Irn {
    type Memory = Timeouts;

    const NAME: &'static str = "irn";
    const KEYS: Keys = &[("timeout_low", One)];

    /// IRN's short timeout; the long one is `timeout`.
    fn read(table: &Reader<'_>) -> Read<Timeouts> {
        let usual = Timeouts::default();
        Ok(Timeouts { low: table.span("timeout_low", Span::from_ps(1)..=LONGEST_RTO)?.unwrap_or(usual.low), ..usual })
    }

    fn connect(config: Config, timeouts: &Timeouts, _at: &mut Site<'_>) -> Connection<Self> {
        Connection::irn(config, *timeouts)
    }
}
