//! RoCEv2 out of frames: no bytes cause a panic, and the parser reads what we emit.

mod roce_frames;
#[path = "targets/roce.rs"]
mod targets;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use roce_frames::{Around, Shape, around, carries, frame, header, malformed, pad};
use targets::holds;
use wire::roce::{MalformedRoce, Opcode, ParsedRoce, icrc_is_valid, parse};

fn any_shape() -> impl Strategy<Value = Shape> {
    let around = prop_oneof![Just(Around::Ipv4), Just(Around::Ipv4WithOptions), Just(Around::Ipv6)];
    (0..3_usize, around).prop_map(|(tags, around)| Shape { tags, around })
}

fn any_opcode() -> impl Strategy<Value = Opcode> {
    (0..Opcode::ALL.len()).prop_map(|at| Opcode::ALL[at])
}

proptest! {
    #[test]
    fn what_is_emitted_is_what_is_read(shape in any_shape(), opcode in any_opcode(), psn in 0..1_u32 << 24, payload in 0..300_usize) {
        let payload = if carries(opcode) { payload } else { 0 };
        let header = header(opcode, psn, pad(payload));
        let frame = frame(shape, &header, payload);
        prop_assert_eq!(parse(&frame), Ok(ParsedRoce::Reliable { header, payload }));
        prop_assert_eq!(icrc_is_valid(&frame), Some(true));
    }

    #[test]
    fn bytes_that_fill_up_a_short_frame_do_not_matter(shape in any_shape(), opcode in any_opcode(), filler in 0..40_usize) {
        let header = header(opcode, 77, 0);
        let mut frame = frame(shape, &header, 0);
        frame.resize(frame.len() + filler, 0xee);
        prop_assert_eq!(parse(&frame), Ok(ParsedRoce::Reliable { header, payload: 0 }));
        prop_assert_eq!(icrc_is_valid(&frame), Some(true));
    }

    #[test]
    fn no_part_of_a_frame_is_a_packet(shape in any_shape(), opcode in any_opcode(), payload in 0..64_usize, len in any::<prop::sample::Index>()) {
        let frame = frame(shape, &header(opcode, 5, pad(payload)), payload);
        let cut = &frame[..len.index(frame.len())];
        prop_assert!(matches!(parse(cut), Ok(ParsedRoce::Foreign) | Err(MalformedRoce::Cut { .. })), "{:?}", parse(cut));
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        holds(&bytes);
    }

    #[test]
    fn any_bytes_behind_headers_that_lead_to_the_port(shape in any_shape(), bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let frame = around(shape, &bytes);
        prop_assert_ne!(parse(&frame), Ok(ParsedRoce::Foreign));
        holds(&frame);
    }

    #[test]
    fn frames_that_were_changed_on_the_way(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..8),
    ) {
        let corpus = corpus();
        let mut bytes = which.get(&corpus).1.clone();
        for (at, value, edit) in edits {
            let at = at.index(bytes.len() + 1);
            match edit {
                0 => bytes.truncate(at.max(1)),
                1 => bytes.insert(at, value),
                _ => {
                    let last = bytes.len() - 1;
                    bytes[at.min(last)] = value;
                }
            }
        }
        holds(&bytes);
    }
}

/// Frames by name.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/roce");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    files.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

#[test]
fn frames_in_the_corpus_are_what_their_names_say() {
    let corpus = corpus();
    for (name, bytes) in &corpus {
        holds(bytes);
        let (parsed, check) = (parse(bytes), icrc_is_valid(bytes));
        match name.split('-').next() {
            Some("foreign") => assert_eq!(parsed, Ok(ParsedRoce::Foreign), "{name}"),
            Some("malformed") => assert!(parsed.is_err(), "{name}: {parsed:?}"),
            Some("other") => assert!(matches!(parsed, Ok(ParsedRoce::Other { .. })) && check == Some(true), "{name}"),
            Some("fragment") => assert!(matches!(parsed, Ok(ParsedRoce::Reliable { .. })) && check.is_none(), "{name}"),
            _ => {
                assert!(matches!(parsed, Ok(ParsedRoce::Reliable { .. })) && check == Some(true), "{name}: {parsed:?}")
            }
        }
    }
    assert!(corpus.len() > 40, "{}", corpus.len());
}

#[test]
fn what_is_wrong_is_said() {
    for shape in Shape::all() {
        let errors: Vec<_> = malformed(shape).iter().map(|(_, frame)| parse(frame).unwrap_err()).collect();
        let there = 8 + 12 + 16 + 64 + 4;
        let whole = frame(shape, &header(Opcode::WriteOnly, 9, 0), 64).len();
        assert_eq!(
            errors,
            [
                MalformedRoce::Cut { missing: 30 },
                MalformedRoce::Cut { missing: whole - shape.udp() - 13 },
                MalformedRoce::UdpLength { claimed: there + 9, there },
                MalformedRoce::UdpLength { claimed: there - 9, there },
                MalformedRoce::UdpLength { claimed: 4, there },
                MalformedRoce::Short { needed: 16, there: 4 },
                MalformedRoce::Short { needed: 16, there: 11 },
                MalformedRoce::Short { needed: 32, there: 24 },
                MalformedRoce::Short { needed: 20, there: 16 },
                MalformedRoce::Pad { pad: 3, there: 0 },
                MalformedRoce::Version(1),
            ],
            "{shape:?}"
        );
    }
}

#[test]
fn of_fragments_only_the_first_counts() {
    let header = header(Opcode::SendFirst, 3, 0);
    let whole = frame(Shape::PLAIN, &header, 256);
    let mut first = whole[..14 + 20 + 8 + 12 + 100].to_vec();
    first[16..18].copy_from_slice(&(20_u16 + 8 + 12 + 100).to_be_bytes());
    first[20] = 0x20;
    assert_eq!(parse(&first), Ok(ParsedRoce::Reliable { header, payload: 100 }));
    assert_eq!(icrc_is_valid(&first), None);
    let mut later = first.clone();
    later[21] = 15;
    assert_eq!(parse(&later), Ok(ParsedRoce::Foreign));
    // A datagram that ends within its first fragment has no more fragments.
    first[38..40].copy_from_slice(&120_u16.to_be_bytes());
    assert!(matches!(parse(&first), Err(MalformedRoce::UdpLength { .. })));
}

#[test]
fn other_transports_and_other_protocols_are_told_apart() {
    let mut bytes = Vec::new();
    header(Opcode::SendOnly, 1, 0).emit(&mut bytes);
    for code in (0..=u8::MAX).filter(|code| Opcode::from_code(*code).is_none()) {
        bytes[0] = code;
        assert_eq!(parse(&around(Shape::PLAIN, &bytes)), Ok(ParsedRoce::Other { opcode: code }));
    }
    let roce = frame(Shape::PLAIN, &header(Opcode::SendOnly, 1, 0), 8);
    for (at, to) in [(13, 6), (14, 0x55), (14, 0x43), (23, 6), (36, 0), (37, 0)] {
        let mut frame = roce.clone();
        frame[at] = to;
        assert_eq!(parse(&frame), Ok(ParsedRoce::Foreign), "byte {at}");
    }
}
