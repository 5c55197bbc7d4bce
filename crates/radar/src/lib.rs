//! Which packets were lost, where and why, out of memory as small as the loss.
//!
//! | file | what it is | li-thesis |
//! | --- | --- | --- |
//! | [`read`] | from the bytes of a frame to a packet | |
//! | [`packet`], [`signature`] | what a meter sees of a packet, and what of that tells it from all others | §5.3.2 |
//! | [`digest`] | the invertible table of a meter: insert, subtract, decode | §5.3.1, §5.8 |
//! | [`meter`] | batches, two of them open | §5.3.4 |
//! | [`rolling`], [`segment`] | what meters disagree about, batch by batch: losses of links and black boxes | §5.4.2, §5.8 |
//! | [`loss`] | a lost packet, and the causes there are | §5.5 |

pub mod digest;
pub mod loss;
pub mod meter;
pub mod packet;
pub mod read;
pub mod rolling;
pub mod segment;
pub mod signature;
