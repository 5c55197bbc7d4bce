//! Subject of a script: a TCP with sockets above it and a network below it.

use units::{Span, Time};

use crate::language::{CallResult, Setting, SocketCall, TcpInfoFields};
use crate::segment::DrillSegment;

/// Reason why a run ended before its script did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DrillStop {
    /// The subject did something else than the script says.
    Failed(String),
    /// The script needs something that the subject does not have.
    NotApplicable(String),
}

impl DrillStop {
    pub(crate) fn failed<T>(why: impl Into<String>) -> Result<T, Self> {
        Err(Self::Failed(why.into()))
    }

    pub(crate) fn not_applicable<T>(why: impl Into<String>) -> Result<T, Self> {
        Err(Self::NotApplicable(why.into()))
    }
}

/// A segment that left.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SentSegment {
    pub(crate) at: Time,
    pub(crate) segment: DrillSegment,
}

/// A TCP under test, with its own time. Times count from the start of the script.
pub(crate) trait Subject {
    /// Starts the subject's time; configuration before it takes no time.
    fn start(&mut self);

    /// The time.
    fn now(&self) -> Time;

    /// Lets time pass, and keeps the segments that leave meanwhile.
    fn advance(&mut self, until: Time);

    /// A segment comes in.
    fn arrives(&mut self, segment: &DrillSegment) -> Result<(), DrillStop>;

    /// The next segment that left, in order; lets time pass until there is one, at most until `deadline`.
    fn next_sent(&mut self, deadline: Time) -> Option<SentSegment>;

    /// A call that returns at once.
    fn call(&mut self, descriptor: i64, call: &SocketCall) -> Result<CallResult, DrillStop>;

    /// A call that may wait; one at a time.
    fn start_call(&mut self, descriptor: i64, call: &SocketCall) -> Result<(), DrillStop>;

    /// Time at which the started call ended, and its result; lets time pass until then, at most until `deadline`.
    fn call_ended(&mut self, deadline: Time) -> Option<(Time, CallResult)>;

    /// TCP_INFO of the connection.
    fn info(&mut self) -> Result<TcpInfoFields, DrillStop>;

    /// Applies the setting of a shell command.
    fn configure(&mut self, setting: &Setting) -> Result<(), DrillStop>;

    /// Time by which a timer may go off later than a script says, because its ticks are longer than those of the hosts for
    /// which scripts are written.
    fn coarseness(&self) -> Span {
        Span::ZERO
    }

    /// The longest time by which this run was behind its script because the machine was busy.
    fn lag(&self) -> Span {
        Span::ZERO
    }
}
