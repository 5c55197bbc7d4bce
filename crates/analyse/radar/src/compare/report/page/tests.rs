use std::net::IpAddr;
use units::Timestamp;

use testkit::page::{assert_finite, assert_well_formed};

use super::*;
use crate::compare::{CaptureContents, Comparison, FlowLosses, MissingPacket};
use crate::loss::{Loss, LossCause};
use crate::packet::Flow;

#[test]
fn a_page_shows_losses_by_cause_and_flow_and_is_whole() {
    let [src, dst]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
    let flow = Flow { src, dst, protocol: 17, src_port: 53, dst_port: 5_353 };
    let loss = |at| Loss { at: Timestamp(at), flow, ip_id: Some(7), tcp: None, expired: false, place: None };
    let lost = [1_000, 2_000_000_000].map(|at| MissingPacket { loss: loss(at), frame: 0, len: 100 }).to_vec();
    let up = CaptureContents { packets: 10, span: Some((0, 4_000_000_000)), ..CaptureContents::default() };
    let flows = vec![FlowLosses { flow, packets: 10, lost: 2 }];
    let comparison = Comparison { up, lost, flows, ..Comparison::default() };
    let causes = vec![LossCause::Random, LossCause::Congestion];
    let captures = Captures { up: "up<.pcap".into(), down: "down.pcap".into(), ..Captures::default() };
    let notes = vec!["a & b".into()];
    let intervals = Vec::new();
    let report = LossReport { captures, comparison, causes, intervals, notes, seconds: 1.0, clock: None };
    let html = page(&report);
    for part in
        ["random (1)", "congestion (1)", "udp 10.0.0.1:53 &gt; 10.0.0.2:5353", "a &amp; b", "up&lt;.pcap", "</html>"]
    {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert_well_formed(&html);
    assert_finite(&html);
    let none = LossReport { comparison: Comparison::default(), causes: Vec::new(), ..report };
    assert!(page(&none).contains("nothing to show"));
}
