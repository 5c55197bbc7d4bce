//! Two hosts and a wire on one machine, for demonstrations, benchmarks and tests.
//!
//! ```text
//!   left            middle              right
//!   w0 ───────────▶ x0 ──loss, rate──▶ x1 ───────────▶ w1
//! ```
//!
//! Three network namespaces without names: they end with the program, however it ends, and nothing is left
//! behind. The wire is in the kernel (a random filter on ingress, forwarding, a token bucket), so that it is not
//! the bottleneck; its counters are the truth. For what the kernel cannot do, such as losses in bursts, a
//! [`Medium`](emulator::Medium) stands there instead, on a thread of this program ([`Stage::carry`]).

mod bridge;
mod carrier;
mod graph;
mod guest;
mod hosts;
mod rack;

pub(crate) use bridge::WitnessedBridge;
pub use bridge::{BridgeKind, BridgeWitness, BridgedStage, FloodedFrames};
pub(crate) use carrier::CarrierCounts;
pub use carrier::EmulatedWire;
pub use graph::{GraphStage, cable_end};
pub use guest::GuestHost;
pub(crate) use hosts::inner;
pub use hosts::{address, mac, plug};
pub(crate) use rack::{RackStage, StageMember, StageSwitch};

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::Scope;

use serde::Serialize;
use units::{Bytes, Prob, Rate, Span, StopFlag};

use emulator::{DirectionConfig, DirectionCounters};
use link::bring_up;
use link::config::LinkConfig;
use link::run::{self, LinkHandle, Loop, LoopRequest};
use link::status::LinkStatus;
use linux::SystemError;
use linux::net::{self, InterfaceAddress, Namespace, Netlink, Qdisc};
use linux::packet::PacketSocket;

use hosts::{CabledHosts, give_address_among, lay, wait_until_running};

/// Frames that crossed the wire, both ways together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WireCount {
    pub offered: u64,
    pub dropped: u64,
}

impl std::ops::Add for WireCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { offered: self.offered + other.offered, dropped: self.dropped + other.dropped }
    }
}

impl std::ops::Sub for WireCount {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self { offered: self.offered - before.offered, dropped: self.dropped - before.dropped }
    }
}

/// The port that servers of a stage listen on.
pub const PORT: u16 = 7_700;

/// Every end of a stage: what is sent here needs no question about an address before it.
pub(crate) fn everyone() -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 77, 0, 255))
}

/// Most bytes that may wait for a wire of this rate.
pub fn queue_of(rate: Rate) -> Bytes {
    rate.bytes_in(Span::from_ms(1)).max(Bytes::new(64 << 10))
}

/// Gives an interface of an end its address, and the way to the other end.
pub fn give_address(namespace: &Namespace, end: usize, interface: &str) -> net::Result<()> {
    give_address_among(namespace, end, 2, interface)
}

/// Runs a server until `stop` is set.
pub fn serve<'scope>(
    namespace: &Namespace,
    scope: &'scope Scope<'scope, '_>,
    stop: &'scope StopFlag,
) -> Result<(), SystemError> {
    let listener = namespace.with(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)))?;
    let listener = listener.map_err(|error| SystemError(format!("listen on port {PORT}: {error}")))?;
    scope.spawn(move || {
        // A connection that fails is its client's to report.
        let _ = load::serve(listener, stop);
    });
    Ok(())
}

/// Two hosts joined by one cable, with nothing in between: `w0` on the left, `w1` on the right, without addresses.
pub fn cable(mtu: u32) -> net::Result<[Namespace; 2]> {
    let ends = [Namespace::new()?, Namespace::new()?];
    Namespace::new()?.with(|| -> net::Result<()> {
        let netlink = Netlink::open()?;
        netlink.add_veth(plug(0), plug(1))?;
        (0..2).try_for_each(|end| netlink.set_namespace(netlink.existing_link(plug(end))?.index, &ends[end]))
    })??;
    for (end, namespace) in ends.iter().enumerate() {
        namespace.with(|| -> net::Result<()> {
            let netlink = Netlink::open()?;
            let link = netlink.existing_link(plug(end))?;
            netlink.set_mac(link.index, mac(end))?;
            netlink.set_mtu(link.index, mtu)?;
            netlink.set_offloads(plug(end), false)?;
            netlink.set_up(link.index, true)
        })??;
    }
    Ok(ends)
}

#[derive(Debug)]
pub struct Stage {
    pub ends: [Namespace; 2],
    middle: Mutex<Netlink>,
    /// Indices of the wire's two ends, in the middle; they change when an end is plugged in again.
    wire: Mutex<[u32; 2]>,
    /// Namespace of the wire.
    between: Namespace,
    mtu: u32,
    /// Counts of a medium in the middle; `None` if the wire is in the kernel.
    carried: Option<CarrierCounts>,
}

impl Stage {
    /// Two ends joined by a clean wire without a rate limit. Call it in a namespace that may be changed.
    pub fn new(mtu: u32) -> net::Result<Self> {
        let stage = Self { carried: None, ..Self::unjoined(mtu)? };
        stage.join()?;
        Ok(stage)
    }

    /// Joins the ends of the wire: frames that arrive at one leave at the other.
    fn join(&self) -> net::Result<()> {
        let (middle, wire) = (self.middle(), self.wire());
        (0..2).try_for_each(|end| middle.forward(wire[end], wire[1 - end]))
    }

    /// Two ends that nothing joins until [`Stage::carry`] does.
    pub fn unjoined(mtu: u32) -> net::Result<Self> {
        let CabledHosts { hosts, between, middle, ports } = CabledHosts::new(2, mtu)?;
        let (Ok(ends), Ok(wire)) = (<[_; 2]>::try_from(hosts), <[_; 2]>::try_from(ports)) else {
            unreachable!("two were asked for")
        };
        let (middle, wire) = (Mutex::new(middle), Mutex::new(wire));
        Ok(Self { ends, middle, wire, between, mtu, carried: Some(CarrierCounts::default()) })
    }

    fn wire(&self) -> [u32; 2] {
        *self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the carrier from an end's interface, as a cable that is pulled out does, or gives it back. For a wire in the
    /// kernel.
    pub(crate) fn set_carrier(&self, end: usize, on: bool) -> net::Result<()> {
        self.middle().set_up(self.wire()[end], on)
    }

    /// Waits until frames can leave the wire towards an end. Its port has no queue for as long as that end's interface is down, and
    /// a busy kernel gives it one back seconds after the interface is up.
    pub(crate) fn wait_for_port(&self, end: usize) -> net::Result<()> {
        self.middle().wait_until_running(self.wire()[end])
    }

    /// Deletes an end's interface, as a driver that is unloaded does.
    pub(crate) fn unplug(&self, end: usize) -> net::Result<()> {
        self.ends[end].with(|| {
            let netlink = Netlink::open()?;
            netlink.delete_link(netlink.existing_wire_of(plug(end))?.index)
        })?
    }

    /// Makes an end's interface again, with its address, after [`Stage::unplug`]. For a wire in the kernel.
    pub(crate) fn replug(&self, end: usize) -> net::Result<()> {
        self.wait_until_free(end)?;
        let index = lay(&self.middle(), &self.ends[end], end, self.mtu, |netlink, index| {
            netlink.add_address(index, &InterfaceAddress::new(address(end), 24))
        })?;
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)[end] = index;
        self.join()?;
        wait_until_running(&self.middle(), index, &self.ends[end], end)
    }

    /// Puts a bridge in the place of the wire, with a third host at it. For a wire in the kernel.
    pub(crate) fn put_bridge(&self) -> Result<(WitnessedBridge, BridgeWitness), SystemError> {
        let (middle, wire) = (self.middle(), self.wire());
        for index in wire {
            middle.take_up_wire(index)?;
        }
        let bridge = WitnessedBridge::new(&middle, &wire, self.mtu, BridgeKind::default())?;
        let witness = bridge.witness(&self.between, self.mtu)?;
        Ok((bridge, witness))
    }

    /// The bridge in the middle forgets what it has learnt.
    pub(crate) fn flush_bridge(&self, bridge: &WitnessedBridge) -> net::Result<()> {
        bridge.forget(&self.middle())
    }

    /// Puts the wire where the bridge is, after [`Stage::put_bridge`].
    pub(crate) fn take_bridge(&self, bridge: WitnessedBridge) -> net::Result<()> {
        let (middle, wire) = (self.middle(), self.wire());
        bridge.delete(&middle)?;
        // Its losses were filters of its ports.
        for index in wire {
            middle.take_up_wire(index)?;
        }
        drop(middle);
        self.join()
    }

    /// Waits, for some seconds at most, until nobody has the name of an interface that is gone.
    fn wait_until_free(&self, end: usize) -> net::Result<()> {
        self.ends[end].with(|| {
            let netlink = Netlink::open()?;
            for _ in 0..500 {
                if netlink.link(plug(end))?.is_none() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            Ok(())
        })?
    }

    /// Runs `act` in the middle of the wire, with a socket for each end: it receives what the end sends, and what it sends
    /// the end receives.
    pub(crate) fn with_taps<T: Send>(
        &self,
        act: impl FnOnce([PacketSocket; 2]) -> Result<T, SystemError> + Send,
    ) -> Result<T, SystemError> {
        let (wire, options) = (self.wire(), standin::wire_socket(self.mtu, 512));
        self.between.with(|| {
            let open = |index| {
                let socket = PacketSocket::open(index, &options);
                socket.map_err(|error| SystemError(format!("packet socket on the wire: {error}")))
            };
            act([open(wire[0])?, open(wire[1])?])
        })?
    }

    fn middle(&self) -> MutexGuard<'_, Netlink> {
        self.middle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins two ends that nothing joins yet by a medium that does to frames what `lane` says, in each direction.
    pub fn carry<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        lane: &DirectionConfig,
        seed: u64,
    ) -> Result<EmulatedWire<'scope>, SystemError> {
        self.carry_lanes(scope, [lane.clone(), lane.clone()], seed)
    }

    /// Starts a wire with a configuration for each direction: from the first end to the second, and back.
    pub fn carry_lanes<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        lanes: [DirectionConfig; 2],
        seed: u64,
    ) -> Result<EmulatedWire<'scope>, SystemError> {
        let Some(carried) = &self.carried else {
            return Err(SystemError("the two ends are joined in the kernel already".to_owned()));
        };
        carrier::start(scope, &self.between, self.wire(), self.mtu, carried, lanes, seed)
    }

    /// Sees the beginnings of all that passes an end's interface, either way.
    pub fn sniffer(&self, end: usize, snap: usize, frames: usize) -> Result<PacketSocket, SystemError> {
        self.ends[end].with(|| {
            let index = Netlink::open()?.existing_wire_of(plug(end))?.index;
            PacketSocket::sniffer(index, snap, frames)
                .map_err(|error| SystemError(format!("packet socket on {}: {error}", plug(end))))
        })?
    }

    /// Sets the share of its frames that each end loses, for a wire in the kernel.
    pub fn set_loss(&self, loss: Prob) -> net::Result<()> {
        let middle = self.middle();
        self.wire().iter().try_for_each(|index| middle.corrupt(*index, loss.get()))
    }

    /// Sets the rate of both directions, with a queue of about a millisecond, for a wire in the kernel.
    pub(crate) fn set_rate(&self, rate: Option<Rate>) -> net::Result<()> {
        let middle = self.middle();
        for index in self.wire() {
            match rate {
                Some(rate) => {
                    middle.set_tbf(index, rate.bits_per_second(), 32 << 10, queue_of(rate).get() as u32)?;
                }
                None => drop(middle.delete_root(index)),
            }
        }
        Ok(())
    }

    pub fn count(&self) -> net::Result<WireCount> {
        let mut count = WireCount::default();
        if let Some(carried) = &self.carried {
            for DirectionCounters { offered, dropped, .. } in carried.lanes() {
                count = count + WireCount { offered, dropped };
            }
            return Ok(count);
        }
        let middle = self.middle();
        for index in self.wire() {
            let seen = middle.qdisc_statistics(index, Qdisc::Clsact)?.unwrap_or_default();
            count.offered += seen.packets;
            count.dropped += seen.drops;
        }
        Ok(count)
    }

    /// Frames that found no room before the wire: lost to it, but not corrupted by it.
    pub fn overflowed(&self) -> net::Result<u64> {
        if let Some(carried) = &self.carried {
            return Ok(carried.lanes().iter().map(|lane| lane.overflowed).sum());
        }
        let middle = self.middle();
        let drops =
            |index: u32| middle.qdisc_statistics(index, Qdisc::Root).map(|seen| seen.map_or(0, |seen| seen.drops));
        self.wire().into_iter().map(drops).sum()
    }

    /// Gives an interface of an end its address, and the way to the other end.
    pub fn address(&self, end: usize, interface: &str) -> net::Result<()> {
        give_address(&self.ends[end], end, interface)
    }

    /// Runs a server on the right until `stop` is set.
    pub fn serve<'scope>(&self, scope: &'scope Scope<'scope, '_>, stop: &'scope StopFlag) -> Result<(), SystemError> {
        serve(&self.ends[1], scope, stop)
    }

    pub fn server(&self) -> SocketAddr {
        SocketAddr::new(address(1), PORT)
    }

    /// Starts a daemon at an end; see [`protect`].
    pub fn protect<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        end: usize,
        config: LinkConfig,
        tell: impl Fn(&str) + Send + 'scope,
    ) -> Result<StageDaemon<'scope>, SystemError> {
        protect(&self.ends[end], scope, config, tell)
    }
}

/// Starts a daemon in a namespace, on a thread of its own, and waits until its interface is there. `tell` gets its
/// reports.
pub fn protect<'scope>(
    namespace: &'scope Namespace,
    scope: &'scope Scope<'scope, '_>,
    config: LinkConfig,
    tell: impl Fn(&str) + Send + 'scope,
) -> Result<StageDaemon<'scope>, SystemError> {
    let (handle, requests) = run::handle().map_err(|error| SystemError(error.to_string()))?;
    let (ready, is_ready) = mpsc::channel();
    let thread = scope.spawn(move || -> Result<LinkStatus, SystemError> {
        namespace.enter()?;
        let (link, identity, mut stand_in) = match bring_up(&config, None) {
            Ok(built) => built,
            Err(trouble) => {
                let _ = ready.send(Err(trouble.clone()));
                return Err(trouble);
            }
        };
        let _ = ready.send(Ok(identity.host_backend.clone()));
        let mut tell = |text: &str| tell(text);
        let ended = Loop::new(link, identity, requests, &mut tell).run(!config.dormant);
        stand_in.down();
        ended.map_err(|error| SystemError(format!("the daemon ended: {error}")))
    });
    match is_ready.recv() {
        Ok(Ok(backend)) => Ok(StageDaemon { handle, thread: Some(thread), backend }),
        Ok(Err(trouble)) => Err(trouble),
        Err(_) => Err(SystemError("the daemon ended before it began".to_owned())),
    }
}

/// A daemon on a stage. It ends when dropped.
#[derive(Debug)]
pub struct StageDaemon<'scope> {
    pub handle: LinkHandle,
    pub backend: String,
    thread: Option<std::thread::ScopedJoinHandle<'scope, Result<LinkStatus, SystemError>>>,
}

impl StageDaemon<'_> {
    /// Waits until the link is protected; false if that takes too long.
    pub(crate) fn wait_until_active(&self, stop: &StopFlag) -> bool {
        (0..500).any(|_| {
            let active = self.handle.status().is_some_and(|status| status.is_active());
            if !active && !stop.is_stopped() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            active
        })
    }

    /// Ends it in peace; its last status.
    pub fn stop(mut self) -> Result<LinkStatus, SystemError> {
        self.handle.ask(LoopRequest::Stop);
        match self.thread.take().map(std::thread::ScopedJoinHandle::join) {
            Some(Ok(status)) => status,
            _ => Err(SystemError("the daemon panicked".to_owned())),
        }
    }
}

impl Drop for StageDaemon<'_> {
    fn drop(&mut self) {
        self.handle.ask(LoopRequest::Stop);
    }
}
