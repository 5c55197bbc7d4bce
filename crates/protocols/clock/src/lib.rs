//! Clocks that know how wrong they are: who listens to whom, what a node does when it hears nothing, and by how much it may be wrong.
//!
//! Sundial (Y. Li's thesis, ch. 3). Where its parts are:
//!
//! | of the thesis | here |
//! | --- | --- |
//! | §3.4.2.1: primary tree, backup graph, backup root; Alg. 2 to 5 | [`plan`], over a [`graph`] |
//! | §3.4.1, §3.4.3: synchronous waves, timeouts, turning, election | [`node`] |
//! | a plan for linuxptp | [`ptp4l`] |
//! | Eq. 3.1: the bound ε; intervals of time | [`bound`] |
//! | how far two clocks are apart, from traffic and from what they say themselves | [`offset`] |
//!
//! Nothing here has a clock or a socket.

#![warn(missing_docs)]

pub mod bound;
pub mod graph;
pub mod node;
pub mod offset;
pub mod plan;
pub mod ptp4l;
