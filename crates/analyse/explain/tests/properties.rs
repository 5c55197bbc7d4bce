//! Whatever a capture holds, parts add up, and nothing panics.

mod tape;

use proptest::prelude::*;
use tape::{Client, Server, Tape};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn parts_add_up_for_any_packets(
        packets in proptest::collection::vec(
            (0..50_000_000_u64, any::<bool>(), 0..20_u32, 0..3_000_u32, 0..20_u32, 0..4_u32, any::<u16>()),
            0..80,
        ),
        handshake: bool,
    ) {
        let mut tape = if handshake { Tape::new() } else { Tape::default() };
        let mut at = 21_000_000;
        for (passed, is_client, start, len, ack, blocks, window) in packets {
            at += passed;
            let from = if is_client { Client } else { Server };
            tape.window(from, window);
            if blocks > 0 {
                let from_block = (ack + blocks) * 1_000;
                tape.sack(at, from, ack * 1_000, &[(from_block, from_block + 1_500), (ack * 500, ack * 500 + 700)]);
            } else if len == 0 {
                tape.ack(at, from, ack * 1_000);
            } else {
                tape.data(at, from, start * 1_000, len);
            }
        }
        for connection in tape.answer().connections {
            tape::assert_adds_up(&connection);
        }
    }

    #[test]
    fn any_bytes_do(bytes in proptest::collection::vec(any::<u8>(), 0..400), place in 24..200_usize) {
        let mut capture = Tape::new().pcap();
        let end = (place + bytes.len()).min(capture.len());
        if place < end {
            capture[place..end].copy_from_slice(&bytes[..end - place]);
        }
        let _ = tape::answer(capture);
    }
}
