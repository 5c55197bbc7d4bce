//! `hitless radar`: which packets were lost, where and why.

mod acl;
mod collect;
mod collectors;
mod delay;
mod flows;
mod flows_collect;
mod flows_meter;
mod losses;
mod map;
mod meter;

use std::io::{self, PipeReader};
use std::path::Path;
use std::time::Duration;

use ::meter::digests::{CollectorAddress, RedisCollectorAddress};
use bus::key::OrderKey;

use crate::args::{FlowsCommand, RadarCommand};
use crate::output::{CommandResult, Failure};

pub(crate) fn run(command: &RadarCommand, json: bool) -> CommandResult {
    match command {
        RadarCommand::Losses(args) => losses::run(args, json),
        RadarCommand::Delay(args) => delay::run(args, json),
        RadarCommand::Meter(args) => meter::run(args, json),
        RadarCommand::Collect(args) => collect::run(args, json),
        RadarCommand::Collectors(args) => collectors::run(args, json),
        RadarCommand::Flows(args) => match &args.command {
            None => flows::run(args, json),
            Some(FlowsCommand::Meter(args)) => flows_meter::run(args, json),
            Some(FlowsCommand::Collect(args)) => flows_collect::run(args, json),
        },
        RadarCommand::Map(args) => map::run(args, json),
        RadarCommand::Acl(args) => acl::run(args, json),
    }
}

/// Checks a time limit that a user wrote; `None` means without end.
fn seconds(seconds: Option<f64>) -> Result<Option<Duration>, Failure> {
    let wrong = |seconds: f64| Failure::Usage(format!("--seconds {seconds}: expected a number above 0"));
    let checked = |seconds: f64| match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(wrong(seconds)),
    };
    seconds.map(checked).transpose()
}

/// Address of a collector, or of the server on which collectors announce themselves.
fn place(text: &str, ca: Option<&Path>) -> Result<CollectorAddress, String> {
    CollectorAddress::parse(text, ca).map_err(|error| error.to_string())
}

/// A Redis server that a user wrote for an option.
fn redis(option: &str, text: &str, ca: Option<&Path>) -> Result<RedisCollectorAddress, Failure> {
    match place(text, ca) {
        Ok(CollectorAddress::Redis(place)) => Ok(*place),
        Ok(CollectorAddress::Tcp(text)) => {
            Err(Failure::Usage(format!("{option} {text}: expected redis://HOST[:PORT]")))
        }
        Err(why) => Err(Failure::Usage(format!("{option} {why}"))),
    }
}

/// Key that meters and collector share, if any.
fn key(path: Option<&Path>) -> Result<Option<OrderKey>, Failure> {
    path.map(|path| OrderKey::read(path).map_err(|why| Failure::Usage(format!("--{why}")))).transpose()
}

/// Readable once the program is to end.
fn stop_on_signal() -> Result<PipeReader, Failure> {
    let (stop, stopper) = io::pipe().map_err(|error| Failure::Outside(error.to_string()))?;
    let mut stopper = Some(stopper);
    let listening = ctrlc::set_handler(move || drop(stopper.take()));
    listening.map_err(|error| Failure::Outside(error.to_string()))?;
    Ok(stop)
}

/// Name of the host from the kernel.
fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}
