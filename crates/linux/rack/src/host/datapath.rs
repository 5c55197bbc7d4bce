//! A host that has joined, at work: moves frames between the kernel, the machine and the cable.
//!
//! [`JoinedHost::turn`] does all that can be done now and never waits; [`JoinedHost::wait`] waits for the next thing to happen.
//! Frames leave in the order in which the machine gave them out, messages among them: an RSV never overtakes the burst before
//! it. A burst leaves when its time has come by a clock that was read before, so it is never early.

use std::io;
use std::os::fd::{OwnedFd, RawFd};

use linux::clock::instance;
use machine::{Machine, Pull};
use reserve::host::HOST_WIRE;
use reserve::{HostCommand, HostParams, RackParamError, RackParams, ReservePacket, ReservingHost};
use standin::{BATCH, HostSide, StandInSides, WireSide, longest_on, wait_for_sides};
use units::{Bytes, Span, Time};
use wire::reserve::HostKey;

use super::framing::{FrameFromSwitch, HostFrame, read};
use super::shell::HostShell;
use crate::presence::{SAID_EVERY, presence};

/// Number of times that an RSV is sent before the switch counts as one without reservations: a third of a second, because
/// other programs on its processor may delay a switch in software for that long.
const ATTEMPTS: u8 = 32;
/// Number of times for a switch that has answered before: a second, in which one that was killed is back.
const ATTEMPTS_KNOWN: u8 = 100;
/// Time for which the smallest round trip to the switch is remembered, and number of round trips that there must have been:
/// on processors that others use too, all round trips of a second may be slow, and the next one is not.
const ROUND_TRIP_WINDOW: Span = Span::from_ms(60_000);
const ROUND_TRIPS: u16 = 64;

/// A host that has joined.
#[derive(Debug)]
pub struct JoinedHost {
    pub(super) machine: ReservingHost<HostFrame>,
    pub(super) shell: HostShell,
    host: HostSide,
    wire: WireSide,
    own: [u8; 6],
    epoch: u16,
    pull_at: Time,
    /// Time at which to say next that the host is there; never once it has left.
    say_at: Time,
}

impl JoinedHost {
    /// Makes a host on a stand-in that is up. An error names the parameter that makes no sense.
    pub fn new(rack: RackParams, sides: StandInSides) -> Result<Self, RackParamError> {
        let (own, epoch) = (sides.mac.0, instance() as u16);
        let params = HostParams {
            attempts: ATTEMPTS,
            attempts_known: ATTEMPTS_KNOWN,
            round_trip_window: ROUND_TRIP_WINDOW,
            round_trips: ROUND_TRIPS,
            ..HostParams::new(HostKey::from_mac(own), epoch, &rack)
        };
        Ok(Self {
            machine: ReservingHost::new(rack, params)?,
            shell: HostShell::new(own, &rack, longest_on(sides.wire_mtu), sides.rate),
            host: HostSide::new(sides.host),
            wire: WireSide::new(sides.wire),
            own,
            epoch,
            pull_at: Time::ZERO,
            say_at: Time::ZERO,
        })
    }

    /// Descriptor that keeps the carrier of the stand-in up as long as any process has it.
    pub(super) fn carrier(&self) -> Option<OwnedFd> {
        self.host.carrier()
    }

    /// All that can be done now. True if anything was.
    pub(super) fn turn(&mut self, now: Time) -> io::Result<bool> {
        self.shell.set_time(now);
        let received = self.receive(now)?;
        while let Some(timer) = self.shell.due() {
            self.machine.on_timer(now, timer, &mut self.shell);
        }
        let HostShell { delivered, pool, tally, .. } = &mut self.shell;
        self.host.deliver(delivered, pool, tally)?;
        let taken = self.host.receive(&mut self.shell)?;
        while let Some(lane) = self.shell.filled.pop() {
            self.machine.on_command(now, HostCommand::Queued(lane), &mut self.shell);
        }
        if self.say_at <= now {
            self.say_at = now + SAID_EVERY;
            self.shell.say(&presence(self.epoch, true));
        }
        let sent = self.send(now)?;
        self.machine.check_invariants();
        Ok(received || taken || sent)
    }

    fn receive(&mut self, now: Time) -> io::Result<bool> {
        let Self { machine, shell, wire, own, .. } = self;
        wire.read(&mut |bytes| {
            shell.tally.wire_rx_frames += 1;
            shell.tally.wire_rx_bytes += bytes.len() as u64;
            let (mark, parts) = match read(bytes, *own) {
                FrameFromSwitch::Message(message) => {
                    return machine.on_frame(now, HOST_WIRE, ReservePacket::Message(message), shell);
                }
                FrameFromSwitch::Marked(mark, parts) => (Some(mark), parts),
                FrameFromSwitch::Unmarked(frame) => (None, [frame, &[]]),
                FrameFromSwitch::Foreign => return,
                FrameFromSwitch::Stranger => {
                    shell.tally.rx_stranger += 1;
                    return;
                }
                FrameFromSwitch::Malformed => {
                    shell.tally.rx_malformed += 1;
                    return;
                }
            };
            if let Some(body) = shell.store(parts) {
                machine.on_frame(now, HOST_WIRE, ReservePacket::Data { mark, body }, shell);
            }
        })
    }

    /// Sends until there is nothing more, or the wire has no room, or it would be too fast for it.
    fn send(&mut self, now: Time) -> io::Result<bool> {
        let mut any = false;
        loop {
            let HostShell { outgoing, pool, tally, .. } = &mut self.shell;
            any |= self.wire.flush(outgoing, pool, tally)?;
            if !self.shell.outgoing.is_empty() || !self.pull_batch(now) {
                return Ok(any);
            }
        }
    }

    /// Pulls up to a batch; whether there is anything to send.
    fn pull_batch(&mut self, now: Time) -> bool {
        while self.shell.outgoing.len() < BATCH && (self.shell.woken || self.pull_at <= now) {
            if self.shell.busy_until(now).is_some() {
                break;
            }
            self.shell.woken = false;
            self.pull_at = match self.machine.pull(now, HOST_WIRE, &mut self.shell) {
                Pull::Sent | Pull::Last => now,
                Pull::Idle => Time::NEVER,
                Pull::NotBefore(at) => at,
            };
        }
        !self.shell.outgoing.is_empty()
    }

    /// Waits until there is something to do, or `most` has passed, or `other` is readable.
    pub(super) fn wait(&mut self, now: Time, most: Span, other: RawFd) -> io::Result<()> {
        let wants = if self.shell.woken { now } else { self.pull_at };
        let pull_at = match self.shell.busy_until(now) {
            _ if self.wire.is_blocked() => Time::NEVER,
            Some(free_at) => free_at.max(wants),
            None => wants,
        };
        let next = self.shell.earliest_timer().min(pull_at).min(self.say_at);
        wait_for_sides(&mut self.wire, &mut self.host, next.since(now).min(most), other)
    }

    /// Takes nothing more from the kernel; what waits still goes out as it is granted.
    pub(super) fn close(&mut self) {
        self.shell.close();
    }

    /// True if no frames wait any more.
    pub(super) fn is_drained(&self) -> bool {
        self.shell.queued() == Bytes::ZERO && self.machine.held_frames() == 0
    }

    /// Gives back all reservations and tells the switch that this host leaves. Frames that wait for a reservation are
    /// refused.
    pub(super) fn leave(&mut self, now: Time) {
        self.shell.refuse_all();
        self.machine.on_command(now, HostCommand::Leave, &mut self.shell);
        self.shell.say(&presence(self.epoch, false));
        self.say_at = Time::NEVER;
    }

    /// Adds the drops that the kernel counts. Called once a second, because it is too expensive for every turn.
    pub(super) fn look_at_kernel(&mut self) {
        self.shell.tally.ring_overflow += self.wire.overflowed();
        self.shell.tally.host_overflow += self.host.overflowed();
    }
}
