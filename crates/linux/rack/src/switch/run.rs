//! The switch on real interfaces: packet sockets around [`SwitchCore`], and its loop.

use std::io;
use std::time::Duration;

use linux::clock::{Clock, TwoClocks, instance, thread_time};
use linux::mailbox::MailboxReader;
use linux::offload::Pieces;
use linux::packet::PacketSocket;
use linux::poll::{self, Readiness, YieldCost};
use reserve::{RackParamError, ReservingSwitch};
use units::{Span, Time};
use wire::ethernet::Mac;

use super::arrivals::Arrivals;
use super::core::{AddressMove, SwitchCore};
use super::move_log::MoveLog;
use super::port::PortConfig;
use super::status::{PortRates, SwitchStatus};
use super::{RING_FRAMES, SwitchConfig, SwitchRequest};

/// Time for which the loop stays awake after the last frame.
const AWAKE: Span = Span::from_us(200);
/// Interval between two updates of what changes slowly.
const LOOK_EVERY: Span = Span::from_ms(1_000);
/// Iterations between two polls for requests while the loop is busy.
const TURNS: u32 = 16;

/// A switch on real interfaces.
pub struct RackSwitch {
    pub(super) core: SwitchCore,
    pub(super) config: SwitchConfig,
    sockets: Vec<PacketSocket>,
    /// Time at which each ring was last found empty.
    empty_at: Vec<Time>,
    /// Ports whose interface is down.
    pub(super) down: Vec<bool>,
    /// Time until which the core has worked.
    served: Time,
    arrivals: Arrivals,
    pieces: Pieces,
    pub(super) rates: Vec<PortRates>,
    /// Processor time of turns that had something to do.
    pub(super) busy: Duration,
    move_log: MoveLog,
}

impl std::fmt::Debug for RackSwitch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RackSwitch").field("config", &self.config).finish_non_exhaustive()
    }
}

impl RackSwitch {
    /// `sockets` are on the interfaces of the ports, in their order. An error names the parameter of the reservations that
    /// cannot be used.
    pub fn new(config: SwitchConfig, sockets: Vec<PacketSocket>) -> Result<Self, RackParamError> {
        let ports = config.ports.len();
        let mut core = SwitchCore::new(&config.ports, config.aging);
        for (address, port) in &config.bound {
            assert!(core.bind(*address, *port), "an address is bound once, and within the room of its port");
        }
        if let Some(params) = config.reserve {
            params.check_rates(config.ports.iter().map(|port| port.rate))?;
            core = core.reserving(ReservingSwitch::new(params, instance() as u16)?);
        }
        Ok(Self {
            core,
            sockets,
            empty_at: vec![Time::ZERO; ports],
            down: vec![false; ports],
            served: Time::ZERO,
            arrivals: Arrivals::default(),
            pieces: Pieces::default(),
            rates: vec![PortRates::default(); ports],
            busy: Duration::ZERO,
            move_log: MoveLog::default(),
            config,
        })
    }

    /// Forwards frames until asked to stop, and returns the last status. `tell` hears what happens, a line each.
    pub fn run(
        mut self,
        mut requests: MailboxReader<SwitchRequest>,
        tell: &mut dyn FnMut(&str),
    ) -> io::Result<SwitchStatus> {
        let clock = Clock::start();
        let mut yields = YieldCost::default();
        let (mut last_busy, mut next_look, mut turns) = (Time::ZERO, Time::ZERO, 0);
        // Processor time at the end of the turn before, if that had something to do: to ask for it is a system call.
        let mut worked_until = None;
        loop {
            let (now, before) = (clock.now(), worked_until.take().unwrap_or_else(thread_time));
            let busy = self.turn(&clock)?;
            turns += 1;
            if !busy || turns >= TURNS {
                turns = 0;
                if self.answer(now, &requests) {
                    return Ok(SwitchStatus::of(&mut self, now));
                }
                if next_look <= now {
                    next_look = now + LOOK_EVERY;
                    self.look(now, tell);
                }
            }
            if busy {
                let after = thread_time();
                self.busy += after - before;
                (worked_until, last_busy) = (Some(after), now);
            }
            if yields.is_cheap(now) && now.since(last_busy) < AWAKE {
                yields.give_way(&clock);
            } else if !busy {
                self.sleep(now, next_look, &mut requests, tell)?;
            }
        }
    }

    /// Does everything that is possible without waiting. True if anything was.
    fn turn(&mut self, clock: &Clock) -> io::Result<bool> {
        self.arrivals.clear();
        let began = clock.now();
        for port in 0..self.sockets.len() {
            self.read(began, port);
        }
        let mut busy = !self.arrivals.is_empty();
        let clocks = TwoClocks::read(clock);
        for (at, port, frame) in self.arrivals.in_order(&clocks) {
            // A frame that was overlooked when the ports worked until then comes at once after it.
            self.core.on_frame(at.max(self.served), port, frame);
        }
        self.core.serve(clocks.now);
        self.served = clocks.now;
        for (port, socket) in self.sockets.iter_mut().enumerate() {
            busy |= self
                .core
                .take_departed(port, |frame| send(socket, frame))
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.config.ports[port].name)))?;
        }
        Ok(busy)
    }

    /// Takes what waits in a port's ring, in a turn that began now.
    fn read(&mut self, now: Time, port: usize) {
        let Self { sockets, arrivals, pieces, core, empty_at, .. } = self;
        let earliest = empty_at[port];
        let received = sockets[port].receive(RING_FRAMES, |frame| {
            if frame.vnet.is_finished() {
                return arrivals.push(frame.at, earliest, port, frame.bytes);
            }
            // The sender left checksums or segmentation undone.
            match pieces.of(&frame.vnet, frame.bytes) {
                Ok(pieces) => pieces.for_each(|piece| arrivals.push(frame.at, earliest, port, piece)),
                Err(_) => core.count_malformed(port),
            }
        });
        if received < RING_FRAMES {
            empty_at[port] = now;
        }
    }

    /// Updates everything that changes slowly.
    fn look(&mut self, now: Time, tell: &mut dyn FnMut(&str)) {
        self.count_overflow();
        self.core.age(now);
        for AddressMove { address, from, to } in self.core.take_moves() {
            let [from, to] = [from, to].map(|port| &self.config.ports[port].name);
            let line = format!("{} moved from {from} to {to}", Mac(address));
            if let Some(line) = self.move_log.admit(now, line) {
                tell(&line);
            }
        }
        for (port, rates) in self.rates.iter_mut().enumerate() {
            rates.look(now, &self.core.counters(port));
        }
    }

    pub(super) fn count_overflow(&mut self) {
        for (port, socket) in self.sockets.iter_mut().enumerate() {
            self.core.count_overflow(port, socket.overflowed());
        }
    }

    /// Answers what is asked. True if the loop is to end.
    fn answer(&mut self, now: Time, requests: &MailboxReader<SwitchRequest>) -> bool {
        let mut stop = false;
        while let Some(request) = requests.next() {
            match request {
                // The process that asked may have gone away since.
                SwitchRequest::Status(answer) => drop(answer.send(SwitchStatus::of(self, now))),
                SwitchRequest::ResetPeaks => self.core.reset_peaks(),
                SwitchRequest::Stop => stop = true,
            }
        }
        stop
    }

    fn sleep(
        &mut self,
        now: Time,
        next_look: Time,
        requests: &mut MailboxReader<SwitchRequest>,
        tell: &mut dyn FnMut(&str),
    ) -> io::Result<()> {
        let until = self.core.next_event().min(next_look);
        let own = [(requests.fd(), false)].into_iter();
        let fds: Vec<_> = own.chain(self.sockets.iter().map(|socket| (socket.fd(), false))).collect();
        let ready = poll::wait_for_any(&fds, Duration::from_nanos(until.since(now).as_ps() / 1_000))?;
        requests.awake();
        for (port, ready) in ready[1..].iter().enumerate() {
            match ready {
                Readiness::Failed => self.on_failure(port, tell)?,
                Readiness::Ready if self.down[port] => {
                    self.down[port] = false;
                    tell(&format!("{} is up again", self.config.ports[port].name));
                }
                Readiness::Ready | Readiness::Nothing => {}
            }
        }
        Ok(())
    }

    /// An interface that is down may come up again; anything else ends the switch.
    fn on_failure(&mut self, port: usize, tell: &mut dyn FnMut(&str)) -> io::Result<()> {
        let PortConfig { name, .. } = &self.config.ports[port];
        match self.sockets[port].take_error() {
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                self.core.port_down(port);
                if !std::mem::replace(&mut self.down[port], true) {
                    tell(&format!("{name} is down: waiting for it to come up"));
                }
                Ok(())
            }
            Err(error) => Err(io::Error::new(error.kind(), format!("{name}: {error}"))),
            Ok(()) => Ok(()),
        }
    }
}

/// False if the frame found no room: the interface's queue is full, or it is down.
fn send(socket: &mut PacketSocket, frame: &[u8]) -> io::Result<bool> {
    match socket.send_frame(frame) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EMSGSIZE | libc::ENETDOWN)) => Ok(false),
        sent => sent,
    }
}
