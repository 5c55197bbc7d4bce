//! Writes captures of both ends of a link that lost packets, and names those packets:
//! `cargo run -p hitless-radar --example compare-captures`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::io::{self, Cursor, Read};

use capture::pcapng::{ETHERNET, EnhancedPacket, PcapngWriter};
use radar::compare::{CaptureInput, CompareError, CompareOptions, Comparison, compare};
use units::Unwatched;
use wire::ip::Ecn;
use wire::ipv4::{Ipv4Header, Station, UDP};
use wire::udp::UdpHeader;

/// A datagram with a number in it.
fn frame(number: u32) -> Vec<u8> {
    let [from, to] = [1, 2].map(|host| Station { mac: [2, 0, 0, 0, 0, host], ip: [10, 0, 0, host] });
    let ip = Ipv4Header { from, to, protocol: UDP, ecn: Ecn::NotCapable, payload: 12 };
    let mut frame = Vec::new();
    ip.emit(&mut frame);
    UdpHeader { source: 4_000, destination: 53, checked: false }.emit(&ip, &mut frame);
    frame.extend(number.to_be_bytes());
    frame
}

/// A capture of these datagrams, which leave every microsecond and pass after `delay` nanoseconds.
fn capture(numbers: impl Iterator<Item = u32>, delay: u64) -> io::Result<Vec<u8>> {
    let mut writer = PcapngWriter::new(Vec::new())?;
    let interface = writer.interface(ETHERNET, 0, None)?;
    for number in numbers {
        let (bytes, at) = (frame(number), 1_700_000_000_000_000_000 + u64::from(number) * 1_000 + delay);
        let len = bytes.len() as u32;
        writer.packet(&EnhancedPacket { interface, at, len, bytes: &bytes, ..EnhancedPacket::default() })?;
    }
    Ok(writer.into_inner())
}

/// Compares a capture of a thousand datagrams with one that lacks every hundredth of them.
pub(crate) fn losses() -> Result<Comparison, CompareError> {
    let up = || Ok(Box::new(Cursor::new(capture(0..1_000, 0)?)) as Box<dyn Read>);
    let arrived = || (0..1_000).filter(|number| number % 100 != 50);
    let down = || Ok(Box::new(Cursor::new(capture(arrived(), 600)?)) as Box<dyn Read>);
    compare(CaptureInput { open: &up }, CaptureInput { open: &down }, &CompareOptions::default(), &Unwatched)
}

pub(crate) fn main() -> Result<(), CompareError> {
    let found = losses()?;
    println!("{} of {} packets were lost", found.losses(), found.judged());
    for packet in &found.lost {
        println!("frame {} of {}", packet.frame, packet.loss.flow);
    }
    Ok(())
}
