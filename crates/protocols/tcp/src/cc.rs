//! Congestion control: how much may be in flight, and how fast it may leave.
//!
//! The connection reports what happened; a `CongestionControl` answers with a window and, if it paces, a rate.
//!
//! | module | after | what it takes for congestion |
//! | --- | --- | --- |
//! | `reno` | RFC 5681 | a loss, a mark |
//! | `cubic` | RFC 9438, Linux 5.4 | a loss, a mark |
//! | `dctcp` | RFC 8257, Linux 5.4 | the fraction of marks, a loss |
//! | `bbr` | draft-cardwell-iccrg-bbr-congestion-control-00, Linux 5.4 | nothing: it keeps a model of the path |
//! | `off` | PL2 App. F, TCP over reserved slots | nothing: only the receiver's window limits it |
//!
//! The first three share how a window grows, falls and recovers (`cc/window.rs`). Invariant: a window lies between one
//! segment and `MAX_WINDOW`, regardless of what the connection reports.

mod bbr;
mod cubic;
mod dctcp;
mod hystart;
mod off;
#[cfg(test)]
mod pipe;
mod reno;
#[cfg(test)]
mod rounds;
mod window;

use std::fmt;
use std::str::FromStr;

use machine::Out;
use units::{Bytes, ParseError, Span, Time};

use bbr::Bbr;
use cubic::Cubic;
use dctcp::Dctcp;
use off::NoControl;
use reno::Reno;

use super::connection::TcpConnection;

/// Largest window, so that sums and products of windows stay far from 2⁶⁴. 1 TiB is the product of 10 Tb/s and a round trip of
/// almost a second.
pub(crate) const MAX_WINDOW: u64 = 1 << 40;

/// Segments that hosts cut up on the way are larger than a frame, but not than this.
pub(crate) const MAX_MSS: u32 = 1 << 20;

/// Congestion control algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 5681: halves the window at a loss.
    Reno,
    /// RFC 9438: the Linux default.
    Cubic,
    /// RFC 8257: reduces the window by the fraction of marks.
    Dctcp,
    /// Version 1: follows measured bandwidth and round trip, and paces.
    Bbr,
    /// None: a sender fills the receiver's window at once, and repairs losses at the same rate.
    Off,
}

impl Algorithm {
    /// Controls, in the order in which errors list them.
    pub const ALL: [Self; 5] = [Self::Reno, Self::Cubic, Self::Dctcp, Self::Bbr, Self::Off];

    /// The kernel's name for it, where the kernel has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Dctcp => "dctcp",
            Self::Bbr => "bbr",
            Self::Off => "off",
        }
    }
}

impl FromStr for Algorithm {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: ParseError = ParseError::new("a congestion control: reno, cubic, dctcp, bbr or off");
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == text).ok_or(EXPECTED)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Contents of an acknowledgement, in bytes throughout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSample {
    pub now: Time,
    /// Newly acknowledged, in order or by SACK.
    pub delivered: u64,
    /// Newly acknowledged in order.
    pub advanced: u64,
    /// Part of `delivered` that the receiver saw marked (DCTCP: all of it if the ACK carries an echo).
    pub marked: u64,
    /// Bytes in flight before this acknowledgement, and now.
    pub flight_before: u64,
    pub flight: u64,
    /// A new sample of the round trip, if there is one.
    pub rtt: Option<Span>,
    pub srtt: Span,
    /// A new round trip has begun: data sent after the last round's start is acknowledged.
    pub round_start: bool,
    /// True if the window, and not the application, limited the bytes in flight.
    pub window_limited: bool,
    /// True while losses are being repaired.
    pub in_recovery: bool,
    pub rate: Option<RateSample>,
}

/// Delivery rate over the flight of one segment (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateSample {
    pub delivered: u64,
    pub interval: Span,
    /// The application, not the network, was the limit: the sample is a lower bound.
    pub app_limited: bool,
    /// Total delivered when the segment left.
    pub prior_delivered: u64,
    /// Newly lost since the last acknowledgement.
    pub lost: u64,
}

/// Window and rate of one connection.
pub(crate) trait CongestionControl {
    fn on_ack<O: Out<TcpConnection>>(&mut self, ack: &AckSample, out: &mut O);
    /// Handles an acknowledgement where nobody records decisions of time.
    #[cfg(test)]
    fn acked(&mut self, ack: &AckSample) {
        self.on_ack(ack, &mut super::TcpSink::default());
    }
    /// Losses were found and repair begins; called once for each episode.
    fn on_loss(&mut self, now: Time, flight: u64);
    /// Repair is over.
    fn on_recovered(&mut self, now: Time);
    /// The retransmission timer went off; `flight` is what is not taken for lost.
    fn on_timeout(&mut self, now: Time, flight: u64);
    /// An ECN echo (RFC 3168), with `flight` before the acknowledgement that carries it; called at most once a round
    /// trip, before that acknowledgement's `on_ack`. DCTCP counts marks in `on_ack` instead.
    fn on_echo(&mut self, now: Time, flight: u64);
    /// The last reduction was for nothing: nothing had been lost.
    fn undo(&mut self, now: Time);
    /// Sending begins again after an idle time.
    fn on_idle_restart(&mut self, now: Time);
    /// A socket sends with nothing in flight, `idle` after it last did.
    fn on_first_sent(&mut self, _now: Time, _idle: Span) {}
    /// All that was in flight when a mark was heeded is acknowledged, and more.
    fn on_mark_answered(&mut self) {}
    /// Marks show that the last reduction was right, whatever else turns out.
    fn forbid_undo(&mut self) {}
    /// A reduction stopped here, short of its threshold.
    fn on_reduction_stopped(&mut self, _window: u64) {}
    fn window(&self) -> u64;
    fn threshold(&self) -> u64;
    /// `None` to send as the window allows.
    fn pacing(&self) -> Option<PacingRate>;
}

/// Pace of segments. Unlike a [`units::Rate`], which a port has, it may be anything above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PacingRate(u64);

impl PacingRate {
    /// Makes a rate of at least one bit a second, so that every span ends.
    pub(crate) fn from_bits_per_second(bits: u64) -> Self {
        Self(bits.max(1))
    }

    pub(crate) const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Time that `bytes` take at this pace, rounded up to the next picosecond.
    pub(crate) fn span_of(self, bytes: Bytes) -> Span {
        const PS_BITS: u64 = 8 * 1_000_000_000_000;
        Span::from_ps(match bytes.get().checked_mul(PS_BITS) {
            Some(product) => product.div_ceil(self.0),
            None => {
                let ps = (u128::from(bytes.get()) * u128::from(PS_BITS)).div_ceil(u128::from(self.0));
                u64::try_from(ps).unwrap_or(u64::MAX)
            }
        })
    }
}

/// Initial configuration of a controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CcConfig {
    /// Payload of a full segment.
    pub mss: u32,
    /// Bytes that may leave before anything is acknowledged (RFC 6928: ten segments).
    pub initial_window: u64,
    /// Start of BBR's cycle of gains: flows with different seeds do not probe in step.
    pub seed: u32,
    /// Unit in which time is counted; zero if it does not tick. Ticks are this much earlier than its multiples.
    pub tick: Span,
    pub tick_offset: Span,
    /// CUBIC counts round trips in microseconds (Linux since 5.6) instead of milliseconds.
    pub fine_delays: bool,
    /// Windows fall to whole segments, as a kernel counts them.
    pub whole_segments: bool,
}

/// The controller of one connection.
#[derive(Clone, Debug)]
pub(crate) enum TcpController {
    Reno(Reno),
    Cubic(Cubic),
    Dctcp(Dctcp),
    /// Boxed: its model of the path is larger than all the others.
    Bbr(Box<Bbr>),
    Off(NoControl),
}

impl TcpController {
    pub(crate) fn new(algorithm: Algorithm, config: &CcConfig) -> Self {
        match algorithm {
            Algorithm::Reno => Self::Reno(Reno::new(config)),
            Algorithm::Cubic => Self::Cubic(Cubic::new(config)),
            Algorithm::Dctcp => Self::Dctcp(Dctcp::new(config)),
            Algorithm::Bbr => Self::Bbr(Box::new(Bbr::new(config))),
            Algorithm::Off => Self::Off(NoControl),
        }
    }

    /// The round trip that the handshake took, if it is known before anything is sent. Only BBR wants to know.
    pub(crate) fn on_handshake(&mut self, now: Time, rtt: Span) {
        if let Self::Bbr(bbr) = self {
            bbr.on_handshake(now, rtt);
        }
    }

    /// True if it reduces its window for losses.
    pub(crate) fn reacts(&self) -> bool {
        !matches!(self, Self::Off(_))
    }

    /// True if the flight glides down to a reduced window while losses are repaired (RFC 6937).
    #[inline]
    pub(crate) fn reduces_gently(&self) -> bool {
        !matches!(self, Self::Bbr(_) | Self::Off(_))
    }
}

/// Calls the one that is there.
macro_rules! each {
    ($controller:expr, $control:ident => $call:expr) => {
        match $controller {
            TcpController::Reno($control) => $call,
            TcpController::Cubic($control) => $call,
            TcpController::Dctcp($control) => $call,
            TcpController::Bbr($control) => $call,
            TcpController::Off($control) => $call,
        }
    };
}

impl CongestionControl for TcpController {
    #[inline]
    fn on_ack<O: Out<TcpConnection>>(&mut self, ack: &AckSample, out: &mut O) {
        each!(self, control => control.on_ack(ack, out));
    }

    #[inline]
    fn on_loss(&mut self, now: Time, flight: u64) {
        each!(self, control => control.on_loss(now, flight));
    }

    #[inline]
    fn on_recovered(&mut self, now: Time) {
        each!(self, control => control.on_recovered(now));
    }

    #[inline]
    fn on_timeout(&mut self, now: Time, flight: u64) {
        each!(self, control => control.on_timeout(now, flight));
    }

    #[inline]
    fn on_echo(&mut self, now: Time, flight: u64) {
        each!(self, control => control.on_echo(now, flight));
    }

    #[inline]
    fn undo(&mut self, now: Time) {
        each!(self, control => control.undo(now));
    }

    #[inline]
    fn on_idle_restart(&mut self, now: Time) {
        each!(self, control => control.on_idle_restart(now));
    }

    fn on_first_sent(&mut self, now: Time, idle: Span) {
        each!(self, control => control.on_first_sent(now, idle));
    }

    fn on_mark_answered(&mut self) {
        each!(self, control => control.on_mark_answered());
    }

    fn forbid_undo(&mut self) {
        each!(self, control => control.forbid_undo());
    }

    fn on_reduction_stopped(&mut self, window: u64) {
        each!(self, control => control.on_reduction_stopped(window));
    }

    #[inline]
    fn window(&self) -> u64 {
        each!(self, control => control.window())
    }

    #[inline]
    fn threshold(&self) -> u64 {
        each!(self, control => control.threshold())
    }

    #[inline]
    fn pacing(&self) -> Option<PacingRate> {
        each!(self, control => control.pacing())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_read_as_written_and_others_are_refused_with_a_list() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
        let refusal = "vegas".parse::<Algorithm>().unwrap_err().to_string();
        assert!(Algorithm::ALL.iter().all(|known| refusal.contains(known.name())), "{refusal}");
    }

    #[test]
    fn a_controller_is_small() {
        assert!(size_of::<TcpController>() <= 208, "{}", size_of::<TcpController>());
    }

    #[test]
    fn a_pace_takes_its_time_and_never_forever() {
        let pace = PacingRate::from_bits_per_second(1_000_000_000);
        assert_eq!(pace.span_of(Bytes::new(1_250)), Span::from_us(10));
        assert_eq!(pace.span_of(Bytes::new(125_000_000_000)), Span::from_ms(1_000_000));
        assert_eq!(PacingRate::from_bits_per_second(0).span_of(Bytes::new(u64::MAX)), Span::from_ps(u64::MAX));
    }

    #[derive(Clone, Debug)]
    enum Call {
        Ack(AckSample),
        Loss(u64),
        Recovered,
        Timeout(u64),
        Echo(u64),
        Undo,
        Idle,
    }

    /// Byte counts from zero to more than there are, mostly usual ones.
    fn bytes() -> impl Strategy<Value = u64> {
        prop_oneof![4 => 0..200_000_u64, 1 => Just(0), 1 => any::<u64>()]
    }

    fn span() -> impl Strategy<Value = Span> {
        prop_oneof![4 => 0..1_000_000_000_u64, 1 => Just(0), 1 => any::<u64>()].prop_map(Span::from_ps)
    }

    fn rate() -> impl Strategy<Value = Option<RateSample>> {
        let sample = (bytes(), span(), any::<bool>(), bytes(), bytes()).prop_map(
            |(delivered, interval, app_limited, prior_delivered, lost)| RateSample {
                delivered,
                interval,
                app_limited,
                prior_delivered,
                lost,
            },
        );
        proptest::option::of(sample)
    }

    fn ack() -> impl Strategy<Value = Call> {
        let counts = (bytes(), bytes(), bytes(), bytes(), bytes());
        let times = (proptest::option::of(span()), span());
        (counts, times, any::<(bool, bool, bool)>(), rate()).prop_map(|(counts, times, flags, rate)| {
            let (delivered, advanced, marked, flight_before, flight) = counts;
            let (rtt, srtt) = times;
            let (round_start, window_limited, in_recovery) = flags;
            Call::Ack(AckSample {
                now: Time::ZERO,
                delivered,
                advanced,
                marked,
                flight_before,
                flight,
                rtt,
                srtt,
                round_start,
                window_limited,
                in_recovery,
                rate,
            })
        })
    }

    fn call() -> impl Strategy<Value = Call> {
        prop_oneof![
            20 => ack(),
            2 => bytes().prop_map(Call::Loss),
            2 => Just(Call::Recovered),
            1 => bytes().prop_map(Call::Timeout),
            1 => bytes().prop_map(Call::Echo),
            1 => Just(Call::Undo),
            1 => Just(Call::Idle),
        ]
    }

    fn apply(controller: &mut TcpController, now: Time, call: Call) {
        match call {
            Call::Ack(ack) => controller.acked(&AckSample { now, ..ack }),
            Call::Loss(flight) => controller.on_loss(now, flight),
            Call::Recovered => controller.on_recovered(now),
            Call::Timeout(flight) => controller.on_timeout(now, flight),
            Call::Echo(flight) => controller.on_echo(now, flight),
            Call::Undo => controller.undo(now),
            Call::Idle => controller.on_idle_restart(now),
        }
    }

    proptest! {
        #[test]
        fn a_window_keeps_its_bounds_whatever_is_told(
            mss in prop_oneof![Just(1_448_u32), 1..=MAX_MSS],
            initial_window in bytes(),
            seed: u32,
            tick in prop_oneof![Just(Span::ZERO), Just(Span::from_ms(1))],
            calls in proptest::collection::vec((span(), call()), 0..200),
        ) {
            for algorithm in Algorithm::ALL {
                let mut controller = TcpController::new(algorithm, &CcConfig {
                    mss,
                    initial_window,
                    seed,
                    tick,
                    tick_offset: Span::ZERO,
                    fine_delays: seed % 3 == 0,
                    whole_segments: seed % 2 == 0,
                });
                let mut now = Time::ZERO;
                for (passed, call) in calls.clone() {
                    now = Time::from_ps(now.as_ps().saturating_add(passed.as_ps()));
                    apply(&mut controller, now, call);
                    let window = controller.window();
                    prop_assert!((u64::from(mss)..=MAX_WINDOW).contains(&window), "{algorithm}: {window}");
                    prop_assert!(controller.threshold() <= MAX_WINDOW);
                }
            }
        }
    }
}
