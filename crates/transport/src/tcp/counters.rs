//! What a connection counts.

/// Why a segment was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Later ones arrived (RACK).
    Sack,
    /// A tail-loss probe.
    Probe,
    /// The retransmission timer went off, or it had and this one is still missing.
    Timeout,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// With payload, copies included.
    pub segments_sent: u64,
    pub bytes_sent: u64,
    /// Segments sent again, by cause.
    pub retransmitted_sack: u64,
    pub retransmitted_probe: u64,
    pub retransmitted_timeout: u64,
    pub bytes_retransmitted: u64,
    pub timeouts: u64,
    /// With new data or old.
    pub probes: u64,
    /// Times that losses began to be repaired, timeouts not counted.
    pub recoveries: u64,
    /// Reductions that were for nothing.
    pub spurious: u64,
    /// Acknowledgements with an ECN echo.
    pub echoes: u64,
    /// Pure acknowledgements.
    pub acks_sent: u64,
    /// With payload.
    pub segments_received: u64,
    pub segments_marked: u64,
    pub out_of_order: u64,
    pub duplicates: u64,
    /// Beyond the window, or acknowledging what was never sent: dropped.
    pub invalid: u64,
}

impl Counters {
    pub fn retransmitted(&self) -> u64 {
        self.retransmitted_sack + self.retransmitted_probe + self.retransmitted_timeout
    }

    pub(super) fn on_retransmitted(&mut self, cause: Cause, bytes: u64) {
        *match cause {
            Cause::Sack => &mut self.retransmitted_sack,
            Cause::Probe => &mut self.retransmitted_probe,
            Cause::Timeout => &mut self.retransmitted_timeout,
        } += 1;
        self.bytes_retransmitted += bytes;
    }
}
