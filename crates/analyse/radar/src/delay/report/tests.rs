use clock::offset::{OffsetContradiction, OffsetFact, OffsetInterval};
use units::Timestamp;

use super::*;
use crate::compare::CaptureContents;
use crate::delay::{DelayError, DelayPercentiles, FlowDelays, TimeSlot, UnmeasuredCounts};
use crate::packet::Flow;

fn question() -> DelayQuestion {
    DelayQuestion { up: "up.pcap".into(), down: "down<1>.pcap".into(), drift_ppm: 200.0, has_clocks: false }
}

fn report() -> DelayReport {
    let delay = DelayPercentiles { p50: (0, 8_000_000), p99: (1_000, 8_100_000), max: (9_000_000, 17_000_000) };
    let flow = Flow { src: [10, 0, 0, 1].into(), dst: [10, 0, 0, 2].into(), protocol: 17, src_port: 1, dst_port: 2 };
    let direction = DelayDirection::UpToDown;
    let [forth, back] = [(direction, Some(delay), 9), (DelayDirection::DownToUp, None, 0)]
        .map(|(direction, delay, packets)| DirectionDelays { direction, packets, delay, sure: false });
    let slot = |nth: u64| TimeSlot {
        at: Timestamp(1_700_000_000_000_000_000 + nth * 1_000_000),
        offset: Some((-4_000, 4_000)),
        delays: [Some(delay), None],
    };
    let contents = CaptureContents { packets: 10, ..CaptureContents::default() };
    let analysis = DelayAnalysis {
        up: contents,
        down: CaptureContents { truncated: true, ..contents },
        packets: 9,
        unmeasured: UnmeasuredCounts { only_up: 1, alike: 3, ..UnmeasuredCounts::default() },
        offset: OffsetInterval::new(-4_000, 4_000),
        offset_at: Timestamp(5),
        drift_ppm: Some((-3.0, 4.5)),
        directions: [forth, back],
        slower: None,
        flows: vec![FlowDelays { flow, direction, packets: 9, delay }],
        more_flows: 2,
        slots: (0..5).map(slot).collect(),
    };
    DelayReport::new(question(), analysis, 0.1)
}

#[test]
fn json_has_the_fields_of_its_contract() {
    let json = serde_json::to_value(report().answer()).unwrap();
    assert_eq!(json["packets"], 9);
    assert_eq!(json["offset_ns"], serde_json::json!([-4_000, 4_000]));
    assert_eq!(json["drift_ppm"], serde_json::json!([-3.0, 4.5]));
    let [forth, back] = [&json["directions"][0], &json["directions"][1]];
    assert_eq!((&forth["direction"], &forth["n"]), (&"up-to-down".into(), &9.into()));
    assert_eq!(forth["delay_ns"]["p50"], serde_json::json!([0, 8_000_000]));
    assert!(forth["sure"] == false && forth["reason"].as_str().unwrap().contains("± 4.0 us"));
    assert!(back["delay_ns"]["max"].is_null() && back["reason"].as_str().unwrap().starts_with("no packet"));
    assert_eq!(json["flows"][0]["src_port"], 1);
}

#[test]
fn text_and_page_say_what_is_known_and_what_is_not() {
    let text = report().text(10);
    for part in [
        "9 packets measured, of 10 in UP and 10 in DOWN",
        "± 4.0 us, and gains -3.0 to 4.5 ppm",
        "0 ns to 8.000 ms",
        "all packets that both captures have go from UP to DOWN",
        "and 2 more flows",
        "3 packets not measured: alike",
        "down<1>.pcap ends within a record",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let page = report().page();
    for part in [
        "<h2>Over time</h2>",
        "Delay up-to-down",
        "DOWN&#39;s clock against UP&#39;s",
        "down&lt;1&gt;.pcap",
        "Delay by flow",
    ] {
        assert!(page.contains(part) || page.contains(&part.replace("&#39;", "'")), "{part} in {page}");
    }
}

#[test]
fn a_refusal_says_what_to_do() {
    let most = OffsetFact { at: 1_700_000_000_000_000_000, value: 0 };
    let least = OffsetFact { at: 1_700_000_000_010_000_000, value: 5_000_000_000 };
    let cases = [
        (DelayError::OneDirection { packets: 5, alike: 2 }, "capture both directions"),
        (DelayError::OneDirection { packets: 5, alike: 2 }, "2 packets that are alike"),
        (DelayError::DirectionsUnknown { packets: 5 }, "a smaller --drift"),
        (DelayError::NothingInCommon { up: 1, down: 2, alike: 0 }, "no packet in common"),
        (DelayError::Contradiction(OffsetContradiction { most, least }), "between 2023-11-14 22:13:20.000000000 and"),
        (DelayError::Contradiction(OffsetContradiction { most, least }), "by 5.000 s or more in 10.000 ms"),
    ];
    for (error, part) in cases {
        let text = refusal(&error, &question());
        assert!(text.contains(part), "{part} in {text}");
    }
}
