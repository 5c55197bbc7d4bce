//! Results of simulations and models, as text, JSON and rows.
//!
//! | file | what it shows |
//! | --- | --- |
//! | [`outcome`] | one simulated link |
//! | [`compare`] | link protocols side by side on the same link |
//! | [`flows`] | a simulated network: its flows as rows, and what they add up to |
//! | [`congestion`] | controllers of congestion side by side in the same network |
//! | [`remedies`] | a collective with one bad cable, and remedies beside each other |
//! | [`replay`] | connections and queues replayed from logs |
//! | [`model`] | values that are computed, not simulated |

pub mod compare;
pub mod congestion;
pub mod flows;
pub mod model;
pub mod outcome;
pub mod remedies;
pub mod replay;
