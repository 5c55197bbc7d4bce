use std::net::IpAddr;

use clap::Parser;
use radar::compare::{Comparison, Contents, FlowLosses, Lost};
use radar::loss::{Cause, Loss};
use radar::packet::{Flow, Stamp};

use super::*;
use crate::args::{Cli, Command, LossesArgs, RadarCommand};

fn args() -> Box<LossesArgs> {
    let cli = Cli::try_parse_from(["hitless", "radar", "losses", "up<.pcap", "down.pcap"]).unwrap();
    match cli.command {
        Command::Radar(RadarCommand::Losses(args)) => args,
        _ => unreachable!("that is what was parsed"),
    }
}

#[test]
fn a_page_shows_losses_by_cause_and_flow_and_is_whole() {
    let [src, dst]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
    let flow = Flow { src, dst, protocol: 17, src_port: 53, dst_port: 5_353 };
    let loss = |at| Loss { at: Stamp(at), flow, ip_id: Some(7), tcp: None, expired: false, place: None };
    let lost = [1_000, 2_000_000_000].map(|at| Lost { loss: loss(at), frame: 0, len: 100 }).to_vec();
    let up = Contents { packets: 10, span: Some((0, 4_000_000_000)), ..Contents::default() };
    let flows = vec![FlowLosses { flow, packets: 10, lost: 2 }];
    let comparison = Comparison { up, lost, flows, ..Comparison::default() };
    let args = args();
    let causes = vec![Cause::Random, Cause::Congestion];
    let found = Found { args: &args, comparison, causes, notes: vec!["a & b".into()], seconds: 1.0 };
    let html = page(&found);
    for part in
        ["random (1)", "congestion (1)", "udp 10.0.0.1:53 &gt; 10.0.0.2:5353", "a &amp; b", "up&lt;.pcap", "</html>"]
    {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
    let none = Found { comparison: Comparison::default(), causes: Vec::new(), ..found };
    assert!(page(&none).contains("nothing to show"));
}
