//! `hitless rack switch`: arguments checked, interfaces claimed, and the daemon run.

use std::net::SocketAddr;

use daemon::options::{parse_address, read_options};
use emulator::InterfaceClaim;
use linux::mailbox::mailbox;
use linux::net::{InterfaceInfo, Netlink};
use rack::agreement::RackAgreement;
use rack::control::RackRole;
use rack::switch::{SWITCH_ADDRESS, SwitchConfig, SwitchDaemon, SwitchRequest, SwitchStatus, open_ports};
use reserve::{RackParams, SchedulerKind};
use standin::{interface_speed, longest_on};
use units::{Bytes, ParseError, Prob, Rate, Span};
use wire::ethernet::{Mac, on_wire};

use super::describe_switch;
use super::join::K;
use super::members::status_of;
use crate::args::{RackSwitchArgs, RackSwitchOptions};
use crate::background::{in_background, run_directory, run_reporting};
use crate::output::{CommandResult, Failure, print, say};
use crate::wire::{claim, interface, usage};

/// Addresses that may be bound: as many as a port has room for.
const MOST_BOUND: usize = 1_024;

/// Checked options of a switch.
struct RackSwitchSettings {
    name: String,
    interfaces: Vec<String>,
    rate: Rate,
    buffer: Bytes,
    /// Scheduler, the most frames of a reservation, and the most that each host may have open.
    reserve: Option<(SchedulerKind, u8, Option<u16>)>,
    ingress_share: Prob,
    aging: Span,
    /// Addresses that belong to a port, each with the number of the port.
    bound: Vec<([u8; 6], usize)>,
    /// Numbers of the ports whose priorities count.
    trusted: Vec<usize>,
    metrics: Option<SocketAddr>,
}

pub(super) fn run(args: &RackSwitchArgs, json: bool) -> CommandResult {
    let file = args.start.config.as_deref().map_or(Ok(RackSwitchOptions::default()), read_options);
    let settings = settings(args.options.clone().or(file.map_err(Failure::Usage)?))?;
    if args.start.background {
        let name = &settings.name;
        return in_background(name, &format!("{name} joins"), |directory| {
            status_of(directory, RackRole::Switch, name).ok().map(|status: Box<SwitchStatus>| status.pid)
        });
    }
    let directory = run_directory()?;
    let netlink = Netlink::open().map_err(usage)?;
    let interfaces = settings.interfaces.iter().map(|name| interface(&netlink, name, Failure::Outside));
    let interfaces = interfaces.collect::<Result<Vec<_>, _>>()?;
    interfaces.iter().try_for_each(|interface| check_port(&settings, &netlink, interface))?;
    let reserve = reservations(&settings, &interfaces)?;
    let _claims: Vec<InterfaceClaim> =
        interfaces.iter().map(|link| claim(link, Failure::Outside)).collect::<Result<_, _>>()?;
    let outside = |error: std::io::Error| Failure::Outside(error.to_string());
    let (switch, requests) = mailbox().map_err(outside)?;
    let stopper = switch.another().map_err(outside)?;
    // Failing to listen leaves Ctrl-C to end it at once.
    let _ = ctrlc::set_handler(move || {
        let _ = stopper.send(SwitchRequest::Stop);
    });
    let opened = open_ports(&interfaces, settings.rate, settings.buffer);
    let (mut ports, sockets) = opened.map_err(|trouble| Failure::Outside(trouble.0))?;
    let RackSwitchSettings { name, rate, aging, bound, trusted, metrics, .. } = settings;
    trusted.into_iter().for_each(|port| ports[port].trusts_priority = true);
    say(&format!("{name} joins {} at {rate} a port; Ctrl-C ends it", settings.interfaces.join(", ")));
    let config = SwitchConfig { name, ports, aging, bound, reserve };
    let status = run_reporting(|tell| {
        SwitchDaemon { config, sockets, directory: &directory, metrics, tell }.run(&switch, requests)
    })?;
    print(json, &status, || describe_switch(&status))
}

/// Checks the options and makes settings of them.
fn settings(options: RackSwitchOptions) -> Result<RackSwitchSettings, Failure> {
    let refused = |what: &str| Err(Failure::Usage(what.to_owned()));
    check_interfaces(&options.interfaces)?;
    let Some(rate) = options.rate else {
        return refused("--rate: expected the rate of each port, here or as `rate` in the file");
    };
    let reserves = options.k.is_some() || options.contexts.is_some() || options.ingress_share.is_some();
    if options.scheduler.is_none() && reserves {
        return refused("--k, --contexts and --ingress-share are about reservations: expected --scheduler with them");
    }
    let name = options.name.unwrap_or_else(|| "switch0".to_owned());
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || name.len() > 32 || !name.bytes().all(is_plain) || name.starts_with('.') {
        return refused(&format!("--name {name}: expected up to 32 letters, digits, - or _"));
    }
    let address = |text: &str| parse_address(text).ok_or(format!("metrics: '{text}': expected PORT or ADDR:PORT"));
    Ok(RackSwitchSettings {
        name,
        bound: bound(&options.bind, &options.interfaces)?,
        trusted: options
            .trust_priority
            .iter()
            .map(|port| port_number("--trust-priority", port, &options.interfaces))
            .collect::<Result<_, _>>()?,
        interfaces: options.interfaces,
        rate,
        buffer: options.buffer.unwrap_or(Bytes::new(128_000)),
        reserve: options.scheduler.map(|scheduler| (scheduler.into(), options.k.unwrap_or(K), options.contexts)),
        ingress_share: options.ingress_share.unwrap_or(Prob::literal(0.0)),
        aging: options.aging.unwrap_or(Span::from_ms(300_000)),
        metrics: options.metrics.as_deref().map(address).transpose().map_err(Failure::Usage)?,
    })
}

/// The number of a port by the name of its interface.
fn port_number(option: &str, port: &str, interfaces: &[String]) -> Result<usize, Failure> {
    let number = interfaces.iter().position(|interface| interface == port);
    number.ok_or_else(|| {
        Failure::Usage(format!("{option}: {port} is no port of this switch: expected one of {}", interfaces.join(", ")))
    })
}

/// Addresses that belong to a port, with its number.
fn bound(bind: &[String], interfaces: &[String]) -> Result<Vec<([u8; 6], usize)>, Failure> {
    if bind.len() > MOST_BOUND {
        return Err(Failure::Usage(format!("--bind: {} addresses: expected at most {MOST_BOUND}", bind.len())));
    }
    let mut bound: Vec<([u8; 6], usize)> = Vec::with_capacity(bind.len());
    for text in bind {
        let refused = |why: &str| Failure::Usage(format!("--bind {text}: {why}"));
        let (port, address) = text.split_once('=').ok_or_else(|| refused("expected PORT=MAC"))?;
        let number = port_number("--bind", port, interfaces)?;
        let Mac(address) = address.parse().map_err(|error: ParseError| refused(&error.to_string()))?;
        if address == SWITCH_ADDRESS {
            return Err(refused("this is the switch's own address; expected a host's"));
        }
        if bound.iter().any(|(known, _)| *known == address) {
            return Err(refused("the address is bound already; expected each address once"));
        }
        bound.push((address, number));
    }
    Ok(bound)
}

/// Agreement of the switch with hosts that reserve; `None` if nobody is to reserve.
fn reservations(settings: &RackSwitchSettings, interfaces: &[InterfaceInfo]) -> Result<Option<RackParams>, Failure> {
    let Some((scheduler, k, contexts)) = settings.reserve else { return Ok(None) };
    let wire_mtu = interfaces.iter().map(|interface| interface.mtu).max().unwrap_or(0);
    let agreement = RackAgreement { scheduler, rate: settings.rate, wire_mtu, k, contexts };
    let params = agreement.at_sharing_switch(interfaces.len() as u16, settings.buffer, settings.ingress_share);
    params.map(Some).map_err(|error| Failure::Usage(error.to_string()))
}

fn check_interfaces(interfaces: &[String]) -> CommandResult {
    if interfaces.len() < 2 {
        return Err(Failure::Usage("expected two interfaces or more, here or as `interfaces` in the file".to_owned()));
    }
    match interfaces.iter().enumerate().find(|(at, name)| interfaces[..*at].contains(name)) {
        Some((_, name)) => Err(Failure::Usage(format!("{name} is given twice: expected different interfaces"))),
        None => Ok(()),
    }
}

/// A port must be able to do what is asked of it.
fn check_port(settings: &RackSwitchSettings, netlink: &Netlink, interface: &InterfaceInfo) -> CommandResult {
    let longest = Bytes::new(u64::from(on_wire(longest_on(interface.mtu) as u32 + 4)));
    if settings.buffer < longest {
        return Err(Failure::Usage(format!(
            "--buffer {}: expected at least {}, one full frame of {} (MTU {})",
            settings.buffer, longest, interface.name, interface.mtu
        )));
    }
    match interface_speed(netlink, &interface.name) {
        Some(speed) if speed < settings.rate => Err(Failure::Usage(format!(
            "--rate {}: {} carries only {speed}; ports must have the same rate",
            settings.rate, interface.name
        ))),
        _ => Ok(()),
    }
}
