//! Finds which packets were lost, where and why, out of memory as small as the loss.
//!
//! | file | what it is | li-thesis |
//! | --- | --- | --- |
//! | [`read`] | from the bytes of a frame to a packet | |
//! | [`compare`] | which packets of one capture are missing in another | §5.3 |
//! | `superframe` | frames of captures that were many packets on the wire | |
//! | [`delay`] | how long packets were on their way between two captures, as intervals | |
//! | [`packet`], [`signature`] | what a meter sees of a packet, and which part of that identifies it | §5.3.2 |
//! | [`digest`] | the invertible table of a meter: insert, subtract, decode | §5.3.1, §5.8 |
//! | [`meter`] | batches, two of them open | §5.3.4 |
//! | [`clock_slack`] | batches that clocks cut: the slack for packets on their way | §5.8 |
//! | `rolling`, [`segment`] | what meters disagree about, batch by batch: losses of links and black boxes | §5.4.2, §5.8 |
//! | [`trail`] | a meter's latest packets, and what a collector may ask of them | |
//! | [`rounds`] | packets that come round, also where nothing is lost | |
//! | [`loss`] | a lost packet, and the causes there are | §5.5 |
//! | [`causes`] | why packets were lost, from the pattern of losses; what is broken | §5.5.1 |
//! | [`rule`] | why packets were lost, from evidence about each, with a stated error | |
//! | [`acl`] | access lists, and which of their rules may be corrupted | §5.5.2 |
//! | [`compare::report`], [`delay::report`], [`acl::report`] | the answers as JSON, text and pages | |
//! | [`slots`] | flows and their packets, slot by slot | §4.4.1 |
//! | [`flowset`] | FlowRadar: every flow of a switch in fixed memory, decoded alone or with its neighbours | §4.4 |
//! | [`flowmap`] | loops, blackholes and losses of flows, out of decoded counters | §4.6 |
//! | [`fabricmap`] | the same live, of a fabric whose switches report slot by slot | §4.6 |

pub mod acl;
pub mod causes;
pub mod clock_slack;
pub mod compare;
pub mod delay;
pub mod digest;
pub mod fabricmap;
pub mod flowmap;
pub mod flowset;
mod form;
pub mod loss;
pub mod meter;
pub mod packet;
pub mod read;
pub mod rolling;
pub mod rounds;
pub mod rule;
pub mod scope;
pub mod segment;
pub mod signature;
pub mod slots;
mod superframe;
pub mod trail;
