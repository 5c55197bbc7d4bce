use radar::digest::{Digest, Shape};
use radar::packet::{Packet, Segment as Tcp};
use radar::signature::Signature;

use super::*;

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
    let mut digest = Digest::new(Shape::new(90, 1, fields));
    packets.iter().for_each(|packet| digest.insert(&Signature::new(packet, fields)));
    digest
}

fn report(end: &str, batch: u64, out: Digest, came: Digest) -> Vec<u8> {
    let (segment, end) = ("cable".to_owned(), end.to_owned());
    let report = Report {
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
    };
    report.to_bytes()
}

fn at(batch: u64) -> Stamp {
    Stamp(START + batch * LENGTH)
}

/// What is told after both ends have reported so many batches; `a` sends packets in the fifth, and `b` sees some of them.
fn run(collector: &mut Collector, out: [Fields; 2], sent: &[Packet], seen: &[Packet]) -> Vec<News> {
    let none = |fields: Fields| digest(&[], fields);
    let mut news = Vec::new();
    for batch in 0..12 {
        let busy = batch == 5;
        let (sent, seen) = if busy { (sent, seen) } else { (&[][..], &[][..]) };
        let a = report("a", batch, digest(sent, out[0]), none(out[1]));
        news.extend(collector.on_report(at(batch + 1), 7, &a));
        let b = report("b", batch, none(out[1]), digest(seen, out[0]));
        news.extend(collector.on_report(at(batch + 1), 8, &b));
    }
    news
}

#[test]
fn a_lost_packet_is_told_with_where_and_what_and_counted_by_flow() {
    let mut collector = Collector::new(2, 1);
    let packets: Vec<Packet> = (0..6).map(|nth| packet(nth, "10.0.0.1")).collect();
    let news = run(&mut collector, [Fields::ALL; 2], &packets, &packets[1..]);
    let heard = |end: &str| News::Heard { segment: "cable".to_owned(), end: end.to_owned() };
    assert_eq!(news[..2], [heard("a"), heard("b")]);
    let [News::Lost(lost)] = &news[2..] else { panic!("{news:?}") };
    assert_eq!((lost.from.as_deref(), lost.to.as_deref()), (Some("a"), Some("b")));
    assert_eq!((lost.flow, lost.tcp_seq, lost.ip_id), (packets[0].flow, Some(0), Some(0)));
    assert_eq!((lost.batch, lost.delay), (at(5), 2 * LENGTH));
    let [summary] = &collector.finish()[..] else { panic!("one segment") };
    assert_eq!((summary.packets, summary.lost, summary.causes.losses()), (6, 1, 1));
    assert_eq!(summary.flows.len(), 1);
    assert_eq!(summary.ends.iter().map(|end| end.reports).collect::<Vec<_>>(), [12, 12]);
}

#[test]
fn where_sources_are_rewritten_each_way_is_told_by_what_survives() {
    let (forth, back) = (Fields { source: false, ..Fields::ALL }, Fields { destination: false, ..Fields::ALL });
    let mut collector = Collector::new(2, 1);
    let [sent, seen] = ["10.0.0.1", "192.0.2.9"].map(|src| (0..6).map(|nth| packet(nth, src)).collect::<Vec<_>>());
    let news = run(&mut collector, [forth, back], &sent, &seen[..5]);
    let lost: Vec<&LostPacket> =
        news.iter().filter_map(|news| if let News::Lost(lost) = news { Some(&**lost) } else { None }).collect();
    let [lost] = lost[..] else { panic!("{news:?}") };
    assert_eq!((lost.tcp_seq, lost.ip_id, lost.flow.dst), (Some(5_000), Some(5), sent[5].flow.dst));
    assert!(!lost.fields.source && lost.fields.destination);
}

#[test]
fn an_end_that_goes_silent_is_told_once_and_again_when_it_is_back() {
    let mut collector = Collector::new(2, 1);
    let _ = run(&mut collector, [Fields::ALL; 2], &[], &[]);
    assert_eq!(collector.look(at(20)), []);
    let silent = collector.look(at(200));
    assert_eq!(silent.len(), 2);
    assert!(matches!(&silent[0], News::Silent { end, .. } if end == "a"));
    assert_eq!(collector.look(at(201)), []);
    let none = || digest(&[], Fields::ALL);
    let back = collector.on_report(at(202), 7, &report("a", 201, none(), none()));
    assert_eq!(back, [News::Back { segment: "cable".to_owned(), end: "a".to_owned() }]);
}

#[test]
fn what_cannot_be_used_is_told_once_with_what_to_do() {
    let mut collector = Collector::new(2, 1);
    let told = |news: Vec<News>| match &news[..] {
        [News::Trouble(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    let none = || digest(&[], Fields::ALL);
    assert!(told(collector.on_report(at(0), 1, b"nonsense")).contains("not a meter's report"));
    assert_eq!(collector.on_report(at(0), 1, b"nonsense"), []);
    collector.look(at(0));
    let far = told(collector.on_report(at(100_000), 1, &report("a", 0, none(), none())));
    assert!(far.contains("its clock is 1000 s away"), "{far}");
    collector.look(at(0));
    collector.on_report(at(0), 1, &report("a", 0, none(), none()));
    collector.on_report(at(0), 2, &report("b", 0, none(), none()));
    let third = told(collector.on_report(at(0), 3, &report("c", 0, none(), none())));
    assert!(third.contains("end c is one too many"), "{third}");
    collector.on_missing(2, 5);
    let summary = &collector.finish()[0];
    assert_eq!(summary.ends.iter().map(|end| end.missing).collect::<Vec<_>>(), [0, 5]);
}
