//! Arbitrary bytes as frames, and as frames of clocks: nothing panics. `fuzz/` calls the same functions.

#[path = "targets/clock.rs"]
mod clock;
#[path = "targets/frames.rs"]
mod frames;

use std::path::PathBuf;

use testkit::fuzz;
use units::{Span, Time};
use wire::exchange::{ExchangeFrame, FrameTime};
use wire::sync::{SyncEpoch, SyncMessage, SyncTerm};

fn corpus(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/corpus", name].iter().collect()
}

#[test]
fn any_frame_has_layers_or_none() {
    fuzz(&corpus("roce"), 600, 100_000, frames::frame);
}

#[test]
fn any_frame_of_a_clock() {
    fuzz(&corpus("clock"), 400, 100_000, clock::checked);
}

fn wave() -> SyncMessage {
    SyncMessage {
        term: SyncTerm { number: 3, root: 7 },
        line: 9,
        epoch: SyncEpoch { plan: 2, elected: true },
        wave: 1_000,
        depth: 4,
        timestamp: Time::from_ps(1 << 50),
        correction: Span::from_us(3),
        uncertainty: Span::from_ns(80),
        handover: Span::from_us(1),
    }
}

fn exchange(wave: Option<SyncMessage>) -> Vec<u8> {
    let frame = ExchangeFrame {
        sender: 1,
        instance: 2,
        to: 3,
        given: 4,
        term: SyncTerm { number: 3, root: 7 },
        epoch: SyncEpoch { plan: 2, elected: false },
        synchronized: true,
        asks: wave.is_none(),
        number: 17,
        left: Some(FrameTime { number: 16, time_ns: 1 << 60 }),
        arrived: None,
        wave,
    };
    let mut bytes = Vec::new();
    frame.emit(&mut bytes);
    bytes
}

#[test]
fn the_corpus_of_clocks_is_made_of_frames() {
    let expected = [("request", exchange(None)), ("wave", exchange(Some(wave()))), ("sync", wave().emit().to_vec())];
    for (name, bytes) in expected {
        assert_eq!(std::fs::read(corpus("clock").join(name)).unwrap(), bytes, "{name}");
    }
}
