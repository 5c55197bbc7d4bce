//! The switches and hosts of racks that run here, by their names.

use std::io;
use std::time::Duration;

use daemon::RunDirectory;
use daemon::options::read_options;
use rack::control::{RackControlReply, RackControlRequest, RackRole, ask, control_path, names};
use rack::host::HostStatus;
use rack::switch::SwitchStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::join::NAME;
use crate::args::{RackJoinOptions, RackLeaveArgs};
use crate::link::{is_restarting, put_back};
use crate::output::{CommandResult, Failure, say};

/// State of a switch, or of a host that has joined.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum MemberStatus {
    Switch(Box<SwitchStatus>),
    Host(Box<HostStatus>),
}

impl MemberStatus {
    #[cfg(feature = "tui")]
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Switch(status) => &status.name,
            Self::Host(status) => &status.name,
        }
    }
}

pub(super) fn status(given: Option<&str>) -> Result<MemberStatus, Failure> {
    let directory = RunDirectory::of_this_system();
    let (role, name) = find(&directory, given)?;
    match role {
        RackRole::Switch => status_of(&directory, role, &name).map(MemberStatus::Switch),
        RackRole::Host => status_of(&directory, role, &name).map(MemberStatus::Host),
    }
}

pub(super) fn status_of<S: DeserializeOwned>(
    directory: &RunDirectory,
    role: RackRole,
    name: &str,
) -> Result<Box<S>, Failure> {
    match ask(directory, role, name, RackControlRequest::Status) {
        Ok(RackControlReply::Status(status)) => Ok(status),
        Ok(RackControlReply::Refused(why)) => Err(Failure::Outside(format!("{name}: {why}"))),
        Ok(RackControlReply::Done) => Err(Failure::Outside(format!("{name} gave no status"))),
        Err(error) => Err(unreachable(role, name, &error)),
    }
}

/// Ends a switch, or takes a host out of its rack and puts back what was changed for it.
pub(super) fn leave(args: &RackLeaveArgs) -> CommandResult {
    if args.unless_restarting && is_restarting(|name| std::env::var(name).ok()) {
        return Ok(());
    }
    let directory = RunDirectory::of_this_system();
    let in_file = args.config.as_deref().map(read_options::<RackJoinOptions>).transpose().map_err(Failure::Usage)?;
    let in_file = in_file.map(|options| options.name.unwrap_or_else(|| NAME.to_owned()));
    if let Some(name) = in_file.as_ref().filter(|_| args.unless_restarting)
        && !names(&directory, RackRole::Host).is_ok_and(|names| names.contains(name))
    {
        // A service that stopped in order has nothing left to put back.
        return Ok(());
    }
    let (role, name) = find(&directory, in_file.as_deref().or(args.which.name.as_deref()))?;
    let asked = ask::<serde_json::Value>(&directory, role, &name, RackControlRequest::Down);
    match (asked, role) {
        (Ok(RackControlReply::Refused(why)), _) => Err(Failure::Outside(format!("{name}: {why}"))),
        (Ok(_), RackRole::Switch) => Ok(()),
        (Ok(_), RackRole::Host) => wait_until_left(&directory, &name),
        (Err(error), RackRole::Host) if is_gone(&error) => {
            let any = put_back(&directory, &name)?;
            let _ = std::fs::remove_file(control_path(&directory, role, &name));
            directory.tidy(&name);
            match any {
                true => say(&format!("{name}: its daemon was gone; what it had changed is put back")),
                false => return Err(unreachable(role, &name, &error)),
            }
            Ok(())
        }
        (Err(error), _) => Err(unreachable(role, &name, &error)),
    }
}

fn wait_until_left(directory: &RunDirectory, name: &str) -> CommandResult {
    for _ in 0..300 {
        if !control_path(directory, RackRole::Host, name).exists() && !directory.notes(name).exists() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(Failure::Outside(format!("{name} is still there after three seconds; ask again")))
}

/// The one that is named, or the only one there is.
fn find(directory: &RunDirectory, given: Option<&str>) -> Result<(RackRole, String), Failure> {
    let mut all = Vec::new();
    for role in [RackRole::Switch, RackRole::Host] {
        let found = names(directory, role).map_err(|error| unreachable(role, given.unwrap_or("racks"), &error))?;
        all.extend(found.into_iter().map(|name| (role, name)));
    }
    match (given, all.as_slice()) {
        (Some(given), all) => {
            let found = all.iter().find(|(_, name)| name == given).cloned();
            Ok(found.unwrap_or((RackRole::Switch, given.to_owned())))
        }
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(Failure::Outside(
            "no switch runs here, and no host has joined one; `hitless rack switch IFACE…` starts a switch, \
             `hitless rack join IFACE` joins one"
                .to_owned(),
        )),
        (None, all) => {
            let names: Vec<&str> = all.iter().map(|(_, name)| name.as_str()).collect();
            Err(Failure::Usage(format!("which one? these run: {}", names.join(", "))))
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof)
}

fn unreachable(role: RackRole, name: &str, error: &io::Error) -> Failure {
    Failure::Outside(match (error.kind(), role) {
        (io::ErrorKind::PermissionDenied, _) => format!("{name}: permission denied; ask as root, or with sudo"),
        (_, RackRole::Switch) if is_gone(error) => format!("{name}: no switch of this name runs here"),
        (_, RackRole::Host) if is_gone(error) => format!(
            "{name}: its daemon is gone; `hitless rack join IFACE` adopts it, `hitless rack leave {name}` puts everything back"
        ),
        _ => format!("{name}: {error}"),
    })
}
