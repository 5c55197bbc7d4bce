use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

/// A frame as a test has it: time, original length, bytes.
type Kept = (u64, u32, Vec<u8>);

fn read(bytes: &[u8]) -> (Vec<Kept>, Option<CaptureError>) {
    let mut frames = Vec::new();
    let mut reader = match CaptureReader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return (frames, Some(error)),
    };
    loop {
        match reader.next() {
            Ok(Some(record)) => frames.push((record.at.0, record.len, record.bytes.to_vec())),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}

/// Numbers in the byte order of a machine.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

const ORDERS: [Order; 2] = [Order { big: false }, Order { big: true }];

impl Order {
    fn word(self, word: u32) -> [u8; 4] {
        if self.big { word.to_be_bytes() } else { word.to_le_bytes() }
    }

    fn half(self, half: u16) -> [u8; 2] {
        if self.big { half.to_be_bytes() } else { half.to_le_bytes() }
    }

    fn words(self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| self.word(*word)).collect()
    }

    fn pcap_header(self, magic: u32, link: u32) -> Vec<u8> {
        let versions = [self.half(2), self.half(4)].concat();
        [&self.word(magic)[..], &versions, &self.words(&[0, 0, 65_535, link])].concat()
    }

    fn pcap(self, magic: u32, frames: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
        let mut file = self.pcap_header(magic, 1);
        for (seconds, fraction, len, bytes) in frames {
            file.extend(self.words(&[*seconds, *fraction, bytes.len() as u32, *len]));
            if magic == 0xa1b2_cd34 {
                file.extend(self.words(&[7, 8]));
            }
            file.extend(*bytes);
        }
        file
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let len = self.word(body.len() as u32 + 12);
        [&self.word(kind)[..], &len, &body, &len].concat()
    }

    fn section(self) -> Vec<u8> {
        let versions = [self.half(1), self.half(0)].concat();
        self.block(0x0a0d_0d0a, &[&self.word(0x1a2b_3c4d)[..], &versions, &[0xff; 8]].concat())
    }

    fn interface(self, link: u16, snap: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = [&self.half(link)[..], &[0; 2], &self.word(snap)].concat();
        for (code, value) in options {
            body.extend(self.half(*code));
            body.extend(self.half(value.len() as u16));
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        self.block(1, &body)
    }

    fn enhanced(self, interface: u32, units: u64, len: u32, bytes: &[u8]) -> Vec<u8> {
        let words = [interface, (units >> 32) as u32, units as u32, bytes.len() as u32, len];
        self.block(6, &[&self.words(&words)[..], bytes].concat())
    }
}

#[test]
fn pcap_is_read_in_both_byte_orders_and_resolutions() {
    for order in ORDERS {
        let frames = [(1_700_000_000, 999_999, 5, &b"hello"[..]), (1_700_000_001, 1, 1_500, b"cut")];
        let micro = vec![
            (1_700_000_000_999_999_000, 5, b"hello".to_vec()),
            (1_700_000_001_000_001_000, 1_500, b"cut".to_vec()),
        ];
        for magic in [0xa1b2_c3d4, 0xa1b2_cd34] {
            let (found, error) = read(&order.pcap(magic, &frames));
            assert!(error.is_none(), "{error:?}");
            assert_eq!(found, micro);
        }
        let nano = [(1_700_000_000, 123_456_789, 5, &b"hello"[..])];
        let (found, _) = read(&order.pcap(0xa1b2_3c4d, &nano));
        assert_eq!(found, [(1_700_000_000_123_456_789, 5, b"hello".to_vec())]);
    }
}

#[test]
fn pcapng_has_sections_and_interfaces_with_clocks_of_their_own() {
    let mut file = Vec::new();
    let mut expected = Vec::new();
    for order in ORDERS {
        file.extend(order.section());
        // Microseconds if it does not say; nanoseconds; units of 2^-10 s; seconds from an offset.
        file.extend(order.interface(1, 0, &[]));
        file.extend(order.interface(113, 0, &[(2, b"eth0"), (9, &[9]), (0, b"")]));
        file.extend(order.interface(101, 0, &[(9, &[0x8a])]));
        let offset = if order.big { 1_000_i64.to_be_bytes() } else { 1_000_i64.to_le_bytes() };
        file.extend(order.interface(1, 0, &[(9, &[0]), (14, &offset)]));
        file.extend(order.block(0xbad, b"something that nobody knows"));
        for (interface, units, at) in
            [(0, 5_000_001, 5_000_001_000), (1, 7, 7), (2, 1_536, 1_500_000_000), (3, 3, 1_003_000_000_000)]
        {
            file.extend(order.enhanced(interface, units, 60, b"abcde"));
            expected.push((at, 60, b"abcde".to_vec()));
        }
    }
    let (found, error) = read(&file);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(found, expected);
}

#[test]
fn simple_and_obsolete_packet_blocks_are_read() {
    let order = ORDERS[0];
    let simple = order.block(3, &[&order.word(100)[..], b"abcdefgh"].concat());
    let head = [&order.half(0)[..], &order.half(9), &order.words(&[0, 77, 3, 40])].concat();
    let obsolete = order.block(2, &[&head[..], b"xyz"].concat());
    let file = [order.section(), order.interface(1, 6, &[]), obsolete, simple].concat();
    let (found, error) = read(&file);
    assert!(error.is_none(), "{error:?}");
    // Simple ones have no time: that of the one before, and no more than the interface keeps.
    assert_eq!(found, [(77_000, 40, b"xyz".to_vec()), (77_000, 100, b"abcdef".to_vec())]);
}

#[test]
fn gzip_around_either_is_unpacked_also_in_several_members() {
    let pack = |bytes: &[u8]| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    };
    let frames: Vec<(u32, u32, u32, &[u8])> = (0..5_000).map(|at| (at, 0, 5, &b"hello"[..])).collect();
    let file = ORDERS[0].pcap(0xa1b2_c3d4, &frames);
    let packed = [pack(&file[..10_001]), pack(&file[10_001..])].concat();
    let (found, error) = read(&packed);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(found, read(&file).0);
    let (some, error) = read(&packed[..packed.len() * 2 / 3]);
    assert!(
        matches!(error, Some(CaptureError::Truncated { packets, .. }) if packets == some.len() as u64),
        "{error:?}"
    );
    assert!(!some.is_empty() && some.len() < 5_000);
    let mut spoilt = packed;
    let middle = spoilt.len() / 2;
    spoilt[middle..middle + 40].fill(0xff);
    assert!(matches!(read(&spoilt).1, Some(CaptureError::Damaged { .. })));
}

#[test]
fn a_file_that_ends_within_a_record_is_told_from_one_that_ends_behind_it() {
    let order = ORDERS[0];
    let pcap = order.pcap(0xa1b2_c3d4, &[(1, 2, 5, b"hello"), (3, 4, 5, b"world")]);
    let ng = [order.section(), order.interface(1, 0, &[]), order.enhanced(0, 1, 4, b"abcd")].concat();
    for (file, whole) in [(&pcap, 2), (&ng, 1)] {
        let ends: Vec<usize> = (0..file.len()).filter(|end| read(&file[..*end]).1.is_none()).collect();
        for end in 1..file.len() {
            let (found, error) = read(&file[..end]);
            assert!(found.len() < whole, "{end}");
            match error {
                None => assert!(ends.contains(&end)),
                Some(CaptureError::Truncated { byte, packets }) => {
                    assert!(byte <= end as u64 && packets == found.len() as u64, "{byte} {end}");
                }
                Some(CaptureError::NoCapture(_)) => assert!(end < 4),
                Some(error) => panic!("{end}: {error}"),
            }
        }
        assert!(ends.len() >= 2 || whole == 2 && ends.len() == 2, "{ends:?}");
    }
}

#[test]
fn what_is_no_capture_is_told_what_it_looks_like() {
    let says = |bytes: &[u8]| read(bytes).1.map_or_else(String::new, |error| error.to_string());
    assert!(says(b"").contains("empty"));
    assert!(says(b"10:03:04.123 IP a > b: UDP, length 12").contains("it is text"), "{}", says(b"10:03:04.123 IP"));
    assert!(says(&[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3, 4]).contains("zstd -d"));
    assert!(says(&[0, 1, 2, 3, 255, 254]).contains("00 01 02 03 ff fe"));
    assert!(says(b"ab").contains("no capture"));
    assert!(says(&ORDERS[1].pcap_header(0xa1b2_c3d4, 127)).contains("link type 127"));
}

#[test]
fn hostile_lengths_end_it_and_take_no_memory() {
    let order = ORDERS[0];
    let mut pcap = order.pcap_header(0xa1b2_c3d4, 1);
    pcap.extend(order.words(&[1, 2, 0xffff_fff0, 0xffff_fff0]));
    assert!(matches!(read(&pcap).1, Some(CaptureError::Damaged { byte: 24, packets: 0, .. })));
    for (kind, len) in [(6, 0xffff_fff0_u32), (6, 13), (6, 8), (3, 0), (1, 12), (2, 12)] {
        let file = [order.section(), order.interface(1, 0, &[]), order.words(&[kind, len, 0, len])].concat();
        assert!(matches!(read(&file).1, Some(CaptureError::Damaged { .. })), "{kind} {len}");
    }
    // A block that nobody reads may be long; it is passed without being kept.
    let file = [order.section(), order.words(&[0xbad, 0xffff_fff0, 0])].concat();
    assert!(matches!(read(&file).1, Some(CaptureError::Truncated { .. })));
    let stray = [order.section(), order.enhanced(3, 1, 4, b"abcd")].concat();
    assert!(matches!(read(&stray).1, Some(CaptureError::Damaged { .. })));
    let mut torn = [order.section(), order.interface(1, 0, &[]), order.enhanced(0, 1, 4, b"abcd")].concat();
    let last = torn.len() - 4;
    torn[last] ^= 4;
    assert!(matches!(read(&torn).1, Some(CaptureError::Damaged { .. })));
}

#[test]
fn what_is_written_can_be_read_with_its_link_types() {
    let mut writer = CaptureWriter::new(Vec::new()).unwrap();
    let records = [(1, 5, b"hello".to_vec()), (113, 900, b"cooked".to_vec()), (1, 4, b"four".to_vec())];
    for (number, (link_number, len, bytes)) in records.iter().enumerate() {
        let at = Timestamp(1_700_000_000_000_000_000 + number as u64);
        writer.write(&CaptureRecord { at, len: *len, bytes, link_number: *link_number, link: None }).unwrap();
    }
    let file = writer.into_inner();
    let mut reader = CaptureReader::new(&file[..]).unwrap();
    for (number, (link_number, len, bytes)) in records.iter().enumerate() {
        let record = reader.next().unwrap().unwrap();
        assert_eq!((record.link_number, record.len, record.bytes), (*link_number, *len, &bytes[..]));
        assert_eq!((record.at.0, record.link.is_some()), (1_700_000_000_000_000_000 + number as u64, true));
    }
    assert!(reader.next().unwrap().is_none());
}

/// Gives a few bytes at a time.
struct Trickle(Cursor<Vec<u8>>, usize);

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let part = buffer.len().min(self.1);
        self.0.read(&mut buffer[..part])
    }
}

proptest! {
    #[test]
    fn it_does_not_matter_how_bytes_arrive(lens in prop::collection::vec(0..3_000_usize, 0..60), step in 1..5_000_usize) {
        let mut writer = CaptureWriter::new(Vec::new()).unwrap();
        for len in &lens {
            let bytes = vec![*len as u8; *len];
            writer.write(&CaptureRecord { at: Timestamp(5), len: *len as u32, bytes: &bytes, link_number: 1, link: None }).unwrap();
        }
        let mut reader = CaptureReader::new(Trickle(Cursor::new(writer.into_inner()), step)).unwrap();
        for len in lens {
            let record = reader.next().unwrap().unwrap();
            prop_assert_eq!(record.bytes, &vec![len as u8; len][..]);
        }
        prop_assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn any_bytes_come_to_an_end(start in 0..6_usize, bytes in prop::collection::vec(any::<u8>(), 0..4_096)) {
        let order = ORDERS[0];
        let starts = [
            Vec::new(),
            order.pcap_header(0xa1b2_c3d4, 1),
            ORDERS[1].pcap_header(0xa1b2_3c4d, 113),
            [order.section(), order.interface(1, 0, &[])].concat(),
            [ORDERS[1].section(), ORDERS[1].interface(1, 0, &[])].concat(),
            vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3],
        ];
        read(&[&starts[start][..], &bytes].concat());
    }

    #[test]
    fn a_file_with_a_few_wrong_bytes_comes_to_an_end(
        ng in any::<bool>(),
        wrong in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let order = ORDERS[0];
        let frames: Vec<(u32, u32, u32, &[u8])> = (0..40).map(|at| (at, 0, 60, &b"some bytes of a frame"[..])).collect();
        let blocks = (0..40).flat_map(|at| order.enhanced(0, at, 60, b"some bytes of a frame"));
        let mut file = if ng {
            [order.section(), order.interface(1, 0, &[(9, &[9])]), blocks.collect()].concat()
        } else {
            order.pcap(0xa1b2_c3d4, &frames)
        };
        for (at, byte) in wrong {
            let at = at.index(file.len());
            file[at] = byte;
        }
        prop_assert!(read(&file).0.len() <= file.len());
    }
}
