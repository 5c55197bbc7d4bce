//! `hitless rack switch`: arguments checked, interfaces claimed, and the daemon run.

use emulator::InterfaceClaim;
use link::control::RunDirectory;
use link::daemon::DaemonEnd;
use link::frame::longest_on;
use link::standin::interface_speed;
use linux::mailbox::mailbox;
use linux::net::{InterfaceInfo, Netlink};
use rack::agreement::RackAgreement;
use rack::switch::{SwitchConfig, SwitchDaemon, SwitchRequest, open_ports};
use reserve::RackParams;
use units::Bytes;
use wire::ethernet::on_wire;

use super::describe_switch;
use crate::args::RackSwitchArgs;
use crate::output::{CommandResult, Failure, print, say};
use crate::wire::{claim, interface, usage};

pub(super) fn run(args: &RackSwitchArgs, json: bool) -> CommandResult {
    check_names(args)?;
    let netlink = Netlink::open().map_err(usage)?;
    let interfaces = args.interfaces.iter().map(|name| interface(&netlink, name)).collect::<Result<Vec<_>, _>>()?;
    interfaces.iter().try_for_each(|interface| check_port(args, &netlink, interface))?;
    let reserve = reservations(args, &interfaces)?;
    let _claims: Vec<InterfaceClaim> = interfaces.iter().map(claim).collect::<Result<_, _>>()?;
    let outside = |error: std::io::Error| Failure::Outside(error.to_string());
    let (switch, requests) = mailbox().map_err(outside)?;
    let stopper = switch.another().map_err(outside)?;
    // Failing to listen leaves Ctrl-C to end it at once.
    let _ = ctrlc::set_handler(move || {
        let _ = stopper.send(SwitchRequest::Stop);
    });
    let opened = open_ports(&interfaces, args.rate, args.buffer);
    let (ports, sockets) = opened.map_err(|trouble| Failure::Outside(trouble.0))?;
    say(&format!("{} joins {} at {} a port; Ctrl-C ends it", args.name, args.interfaces.join(", "), args.rate));
    let daemon = SwitchDaemon {
        config: SwitchConfig { name: args.name.clone(), ports, aging: args.aging, reserve },
        sockets,
        directory: &RunDirectory::of_this_system(),
        metrics: args.metrics,
        tell: &mut say,
    };
    let status = daemon.run(switch, requests).map_err(|ended| match ended {
        DaemonEnd::Arguments(what) => Failure::Usage(what),
        DaemonEnd::Trouble(what) => Failure::Outside(what),
    })?;
    print(json, &status, || describe_switch(&status))
}

/// What hosts that reserve must agree on with the switch; none if nobody is to reserve.
fn reservations(args: &RackSwitchArgs, interfaces: &[InterfaceInfo]) -> Result<Option<RackParams>, Failure> {
    let Some(scheduler) = args.scheduler else { return Ok(None) };
    let wire_mtu = interfaces.iter().map(|interface| interface.mtu).max().unwrap_or(0);
    let scheduler = scheduler.into();
    let agreement = RackAgreement { scheduler, rate: args.rate, wire_mtu, k: args.k, contexts: args.contexts };
    let params = agreement.at_switch(interfaces.len() as u16, args.buffer);
    params.map(Some).map_err(|error| Failure::Usage(error.to_string()))
}

fn check_names(args: &RackSwitchArgs) -> CommandResult {
    for (at, name) in args.interfaces.iter().enumerate() {
        if args.interfaces[..at].contains(name) {
            return Err(Failure::Usage(format!("{name} is given twice: expected different interfaces")));
        }
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if args.name.is_empty() || args.name.len() > 32 || !args.name.bytes().all(is_plain) || args.name.starts_with('.') {
        return Err(Failure::Usage(format!("--name {}: expected up to 32 letters, digits, - or _", args.name)));
    }
    Ok(())
}

/// A port must be able to do what is asked of it.
fn check_port(args: &RackSwitchArgs, netlink: &Netlink, interface: &InterfaceInfo) -> CommandResult {
    let longest = Bytes::new(u64::from(on_wire(longest_on(interface.mtu) as u32 + 4)));
    if args.buffer < longest {
        return Err(Failure::Usage(format!(
            "--buffer {}: expected at least {}, one full frame of {} (MTU {})",
            args.buffer, longest, interface.name, interface.mtu
        )));
    }
    match interface_speed(netlink, &interface.name) {
        Some(speed) if speed < args.rate => Err(Failure::Usage(format!(
            "--rate {}: {} carries only {speed}; ports must have the same rate",
            args.rate, interface.name
        ))),
        _ => Ok(()),
    }
}
