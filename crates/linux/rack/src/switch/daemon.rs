//! `hitless rack switch`: a switch, its control socket and its metrics, until asked to stop.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use daemon::RunDirectory;
use daemon::service;
use daemon::{DaemonEnd, bind_metrics};
use linux::SystemError;
use linux::mailbox::{Mailbox, MailboxReader};
use linux::net::InterfaceInfo;
use linux::packet::{PacketSocket, PacketSocketOptions};
use standin::{longest_on, wire_socket};
use units::{Bytes, Rate};

use super::{PortConfig, RING_FRAMES, RackSwitch, SwitchConfig, SwitchRequest, SwitchStatus, metrics};
use crate::control::{self, RackRole};
use crate::metrics::serve_status;

/// Bytes that a socket may hold for its interface, beside the port's own buffer.
const SEND_BUFFER: usize = 4 << 20;

/// The ports on these interfaces: what each can do, and its socket, in the namespace of the calling thread. All are opened
/// at once, because for each one the kernel waits for all processors, and a switch that was killed is to be back soon.
pub fn open_ports(
    interfaces: &[InterfaceInfo],
    rate: Rate,
    buffer: Bytes,
) -> Result<(Vec<PortConfig>, Vec<PacketSocket>), SystemError> {
    let opened: Vec<_> = std::thread::scope(|scope| {
        let open = |interface| scope.spawn(move || open_port(interface, rate, buffer));
        let opening: Vec<_> = interfaces.iter().map(open).collect();
        let panicked = |_| Err(SystemError("a port could not be opened".to_owned()));
        opening.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    opened.into_iter().collect::<Result<Vec<_>, _>>().map(|ports| ports.into_iter().unzip())
}

fn open_port(interface: &InterfaceInfo, rate: Rate, buffer: Bytes) -> Result<(PortConfig, PacketSocket), SystemError> {
    let options =
        PacketSocketOptions { vnet: true, send_buffer: SEND_BUFFER, ..wire_socket(interface.mtu, RING_FRAMES) };
    let socket = PacketSocket::open(interface.index, &options).and_then(PacketSocket::with_super_frames);
    let socket = socket.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => linux::no_permission(&format!("{}: {error}", interface.name)),
        _ => SystemError(format!("{}: {error}", interface.name)),
    })?;
    let longest = longest_on(interface.mtu);
    Ok((PortConfig { name: interface.name.clone(), rate, buffer, longest, trusts_priority: false }, socket))
}

/// A switch that is about to run.
pub struct SwitchDaemon<'a> {
    /// Configuration of the switch.
    pub config: SwitchConfig,
    /// Sockets on the interfaces of the ports, in their order.
    pub sockets: Vec<PacketSocket>,
    /// Directory of its control socket.
    pub directory: &'a RunDirectory,
    /// Address at which Prometheus finds the switch.
    pub metrics: Option<SocketAddr>,
    /// Hears what happens, a line each.
    pub tell: &'a mut dyn FnMut(&str),
}

impl fmt::Debug for SwitchDaemon<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SwitchDaemon").field("config", &self.config).finish_non_exhaustive()
    }
}

impl SwitchDaemon<'_> {
    /// Forwards frames until asked to stop; the last status.
    pub fn run(
        self,
        mailbox: &Mailbox<SwitchRequest>,
        requests: MailboxReader<SwitchRequest>,
    ) -> Result<SwitchStatus, DaemonEnd> {
        let outside = |what: &str, error: io::Error| DaemonEnd::Trouble(format!("{what}: {error}"));
        let name = self.config.name.clone();
        let switch =
            RackSwitch::new(self.config, self.sockets).map_err(|error| DaemonEnd::Arguments(error.to_string()))?;
        let listener = bind_metrics(self.metrics)?;
        let path = self.directory.path().display().to_string();
        let made = self.directory.make().map_err(|error| outside(&path, error))?;
        made.iter().for_each(|line| (self.tell)(line));
        let control = control::bind(self.directory, RackRole::Switch, &name).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                DaemonEnd::Trouble(format!("{name} runs already; choose another name with --name"))
            }
            _ => outside(&path, error),
        })?;
        let (stop, stopper) = io::pipe().map_err(|error| outside("a pipe", error))?;
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| control::listen(&control, mailbox, &stop));
            scope.spawn(|| service::feed_watchdog(&stop, || mailbox.ask(SwitchRequest::Status).is_ok()));
            if let Some(listener) = &listener {
                // Metrics are the least important thing here: if they end, the switch goes on.
                scope.spawn(|| serve_status(listener, mailbox, &stop, metrics::text));
            }
            service::report_ready("forwards frames");
            let ended = switch.run(requests, self.tell);
            service::report_stopping();
            drop(stopper);
            ended
        });
        drop(control);
        match ended {
            Ok(_) => self.directory.tidy(&name),
            // Its log says why.
            Err(_) => self.directory.sweep(),
        }
        ended.map_err(|error| DaemonEnd::Trouble(error.to_string()))
    }
}
