use std::io::{self, Cursor, Read};

use proptest::prelude::*;
use units::Unwatched;

use super::*;
use capture::LinkType;
use capture::{CaptureRecord, CaptureWriter};

const START: i64 = 1_700_000_000_000_000_000;
const US: i64 = 1_000;
const MS: i64 = 1_000_000;
const S: i64 = 1_000_000_000;

/// A packet that crosses: when UP saw it and when DOWN did, by true time, and which way it went.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    up: i64,
    down: i64,
    number: u32,
    forth: bool,
}

impl Crossing {
    fn forth(number: u32, sent: i64, delay: i64) -> Self {
        Self { up: sent, down: sent + delay, number, forth: true }
    }

    fn back(number: u32, sent: i64, delay: i64) -> Self {
        Self { up: sent + delay, down: sent, number, forth: false }
    }

    fn delay(&self) -> u64 {
        self.up.abs_diff(self.down)
    }

    /// UDP over IPv4 in Ethernet, with a number of its own.
    fn frame(&self) -> Vec<u8> {
        let (from, to) = if self.forth { (1, 2) } else { (2, 1) };
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        frame.extend([0x0f, 0xa0, 0x01, 0xbb, 0, 20, 0, 0]);
        frame.extend(self.number.to_be_bytes());
        frame.extend([7; 8]);
        frame
    }
}

/// Reading of a clock at a true time.
type ClockModel = fn(i64) -> i64;

const TRUE: ClockModel = |at| at;
/// 5 s and 40 ppm away.
const AWAY: ClockModel = |at| at + 5 * S + (at - START) / 25_000;

fn capture(crossings: &[Crossing], seen: impl Fn(&Crossing) -> i64, clock: ClockModel) -> Vec<u8> {
    let mut frames: Vec<(i64, Vec<u8>)> =
        crossings.iter().map(|crossing| (clock(seen(crossing)), crossing.frame())).collect();
    frames.sort_by_key(|(at, _)| *at);
    let mut writer = CaptureWriter::new(Vec::new()).unwrap();
    for (at, bytes) in &frames {
        let at = Timestamp(at.unsigned_abs());
        let len = bytes.len() as u32;
        writer.write(&CaptureRecord { at, len, bytes, link_number: 1, link: Some(LinkType::Ethernet) }).unwrap();
    }
    writer.into_inner()
}

fn opening(bytes: Vec<u8>) -> impl Fn() -> io::Result<Box<dyn Read>> {
    move || Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>)
}

fn options(ppm: f64) -> DelayOptions<'static> {
    let drift = OffsetDrift::from_ppm(ppm).unwrap();
    DelayOptions { fields: Fields::ALL, memory: 16_000_000, drift, up_clock: &[], down_clock: &[] }
}

fn measured(
    crossings: &[Crossing],
    clocks: [ClockModel; 2],
    options: &DelayOptions<'_>,
) -> Result<(DelayAnalysis, Vec<PacketDelay>), DelayError> {
    let up = opening(capture(crossings, |crossing| crossing.up, clocks[0]));
    let down = opening(capture(crossings, |crossing| crossing.down, clocks[1]));
    let mut packets = Vec::new();
    let (up, down) = (CaptureInput { open: &up }, CaptureInput { open: &down });
    let found = delays(up, down, options, &Unwatched, &mut |packet| packets.push(*packet))?;
    Ok((found, packets))
}

/// Each interval holds the delay that the packet really had.
fn assert_true(crossings: &[Crossing], packets: &[PacketDelay], up: ClockModel) {
    assert_eq!(packets.len(), crossings.len());
    for crossing in crossings {
        let is_it = |packet: &&PacketDelay| {
            packet.up.0 == up(crossing.up).unsigned_abs()
                && (packet.direction == DelayDirection::UpToDown) == crossing.forth
        };
        let packet = packets.iter().find(is_it).unwrap_or_else(|| panic!("{crossing:?} was not measured"));
        let truth = crossing.delay();
        assert!(packet.low <= truth && truth <= packet.high, "{truth}: {packet:?}");
    }
}

/// A request every 10 ms, 2 ms there and 6 ms back; every 16th takes 9 ms more on its way there.
fn requests() -> Vec<Crossing> {
    let request = |nth: i64| {
        let (sent, more) = (START + nth * 10 * MS, if nth % 16 == 5 { 9 * MS } else { 0 });
        let answer = sent + 2 * MS + more + 50 * US;
        [Crossing::forth(nth as u32, sent, 2 * MS + more), Crossing::back(nth as u32, answer, 6 * MS)]
    };
    (0..500).flat_map(request).collect()
}

#[test]
fn every_interval_holds_the_truth_and_clocks_far_apart_change_nothing() {
    let crossings = requests();
    let (plain, packets) = measured(&crossings, [TRUE, TRUE], &options(200.0)).unwrap();
    assert_true(&crossings, &packets, TRUE);
    for clocks in [[TRUE, AWAY], [AWAY, TRUE]] {
        let (found, packets) = measured(&crossings, clocks, &options(200.0)).unwrap();
        assert_true(&crossings, &packets, clocks[0]);
        for (one, other) in plain.directions.iter().zip(&found.directions) {
            let ([one, other], n) = ([one, other].map(|way| way.delay.unwrap()), other.packets);
            let ends = |of: DelayPercentiles| [of.p50, of.p99, of.max].map(|(low, high)| [low, high]).concat();
            for (one, other) in ends(one).into_iter().zip(ends(other)) {
                // The two can differ only by the drift between two packets and by the edges of buckets.
                assert!(one.abs_diff(other) < 20_000, "{one} {other} of {n}");
            }
        }
        let (low, high) = found.drift_ppm.unwrap();
        let truth = if clocks[0](START) == START { 40.0 } else { -40.0 };
        assert!(low <= truth && truth <= high, "{low} {high}");
        assert!(found.offset.ends().is_some_and(|(low, high)| high - low <= 8 * MS + 10 * US));
    }
}

#[test]
fn what_is_sure_of_a_direction_is_stated_and_nothing_else() {
    let (found, _) = measured(&requests(), [TRUE, AWAY], &options(200.0)).unwrap();
    let [forth, back] = found.directions.map(|direction| direction.delay.unwrap());
    // 2 and 6 ms, but it could be 8 and 0: nobody can say which.
    assert_eq!((found.slower, found.directions.map(|direction| direction.sure)), (None, [false, false]));
    // Some packets certainly took 9 ms more, and the direction is known.
    assert!(forth.max.0 >= 8_990_000 && back.max.0 < 100_000, "{forth:?} {back:?}");
    let slow: Vec<Crossing> = (0..400_i64)
        .flat_map(|nth| {
            let sent = START + nth * 40 * MS;
            let more = if nth < 20 { 0 } else { 20 * MS };
            [Crossing::forth(nth as u32, sent, MS + more), Crossing::back(nth as u32, sent + 25 * MS, MS)]
        })
        .collect();
    let (found, _) = measured(&slow, [TRUE, AWAY], &options(50.0)).unwrap();
    assert_eq!(found.slower, Some(DelayDirection::UpToDown));
    assert_eq!(found.directions.map(|direction| direction.sure), [true, true]);
}

#[test]
fn clocks_that_state_their_bound_say_what_traffic_cannot() {
    let crossings = requests();
    let stated = |clock: ClockModel, error: i64| -> Vec<ClockStatement> {
        let read = |at: i64| ClockStatement { local: clock(at), earliest: at - error, latest: at + error };
        (0..60).map(|nth| read(START + nth * 100 * MS)).collect()
    };
    let (up, down) = (stated(TRUE, 100 * US), stated(AWAY, 200 * US));
    let options = DelayOptions { up_clock: &up, down_clock: &down, ..options(200.0) };
    let (found, packets) = measured(&crossings, [TRUE, AWAY], &options).unwrap();
    assert_true(&crossings, &packets, TRUE);
    assert_eq!(found.slower, Some(DelayDirection::DownToUp));
    let p50 = found.directions[0].delay.unwrap().p50;
    assert!(p50.1 - p50.0 < 700_000 && p50.0 <= 2_000_000 && 2_000_000 <= p50.1, "{p50:?}");
    // One direction alone will do then.
    let forth: Vec<Crossing> = crossings.iter().copied().filter(|crossing| crossing.forth).collect();
    let (found, packets) = measured(&forth, [TRUE, AWAY], &options).unwrap();
    assert_true(&forth, &packets, TRUE);
    assert_eq!(found.directions.map(|direction| direction.packets), [500, 0]);
    assert!(found.directions[0].sure && found.directions[1].delay.is_none());
    // Captures the wrong way round are still told which way packets go.
    let swapped = DelayOptions { up_clock: &down, down_clock: &up, ..options };
    let turned: Vec<Crossing> =
        forth.iter().map(|crossing| Crossing { up: crossing.down, down: crossing.up, ..*crossing }).collect();
    let (found, _) = measured(&turned, [AWAY, TRUE], &swapped).unwrap();
    assert_eq!(found.directions.map(|direction| direction.packets), [0, 500]);
}

#[test]
fn swapped_captures_swap_the_directions() {
    let crossings = requests();
    let turned: Vec<Crossing> =
        crossings.iter().map(|crossing| Crossing { up: crossing.down, down: crossing.up, ..*crossing }).collect();
    let (found, _) = measured(&crossings, [TRUE, AWAY], &options(200.0)).unwrap();
    let (swapped, _) = measured(&turned, [AWAY, TRUE], &options(200.0)).unwrap();
    let [forth, _] = found.directions;
    let [_, back] = swapped.directions;
    assert_eq!(forth.packets, back.packets);
    let [one, other] = [forth, back].map(|way| way.delay.unwrap().max);
    assert!(one.0.abs_diff(other.0) < 20_000 && one.1.abs_diff(other.1) < 20_000, "{one:?} {other:?}");
}

#[test]
fn captures_that_prove_nothing_get_no_delay() {
    let crossings = requests();
    let forth: Vec<Crossing> = crossings.iter().copied().filter(|crossing| crossing.forth).collect();
    let found = measured(&forth, [TRUE, AWAY], &options(200.0));
    assert!(matches!(found, Err(DelayError::OneDirection { packets: 500, alike: 0 })), "{found:?}");
    let (up, down) = (
        opening(capture(&crossings[..100], |of| of.up, TRUE)),
        opening(capture(&crossings[100..200], |of| of.down, TRUE)),
    );
    let (up, down) = (CaptureInput { open: &up }, CaptureInput { open: &down });
    let found = delays(up, down, &options(200.0), &Unwatched, &mut |_| {});
    assert!(matches!(found, Err(DelayError::NothingInCommon { up: 100, down: 100, alike: 0 })), "{found:?}");
    // A microsecond there and back, and packets of both directions far apart: drift could hide it.
    let sparse = [Crossing::forth(1, START, US), Crossing::back(1, START + S, US)];
    let found = measured(&sparse, [TRUE, TRUE], &options(200.0));
    assert!(matches!(found, Err(DelayError::DirectionsUnknown { packets: 2 })), "{found:?}");
}

#[test]
fn a_clock_that_was_set_is_found_where_it_was_set() {
    for step in [5 * S, -5 * S, 30 * MS] {
        let crossings = requests();
        // Function pointers hold nothing, so the steps are spelled out.
        let set: ClockModel = match step {
            s if s == 5 * S => |at| if at < START + 3 * S { at } else { at + 5 * S },
            s if s == -5 * S => |at| if at < START + 3 * S { at } else { at - 5 * S },
            _ => |at| if at < START + 3 * S { at } else { at + 30 * MS },
        };
        let found = measured(&crossings, [TRUE, set], &options(200.0));
        let Err(DelayError::Contradiction(found)) = found else { panic!("{step}: {found:?}") };
        let (from, until) = found.between();
        assert!(from <= START + 3 * S && START + 3 * S <= until && until - from < 30 * MS, "{step}: {found:?}");
        assert!(found.ppm() > 10_000.0, "{}", found.ppm());
    }
}

#[test]
fn a_drift_above_the_bound_is_refused_with_the_one_it_takes() {
    let found = measured(&requests(), [TRUE, |at| at + (at - START) / 500], &options(200.0));
    let Err(DelayError::Contradiction(found)) = found else { panic!("{found:?}") };
    assert!((201.0..2_100.0).contains(&found.ppm()), "{}", found.ppm());
    assert!(measured(&requests(), [TRUE, |at| at + (at - START) / 500], &options(2_100.0)).is_ok());
}

#[test]
fn packets_that_are_alike_are_paired_only_where_no_doubt_is_left() {
    // The same packet again and again, 10 ms apart: in order, as nothing is missing.
    let crossings: Vec<Crossing> = (0..500_i64)
        .flat_map(|nth| {
            let sent = START + nth * 10 * MS;
            [Crossing::forth(7, sent, 2 * MS + nth % 3 * MS), Crossing::back(nth as u32, sent, 6 * MS)]
        })
        .collect();
    let (found, packets) = measured(&crossings, [TRUE, AWAY], &options(200.0)).unwrap();
    assert_true(&crossings, &packets, TRUE);
    assert_eq!(found.unmeasured.alike, 0);
    // One of them is lost: which, nobody knows.
    let up = opening(capture(&crossings, |crossing| crossing.up, TRUE));
    let left: Vec<Crossing> = crossings.iter().copied().filter(|crossing| crossing.up != START + 100 * MS).collect();
    let down = opening(capture(&left, |crossing| crossing.down, TRUE));
    let (up, down) = (CaptureInput { open: &up }, CaptureInput { open: &down });
    let found = delays(up, down, &options(200.0), &Unwatched, &mut |_| {});
    assert!(matches!(found, Err(DelayError::OneDirection { packets: 500, alike: 500 })), "{found:?}");
}

#[test]
fn little_memory_widens_nothing_that_is_true() {
    let crossings = requests();
    let options = DelayOptions { memory: 160 * 40, ..options(200.0) };
    let (found, packets) = measured(&crossings, [TRUE, AWAY], &options).unwrap();
    assert_true(&crossings, &packets, TRUE);
    assert_eq!((found.packets, found.unmeasured), (1_000, UnmeasuredCounts::default()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any delays, any offset, any drift within the bound: truth is inside, or nothing is said.
    #[test]
    fn truth_is_always_inside(
        delays in proptest::collection::vec((1_i64..40 * MS, 1_i64..40 * MS, 1_i64..60 * MS), 2..80),
        offset in -3_600 * S..3_600 * S,
        drift in -150_i64..=150,
        wobble in 0_i64..50,
    ) {
        let mut at = START + 4_000 * S;
        let mut crossings = Vec::new();
        for (nth, (forth, back, gap)) in delays.iter().enumerate() {
            at += gap;
            crossings.push(Crossing::forth(nth as u32, at, *forth));
            crossings.push(Crossing::back(nth as u32, at + gap / 2, *back));
        }
        // A rate that changes from one second to the next, by no more than the rest of the bound.
        let shown = |at: i64| {
            let since = at - START;
            let wave = (since % (2 * S) - S).abs() * wobble / 1_000_000;
            at + offset + since / 1_000 * drift / 1_000 + wave
        };
        let up = opening(capture(&crossings, |crossing| crossing.up, TRUE));
        let mut moved = crossings.clone();
        moved.iter_mut().for_each(|crossing| crossing.down = shown(crossing.down));
        let down = opening(capture(&moved, |crossing| crossing.down, TRUE));
        let (up, down) = (CaptureInput { open: &up }, CaptureInput { open: &down });
        let mut packets = Vec::new();
        match super::delays(up, down, &options(205.0), &Unwatched, &mut |packet| packets.push(*packet)) {
            Ok(found) => {
                assert_true(&crossings, &packets, TRUE);
                for direction in found.directions {
                    let mut truth: Vec<u64> = crossings.iter()
                        .filter(|crossing| crossing.forth == (direction.direction == DelayDirection::UpToDown))
                        .map(Crossing::delay).collect();
                    truth.sort_unstable();
                    let (middle, delay) = (truth[truth.len().div_ceil(2) - 1], direction.delay.unwrap());
                    prop_assert!(delay.p50.0 <= middle && middle <= delay.p50.1, "{delay:?} {middle}");
                    let most = truth[truth.len() - 1];
                    prop_assert!(delay.max.0 <= most && most <= delay.max.1, "{delay:?} {most}");
                }
            }
            Err(DelayError::DirectionsUnknown { .. }) => {}
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}
