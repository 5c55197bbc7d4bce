//! `hitless rack join`: arguments checked, and the daemon run.

use daemon::options::read_options;
use link::config::LinkOptions;
use linux::mailbox::mailbox;
use rack::control::RackRole;
use rack::host::{HostDaemon, HostRequest, HostStatus, JoinConfig};
use reserve::SchedulerKind;

use super::describe_host;
use super::members::status_of;
use crate::args::{RackJoinArgs, RackJoinOptions};
use crate::background::{in_background, keeper, run_directory, run_reporting};
use crate::output::{CommandResult, Failure, print};

/// Default name of a stand-in.
pub(super) const NAME: &str = "rack0";
/// Default K, which is the paper's.
pub(super) const K: u8 = 4;

pub(super) fn run(args: &RackJoinArgs, json: bool) -> CommandResult {
    let file = args.start.config.as_deref().map_or(Ok(RackJoinOptions::default()), read_options);
    let config = config(args.options.clone().or(file.map_err(Failure::Usage)?))?;
    let name = &config.stand_in.name;
    if args.start.background {
        return in_background(name, &format!("{name} stands in for"), |directory| {
            status_of(directory, RackRole::Host, name).ok().map(|status: Box<HostStatus>| status.pid)
        });
    }
    let outside = |error: std::io::Error| Failure::Outside(error.to_string());
    let (host, requests) = mailbox().map_err(outside)?;
    let stopper = host.another().map_err(outside)?;
    // From the first moment on: half-made is worse than made and taken down again.
    ctrlc::set_handler(move || _ = stopper.send(HostRequest::Stop))
        .map_err(|error| Failure::Outside(error.to_string()))?;
    let directory = run_directory()?;
    let keeper = keeper(name, &directory)?;
    let status = run_reporting(|tell| {
        let daemon = HostDaemon { config: &config, directory: &directory, keeper: &keeper, tell };
        daemon.run(&host, requests)
    })?;
    print(json, &status, || describe_host(&status))
}

fn config(options: RackJoinOptions) -> Result<JoinConfig, Failure> {
    if options.interface.is_none() {
        return Err(Failure::Usage(
            "which interface? `hitless rack join IFACE`, or `interface` in the file".to_owned(),
        ));
    }
    let link = LinkOptions {
        interface: options.interface,
        name: Some(options.name.unwrap_or_else(|| NAME.to_owned())),
        rate: options.rate.map(|rate| rate.to_string()),
        mtu: options.mtu,
        backend: options.backend,
        take_over: options.take_over,
        keep_name: options.keep_name,
        wait: options.wait,
        metrics: options.metrics,
        ..LinkOptions::default()
    };
    let stand_in = link.check().map_err(Failure::Usage)?.stand_in;
    let scheduler = options.scheduler.map_or(SchedulerKind::Late, SchedulerKind::from);
    Ok(JoinConfig { stand_in, scheduler, k: options.k.unwrap_or(K), contexts: options.contexts })
}
