//! Tools with which tests drive machines, and say that they cannot run.
//!
//! [`Recorder`] is a sink that writes down what a machine does. [`Duo`] joins two machines by a wire that loses, delays and
//! reorders exactly what the test says. [`fuzz`] changes a corpus at random, [`fuzz_changes`] texts and captures too. [`permitted`] and [`installed`] skip a test
//! where the permission or the program that it needs is missing, so that nobody takes a skip for a success.
//! [`page`] checks rules that hold for every page that is written.

mod duo;
mod fuzz;
pub mod page;
mod recorder;
mod skip;

pub use duo::{Duo, Fate, Side};
pub use fuzz::{
    FuzzRandom, capture_records, changed_bytes, changed_capture, changed_text, fuzz, fuzz_changes, fuzz_corpus,
    fuzz_rounds,
};
pub use recorder::{RecordedAction, RecordedActionOf, Recorder};
pub use skip::{installed, missing, permitted, report, rootless_namespaces, skip, skip_part};
