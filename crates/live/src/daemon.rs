//! `hitless link up`: a link, its control socket and its metrics, until asked to stop.
//!
//! The loop has a thread to itself, the caller's; the others only wait. However the loop ends, what was changed is put
//! back; if the whole program is killed, the next one finds notes of it.

use std::io::{self, PipeReader};

use crate::config::LinkConfig;
use crate::control::{ControlSocket, RunDirectory};
use crate::metrics;
use crate::run::{self, Handle, Loop};
use crate::standin::{self, Trouble};
use crate::status::Status;

/// Runs a link. `tell` hears what happens, a line each; `started` gets a way to ask things of it.
pub fn run(
    config: &LinkConfig,
    directory: &RunDirectory,
    tell: &mut dyn FnMut(&str),
    started: impl FnOnce(Handle) -> io::Result<()>,
) -> Result<Status, Trouble> {
    // Everything that can fail without touching the network comes first.
    standin::check_interface(&config.interface)?;
    let in_directory = |error: io::Error| {
        let text = format!("{}: {error}", directory.path().display());
        match error.kind() {
            io::ErrorKind::PermissionDenied => standin::no_permission(&text),
            _ => Trouble(text),
        }
    };
    directory.make().map_err(in_directory)?;
    let lock = directory.lock(&config.name, &config.interface).map_err(in_directory)?;
    let _lock = lock.map_err(|taken| already(config, taken))?;
    let listener = match config.metrics {
        Some(address) => {
            Some(metrics::bind(address).map_err(|error| Trouble(format!("metrics on {address}: {error}")))?)
        }
        None => None,
    };
    if let Some(cpu) = config.pin {
        crate::poll::pin(cpu).map_err(|error| Trouble(format!("--pin {cpu}: {error}")))?;
    }
    let pipes = (|| Ok((run::handle()?, io::pipe()?)))().map_err(|error: io::Error| Trouble(error.to_string()))?;
    let ((handle, requests), (stop, stopper)) = pipes;
    let (link, identity, mut stand_in) = standin::bring_up(config, Some(directory))?;
    for remark in &stand_in.remarks {
        tell(remark);
    }
    let waits = if config.dormant { "dormant until asked for protection" } else { "looking for its peer" };
    tell(&format!(
        "{} stands in for {}: MTU {}, {} and {}; {waits}",
        identity.name, identity.interface, identity.mtu, identity.host_backend, identity.wire_backend
    ));
    let served = (|| {
        let control = ControlSocket::bind(directory, &config.name)?;
        let [for_control, for_metrics] = [handle.another()?, handle.another()?];
        let stop_too = stop.try_clone()?;
        started(handle)?;
        notify(&[sd_notify::NotifyState::Ready, sd_notify::NotifyState::Status(waits)]);
        std::thread::scope(|scope| {
            scope.spawn(|| control.serve(&for_control, &stop));
            if let Some(listener) = &listener {
                scope.spawn(|| serve_metrics(listener, &for_metrics, &stop_too));
            }
            let mut heard = |text: &str| {
                notify(&[sd_notify::NotifyState::Status(text)]);
                tell(text);
            };
            let ended = Loop::new(link, identity, requests, &mut heard).run(!config.dormant);
            notify(&[sd_notify::NotifyState::Stopping]);
            drop(stopper);
            ended
        })
    })();
    for what in stand_in.down() {
        tell(&format!("could not be put back: {what}"));
    }
    served.map_err(|error| Trouble(format!("{}: {error}", config.interface)))
}

/// Somebody else has the interface, or the name.
fn already(config: &LinkConfig, taken: &str) -> Trouble {
    Trouble(if taken == config.interface {
        format!("{taken} is protected already; `hitless link status` shows it")
    } else {
        format!("{taken} is up already, for another interface; choose another name with --name")
    })
}

fn serve_metrics(listener: &std::net::TcpListener, link: &Handle, stop: &PipeReader) {
    // Metrics are the least important thing here: if they end, the link goes on.
    let _ = metrics::serve_link(listener, link, stop);
}

/// Tells the service manager, if there is one.
fn notify(states: &[sd_notify::NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}
