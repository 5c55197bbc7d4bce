//! The share of marked packets, as DCTCP estimates it, for TCP and for RDMA.
//!
//! RFC 8257 §3.3 in whole numbers as Linux 5.4 (`tcp_dctcp.c`) has it. Once a round trip
//!
//! ```text
//!   α ← (1 − g) α + g F        F: share of what was delivered in the round that was marked
//! ```

/// α, and what has been counted of the round. Packets or bytes: either, but always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkShare {
    /// Fraction of marks, in units of 1 / [`MarkShare::ONE`].
    alpha: u32,
    /// g = 2^-shift.
    shift: u32,
    delivered: u64,
    marked: u64,
}

impl Default for MarkShare {
    /// Estimate with g = 1/16, and α = 1: an early mark halves.
    fn default() -> Self {
        Self::with_shift(4)
    }
}

impl MarkShare {
    /// α = 1.
    const ONE: u32 = 1_024;

    /// Estimate with g = 2^-shift, at most 2^-10.
    pub(crate) fn with_shift(shift: u32) -> Self {
        Self { alpha: Self::ONE, shift: shift.min(10), delivered: 0, marked: 0 }
    }

    /// Sets the initial α, in units of 1 / 1,024.
    #[must_use]
    pub fn starting_at(self, alpha: u32) -> Self {
        Self { alpha: alpha.min(Self::ONE), ..self }
    }

    /// The fraction in units of 1 / 1,024.
    pub fn units(&self) -> u32 {
        self.alpha
    }

    /// α, 0 to 1.
    pub fn alpha(&self) -> f64 {
        f64::from(self.alpha) / f64::from(Self::ONE)
    }

    /// Counts what an acknowledgement covers.
    #[inline]
    pub fn count(&mut self, delivered: u64, marked: u64) {
        self.delivered = self.delivered.saturating_add(delivered);
        self.marked = self.marked.saturating_add(marked);
    }

    /// A round trip is over: α follows, and counting begins anew.
    pub fn end_round(&mut self) {
        // A value too small to shrink by a share of g becomes zero, or it would never shrink.
        let decay = match self.alpha >> self.shift {
            0 => self.alpha,
            decay => decay,
        };
        let marked = self.marked.min(self.delivered);
        let fresh = marked.saturating_mul(u64::from(Self::ONE >> self.shift)) / self.delivered.max(1);
        self.alpha = (self.alpha - decay + fresh as u32).min(Self::ONE);
        (self.delivered, self.marked) = (0, 0);
    }

    /// A window less half of α.
    pub fn reduced(&self, window: u64) -> u64 {
        window - window * u64::from(self.alpha) / u64::from(2 * Self::ONE)
    }
}
