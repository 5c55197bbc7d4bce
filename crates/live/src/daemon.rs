//! `hitless link up`: a link, its control socket and its metrics, until asked to stop.
//!
//! The loop has a thread to itself, the caller's; the others only wait. Whatever ends it, what was changed is put
//! back.

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
    let to_trouble = |error: io::Error| Trouble(error.to_string());
    let (link, identity, mut stand_in) = standin::bring_up(config, Some(directory))?;
    for remark in &stand_in.remarks {
        tell(remark);
    }
    tell(&format!(
        "{} stands in for {}: MTU {}, {} and {}; looking for its peer",
        identity.name, identity.interface, identity.mtu, identity.host_backend, identity.wire_backend
    ));
    let served = (|| {
        let control = ControlSocket::bind(directory, &config.name).map_err(to_trouble)?;
        let listener = match config.metrics {
            Some(address) => {
                Some(metrics::bind(address).map_err(|error| Trouble(format!("metrics on {address}: {error}")))?)
            }
            None => None,
        };
        let (handle, requests) = run::handle().map_err(to_trouble)?;
        let for_control = handle.another().map_err(to_trouble)?;
        let for_metrics = handle.another().map_err(to_trouble)?;
        started(handle).map_err(to_trouble)?;
        if let Some(cpu) = config.pin {
            crate::poll::pin(cpu).map_err(|error| Trouble(format!("--pin {cpu}: {error}")))?;
        }
        let (stop, stopper) = io::pipe().map_err(to_trouble)?;
        let stop_too = stop.try_clone().map_err(to_trouble)?;
        notify(&[sd_notify::NotifyState::Ready, sd_notify::NotifyState::Status("looking for the peer")]);
        std::thread::scope(|scope| {
            scope.spawn(|| control.serve(&for_control, &stop));
            if let Some(listener) = &listener {
                scope.spawn(|| serve_metrics(listener, &for_metrics, &stop_too));
            }
            let mut heard = |text: &str| {
                notify(&[sd_notify::NotifyState::Status(text)]);
                tell(text);
            };
            let ended = Loop::new(link, identity, requests, &mut heard).run(true);
            notify(&[sd_notify::NotifyState::Stopping]);
            drop(stopper);
            ended.map_err(|error| Trouble(format!("{}: {error}", config.interface)))
        })
    })();
    let failed = stand_in.down();
    for what in failed {
        tell(&format!("could not be put back: {what}"));
    }
    served
}

fn serve_metrics(listener: &std::net::TcpListener, link: &Handle, stop: &PipeReader) {
    // Metrics are the least important thing here: if they end, the link goes on.
    let _ = metrics::serve(listener, link, stop);
}

/// Tells the service manager, if there is one.
fn notify(states: &[sd_notify::NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}
