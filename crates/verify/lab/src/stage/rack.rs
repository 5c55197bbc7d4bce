//! Hosts around a software switch, which is a thread of this program.

use std::sync::mpsc;
use std::thread::{Scope, ScopedJoinHandle};

use emulator::DirectionConfig;
use linux::SystemError;
use linux::mailbox::{Mailbox, mailbox};
use linux::net::{Namespace, Netlink, Qdisc};
use rack::agreement::RackAgreement;
use rack::host::{self, HostLoop, HostRequest, HostStatus, JoinConfig};
use rack::switch::{RackSwitch, SwitchConfig, SwitchRequest, SwitchStatus, open_ports};
use units::{Bytes, Rate, Span};

use super::carrier::{self, CarrierCounts, EmulatedWire};
use super::hosts::{CabledHosts, give_address_among, inner, plug};

/// Bytes that a host's own queue before its cable holds: that of a card with a thousand slots.
const HOST_QUEUE: u32 = 1_514_000;
/// Bytes that a host may send at once.
const HOST_BURST: u32 = 6_056;

/// Hosts of a rack.
#[derive(Debug)]
pub(crate) struct RackStage {
    hosts: Vec<Namespace>,
    /// Namespace of the switch.
    between: Namespace,
}

impl RackStage {
    pub(crate) fn new(hosts: usize, mtu: u32) -> Result<Self, SystemError> {
        let CabledHosts { hosts, between, .. } = CabledHosts::new(hosts, mtu)?;
        Ok(Self { hosts, between })
    }

    pub(crate) fn host(&self, number: usize) -> &Namespace {
        &self.hosts[number]
    }

    /// Namespace of the switch.
    pub(crate) fn middle(&self) -> &Namespace {
        &self.between
    }

    /// Puts an emulated wire between a host's cable and the switch. Returns the name of the switch's new interface.
    pub(crate) fn lay_wire<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        number: usize,
        mtu: u32,
        counts: &'scope CarrierCounts,
        lane: &DirectionConfig,
    ) -> Result<(EmulatedWire<'scope>, String), SystemError> {
        let (near, port) = (format!("y{number}"), format!("s{number}"));
        let ends = self.between.with(|| -> Result<[u32; 2], SystemError> {
            let netlink = Netlink::open()?;
            netlink.add_veth(&near, &port)?;
            for name in [&near, &port] {
                let index = netlink.existing_link(name)?.index;
                netlink.set_mtu(index, mtu)?;
                let _ = netlink.no_ipv6_autoconf(index);
                netlink.set_up(index, true)?;
            }
            netlink.wait_until_running(netlink.existing_link(&port)?.index)?;
            Ok([netlink.existing_link(&inner(number))?.index, netlink.existing_link(&near)?.index])
        })??;
        let wire = carrier::start(scope, &self.between, ends, mtu, counts, [lane.clone(), lane.clone()], 1)?;
        Ok((wire, port))
    }

    pub(crate) fn count(&self) -> usize {
        self.hosts.len()
    }

    /// Gives an interface of every host its address, and the way to all others.
    pub(crate) fn give_addresses(&self, interface: impl Fn(usize) -> &'static str) -> Result<(), SystemError> {
        for (number, host) in self.hosts.iter().enumerate() {
            give_address_among(host, number, self.count(), interface(number))?;
        }
        Ok(())
    }

    /// Every host sends no faster than its cable carries, as a card does.
    pub(crate) fn limit_hosts(&self, rate: Rate) -> Result<(), SystemError> {
        for (number, host) in self.hosts.iter().enumerate() {
            host.with(|| {
                let netlink = Netlink::open()?;
                let index = netlink.existing_wire_of(plug(number))?.index;
                netlink.set_tbf(index, rate.bits_per_second(), HOST_BURST, HOST_QUEUE)
            })??;
        }
        Ok(())
    }

    /// Frames that found no room in the queues of hosts that are limited.
    pub(crate) fn refused_by_hosts(&self) -> Result<u64, SystemError> {
        let mut refused = 0;
        for (number, host) in self.hosts.iter().enumerate() {
            let statistics = host.with(|| {
                let netlink = Netlink::open()?;
                netlink.qdisc_statistics(netlink.existing_wire_of(plug(number))?.index, Qdisc::Root)
            })??;
            refused += statistics.map_or(0, |statistics| statistics.drops);
        }
        Ok(refused)
    }

    /// Starts the switch that joins them; with an agreement hosts may reserve.
    pub(crate) fn start_switch<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        rate: Rate,
        buffer: Bytes,
        reserve: Option<RackAgreement>,
    ) -> Result<StageSwitch<'scope>, SystemError> {
        let (mailbox, requests) = mailbox().map_err(|error| SystemError(error.to_string()))?;
        let (ready, is_ready) = mpsc::channel();
        let thread = scope.spawn(move || match self.open_switch(rate, buffer, reserve) {
            Ok(switch) => {
                let _ = ready.send(Ok(()));
                switch.run(requests, &mut |_| ()).map(drop)
            }
            Err(trouble) => {
                let _ = ready.send(Err(trouble));
                Ok(())
            }
        });
        match is_ready.recv() {
            Ok(opened) => opened.map(|()| StageSwitch { mailbox, thread: Some(thread) }),
            Err(_) => Err(SystemError("the switch ended before it began".to_owned())),
        }
    }

    /// Moves the calling thread into the middle.
    fn open_switch(
        &self,
        rate: Rate,
        buffer: Bytes,
        reserve: Option<RackAgreement>,
    ) -> Result<RackSwitch, SystemError> {
        self.between.enter()?;
        let netlink = Netlink::open()?;
        let interfaces = (0..self.count()).map(|number| netlink.existing_link(&inner(number)));
        let (ports, sockets) = open_ports(&interfaces.collect::<Result<Vec<_>, _>>()?, rate, buffer)?;
        let in_words = |error: reserve::RackParamError| SystemError(error.to_string());
        let ports_of = |agreement: RackAgreement| agreement.at_switch(self.count() as u16, buffer).map_err(in_words);
        let reserve = reserve.map(ports_of).transpose()?;
        let aging = Span::from_ms(3_600_000);
        let config = SwitchConfig { name: "switch0".to_owned(), ports, aging, bound: Vec::new(), reserve };
        RackSwitch::new(config, sockets).map_err(in_words)
    }
}

/// A host of a stage that has joined its rack. It leaves when dropped.
#[derive(Debug)]
pub(crate) struct StageMember {
    mailbox: Mailbox<HostRequest>,
}

impl StageMember {
    /// Joins on a thread of its own, and waits until the stand-in is there.
    pub(crate) fn join<'scope>(
        namespace: &'scope Namespace,
        scope: &'scope Scope<'scope, '_>,
        config: JoinConfig,
    ) -> Result<Self, SystemError> {
        let (mailbox, mut requests) = mailbox().map_err(|error| SystemError(error.to_string()))?;
        let (ready, is_ready) = mpsc::channel();
        scope.spawn(move || {
            let brought_up = namespace.enter().map_err(SystemError::from).and_then(|()| host::bring_up(&config, None));
            match brought_up {
                Ok((host, identity, mut stand_in)) => {
                    let _ = ready.send(Ok(()));
                    // A loop that failed says so when its status is asked for: nobody answers.
                    let _ = HostLoop::new(host, identity, &mut |_| ()).run(&mut requests);
                    drop(requests);
                    stand_in.down();
                }
                Err(trouble) => drop(ready.send(Err(trouble))),
            }
        });
        match is_ready.recv() {
            Ok(joined) => joined.map(|()| Self { mailbox }),
            Err(_) => Err(SystemError("a host ended before it had joined".to_owned())),
        }
    }

    pub(crate) fn status(&self) -> Result<HostStatus, SystemError> {
        self.mailbox
            .ask(HostRequest::Status)
            .map_err(|_| SystemError("a host that had joined does not answer".to_owned()))
    }
}

impl Drop for StageMember {
    fn drop(&mut self) {
        let _ = self.mailbox.send(HostRequest::Stop);
    }
}

/// A switch on a stage. It ends when dropped.
#[derive(Debug)]
pub(crate) struct StageSwitch<'scope> {
    mailbox: Mailbox<SwitchRequest>,
    thread: Option<ScopedJoinHandle<'scope, std::io::Result<()>>>,
}

impl StageSwitch<'_> {
    pub(crate) fn status(&mut self) -> Result<SwitchStatus, SystemError> {
        self.mailbox.ask(SwitchRequest::Status).map_err(|_| {
            let ended = self.thread.take_if(|thread| thread.is_finished()).map(ScopedJoinHandle::join);
            SystemError(match ended {
                Some(Ok(Err(error))) => format!("the switch ended: {error}"),
                _ => "the switch does not answer".to_owned(),
            })
        })
    }

    pub(crate) fn reset_peaks(&self) {
        // A switch that has ended says so when its status is asked for.
        let _ = self.mailbox.send(SwitchRequest::ResetPeaks);
    }
}

impl Drop for StageSwitch<'_> {
    fn drop(&mut self) {
        let _ = self.mailbox.send(SwitchRequest::Stop);
    }
}
