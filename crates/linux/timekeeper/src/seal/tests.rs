//! Two ends with and without keys, and somebody between them who has none.

use wire::sync::SyncEpoch;

use super::*;

const INTERVAL: Span = Span::from_ms(1);
const KEY: SealKey = [7; 16];

/// Two daemons, and all that was ever between them.
struct SealPair {
    ends: [WaveSeal; 2],
    recorded: Vec<Vec<u8>>,
    lives: u128,
    now: Time,
}

const PAIR: [&str; 2] = ["a", "b"];

fn started(key: Option<SealKey>, life: u128, end: usize) -> WaveSeal {
    WaveSeal::new(key.map(|key| (key, life << 64)), PAIR[end], PAIR[1 - end], INTERVAL)
}

fn frame(end: usize, number: u32) -> ExchangeFrame {
    ExchangeFrame {
        number,
        sender: name_digest(PAIR[end]),
        epoch: SyncEpoch { plan: 7, elected: true },
        ..ExchangeFrame::default()
    }
}

impl SealPair {
    fn with(keys: [Option<SealKey>; 2]) -> Self {
        let ends = [started(keys[0], 1, 0), started(keys[1], 2, 1)];
        Self { ends, recorded: Vec::new(), lives: 2, now: Time::ZERO }
    }

    fn met() -> Self {
        let mut pair = Self::with([Some(KEY); 2]);
        pair.greet(200);
        assert_eq!(pair.ends.each_ref().map(WaveSeal::has_session), [Some(true); 2]);
        pair
    }

    /// A new run of a daemon: its time begins at zero, whatever the other's is.
    fn restart(&mut self, end: usize) {
        self.lives += 1;
        self.ends[end] = started(Some(KEY), self.lives, end);
    }

    fn greet(&mut self, ms: u32) {
        for _ in 0..ms {
            self.now += Span::from_ms(1);
            for end in 0..2 {
                self.ends[end].set_time(self.now);
                let mut bytes = Vec::new();
                while self.ends[end].greet(&mut bytes) {
                    let bytes = std::mem::take(&mut bytes);
                    let _ = self.ends[1 - end].read(&bytes);
                    self.recorded.push(bytes);
                }
            }
        }
    }

    /// The bytes of a frame that an end sends; none if it does not.
    fn sent(&mut self, end: usize, number: u32) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.ends[end].write(&frame(end, number), &mut bytes).then_some(bytes)
    }

    fn passes(&mut self, from: usize, number: u32) -> bool {
        let Some(bytes) = self.sent(from, number) else { return false };
        let read = self.ends[1 - from].read(&bytes);
        self.recorded.push(bytes);
        read == Ok(Some(frame(from, number)))
    }
}

#[test]
fn a_forged_an_altered_and_an_unsealed_frame_open_nowhere() {
    let mut pair = SealPair::met();
    let good = pair.sent(0, 5).unwrap();
    for bit in 0..8 * good.len() {
        let mut altered = good.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        assert!(pair.ends[1].read(&altered).is_err(), "bit {bit}");
    }
    let mut bare = Vec::new();
    frame(0, 5).emit(&mut bare);
    assert_eq!(pair.ends[1].read(&bare), Err(FrameRefusal::Unsealed));
    assert_eq!(pair.ends[1].read(b"no frame of a clock at all"), Err(FrameRefusal::Malformed));
    assert_eq!(pair.ends[0].read(&good), Err(FrameRefusal::Foreign), "its own, come back");
    let (longer, shorter) = ([&good[..], &[0]].concat(), &good[..good.len() - 1]);
    assert_eq!(pair.ends[1].read(&longer), Err(FrameRefusal::Forged));
    assert_eq!(pair.ends[1].read(shorter), Err(FrameRefusal::Forged));
    for len in 0..NAMES + 1 + SEAL {
        assert!(pair.ends[1].read(&good[..len]).is_err());
    }
    assert_eq!(pair.ends[1].read(&good), Ok(Some(frame(0, 5))));
    assert!(good.len() <= LONGEST_SEALED);
}

#[test]
fn a_replayed_frame_is_refused_also_after_either_end_was_started_again() {
    let mut pair = SealPair::met();
    assert!((1..100).all(|number| pair.passes(0, number) && pair.passes(1, number)));
    for restarted in [0, 1, 0] {
        let recorded = pair.recorded.clone();
        for bytes in &recorded {
            for end in &mut pair.ends {
                assert!(!matches!(end.read(bytes), Ok(Some(_))));
            }
        }
        pair.restart(restarted);
        // Everything that was ever said is played again while the two agree.
        for bytes in &recorded {
            for end in &mut pair.ends {
                assert!(!matches!(end.read(bytes), Ok(Some(_))), "restarted {restarted}");
            }
        }
        pair.greet(300);
        for bytes in &recorded {
            for end in &mut pair.ends {
                assert!(!matches!(end.read(bytes), Ok(Some(_))), "restarted {restarted}");
            }
        }
        assert!(pair.passes(0, 7) && pair.passes(1, 8), "restarted {restarted}");
    }
}

#[test]
fn a_frame_for_one_neighbour_is_no_others() {
    let mut pair = SealPair::met();
    let good = pair.sent(0, 5).unwrap();
    let mut other = WaveSeal::new(Some((KEY, 9 << 64)), "c", "a", INTERVAL);
    assert_eq!(other.read(&good), Err(FrameRefusal::Foreign));
    let mut renamed = good.clone();
    renamed[PREFIX.len() + 4..NAMES].copy_from_slice(&name_digest("c").to_be_bytes());
    assert!(matches!(other.read(&renamed), Err(FrameRefusal::Forged | FrameRefusal::Early)));
}

#[test]
fn another_key_and_no_key_at_one_end_are_named() {
    for (keys, expected) in [
        ([Some(KEY), Some([8; 16])], ["another key", "another key"]),
        ([Some(KEY), None], ["start it with the same --key", "start this node with its --key"]),
    ] {
        let mut pair = SealPair::with(keys);
        for number in 1..20 {
            pair.greet(200);
            assert!(!pair.passes(0, number) && !pair.passes(1, number));
        }
        for end in 0..2 {
            let problem = pair.ends[end].problem(PAIR[1 - end]).unwrap();
            assert!(problem.contains(expected[end]), "{problem}");
        }
    }
    let mut pair = SealPair::met();
    assert_eq!(pair.ends[0].read(&[0; 60]), Err(FrameRefusal::Malformed));
    pair.greet(5_000);
    assert_eq!(pair.ends[0].problem("b"), None, "silence is no wrong key");
}

#[test]
fn without_a_key_frames_are_as_they_always_were() {
    let mut pair = SealPair::with([None; 2]);
    let mut bare = Vec::new();
    frame(0, 1).emit(&mut bare);
    assert_eq!(pair.sent(0, 1), Some(bare));
    assert!(pair.passes(0, 1) && pair.passes(1, 1));
    assert_eq!((pair.ends[0].greets_at(), pair.ends[0].has_session()), (Time::NEVER, None));
}
