//! Places where time decides what a connection does.
//!
//! Each place asks [`Out::decide`] or [`Out::tick`] with what it computed from the time, and goes by the answer. All else that
//! a connection sends follows from the order of its calls: round trips, timeouts, deadlines and timestamps reach a segment
//! through these places only. That is what makes a replay without the exact times possible (li-thesis §6.3.2).
//!
//! Questions are asked so that no is the usual answer. BBR is not among them: it follows measured times continuously.

use machine::{Out, TimeSite};

use super::connection::TcpConnection;

/// A question whose answer hangs on the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TcpSite {
    /// A segment leaves at the same time as the one before.
    SameTime,
    /// A segment that arrived may be an earlier copy than the last (RFC 8985 §6.2, step 2).
    EarlierCopy,
    /// A segment that a later one has overtaken may still arrive (RFC 8985 §6.2, step 5).
    Overdue,
    /// A segment left too short a time before a timeout to be lost (RFC 8985 §6.3).
    TooFresh,
    /// The timer of losses went off before its time.
    LossTimerEarly,
    /// The timer of acknowledgements went off before its time.
    AckTimerEarly,
    /// Nothing was sent for a retransmission timeout (RFC 2861).
    IdleRestart,
    /// An acknowledgement returns a timestamp from the future.
    FutureEcho,
    /// An acknowledgement was caused by what left before any copy (RFC 3522).
    AnsweredByOriginal,
    /// A segment is older than what was acknowledged last (RFC 7323 §5).
    StaleSegment,
    /// Data came after a pause that makes acknowledgements quick.
    QuickAgain,
    /// Data is answered soon enough for a connection to count as interactive.
    SoonAnswer,
    /// A peer whose window is shut answered a short while ago.
    PeerAnswers,
    /// Data waited for longer than the user's timeout.
    UserTimeout,
    /// A copy leaves together with the one before.
    CopyTogether,
    /// A part of the window waits for the next acknowledgement.
    Defers,
    /// Slow start has filled the pipe (HyStart).
    PipeFull,
    /// CUBIC's pace is too old to be kept.
    PaceTooOld,
    /// CUBIC looks at its curve for the first time in this jiffy.
    NewJiffy,
    /// A report of segments behind a gap has waited for long enough (SACK compression).
    HeldSackDue,
    /// A round trip of the receiver's is over: its buffer may grow.
    ReceiveRoundOver,
}

/// A number that hangs on the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TcpTick {
    /// Height of CUBIC's curve above or below its origin.
    CubicCurve,
    /// Segments of a super-frame.
    Burst,
}

impl TcpSite {
    /// Sites, in the order of their numbers.
    pub const ALL: [Self; 21] = [
        Self::SameTime,
        Self::EarlierCopy,
        Self::Overdue,
        Self::TooFresh,
        Self::LossTimerEarly,
        Self::AckTimerEarly,
        Self::IdleRestart,
        Self::FutureEcho,
        Self::AnsweredByOriginal,
        Self::StaleSegment,
        Self::QuickAgain,
        Self::SoonAnswer,
        Self::PeerAnswers,
        Self::UserTimeout,
        Self::CopyTogether,
        Self::Defers,
        Self::PipeFull,
        Self::PaceTooOld,
        Self::NewJiffy,
        Self::HeldSackDue,
        Self::ReceiveRoundOver,
    ];

    #[inline]
    pub(super) fn ask<O: Out<TcpConnection>>(self, out: &mut O, computed: bool) -> bool {
        out.decide(TimeSite(self as u8), computed)
    }
}

impl TcpTick {
    /// Sites, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::CubicCurve, Self::Burst];

    #[inline]
    pub(super) fn ask<O: Out<TcpConnection>>(self, out: &mut O, computed: u64) -> u64 {
        out.tick(TimeSite(self as u8), computed)
    }
}
