use std::io::Cursor;

use proptest::prelude::*;
use units::Unwatched;

use super::*;
use capture::CaptureWriter;
use capture::LinkType;
use units::Timestamp;

const START: u64 = 1_700_000_000_000_000_000;
const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// A frame and when it passed.
type Passed = (u64, Vec<u8>);

/// TCP over IPv4 in Ethernet, without a payload of its own.
fn tcp(from: u8, to: u8, port: u16, seq: u32, id: u16) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend(1_040_u16.to_be_bytes());
    frame.extend(id.to_be_bytes());
    frame.extend([0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    frame.extend(port.to_be_bytes());
    frame.extend(443_u16.to_be_bytes());
    frame.extend(seq.to_be_bytes());
    frame.extend([0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.resize(14 + 1_040, 7);
    frame
}

/// A flow of `packets` packets, one every `gap` nanoseconds.
fn stream(packets: u64, gap: u64) -> Vec<Passed> {
    (0..packets).map(|number| (START + number * gap, tcp(1, 2, 4_000, number as u32 * 1_000, 0))).collect()
}

fn capture(passed: &[Passed]) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new()).unwrap();
    for (at, bytes) in passed {
        let len = bytes.len() as u32;
        let record = CaptureRecord { at: Timestamp(*at), len, bytes, link_number: 1, link: Some(LinkType::Ethernet) };
        writer.write(&record).unwrap();
    }
    writer.into_inner()
}

fn opening(bytes: &[u8]) -> impl Fn() -> io::Result<Box<dyn Read>> {
    let bytes = bytes.to_vec();
    move || Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>)
}

fn compared(up: &[u8], down: &[u8], options: &CompareOptions) -> Result<Comparison, CompareError> {
    let (up, down) = (opening(up), opening(down));
    let compare = |options: &CompareOptions| {
        compare(CaptureInput { open: &up }, CaptureInput { open: &down }, options, &Unwatched)
    };
    let found = compare(options);
    if let Ok(found) = &found
        && found.unnamed == 0
    {
        let exact = compare(&CompareOptions { exact: true, ..*options });
        assert_eq!(found, &exact.unwrap(), "packet by packet it is the same");
    }
    found
}

fn losses(up: &[Passed], down: &[Passed]) -> Comparison {
    compared(&capture(up), &capture(down), &CompareOptions::default()).unwrap()
}

fn times(comparison: &Comparison) -> Vec<u64> {
    comparison.lost.iter().map(|lost| lost.loss.at.0 - START).collect()
}

/// Packets that arrive, later by the given time on another clock.
fn arriving(up: &[Passed], later: u64, lost: impl Fn(usize) -> bool) -> Vec<Passed> {
    let arrives = up.iter().enumerate().filter(|(number, _)| !lost(*number));
    arrives.map(|(_, (at, frame))| (at + later, frame.clone())).collect()
}

#[test]
fn lost_packets_are_named_with_time_and_sequence() {
    let up = stream(20_000, 10 * US);
    let found = losses(&up, &arriving(&up, 50 * US, |number| number % 997 == 500));
    assert_eq!(found.lost.len(), 20);
    let first = found.lost[0].loss;
    assert_eq!((first.at, first.tcp.unwrap().seq, first.place), (Timestamp(up[500].0), 500_000, Some(500)));
    assert_eq!((found.skew, found.drift, found.unnamed, found.only_down), (Some(50_000), 0, 0, 0));
    assert_eq!((found.up.packets, found.down.packets), (20_000, 19_980));
}

#[test]
fn a_clock_that_is_years_off_is_no_matter() {
    let up = stream(3_000, 10 * US);
    let down: Vec<Passed> =
        arriving(&up, 0, |number| number == 7).into_iter().map(|(at, frame)| (at - START + 5 * S, frame)).collect();
    let found = losses(&up, &down);
    assert_eq!(times(&found), [70 * US]);
    assert_eq!(found.skew, Some(5 * S as i64 - START as i64));
}

#[test]
fn the_first_and_the_last_packets_can_be_lost_too() {
    let up = stream(2_000, 10 * US);
    let found = losses(&up, &arriving(&up, 0, |number| !(3..=1_995).contains(&number)));
    assert_eq!(found.lost.len(), 7);
    assert_eq!(found.at_edges, OutsideCounts { before: 3, after: 4 });
}

#[test]
fn what_lies_outside_of_the_other_capture_is_not_judged() {
    let up = stream(60_000, 100 * US);
    // From 2 s to 4 s of six, and one loss within.
    let down = arriving(&up, 0, |number| !(20_000..40_000).contains(&number) || number == 30_000);
    let found = losses(&up, &down);
    assert_eq!(times(&found), [3 * S]);
    assert_eq!(found.outside, OutsideCounts { before: 20_000, after: 20_000 });
    let whole = CompareOptions { whole: true, ..CompareOptions::default() };
    let found = compared(&capture(&up), &capture(&down), &whole).unwrap();
    assert_eq!((found.lost.len(), found.outside.packets()), (40_001, 0));
}

#[test]
fn a_run_within_the_slack_of_the_other_capture_is_outside_too() {
    let up = stream(20_000, 100 * US);
    let found = losses(&up, &arriving(&up, 0, |number| number < 3_000));
    assert_eq!((found.lost.len(), found.outside), (0, OutsideCounts { before: 3_000, after: 0 }));
    // Fewer than a thousand are losses, and so are those of less than a tenth of a second.
    let found = losses(&up, &arriving(&up, 0, |number| number < 999));
    assert_eq!((found.lost.len(), found.outside.packets()), (999, 0));
    let fast = stream(20_000, 10 * US);
    assert_eq!(losses(&fast, &arriving(&fast, 0, |number| number < 3_000)).lost.len(), 3_000);
}

#[test]
fn packets_that_the_other_capture_was_there_for_are_lost_however_many() {
    let mut up = stream(20_000, 100 * US);
    let mut down = arriving(&up, 0, |number| number < 5_000);
    // Another flow gets through from the beginning.
    let other: Vec<Passed> = (0..100).map(|n| (START + n * 20 * MS, tcp(3, 4, 9, n as u32, 0))).collect();
    up.extend(other.clone());
    down.extend(other);
    up.sort();
    down.sort();
    assert_eq!(losses(&up, &down).lost.len(), 5_000);
}

#[test]
fn of_equal_packets_the_one_that_was_sent_in_vain_is_named() {
    let mut up = stream(1_000, 10 * US);
    // The original is lost; its equal comes 20 ms later.
    let again = (up[500].0 + 20 * MS, up[500].1.clone());
    let mut down = arriving(&up, 30 * US, |number| number == 500);
    up.push(again.clone());
    down.push((again.0 + 30 * US, again.1));
    up.sort();
    down.sort();
    assert_eq!(times(&losses(&up, &down)), [5 * MS]);
}

#[test]
fn packets_that_are_all_alike_are_counted() {
    let up: Vec<Passed> = (0..5_000).map(|number| (START + number * 10 * US, tcp(1, 2, 3, 4, 0))).collect();
    let found = losses(&up, &arriving(&up, 0, |number| number % 10 == 3));
    assert_eq!((found.lost.len(), found.alike), (500, 5_000));
}

#[test]
fn swapped_captures_are_refused() {
    let up = stream(2_000, 10 * US);
    let down = arriving(&up, 0, |number| number % 100 == 50);
    let swapped = compared(&capture(&down), &capture(&up), &CompareOptions::default());
    assert!(matches!(swapped, Err(CompareError::Swapped { only_down: 20 })), "{swapped:?}");
}

#[test]
fn packets_that_the_network_duplicates_do_not_look_like_swapped_captures() {
    let up = stream(2_000, 10 * US);
    let mut down = up.clone();
    down.push((up[700].0 + 3 * US, up[700].1.clone()));
    down.sort();
    let found = losses(&up, &down);
    assert_eq!((found.lost.len(), found.only_down, found.up_lacks), (0, 1, false));
}

#[test]
fn a_capture_that_ran_longer_is_not_swapped() {
    let down = stream(5_000, 100 * US);
    let up = arriving(&down, 0, |number| !(100..4_900).contains(&number));
    let found = losses(&up, &down);
    assert_eq!((found.lost.len(), found.only_down, found.down_outside), (0, 0, 200));
}

#[test]
fn captures_of_both_directions_are_not_swapped() {
    let there = stream(2_000, 10 * US);
    let back: Vec<Passed> = there.iter().map(|(at, frame)| (at + 5, reversed(frame))).collect();
    let mut up = [there.clone(), arriving(&back, 0, |number| number % 100 == 1)].concat();
    let mut down = [there, back].concat();
    up.sort();
    down.sort();
    let found = losses(&up, &down);
    assert_eq!((found.lost.len(), found.only_down, found.both_ways), (0, 20, true));
}

fn reversed(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[26..34].rotate_left(4);
    frame[34..38].rotate_left(2);
    frame
}

#[test]
fn captures_that_share_nothing_are_refused() {
    let up = stream(2_000, 10 * US);
    let down: Vec<Passed> = up.iter().map(|(at, frame)| (*at, reversed(frame))).collect();
    let refused = compared(&capture(&up), &capture(&down), &CompareOptions::default());
    assert!(matches!(refused, Err(CompareError::NothingInCommon(_))), "{refused:?}");
    let empty = compared(&capture(&up), &capture(&[]), &CompareOptions::default());
    assert!(matches!(empty, Err(CompareError::NoPackets(CaptureRole::Down, _))), "{empty:?}");
    let whole = CompareOptions { whole: true, ..CompareOptions::default() };
    assert_eq!(compared(&capture(&up), &capture(&[]), &whole).unwrap().lost.len(), 2_000);
}

#[test]
fn frames_that_were_cut_differently_are_compared_by_what_both_have() {
    let up = stream(2_000, 10 * US);
    let down = arriving(&up, 0, |number| number == 1_000);
    let cut = |passed: &[Passed], kept: &dyn Fn(usize) -> usize| {
        let mut writer = CaptureWriter::new(Vec::new()).unwrap();
        for (number, (at, bytes)) in passed.iter().enumerate() {
            let (len, bytes) = (bytes.len() as u32, &bytes[..kept(number)]);
            writer.write(&CaptureRecord { at: Timestamp(*at), len, bytes, link_number: 1, link: None }).unwrap();
        }
        writer.into_inner()
    };
    for (kept_up, kept_down) in [(1_054, 64), (64, 1_054), (96, 64), (60, 200)] {
        let [up, down] = [cut(&up, &|_| kept_up), cut(&down, &|_| kept_down)];
        let found = compared(&up, &down, &CompareOptions::default()).unwrap();
        assert_eq!((times(&found), found.depth), (vec![10 * MS], kept_up.min(kept_down) - 14));
    }
    // Nobody knows before a frame late in the capture.
    let late = cut(&down, &|number| if number == 1_900 { 70 } else { 1_054 });
    let found = compared(&capture(&up), &late, &CompareOptions::default()).unwrap();
    assert_eq!((times(&found), found.depth), (vec![10 * MS], 56));
}

#[test]
fn a_capture_that_ends_within_a_record_judges_nothing_behind_it() {
    let up = stream(2_000, 10 * US);
    let whole = capture(&arriving(&up, 0, |number| number == 600));
    let cut = &whole[..whole.len() / 2];
    let found = compared(&capture(&up), cut, &CompareOptions::default()).unwrap();
    assert_eq!(times(&found), [6 * MS]);
    assert!(found.down.truncated && found.outside.after > 990, "{found:?}");
}

#[test]
fn more_losses_than_memory_are_counted_and_those_named_are_right() {
    let up = stream(40_000, 10 * US);
    let down = arriving(&up, 0, |number| number % 2 == 1);
    let options = CompareOptions { memory: 192 * 1_000, ..CompareOptions::default() };
    let found = compared(&capture(&up), &capture(&down), &options).unwrap();
    assert_eq!(found.losses(), 20_000);
    assert!((400..=1_000).contains(&found.lost.len()), "{}", found.lost.len());
    assert!(found.lost.iter().all(|lost| (lost.loss.at.0 - START) % (20 * US) == 10 * US));
}

#[test]
fn nat_is_looked_through_when_told() {
    let up = stream(2_000, 10 * US);
    let mut down = arriving(&up, 10 * US, |number| number == 77);
    down.iter_mut().for_each(|(_, frame)| frame[26..36].copy_from_slice(&[192, 0, 2, 9, 10, 0, 0, 2, 0xab, 0xcd]));
    let refused = compared(&capture(&up), &capture(&down), &CompareOptions::default());
    assert!(matches!(refused, Err(CompareError::NothingInCommon(_))), "{refused:?}");
    let options = CompareOptions { fields: Fields { source: false, ..Fields::ALL }, ..CompareOptions::default() };
    let found = compared(&capture(&up), &capture(&down), &options).unwrap();
    assert_eq!((times(&found), found.lost[0].loss.flow.src_port), (vec![770 * US], 4_000));
}

#[test]
fn lost_frames_are_handed_out() {
    let up = stream(100, 10 * US);
    let bytes = capture(&up);
    let open = opening(&bytes);
    let mut taken = Vec::new();
    let done = frames(CaptureInput { open: &open }, [3, 50, 99, 100], |record| {
        taken.push((record.at.0, record.bytes.to_vec()));
        Ok::<(), ()>(())
    });
    assert_eq!(done.unwrap(), Ok(()));
    assert_eq!(taken, [up[3].clone(), up[50].clone(), up[99].clone()]);
}

#[test]
fn who_has_waited_long_enough_ends_it() {
    let bytes = capture(&stream(10, US));
    let open = opening(&bytes);
    let input = CaptureInput { open: &open };
    assert!(matches!(compare(input, input, &CompareOptions::default(), &|_| false), Err(CompareError::Interrupted)));
}

/// Fate of a packet in a made-up network.
#[derive(Clone, Copy, Debug)]
struct Fate {
    flow: u8,
    /// Distinct in its flow, or like others.
    seq: u8,
    back: bool,
    lost: bool,
    late: u64,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = (0..4_u8, any::<u8>(), prop::bool::weighted(0.3), prop::bool::weighted(0.1), 0..400 * US);
    let fate = fate.prop_map(|(flow, seq, back, lost, late)| Fate { flow, seq, back, lost, late });
    prop::collection::vec(fate, 1..3_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Duplicates, reordering, both directions, skewed clocks: what is lost is the difference of multisets.
    #[test]
    fn what_is_lost_is_what_the_network_lost(fates in fates(), skew in 0..2 * S, gap in 1..200 * US) {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let mut lost: Vec<(u16, u32)> = Vec::new();
        let mut back_lost = 0;
        for (number, fate) in fates.iter().enumerate() {
            let at = START + number as u64 * gap;
            let port = 100 + u16::from(fate.flow);
            // Every eighth packet may be like one before.
            let seq = if number % 8 == 0 { u32::from(fate.seq) } else { 1_000 + number as u32 };
            if fate.back {
                down.push((at + skew, tcp(2, 1, port, seq, 1)));
                if fate.lost { back_lost += 1 } else { up.push((at + fate.late, tcp(2, 1, port, seq, 1))) }
            } else {
                up.push((at, tcp(1, 2, port, seq, 0)));
                if fate.lost { lost.push((port, seq)) } else { down.push((at + skew + fate.late, tcp(1, 2, port, seq, 0))) }
            }
        }
        up.sort();
        down.sort();
        let options = CompareOptions { whole: true, ..CompareOptions::default() };
        prop_assume!(!up.is_empty());
        let found = compared(&capture(&up), &capture(&down), &options).unwrap();
        let mut named: Vec<(u16, u32)> =
            found.lost.iter().map(|lost| (lost.loss.flow.src_port, lost.loss.tcp.unwrap().seq)).collect();
        named.sort_unstable();
        lost.sort_unstable();
        prop_assert_eq!(named, lost);
        prop_assert_eq!(found.only_down + found.down_outside, back_lost);
        prop_assert_eq!(found.unnamed, 0);
    }
}

#[test]
fn wrong_cuts_are_noticed_however_many_packets_were_lost() {
    let found = |unnamed, misfits| {
        let mut comparison = Comparison { unnamed, misfits, ..Comparison::default() };
        comparison.up.super_frames = 1;
        comparison.has_wrong_cuts()
    };
    assert_eq!([found(1_000, 10), found(1_000, 11)], [false, true]);
    let most = details::MOST_EXTRA as u64;
    assert_eq!([found(1_000 * most, 0), found(1_000 * most, most)], [false, true]);
}
