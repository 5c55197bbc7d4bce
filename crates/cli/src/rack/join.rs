//! `hitless rack join`: arguments checked, and the daemon run.

use std::process::Command;

use link::config::LinkOptions;
use link::control::RunDirectory;
use link::daemon::DaemonEnd;
use linux::mailbox::mailbox;
use rack::host::{HostDaemon, HostRequest, JoinConfig};

use super::describe_host;
use crate::args::RackJoinArgs;
use crate::output::{CommandResult, Failure, print, say};

pub(super) fn run(args: &RackJoinArgs, json: bool) -> CommandResult {
    let config = config(args)?;
    let outside = |error: std::io::Error| Failure::Outside(error.to_string());
    let (host, requests) = mailbox().map_err(outside)?;
    let stopper = host.another().map_err(outside)?;
    // From the first moment on: half-made is worse than made and taken down again.
    ctrlc::set_handler(move || _ = stopper.send(HostRequest::Stop))
        .map_err(|error| Failure::Outside(error.to_string()))?;
    let directory = RunDirectory::of_this_system();
    let program = std::env::current_exe().map_err(outside)?;
    let keeper = || {
        let mut command = Command::new(&program);
        command.args(["link", "keep", &config.link.name, "--directory"]).arg(directory.path());
        command
    };
    let daemon = HostDaemon { config: &config, directory: &directory, keeper: &keeper, tell: &mut say };
    let status = daemon.run(host, requests).map_err(|ended| match ended {
        DaemonEnd::Arguments(what) => Failure::Usage(what),
        DaemonEnd::Trouble(what) => Failure::Outside(what),
    })?;
    print(json, &status, || describe_host(&status))
}

fn config(args: &RackJoinArgs) -> Result<JoinConfig, Failure> {
    let options = LinkOptions {
        interface: Some(args.interface.clone()),
        name: Some(args.name.clone()),
        rate: args.rate.map(|rate| rate.to_string()),
        mtu: args.mtu,
        backend: Some(args.backend.clone()),
        take_over: args.take_over,
        ..LinkOptions::default()
    };
    let link = options.check().map_err(Failure::Usage)?;
    Ok(JoinConfig { link, scheduler: args.scheduler.into(), k: args.k, contexts: args.contexts })
}
