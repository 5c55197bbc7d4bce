use radar::digest::{Digest, DigestShape};
use radar::loss::LossCause;
use radar::packet::{Packet, TcpFields as Tcp};
use radar::segment::ReportFacts;
use radar::signature::{Fields, Signature};

use super::*;

const MEMORY: usize = 32 << 20;
const LENGTH: u64 = 10_000_000;
const START: u64 = 170_000_000_000;

fn packet(nth: u32, src: &str) -> Packet {
    let flow = Flow {
        src: src.parse().unwrap(),
        dst: "10.0.0.2".parse().unwrap(),
        protocol: 6,
        src_port: 40_000,
        dst_port: 80,
    };
    let tcp = Some(Tcp { seq: nth * 1_000, len: 900, syn: false });
    Packet { flow, ip_id: Some(nth as u16), fragment: 0, tcp, ttl: 64, content: 0 }
}

fn digest(packets: &[Packet], fields: Fields) -> Digest {
    let mut digest = Digest::new(DigestShape::new(90, 1, fields));
    packets.iter().for_each(|packet| digest.insert(&Signature::new(packet, fields)));
    digest
}

fn report(end: &str, batch: u64, out: Digest, came: Digest) -> Vec<u8> {
    let (segment, end) = ("cable".to_owned(), end.to_owned());
    let report = MeterReport {
        segment,
        end,
        life: 1,
        batch: START / LENGTH + batch,
        length: LENGTH,
        missed: 0,
        out,
        out_number: None,
        came,
        came_number: None,
        facts: ReportFacts::default(),
    };
    report.to_bytes()
}

fn at(batch: u64) -> Timestamp {
    Timestamp(START + batch * LENGTH)
}

/// The events after both ends have reported 12 batches; `a` sends packets in batch 5, and `b` sees some of them.
fn run(collector: &mut Collector, out: [Fields; 2], sent: &[Packet], seen: &[Packet]) -> Vec<CollectorEvent> {
    let none = |fields: Fields| digest(&[], fields);
    let mut news = Vec::new();
    for batch in 0..12 {
        let busy = batch == 5;
        let (sent, seen) = if busy { (sent, seen) } else { (&[][..], &[][..]) };
        let a = report("a", batch, digest(sent, out[0]), none(out[1]));
        news.extend(collector.on_report(at(batch + 1), 0, &a));
        let b = report("b", batch, none(out[1]), digest(seen, out[0]));
        news.extend(collector.on_report(at(batch + 1), 0, &b));
    }
    news
}

#[test]
fn a_lost_packet_is_told_with_where_and_what_and_counted_by_flow() {
    let mut collector = Collector::new(2, 1, MEMORY);
    let packets: Vec<Packet> = (0..6).map(|nth| packet(nth, "10.0.0.1")).collect();
    let news = run(&mut collector, [Fields::ALL; 2], &packets, &packets[1..]);
    let heard = |end: &str| CollectorEvent::Heard { segment: "cable".to_owned(), end: end.to_owned() };
    assert_eq!(news[..2], [heard("a"), heard("b")]);
    let [CollectorEvent::Lost(lost)] = &news[2..] else { panic!("{news:?}") };
    assert_eq!((lost.from.as_deref(), lost.to.as_deref()), (Some("a"), Some("b")));
    assert_eq!((lost.flow, lost.tcp_seq, lost.ip_id), (packets[0].flow, Some(0), Some(0)));
    assert_eq!((lost.batch, lost.delay), (at(5), 2 * LENGTH));
    let [summary] = &collector.finish()[..] else { panic!("one segment") };
    assert_eq!((summary.packets, summary.lost), (6, 1));
    // A digest shows the batch, and nothing of when in it.
    assert_eq!(summary.causes.of(LossCause::Unknown), 1);
    assert_eq!(summary.flows.len(), 1);
    assert_eq!(summary.ends.iter().map(|end| end.reports).collect::<Vec<_>>(), [12, 12]);
}

/// One packet of three that are alike is still on its way when they are called lost.
#[test]
fn a_packet_that_comes_after_all_is_taken_back_and_no_longer_counted() {
    let mut collector = Collector::new(2, 1, MEMORY);
    let alike = vec![packet(3, "10.0.0.1"); 3];
    let none = || digest(&[], Fields::ALL);
    let mut news = Vec::new();
    for batch in 0..16 {
        let sent = if batch == 5 { &alike[..] } else { &[] };
        let came = if batch == 9 { &alike[..1] } else { &[] };
        let (sent, came) = (digest(sent, Fields::ALL), digest(came, Fields::ALL));
        news.extend(collector.on_report(at(batch + 1), 0, &report("a", batch, sent, none())));
        news.extend(collector.on_report(at(batch + 1), 0, &report("b", batch, none(), came)));
    }
    let [_, _, CollectorEvent::Lost(lost), CollectorEvent::Late(late)] = &news[..] else { panic!("{news:?}") };
    assert_eq!((lost.times, late.times, late.batch), (3, 1, lost.batch));
    assert_eq!((&late.from, &late.to, late.flow), (&lost.from, &lost.to, lost.flow));
    let text = collector.look(at(16)).into_iter().map(|news| format!("{news:?}")).collect::<String>();
    assert!(text.contains("1 packets that were called lost came after all"), "{text}");
    let summary = &collector.finish()[0];
    assert_eq!((summary.lost, summary.late, summary.extra), (2, 1, 0));
    assert_eq!((summary.causes.losses(), summary.flows[0].1.losses()), (2, 2));
}

#[test]
fn where_sources_are_rewritten_each_way_is_told_by_what_survives() {
    let (forth, back) = (Fields { source: false, ..Fields::ALL }, Fields { destination: false, ..Fields::ALL });
    let mut collector = Collector::new(2, 1, MEMORY);
    let [sent, seen] = ["10.0.0.1", "192.0.2.9"].map(|src| (0..6).map(|nth| packet(nth, src)).collect::<Vec<_>>());
    let news = run(&mut collector, [forth, back], &sent, &seen[..5]);
    let lost: Vec<&LostPacket> = news
        .iter()
        .filter_map(|news| if let CollectorEvent::Lost(lost) = news { Some(&**lost) } else { None })
        .collect();
    let [lost] = lost[..] else { panic!("{news:?}") };
    assert_eq!((lost.tcp_seq, lost.ip_id, lost.flow.dst), (Some(5_000), Some(5), sent[5].flow.dst));
    assert!(!lost.fields.source && lost.fields.destination);
}

#[test]
fn an_end_that_goes_silent_is_told_once_and_again_when_it_is_back() {
    let mut collector = Collector::new(2, 1, MEMORY);
    let _ = run(&mut collector, [Fields::ALL; 2], &[], &[]);
    assert_eq!(collector.look(at(20)), []);
    let silent = collector.look(at(200));
    assert_eq!(silent.len(), 2);
    assert!(matches!(&silent[0], CollectorEvent::Silent { end, .. } if end == "a"));
    assert_eq!(collector.look(at(201)), []);
    let none = || digest(&[], Fields::ALL);
    let back = collector.on_report(at(202), 0, &report("a", 201, none(), none()));
    assert_eq!(back, [CollectorEvent::Back { segment: "cable".to_owned(), end: "a".to_owned() }]);
}

#[test]
fn what_cannot_be_used_is_told_once_with_what_to_do() {
    let mut collector = Collector::new(2, 1, MEMORY);
    let told = |news: Vec<CollectorEvent>| match &news[..] {
        [CollectorEvent::Trouble(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    let none = || digest(&[], Fields::ALL);
    assert!(told(collector.on_report(at(0), 0, b"nonsense")).contains("not a meter's report"));
    assert_eq!(collector.on_report(at(0), 0, b"nonsense"), []);
    assert_eq!(collector.look(at(0)), [CollectorEvent::Trouble("1 more reports could not be used".to_owned())]);
    let far = told(collector.on_report(at(100_000), 0, &report("a", 0, none(), none())));
    assert!(far.contains("its clock is 1000 s away"), "{far}");
    collector.look(at(0));
    collector.on_report(at(0), 0, &report("a", 0, none(), none()));
    collector.on_report(at(0), 5, &report("b", 0, none(), none()));
    let third = told(collector.on_report(at(0), 0, &report("c", 0, none(), none())));
    assert!(third.contains("end c is one too many"), "{third}");
    let summary = &collector.finish()[0];
    assert_eq!(summary.ends.iter().map(|end| end.missing).collect::<Vec<_>>(), [0, 5]);
}

#[test]
fn packets_that_are_all_alike_are_one_line_with_their_number() {
    let mut collector = Collector::new(2, 1, MEMORY);
    let alike = vec![packet(3, "10.0.0.1"); 100];
    let news = run(&mut collector, [Fields::ALL; 2], &alike, &[]);
    let [_, _, CollectorEvent::Lost(lost)] = &news[..] else { panic!("{news:?}") };
    assert_eq!(lost.times, 100);
    let summary = &collector.finish()[0];
    assert_eq!((summary.lost, summary.causes.losses()), (100, 100));
}

#[test]
fn an_end_that_reports_is_not_taken_over_by_somebody_else() {
    let mut collector = Collector::new(2, 1, MEMORY);
    let packets: Vec<Packet> = (0..6).map(|nth| packet(nth, "10.0.0.1")).collect();
    let mut lost = 0;
    let none = || digest(&[], Fields::ALL);
    for batch in 0..12 {
        let sent = if batch == 5 { &packets[..] } else { &[] };
        for (end, out) in [("a", digest(sent, Fields::ALL)), ("b", none())] {
            let news = collector.on_report(at(batch + 1), 0, &report(end, batch, out, none()));
            lost += news.iter().filter(|news| matches!(news, CollectorEvent::Lost(_))).count();
            let forged =
                MeterReport { life: 666, ..MeterReport::from_bytes(&report(end, batch, none(), none())).unwrap() };
            collector.on_report(at(batch + 1), 0, &forged.to_bytes());
        }
    }
    assert_eq!(lost, 6);
    // Once it is silent, its successor is heard.
    let new = MeterReport { life: 2, ..MeterReport::from_bytes(&report("a", 300, none(), none())).unwrap() };
    collector.look(at(300));
    assert!(
        collector
            .on_report(at(300), 0, &new.to_bytes())
            .contains(&CollectorEvent::Back { segment: "cable".into(), end: "a".into() })
    );
}

#[test]
fn a_collector_that_hears_no_meter_or_not_all_of_a_segment_says_so_once() {
    let mut collector = Collector::new(2, 1, MEMORY);
    let second = 1_000_000_000 / LENGTH;
    let looks = |collector: &mut Collector, seconds: std::ops::Range<u64>| -> Vec<String> {
        let news = seconds.flat_map(|nth| collector.look(at(nth * second)));
        news.filter_map(|news| if let CollectorEvent::Trouble(text) = news { Some(text) } else { None }).collect()
    };
    let said = looks(&mut collector, 0..20);
    assert!(said.len() == 1 && said[0].starts_with("no meter has reported for 5 s"), "{said:?}");
    for nth in 20..40 {
        let none = || digest(&[], Fields::ALL);
        collector.on_report(at(nth * second), 0, &report("left", nth * second, none(), none()));
        assert_eq!(collector.refusal(), None);
        let said = looks(&mut collector, nth..nth + 1);
        let expected = nth == 25;
        assert_eq!(
            said.iter().any(|line| line.contains("only 1 of 2 ends report (left)")),
            expected,
            "{nth}: {said:?}"
        );
    }
    collector.on_report(at(40 * second), 0, b"nonsense");
    assert!(collector.refusal().is_some_and(|why| why.contains("cannot be used")));
}
