//! `hitless wire`: a corrupting wire between two interfaces, or a switch that repeats.

pub(crate) mod corruption;

use std::io::PipeReader;
use std::os::fd::AsRawFd;
use std::time::Duration;

use chart::table::{Align, Table, thousands};
use emulator::{
    DirectionConfig, DirectionCounters, InterfaceClaim, KernelWire, Medium, MediumConfig, Repeat, RepeatCounters,
};
use faults::FaultSchedule;
use linux::net::{InterfaceInfo, Netlink};
use linux::packet::{PacketSocket, PacketSocketOptions};
use linux::poll;
use roce::repeat;
use serde::Serialize;
use standin::{longest_on, wire_socket};
use units::Prob;

use crate::args::WireArgs;
use crate::output::{CommandResult, Failure, print, say};

/// End of the message for a file that cannot be written, which does not end the wire.
const GOES_ON: &str = "; the wire goes on, and counts what is not logged";

/// Counters of the wire, by direction.
#[derive(Debug, Serialize)]
struct WireResult {
    forward: DirectionCounters,
    reverse: DirectionCounters,
    /// Counters of the repeater, if the wire has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeater: Option<RepeatCounters>,
    /// Corrupted frames that the log had no room for; there only with a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_logged: Option<u64>,
}

impl WireResult {
    fn new([forward, reverse]: [DirectionCounters; 2], repeater: Option<RepeatCounters>) -> Self {
        Self { forward, reverse, repeater, not_logged: None }
    }
}

pub(crate) fn run(args: &WireArgs, json: bool) -> CommandResult {
    if args.a == args.b {
        return Err(Failure::Usage(format!("{} and {}: expected two interfaces", args.a, args.b)));
    }
    let netlink = Netlink::open().map_err(usage)?;
    let ends = [interface(&netlink, &args.a, Failure::Usage)?, interface(&netlink, &args.b, Failure::Usage)?];
    let _claims = [claim(&ends[0], Failure::Usage)?, claim(&ends[1], Failure::Usage)?];
    take_up_dead_wire(&netlink, &ends)?;
    let (stop, stopper) = std::io::pipe().map_err(|error| Failure::Outside(error.to_string()))?;
    let mut stopper = Some(stopper);
    // Failing to listen leaves Ctrl-C to end it at once.
    let _ = ctrlc::set_handler(move || drop(stopper.take()));
    let outcome =
        if args.in_kernel { in_kernel(args, &netlink, &ends, &stop)? } else { in_this_process(args, &ends, &stop)? };
    print(json, &outcome, || table(args, &outcome))
}

pub(crate) fn usage(error: linux::net::NetError) -> Failure {
    Failure::Usage(linux::SystemError::from(error).0)
}

/// An interface that is up. What its absence is to whoever asks, `missing` says: for a service it may pass.
pub(crate) fn interface(
    netlink: &Netlink,
    name: &str,
    missing: fn(String) -> Failure,
) -> Result<InterfaceInfo, Failure> {
    let link = netlink.link(name).map_err(usage)?;
    let link = link.ok_or_else(|| missing(format!("there is no interface {name}; `ip link` shows which there are")))?;
    if link.up { Ok(link) } else { Err(missing(format!("{name} is down; `ip link set dev {name} up` first"))) }
}

/// Two wires on one interface would forward every frame twice. What that is to whoever asks, `taken` says: for a service it may pass.
pub(crate) fn claim(link: &InterfaceInfo, taken: fn(String) -> Failure) -> Result<InterfaceClaim, Failure> {
    let claim = InterfaceClaim::of(link.index).map_err(|error| Failure::Outside(format!("{}: {error}", link.name)))?;
    claim.ok_or_else(|| {
        let name = &link.name;
        taken(format!(
            "{name} belongs to a `hitless wire` or a `hitless rack switch` already; end that one, or choose another interface"
        ))
    })
}

/// A wire in the kernel outlives a process that was killed, and would forward every frame beside the new one. Nobody uses it:
/// the interfaces are claimed.
fn take_up_dead_wire(netlink: &Netlink, ends: &[InterfaceInfo; 2]) -> Result<(), Failure> {
    let mut freed = Vec::new();
    for end in ends {
        match netlink.take_up_wire(end.index) {
            Ok(true) => freed.push(end.name.as_str()),
            // The wire itself reports a missing permission.
            Err(error) if error.kind() != std::io::ErrorKind::PermissionDenied => return Err(usage(error)),
            Ok(false) | Err(_) => {}
        }
    }
    if !freed.is_empty() {
        say(&format!("removed from {} what a killed `hitless wire --in-kernel` left there", freed.join(" and ")));
    }
    Ok(())
}

fn lanes(args: &WireArgs) -> Result<[DirectionConfig; 2], Failure> {
    let (forward, reverse) = match &args.faults {
        Some(path) => {
            let file = corruption::file(path)?;
            (file.forward, file.reverse)
        }
        None => {
            let back = args.reverse_loss.unwrap_or(args.loss);
            let model = |loss: Prob| corruption::model(loss, args.burst, args.bit_errors).map(FaultSchedule::always);
            (model(args.loss)?, model(back)?)
        }
    };
    let lane = |faults, delay| DirectionConfig { faults, rate: args.rate, delay };
    Ok([lane(forward, args.delay), lane(reverse, args.reverse_delay.unwrap_or(args.delay))])
}

fn repeater(args: &WireArgs) -> Option<Repeat> {
    let is_asked_for = args.repeat_naks.is_some() || args.repeat_requested.is_some();
    let config = repeat::RepeaterConfig::new(args.repeat_naks.unwrap_or(0), args.repeat_requested.unwrap_or(0));
    is_asked_for.then(|| Repeat::new(config))
}

fn in_this_process(args: &WireArgs, ends: &[InterfaceInfo; 2], stop: &PipeReader) -> Result<WireResult, Failure> {
    let config = MediumConfig {
        names: [args.a.clone(), args.b.clone()],
        lanes: lanes(args)?,
        seed: args.seed,
        queue: args.queue,
        flip: args.flip,
        log: args.log.clone(),
        counters: args.counters.clone(),
    };
    let open = |link: &InterfaceInfo| {
        let socket = PacketSocketOptions { vnet: true, send_buffer: 4 << 20, ..wire_socket(link.mtu, 4_096) };
        let socket = PacketSocket::open(link.index, &socket).and_then(PacketSocket::with_super_frames);
        socket.map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => Failure::Outside(format!("{error}; a wire needs root, or sudo")),
            _ => Failure::Outside(format!("{}: {error}", link.name)),
        })
    };
    let sockets = [open(&ends[0])?, open(&ends[1])?];
    let longest = longest_on(ends[0].mtu.max(ends[1].mtu));
    let mut medium = Medium::new(config, sockets, longest).map_err(|error| Failure::not_created("--log", &error))?;
    medium = medium.telling_trouble(|file| say(&format!("{file}{GOES_ON}")));
    match repeater(args) {
        Some(repeat) => {
            medium = medium.repeating(repeat);
            say(&format!("a repeater between hosts at {} and the fabric at {}; Ctrl-C ends it", args.a, args.b));
        }
        None => say(&format!("a wire between {} and {}; Ctrl-C ends it", args.a, args.b)),
    }
    let mut warned = false;
    let until = args.duration.map(|span| Duration::from_nanos(span.as_ps() / 1_000));
    let ended = medium.run(stop, until, &mut |counters| {
        if !warned && counters.iter().any(|lane| lane.too_long > 0) {
            warned = true;
            say("frames longer than the wire's come in that cannot be cut: switch off segmentation at the sender (ethtool -K IFACE tso off gso off)");
        }
    });
    let lanes = ended.map_err(|error| Failure::Outside(error.to_string()))?;
    let not_logged = args.log.as_ref().map(|_| medium.not_logged());
    Ok(WireResult { not_logged, ..WireResult::new(lanes, medium.repeat_counters()) })
}

fn in_kernel(
    args: &WireArgs,
    netlink: &Netlink,
    ends: &[InterfaceInfo; 2],
    stop: &PipeReader,
) -> Result<WireResult, Failure> {
    let losses = [args.loss, args.reverse_loss.unwrap_or(args.loss)];
    let indices = [ends[0].index, ends[1].index];
    let wire = KernelWire::lay(netlink, indices, losses, args.rate, args.queue).map_err(usage)?;
    say(&format!("a wire in the kernel between {} and {}; Ctrl-C ends it", args.a, args.b));
    let until = args.duration.map(|span| Duration::from_nanos(span.as_ps() / 1_000));
    let clock = linux::clock::Clock::start();
    let mut is_told = false;
    while until.is_none_or(|until| clock.elapsed() < until) {
        let left = until.map_or(Duration::from_secs(1), |until| until.saturating_sub(clock.elapsed()));
        let ready = poll::wait(&[(stop.as_raw_fd(), false)], left.min(Duration::from_secs(1)));
        if ready.map_err(|error| Failure::Outside(error.to_string()))?[0] != poll::Readiness::Nothing {
            break;
        }
        if let Some(directory) = &args.counters {
            let counters = wire.counters().map_err(usage)?;
            let kept = emulator::keep_counters(directory, &[&args.a, &args.b], &counters);
            if let Err(error) = kept
                && !std::mem::replace(&mut is_told, true)
            {
                say(&format!("{}: {error}{GOES_ON}", directory.display()));
            }
        }
    }
    Ok(WireResult::new(wire.counters().map_err(usage)?, None))
}

fn table(args: &WireArgs, outcome: &WireResult) -> String {
    let mut table = Table::new(&[
        ("direction", Align::Left),
        ("offered", Align::Right),
        ("corrupted", Align::Right),
        ("passed", Align::Right),
        ("overflowed", Align::Right),
    ]);
    let mut row = |from: &str, to: &str, lane: &DirectionCounters| {
        let cells = [lane.offered, lane.dropped, lane.passed, lane.overflowed].map(thousands);
        table.row([vec![format!("{from} to {to}")], cells.to_vec()].concat());
    };
    row(&args.a, &args.b, &outcome.forward);
    row(&args.b, &args.a, &outcome.reverse);
    let repeater = outcome.repeater.as_ref().map(repeated).unwrap_or_default();
    let not_logged = outcome.not_logged.filter(|frames| *frames > 0);
    let not_logged = not_logged.map(|frames| format!("{} corrupted frames are not in the log\n", thousands(frames)));
    format!("{table}{repeater}{}", not_logged.unwrap_or_default())
}

fn repeated(counters: &RepeatCounters) -> String {
    let RepeatCounters { roce, malformed, nak_copies, naked_copies } = *counters;
    let [roce, malformed, naks, naked] = [roce, malformed, nak_copies, naked_copies].map(thousands);
    format!(
        "repeated: {naks} copies of NAKs, {naked} of packets that NAKs asked for\n\
         seen: {roce} RoCEv2 frames, {malformed} of them malformed\n"
    )
}
