//! `hitless link capture`: the protected traffic of an interface, as pcapng.

use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::time::Duration;

use link::frame::{OWN, WHOLE};
use linux::capture::Capture;
use linux::clock::time_of_day;
use linux::net::Netlink;
use linux::packet::PacketSocket;
use linux::poll;
use standin::wire_socket;

use wire::link::AddressStamp;

use crate::args::CaptureArgs;
use crate::output::{CommandResult, Failure, say};

pub(super) fn run(args: &CaptureArgs) -> CommandResult {
    let outside = |error: std::io::Error| Failure::Outside(format!("{}: {error}", args.interface));
    let link = Netlink::open().and_then(|netlink| netlink.existing_wire_of(&args.interface));
    let link = link.map_err(|error| Failure::Usage(error.to_string()))?;
    if let Some(wire) = standin::stands_in_for(&link) {
        return Err(Failure::Usage(format!(
            "{} is the stand-in; capture {wire}, where the protected frames are",
            args.interface
        )));
    }
    let both_ways = linux::packet::PacketSocketOptions { outgoing_too: true, ..wire_socket(link.mtu, 4_096) };
    let mut socket =
        PacketSocket::open(link.index, &both_ways).and_then(PacketSocket::with_super_frames).map_err(|error| {
            match error.kind() {
                ErrorKind::PermissionDenied => Failure::Outside(format!("{error}; capturing needs root, or sudo")),
                _ => outside(error),
            }
        })?;
    let unwritten = |error: std::io::Error| Failure::Outside(format!("--write {}: {error}", args.write.display()));
    let mut capture = Capture::create(&args.write, &[&args.interface])
        .map_err(|error| Failure::not_created(args.write.display(), &error))?;
    say(&format!("capturing protected frames on {}; Ctrl-C ends it", args.interface));
    let (stop, stopper) = std::io::pipe().map_err(outside)?;
    let mut stopper = Some(stopper);
    // A second Ctrl-C finds nothing left to do.
    let _ = ctrlc::set_handler(move || drop(stopper.take()));
    let most = args.frames.map_or(u64::MAX, |frames| frames.0);
    let mut kept = 0;
    while kept < most {
        let mut failed = Ok(());
        socket.receive(64, |frame| {
            let ours =
                frame.bytes.get(12..14).is_some_and(|kind| kind == OWN.to_be_bytes() || kind == WHOLE.to_be_bytes());
            if (ours || AddressStamp::marks(frame.bytes)) && kept < most && failed.is_ok() {
                kept += 1;
                failed = capture.write(0, time_of_day(), frame.bytes);
            }
        });
        failed.map_err(unwritten)?;
        let ready = poll::wait(&[(stop.as_raw_fd(), false), (socket.fd(), false)], Duration::from_secs(1));
        if ready.map_err(outside)?[0] != poll::Readiness::Nothing {
            break;
        }
    }
    capture.flush().map_err(unwritten)?;
    say(&format!("{kept} frames in {}", args.write.display()));
    Ok(())
}
