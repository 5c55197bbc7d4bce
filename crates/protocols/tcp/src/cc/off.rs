//! No congestion control: TCP over a network that schedules its senders (PL2, App. F), or a sender that ignores everyone.
//!
//! The window is as large as a window may be, from the first segment on and whatever is lost or marked; what limits the
//! flight is the window that the receiver offers. Losses are found and repaired as always.

use machine::Out;
use units::Time;

use super::{AckSample, CongestionControl, MAX_WINDOW, PacingRate};
use crate::connection::TcpConnection;

#[derive(Clone, Copy, Debug)]
pub(crate) struct NoControl;

impl CongestionControl for NoControl {
    #[inline]
    fn on_ack<O: Out<TcpConnection>>(&mut self, _ack: &AckSample, _out: &mut O) {}

    fn on_loss(&mut self, _now: Time, _flight: u64) {}

    fn on_recovered(&mut self, _now: Time) {}

    fn on_timeout(&mut self, _now: Time, _flight: u64) {}

    fn on_echo(&mut self, _now: Time, _flight: u64) {}

    fn undo(&mut self, _now: Time) {}

    fn on_idle_restart(&mut self, _now: Time) {}

    #[inline]
    fn window(&self) -> u64 {
        MAX_WINDOW
    }

    fn threshold(&self) -> u64 {
        MAX_WINDOW
    }

    #[inline]
    fn pacing(&self) -> Option<PacingRate> {
        None
    }
}
