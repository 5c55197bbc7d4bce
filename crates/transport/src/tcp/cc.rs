//! Congestion control: how much may be in flight, and how fast it may leave.
//!
//! The connection tells what happened; a [`Control`] answers with a window and, if it paces, a rate.

use units::{Rate, Span, Time};

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Reno,
    Cubic,
    Dctcp,
    Bbr,
}

/// What an acknowledgement said. Bytes throughout.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    pub now: Time,
    /// Newly acknowledged, in order or by SACK.
    pub delivered: u64,
    /// Newly acknowledged in order.
    pub advanced: u64,
    /// Of `delivered`, what the receiver saw marked (DCTCP: all of it if the ACK carries an echo).
    pub marked: u64,
    /// In flight before this acknowledgement, and now.
    pub flight_before: u64,
    pub flight: u64,
    /// A new sample of the round trip, if there is one.
    pub rtt: Option<Span>,
    pub min_rtt: Span,
    pub srtt: Span,
    /// A new round trip has begun: data sent after the last round's start is acknowledged.
    pub round_start: bool,
    /// Whether the window, and not the application, limited what was in flight.
    pub window_limited: bool,
    /// Whether losses are being repaired.
    pub in_recovery: bool,
    pub rate: Option<RateSample>,
}

/// Delivery rate over the life of one segment (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
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
pub trait Control {
    fn on_ack(&mut self, ack: &Ack);
    /// Losses were found and repair begins; called once for each episode.
    fn on_loss(&mut self, now: Time, flight: u64);
    /// Repair is over.
    fn on_recovered(&mut self, now: Time);
    /// The retransmission timer went off.
    fn on_timeout(&mut self, now: Time, flight: u64);
    /// An ECN echo (RFC 3168); called at most once a round trip. DCTCP counts marks in `on_ack` instead.
    fn on_echo(&mut self, now: Time, flight: u64);
    /// The last reduction was for nothing: nothing had been lost.
    fn undo(&mut self, now: Time);
    /// Sending begins again after an idle time.
    fn on_idle_restart(&mut self, now: Time);
    fn window(&self) -> u64;
    fn threshold(&self) -> u64;
    /// `None` to send as the window allows.
    fn pacing(&self) -> Option<Rate>;
}
