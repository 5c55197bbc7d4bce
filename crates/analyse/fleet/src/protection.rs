//! Effect of protection on a corrupting link: LinkGuardian (SIGCOMM'23) Fig. 8, as `sim link` measures it.
//!
//! A protected link is slower, because frames wait while a lost one is recovered, and because of header and copies. How
//! much slower was measured on the paper's switch with frames of full size at 100G, in order; `data/protection.toml`
//! has the result, and `cargo run -p hitless-fleet --release --example measure-protection` makes it anew. Between two
//! rows the speed is a straight line over the loss: as long as there are few losses, each costs the same time. Links of
//! other rates are taken to keep the same share.
//!
//! Its effective loss follows from Eq. 2: with N copies, loss^(N+1). The same runs counted the frames that were lost
//! permanently, and up to a loss of about 2 % the counts agree. Beyond, on the paper's switch, a retransmission often comes
//! after its timeout, and far more is lost; there, the counts hold.

use std::fmt;

use guard::copies_for;
use serde::Deserialize;
use units::Prob;

/// A link under protection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protection {
    /// Share of the link's rate that is left.
    pub speed: f64,
    /// Share of frames that are lost permanently.
    pub loss: f64,
    /// Copies of each retransmission: N of Eq. 2.
    pub copies: u8,
}

/// A source for the effect of protection on a link: our measurements, or those of others.
pub trait Protect: fmt::Debug + Sync {
    /// `loss` is a share of frames.
    fn protect(&self, loss: f64) -> Protection;
}

/// The loss that is aimed at, as in the paper.
pub const TARGET: Prob = Prob::literal(1e-8);

/// Most copies that `sim link` uses; more cost the link more than they gain.
const MOST_COPIES: u8 = 8;

/// Rows rise in loss. The last is a dead link.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtectionTable {
    rows: Vec<ProtectionRow>,
}

/// Measurements at one loss.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtectionRow {
    pub loss: f64,
    pub speed: f64,
    pub copies: u8,
    /// Frames that were offered, and those of them that were lost permanently.
    pub frames: u64,
    pub lost: u64,
}

/// Row of a link through which nothing gets, protected or not.
const DEAD: ProtectionRow = ProtectionRow { loss: 1.0, speed: 0.0, copies: MOST_COPIES, frames: 1, lost: 1 };

impl ProtectionRow {
    /// True if the count of permanently lost frames is consistent with Eq. 2.
    pub fn agrees(&self) -> bool {
        let expected = expected(self.loss, self.copies) * self.frames as f64;
        // Four standard deviations, and two frames because small counts are uneven: there are many rows.
        (self.lost as f64 - expected).abs() <= 4.0 * expected.sqrt() + 2.0
    }

    /// The share of frames that are lost permanently, as far as it is known.
    fn effective(&self) -> f64 {
        if self.agrees() { expected(self.loss, self.copies) } else { self.lost as f64 / self.frames as f64 }
    }
}

/// Reason why a text is no table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError(String);

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TableError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProtectionFile {
    row: Vec<ProtectionRow>,
}

impl ProtectionTable {
    /// The one that comes with the program.
    ///
    /// # Panics
    /// If the table that is part of the program cannot be read, which a test excludes.
    pub fn measured() -> Self {
        Self::parse(include_str!("../data/protection.toml")).expect("the table that is part of the program")
    }

    pub fn parse(text: &str) -> Result<Self, TableError> {
        let ProtectionFile { row: mut rows } =
            settings::from_toml(text).map_err(|error| TableError(error.to_string()))?;
        if rows.is_empty() {
            return Err(TableError("expected at least one [[row]]".to_owned()));
        }
        rows.iter().try_for_each(check)?;
        if let Some(pair) = rows.windows(2).find(|pair| pair[1].loss <= pair[0].loss) {
            return Err(TableError(format!("loss {}: expected more than in the row before", pair[1].loss)));
        }
        rows.push(DEAD);
        Ok(Self { rows })
    }

    pub fn rows(&self) -> &[ProtectionRow] {
        &self.rows
    }

    /// Effect of protection on a link with this loss, a share of frames.
    pub fn of(&self, loss: f64) -> Protection {
        let copies = copies(loss);
        let above = self.rows.partition_point(|row| row.loss < loss).clamp(1, self.rows.len() - 1);
        let (lower, upper) = (&self.rows[above - 1], &self.rows[above]);
        let is_below = loss <= lower.loss;
        let speed =
            if is_below { lower.speed } else { between((lower.loss, lower.speed), (upper.loss, upper.speed), loss) };
        let loss = if is_below || lower.agrees() && upper.agrees() {
            expected(loss, copies)
        } else {
            let logs = |row: &ProtectionRow| (row.loss.ln(), row.effective().ln());
            between(logs(lower), logs(upper), loss.ln()).exp()
        };
        Protection { speed, loss, copies }
    }
}

impl Protect for ProtectionTable {
    fn protect(&self, loss: f64) -> Protection {
        self.of(loss)
    }
}

fn check(row: &ProtectionRow) -> Result<(), TableError> {
    let ProtectionRow { loss, speed, frames, lost, .. } = *row;
    if !(loss > 0.0 && loss < 1.0 && (0.0..=1.0).contains(&speed)) {
        return Err(TableError(format!("loss {loss}, speed {speed}: expected shares below 1")));
    }
    if frames == 0 || lost > frames {
        return Err(TableError(format!("loss {loss}: expected some frames, and at most as many lost")));
    }
    Ok(())
}

/// Eq. 2.
fn expected(loss: f64, copies: u8) -> f64 {
    loss.powi(i32::from(copies) + 1)
}

/// Value at `x` on the straight line through two points.
fn between((x0, y0): (f64, f64), (x1, y1): (f64, f64), x: f64) -> f64 {
    y0 + (x - x0) / (x1 - x0) * (y1 - y0)
}

/// Copies of a retransmission on a link with this loss. At least one: a link is not protected without.
pub fn copies(loss: f64) -> u8 {
    Prob::new(loss)
        .and_then(|loss| copies_for(loss, TARGET))
        .map_or(MOST_COPIES, |(copies, _)| copies.clamp(1, MOST_COPIES))
}
