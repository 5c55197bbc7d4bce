//! The kernel's ring buffer, one page at a time, as `trace_pipe_raw` hands it over.
//!
//! A page begins with a time and a length; events follow, each with a word that has its kind or length in five bits and the
//! time since the event before in the rest. `events/header_page` and `events/header_event` of tracefs describe it.

const HEADER: usize = 16;
/// The page's length is below these flags.
const LENGTH: u64 = (1 << 30) - 1;
const MISSED: u64 = 1 << 31;
const MISSED_IS_COUNTED: u64 = 1 << 30;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time that an event has itself.
const DELTA_BITS: u32 = 27;
/// Bits of an absolute time that an event has itself; the upper ones are those of the page.
const ABSOLUTE: u64 = (1 << 59) - 1;

/// Hands out each event of a page: its time by the buffer's clock, and its record. Returns the number of
/// events that were lost before the page.
pub(crate) fn read_page(page: &[u8], mut each: impl FnMut(u64, &[u8])) -> u64 {
    let (Some(begin), Some(commit)) = (double(page, 0), double(page, 8)) else { return 0 };
    let end = HEADER + (commit & LENGTH) as usize;
    let Some(data) = page.get(HEADER..end.min(page.len())) else { return 0 };
    read_events(data, begin, &mut each);
    match (commit & MISSED != 0, commit & MISSED_IS_COUNTED != 0) {
        (false, _) => 0,
        (true, true) => double(page, end).unwrap_or(1).max(1),
        (true, false) => 1,
    }
}

fn read_events(data: &[u8], begin: u64, each: &mut impl FnMut(u64, &[u8])) {
    // Times wrap: a page may hold anything, and a wrong time is better than none of its events.
    let (mut time, mut at) = (begin, 0);
    while let Some(head) = word(data, at) {
        let (kind, delta) = (head & 31, u64::from(head >> 5));
        let next = word(data, at + 4);
        at += 4;
        let (skip, len) = match kind {
            // The rest of the page is empty.
            PADDING if delta == 0 => return,
            PADDING => {
                time = time.wrapping_add(delta);
                at += next.unwrap_or(u32::MAX) as usize;
                continue;
            }
            TIME_EXTEND => {
                time = time.wrapping_add((u64::from(next.unwrap_or(0)) << DELTA_BITS) + delta);
                at += 4;
                continue;
            }
            TIME_STAMP => {
                time = begin & !ABSOLUTE | ((u64::from(next.unwrap_or(0)) << DELTA_BITS) + delta);
                at += 4;
                continue;
            }
            0 => (4, (next.unwrap_or(0) as usize).saturating_sub(4)),
            words => (0, words as usize * 4),
        };
        time = time.wrapping_add(delta);
        let Some(record) = data.get(at + skip..at + skip + len) else { return };
        each(time, record);
        // A record that says of itself that it is empty would be read for ever.
        at += (skip + len.next_multiple_of(4)).max(4);
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn double(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(begin: u64, flags: u64, words: &[u32]) -> Vec<u8> {
        let mut bytes = begin.to_le_bytes().to_vec();
        bytes.extend((flags | (words.len() as u64 * 4)).to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    fn read(page: &[u8]) -> (Vec<(u64, Vec<u8>)>, u64) {
        let mut events = Vec::new();
        let missed = read_page(page, |at, record| events.push((at, record.to_vec())));
        (events, missed)
    }

    #[test]
    fn events_have_the_time_of_their_page_and_what_passed_since() {
        let short = [2 | (5 << 5), 0xa, 0xb];
        let long = [7 << 5, 12, 0xc, 0xd];
        let later = [30 | (3 << 5), 2];
        let words = [&short[..], &long[..], &later[..], &short[..], &[29], &[0xff; 3]].concat();
        let (events, missed) = read(&page(1_000, 0, &words));
        let two = |a: u32, b: u32| [a.to_le_bytes(), b.to_le_bytes()].concat();
        let extended = 1_012 + (2 << 27) + 3 + 5;
        assert_eq!(events, [(1_005, two(0xa, 0xb)), (1_012, two(0xc, 0xd)), (extended, two(0xa, 0xb))]);
        assert_eq!(missed, 0);
    }

    #[test]
    fn what_was_lost_before_a_page_is_counted() {
        assert_eq!(read(&page(0, MISSED, &[])).1, 1, "lost, but not how many");
        let mut counted = page(0, MISSED | MISSED_IS_COUNTED, &[1, 9]);
        counted.extend(77_u64.to_le_bytes());
        let (events, missed) = read(&counted);
        assert_eq!((events.len(), missed), (1, 77));
    }

    proptest! {
        #[test]
        fn any_page_is_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let mut count = 0;
            read_page(&bytes, |_, record| { count += 1; assert!(record.len() <= bytes.len()); });
            prop_assert!(count <= bytes.len());
        }
    }
}
