//! Shapes of datacenter networks: the nodes of each tier, and the links between them.
//!
//! A shape knows neither names nor rates. It states its [`ShapeSize`], which its user holds against limits of its own, and
//! becomes a [`ShapeWiring`]: nodes in a defined order, and links as pairs of their numbers. Graphs of clocks, fabrics of a
//! fleet and simulated networks are made of these, each with its own names.
//!
//! | file | what it does |
//! | --- | --- |
//! | `wiring` | nodes and links of any shape, and how many they are |
//! | `hosts` | links from hosts to the switches above them |
//! | `pods` | three tiers: fat trees, Facebook's fabric, HPCC's |
//! | `racks` | leaves and spines, one switch with hosts, chains of switches |
//! | `jupiter` | Google's Jupiter |
//! | `testbed` | the testbed of Sundial |
//!
//! Invariants: nodes of a block have consecutive numbers; both ends of a link are nodes of the shape; a wiring has as many
//! nodes and links as the size states.

mod hosts;
pub mod jupiter;
mod pods;
mod racks;
pub mod testbed;
mod wiring;

pub use hosts::HostLinks;
pub use pods::{NodeOrder, PodNames, Pods};
pub use racks::{LeafSpine, SwitchChain};
pub use wiring::{ShapeNode, ShapeSize, ShapeWiring};
