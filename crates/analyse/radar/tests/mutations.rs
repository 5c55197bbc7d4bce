//! What `radar acl` and `radar delay` read, with words, lines, packets and times changed at random: answered or refused, without a
//! panic.

use std::io::{self, Cursor, Read};

use clock::offset::OffsetDrift;
use radar::acl::report::{AclAnswer, LostFlows};
use radar::acl::{AclAction, RuleTable};
use radar::compare::CaptureInput;
use radar::delay::report::{DelayQuestion, DelayReport, refusal};
use radar::delay::{ClockStatement, DelayOptions, delays, readings};
use radar::signature::Fields;
use testkit::{changed_capture, changed_text, fuzz_changes};
use units::Unwatched;

const RULES: &str = "# from here to there
@10.1.0.0/16  10.2.3.4/32  0 : 65535  443 : 443  0x06/0xFF  accept
@10.1.128.0/17  0.0.0.0/0  1024:65535  53 : 53  0x11/0xFF  0x0000/0x0000  deny
@0.0.0.0/0  10.2.0.0/15  0 : 65535  0 : 65535  0x00/0x00  permit
";
const LOSSES: [&str; 2] = [
    r#"{"lost": [
{"time": 1700000000, "src": "10.1.0.7", "dst": "10.2.3.4", "proto": 6, "src_port": 40000, "dst_port": 443, "cause": "blackhole"},
{"time": 1700000001, "src": "10.1.200.7", "dst": "10.9.3.4", "proto": 17, "src_port": 999, "dst_port": 53, "cause": "unknown"},
{"time": 1700000002, "src": "fe80::1", "dst": null, "proto": 58, "src_port": null, "dst_port": null, "cause": "congestion"}
]}"#,
    r#"{"kind": "loss", "src": "10.1.0.7", "dst": "10.2.3.4", "proto": 6, "src_port": 40000, "dst_port": 443}
{"kind": "segment", "packets": 3}
{"kind": "loss", "src": "10.1.129.7", "dst": "10.2.3.4", "proto": 17, "src_port": 5000, "dst_port": 53}
"#,
];

#[test]
fn any_access_list_and_any_losses_are_answered_or_refused() {
    let list = RuleTable::parse(RULES, AclAction::Deny).unwrap();
    let lost = LostFlows::parse(LOSSES[0], true).unwrap();
    let mut read = [0; 2];
    fuzz_changes(
        8_000,
        |random| changed_text(random, &[RULES]),
        |bytes| {
            if let Ok(list) = RuleTable::parse(&String::from_utf8_lossy(bytes), AclAction::Accept) {
                AclAnswer::new(&list, &lost).text();
                read[0] += 1;
            }
        },
    );
    fuzz_changes(
        8_000,
        |random| changed_text(random, &LOSSES),
        |bytes| {
            if let Ok(lost) = LostFlows::parse(&String::from_utf8_lossy(bytes), bytes.len() % 2 == 0) {
                AclAnswer::new(&list, &lost).text();
                read[1] += 1;
            }
        },
    );
    assert!(read.iter().all(|read| *read > 0), "some can still be read: {read:?}");
}

const START: u64 = 1_700_000_000_000_000_000;
const MS: u64 = 1_000_000;

/// UP and DOWN of a link that takes 2 ms there and 6 ms back, with a packet of each direction every 20 ms.
fn captures() -> [Vec<u8>; 2] {
    let datagram = |from: u8, to: u8, number: u32| {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 36, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        frame.extend([0x13, 0x88, 0x13, 0x89, 0, 16, 0, 0]);
        frame.extend(number.to_be_bytes());
        frame.extend([9; 4]);
        frame
    };
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for number in 0..12 {
        let sent = START + u64::from(number) * 20 * MS;
        up.push((sent, datagram(1, 2, number)));
        down.push((sent + 2 * MS, datagram(1, 2, number)));
        down.push((sent + 3 * MS, datagram(2, 1, number)));
        up.push((sent + 9 * MS, datagram(2, 1, number)));
    }
    [up, down].map(|frames| {
        let header = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
        let records = frames.iter().flat_map(|(at, frame)| {
            let words = [at / 1_000_000_000, at % 1_000_000_000, frame.len() as u64, frame.len() as u64];
            [words.map(|word| (word as u32).to_le_bytes()).concat(), frame.clone()].concat()
        });
        header.into_iter().chain(records).collect()
    })
}

/// The answer as text, and now and then as a page, or the refusal; true if it is an answer.
fn measured(captures: [&[u8]; 2], clocks: [&[ClockStatement]; 2], with_page: bool) -> bool {
    let open = |bytes: &[u8]| {
        let bytes = bytes.to_vec();
        move || -> io::Result<Box<dyn Read>> { Ok(Box::new(Cursor::new(bytes.clone()))) }
    };
    let [up, down] = captures.map(open);
    let drift = OffsetDrift::from_ppm(100.0).unwrap();
    let options =
        DelayOptions { fields: Fields::default(), memory: 1 << 20, drift, up_clock: clocks[0], down_clock: clocks[1] };
    let [up, down] = [CaptureInput { open: &up }, CaptureInput { open: &down }];
    let question = DelayQuestion {
        up: "up".to_owned(),
        down: "down".to_owned(),
        drift_ppm: drift.ppm(),
        has_clocks: !clocks[0].is_empty(),
    };
    let mut intervals = true;
    let mut take = |packet: &radar::delay::PacketDelay| intervals &= packet.low <= packet.high;
    match delays(up, down, &options, &Unwatched, &mut take) {
        Ok(analysis) => {
            let report = DelayReport::new(question, analysis, 0.0);
            let (_, _) = (report.text(5), report.answer());
            with_page.then(|| report.page());
            assert!(intervals, "a packet takes at most what it takes at least");
            true
        }
        Err(error) => {
            refusal(&error, &question);
            false
        }
    }
}

#[test]
fn any_captures_have_delays_or_are_refused() {
    let [up, down] = captures();
    let (mut round, mut answered) = (0, 0);
    let change = |random: &mut testkit::FuzzRandom| changed_capture(random, &up);
    fuzz_changes(3_000, change, |mutated| {
        round += 1;
        answered += u64::from(measured([mutated, &down], [&[]; 2], round % 20 == 0));
        measured([&down, mutated], [&[]; 2], false);
    });
    assert!(answered > 0, "some can still be measured");
}

#[test]
fn any_statements_of_clocks_are_used_or_refused() {
    let [up, down] = captures();
    let hitless: Vec<String> = (0..4)
        .map(|second| {
            let at = START as i64 + second * 300 * MS as i64;
            format!(r#"{{"local_ns": {at}, "earliest_ns": {}, "latest_ns": {}}}"#, at - 5_000, at + 5_000)
        })
        .collect();
    let texts = [
        hitless.join("\n"),
        "1700000000.1,D8EF2300,216.239.35.0,2,1700000000.0,0.000002,-0.000003,0.00001,-12.3,0.001,0.02,0.0004,0.0001,64.1,Normal\n".to_owned(),
        "2023-11-14 22:13:20 216.239.35.0 2 -12.353 0.018 -4.519e-06 N 1 1.284e-04 -6.4e-05 2.6e-04 4.4e-04 2.7e-03\n".to_owned(),
        "At the time of reading, true time was within 1700000000.000001 and 1700000000.000009 seconds since 1970, status is SYNCHRONIZED\n".to_owned(),
    ];
    let samples = texts.each_ref().map(String::as_str);
    let mut read = 0;
    fuzz_changes(
        4_000,
        |random| changed_text(random, &samples),
        |bytes| {
            if let Ok(clock) = readings(&String::from_utf8_lossy(bytes)) {
                measured([&up, &down], [&clock; 2], read % 50 == 0);
                measured([&up, &down], [&clock, &[]], false);
                read += 1;
            }
        },
    );
    assert!(read > 0, "some can still be read");
}
