//! One protected link at work: moves frames between the host, the endpoint and the wire.
//!
//! ```text
//!   host ──super-frames──▶ cut ──▶ queue ──▶ Endpoint ──▶ wire
//!   host ◀──super-frames── join ◀────────── Endpoint ◀── wire
//! ```
//!
//! Sequence numbers are given after cutting; order is restored before joining. [`Link::turn`] does all that
//! can be done now and never waits; [`Link::wait`] waits for the next thing to happen.
//!
//! The queue before the wire ([`crate::queue`]) stays short: a bulk flow that keeps it long loses frames there, as at any
//! switch, instead of adding milliseconds to everything behind it.

mod copies;
mod news;

use std::io;
use std::time::Duration;

use guard::{Command, Endpoint, Event, Packet, Params, State, WIRE};
use hdrhistogram::Histogram;
use machine::{Machine, Pull};
use units::{Bytes, Prob, Rate, Span, Time};
use wire::link::{Kind, Refusal};

use crate::backend::{Host, Wire};
use crate::frame::Framing;
use crate::pool::{Frame, Pool};
use crate::queue::Queue;
use crate::seal::Opening;
use crate::shell::{Gate, Shell, recovery_histogram};
use crate::tally::Tally;
use linux::offload::{self, Coalescer, segment};
use linux::poll::{self, Readiness};

use copies::CopiesByLoss;
use news::Troubles;
pub use news::{News, Trouble};

/// Frames handled in one go: enough to share a system call, few enough that the other side's turn comes.
const BATCH: usize = 64;
/// How often to try before a frame that the wire has no room for is let go: about a tenth of a second.
const MOST_TRIES: u32 = 1_000;
/// How soon to try a wire again that had no room and does not tell when it has.
const LOOK_AGAIN: Span = Span::from_us(100);
/// Super-frames taken from the host in one go: few large ones, many small ones.
const HOST_BATCH: usize = 64;
const HOST_BATCH_BYTES: u64 = 512 << 10;

/// What happens to the host's frames until the peer answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitAction {
    /// They pass unprotected.
    BestEffort,
    /// They wait, as far as the queue goes.
    Block,
    Discard,
}

/// What a link is made with.
#[derive(Debug)]
pub struct Setup {
    pub params: Params,
    /// The longest frame that the wire carries. Unprotected ones are not shortened by a header of ours, so this is more than
    /// the host sends.
    pub longest: usize,
    pub framing: Framing,
    /// Tells this life of the link from any other.
    pub instance: u32,
    pub init: InitAction,
    pub rate: Option<Rate>,
    /// How much of the host's may wait for the wire.
    pub queue: Bytes,
    /// What the number of copies aims for, by the loss that the peer reports; fixed if there is none.
    pub target: Option<Prob>,
}

pub struct Link {
    endpoint: Endpoint<Frame>,
    shell: Shell,
    host: Box<dyn Host>,
    wire: Box<dyn Wire>,
    coalescer: Coalescer<u32>,
    init: InitAction,
    /// Protection is asked for, whether it is in force or not.
    wanted: bool,
    pull_at: Time,
    /// The wire had no room for all that was to go out.
    blocked: bool,
    /// How often in a row it had room for nothing at all.
    fruitless: u32,
    copies: Option<CopiesByLoss>,
    /// Whether frames could be sealed when this was last looked at.
    opening: Opening,
    news: Vec<News>,
    troubles: Troubles,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("endpoint", &self.endpoint.state()).finish_non_exhaustive()
    }
}

impl Link {
    pub fn new(setup: Setup, host: Box<dyn Host>, wire: Box<dyn Wire>) -> Self {
        let longest = setup.longest.max(setup.params.mtu as usize);
        let held = setup.params.window_frames * setup.params.classes.len() as u32 * 2;
        // Full-sized ones; short ones could be more, but slots are for them too.
        let waiting = (setup.queue.get() / u64::from(setup.params.mtu)).clamp(1_024, 8_192) as u32;
        let pool = Pool::new(held + waiting + 4 * BATCH as u32, longest);
        Self {
            endpoint: Endpoint::new(setup.params, setup.instance),
            shell: Shell::new(pool, setup.framing, Queue::new(setup.queue, waiting as usize, setup.rate), setup.rate),
            host,
            wire,
            coalescer: Coalescer::default(),
            init: setup.init,
            wanted: false,
            pull_at: Time::ZERO,
            blocked: false,
            fruitless: 0,
            copies: setup.target.map(CopiesByLoss::new),
            opening: Opening::Open,
            news: Vec::new(),
            troubles: Troubles::default(),
        }
    }

    pub fn endpoint(&self) -> &Endpoint<Frame> {
        &self.endpoint
    }

    pub fn shell(&self) -> &Shell {
        &self.shell
    }

    /// What keeps the carrier of the host's interface up as long as anybody has it.
    pub fn carrier(&self) -> Option<std::os::fd::OwnedFd> {
        self.host.carrier()
    }

    /// Delays of the recoveries since this was last asked, in nanoseconds.
    pub fn take_recovery(&mut self) -> Histogram<u64> {
        std::mem::replace(&mut self.shell.recent_recovery, recovery_histogram())
    }

    pub fn wants_protection(&self) -> bool {
        self.wanted
    }

    pub fn command(&mut self, now: Time, command: Command) {
        match command {
            Command::Activate | Command::Offer => self.wanted = true,
            Command::Deactivate => self.wanted = false,
            Command::SetCopies(_) | Command::Expect(_) => {}
        }
        let command = match (command, &self.copies) {
            // What the copies aim for is known here.
            (Command::Expect(loss), Some(by_loss)) => Command::SetCopies(by_loss.expect(loss)),
            (command, _) => command,
        };
        self.endpoint.on_command(now, command, &mut self.shell);
        self.set_gate();
    }

    /// A new life at time zero, as if the link had just been made. What was on its way is let go.
    pub fn start_over(&mut self, instance: u32) {
        self.endpoint = Endpoint::new(self.endpoint.params().clone(), instance);
        self.shell.start_over();
        self.pull_at = Time::ZERO;
        self.copies = self.copies.take().map(CopiesByLoss::start_over);
        self.set_gate();
    }

    /// What happened since this was last asked.
    pub fn news(&mut self) -> Vec<News> {
        let mut news = std::mem::take(&mut self.news);
        news.extend(self.troubles.take());
        news
    }

    /// All that can be done now. True if anything was.
    pub fn turn(&mut self, now: Time) -> io::Result<bool> {
        self.shell.set_time(now);
        let received = self.receive_from_wire(now)?;
        while let Some(key) = self.shell.due(now) {
            self.endpoint.on_timer(now, key, &mut self.shell);
        }
        self.deliver()?;
        self.greet();
        let taken = self.receive_from_host()?;
        let sent = self.send(now)?;
        self.follow_events(now);
        Ok(received || taken || sent)
    }

    /// Something is being recovered: worth not going to sleep for.
    pub fn is_recovering(&self) -> bool {
        self.endpoint.is_recovering()
    }

    /// Waits until there is something to do, or `most` has passed, or `other` is readable.
    pub fn wait(&mut self, now: Time, most: Span, other: std::os::fd::RawFd) -> io::Result<()> {
        let paced = self.shell.busy_until(now);
        let pull_at = match (self.blocked, paced) {
            (true, _) => Time::NEVER,
            (false, Some(free_at)) => free_at,
            (false, None) if self.shell.woken => now,
            (false, None) => self.pull_at,
        };
        let greet_at = if self.blocked { Time::NEVER } else { self.shell.framing.greets_at() };
        let next = self.shell.earliest_timer().min(pull_at).min(greet_at);
        // A card whose own queue is full says nothing when it has room again: look again soon.
        let says_when = self.blocked && self.fruitless < 2;
        let most = if self.blocked && !says_when { most.min(LOOK_AGAIN) } else { most };
        let span = next.since(now).min(most);
        let fds = [(self.wire.fd(), says_when), (self.host.fd(), false), (other, false)];
        let ready = poll::wait(&fds, Duration::from_nanos(span.as_ps() / 1_000))?;
        self.blocked &= ready[0] != Readiness::Ready;
        if ready[0] == Readiness::Failed
            && let Some(error) = self.wire.error()
        {
            return Err(error);
        }
        if ready[1] == Readiness::Failed
            && let Some(error) = self.host.error()
        {
            return Err(error);
        }
        Ok(())
    }

    /// Counts what only the kernel knows of. Cheap enough for every second, not for every turn.
    pub fn look_at_kernel(&mut self) {
        self.shell.tally.ring_overflow += self.wire.overflowed();
        self.shell.tally.host_overflow += self.host.overflowed();
    }

    fn receive_from_wire(&mut self, now: Time) -> io::Result<bool> {
        let Self { endpoint, shell, wire, troubles, .. } = self;
        let received = wire.receive(BATCH, &mut |bytes| {
            shell.tally.wire_rx_frames += 1;
            shell.tally.wire_rx_bytes += bytes.len() as u64;
            match shell.framing.parse(bytes) {
                Ok(arrived) => {
                    let body = match arrived.header.has_body() {
                        false => None,
                        true => match shell.store(arrived.body) {
                            Some(frame) => Some(frame),
                            None => return,
                        },
                    };
                    let session = arrived.header.kind() == Kind::Session;
                    endpoint.on_frame(now, WIRE, Packet { header: arrived.header, body }, shell);
                    // Who greets is the peer once an epoch has begun with it, and not before: anybody can greet.
                    if session && matches!(endpoint.state(), State::Dormant | State::Asking) {
                        shell.framing.forget_peer();
                    }
                }
                Err(reason) => troubles.note(reason, endpoint.state(), shell),
            }
        })?;
        Ok(received > 0)
    }

    /// Hands everything that came off the wire to the host, joined where it can be.
    fn deliver(&mut self) -> io::Result<()> {
        let Self { shell, host, coalescer, .. } = self;
        let Shell { delivered, pool, tally, .. } = shell;
        if delivered.is_empty() {
            return Ok(());
        }
        let mut written = Ok(());
        for (number, frame) in delivered.iter().enumerate() {
            let bytes = pool.get(frame);
            tally.host_tx_frames += 1;
            tally.host_tx_bytes += bytes.len() as u64;
            coalescer.push(number as u32, bytes);
            written = written.and(write_ready(coalescer, delivered, pool, &mut **host, tally));
        }
        coalescer.flush();
        written = written.and(write_ready(coalescer, delivered, pool, &mut **host, tally));
        // Also after an error: they would be delivered twice.
        while coalescer.pop().is_some() {}
        delivered.drain(..).for_each(|frame| pool.release(frame));
        written
    }

    fn receive_from_host(&mut self) -> io::Result<bool> {
        let Self { shell, host, .. } = self;
        let mut any = false;
        let enough = shell.tally.host_rx_bytes + HOST_BATCH_BYTES;
        for _ in 0..HOST_BATCH {
            let more = host.receive(&mut |vnet, frame| {
                shell.tally.host_rx_bytes += frame.len() as u64;
                match segment(vnet, frame, shell) {
                    Ok(cut) => shell.tally.host_rx_frames += u64::from(cut.frames),
                    Err(_) => shell.tally.host_malformed += 1,
                }
                shell.close_cut();
            })?;
            any |= more;
            if !more || shell.tally.host_rx_bytes >= enough {
                break;
            }
        }
        Ok(any)
    }

    /// Pulls and sends until there is nothing more, or the wire has no room, or it would be too fast for it.
    fn send(&mut self, now: Time) -> io::Result<bool> {
        let wanted = self.shell.woken || self.shell.has_queued() || self.pull_at <= now;
        if !wanted && self.shell.outgoing.is_empty() {
            return Ok(false);
        }
        let mut any = false;
        loop {
            if !self.shell.outgoing.is_empty() {
                let sent = self.flush()?;
                any |= sent;
                self.blocked = !self.shell.outgoing.is_empty();
                if self.blocked {
                    return Ok(any);
                }
            }
            if !self.pull_batch(now) {
                break;
            }
        }
        if !self.shell.outgoing.is_empty() {
            any |= self.flush()?;
            self.blocked = !self.shell.outgoing.is_empty();
        }
        Ok(any)
    }

    /// Pulls up to a batch; false when there is nothing more to pull for now.
    fn pull_batch(&mut self, now: Time) -> bool {
        if self.shell.framing.opening() != Opening::Open {
            // Whatever it is, it could not be sealed; once it can be, `greet` wakes us.
            (self.shell.woken, self.pull_at) = (false, Time::NEVER);
            return false;
        }
        while self.shell.outgoing.len() < BATCH {
            if let Some(free_at) = self.shell.busy_until(now) {
                self.pull_at = self.pull_at.min(free_at);
                return false;
            }
            self.shell.woken = false;
            match self.endpoint.pull(now, WIRE, &mut self.shell) {
                Pull::Sent => {}
                Pull::Last | Pull::Idle => {
                    self.pull_at = Time::NEVER;
                    return false;
                }
                Pull::NotBefore(at) => {
                    self.pull_at = at;
                    return false;
                }
            }
        }
        true
    }

    fn flush(&mut self) -> io::Result<bool> {
        let Shell { outgoing, pool, tally, .. } = &mut self.shell;
        let sent = match self.wire.send(outgoing, pool) {
            Ok(sent) => sent,
            // One frame that the kernel will not have must not keep the others.
            Err(error) if is_about_the_frame(&error) => {
                tally.wire_refused += 1;
                outgoing.remove(0).frame.into_iter().for_each(|frame| pool.release(frame));
                return Ok(true);
            }
            Err(error) => {
                // A wire that is down takes nothing; what was to go out is lost, as on any wire.
                tally.wire_refused += outgoing.len() as u64;
                outgoing.drain(..).filter_map(|gone| gone.frame).for_each(|frame| pool.release(frame));
                return Err(error);
            }
        };
        for gone in outgoing.drain(..sent) {
            tally.wire_tx_frames += 1;
            tally.wire_tx_bytes += gone.bytes() as u64;
            if let Some(frame) = gone.frame {
                pool.release(frame);
            }
        }
        self.fruitless = if sent > 0 { 0 } else { self.fruitless + 1 };
        if self.fruitless > MOST_TRIES && !outgoing.is_empty() {
            // A filter or a queue that never has room for this one.
            self.fruitless = 0;
            tally.wire_refused += 1;
            outgoing.remove(0).frame.into_iter().for_each(|frame| pool.release(frame));
        }
        Ok(sent > 0)
    }

    fn set_gate(&mut self) {
        self.opening = self.shell.framing.opening();
        let waits = self.wanted && self.endpoint.state() != State::Active || self.opening != Opening::Open;
        self.shell.gate = match (self.init, self.opening) {
            (InitAction::Block, _) if waits => Gate::Shut,
            (InitAction::Discard, _) if waits => Gate::Discard,
            // With a key there is no other way to pass than sealed.
            (InitAction::BestEffort, Opening::Soon) => Gate::Shut,
            (InitAction::BestEffort, Opening::Alone) => Gate::Discard,
            _ => Gate::Open,
        };
    }

    /// Lets the seal greet its peer, and follows what came of it.
    fn greet(&mut self) {
        if !self.blocked {
            self.shell.greet();
        }
        if self.shell.framing.opening() == self.opening {
            return;
        }
        self.set_gate();
        // What waited may go now, or waited for nothing.
        self.shell.woken = true;
        if self.shell.gate == Gate::Discard {
            self.shell.discard_queued();
        }
    }

    fn follow_events(&mut self, now: Time) {
        if self.shell.events.is_empty() {
            return self.set_copies(now);
        }
        for event in std::mem::take(&mut self.shell.events) {
            match event {
                Event::Activated => self.wanted = true,
                // The peer took leave, or will not begin. If somebody here wants protection the endpoint keeps trying by
                // itself; until it succeeds there is nothing to wait for.
                Event::Deactivated | Event::Refused(Refusal::Deactivated) => {
                    self.wanted = false;
                    self.shell.framing.forget_peer();
                }
                // The endpoint tries again.
                Event::Refused(_) | Event::PeerLost => self.shell.framing.forget_peer(),
                Event::Level(_) => {}
            }
            self.news.push(News::Endpoint(event));
        }
        self.set_gate();
    }

    fn set_copies(&mut self, now: Time) {
        let needed = self.copies.as_mut().and_then(|by_loss| by_loss.needed(self.endpoint.counters()));
        if let Some(copies) = needed.filter(|copies| *copies != self.endpoint.copies().0) {
            self.endpoint.on_command(now, Command::SetCopies(copies), &mut self.shell);
        }
    }
}

fn write_ready(
    coalescer: &mut Coalescer<u32>,
    delivered: &[Frame],
    pool: &Pool,
    host: &mut dyn Host,
    tally: &mut Tally,
) -> io::Result<()> {
    while let Some(batch) = coalescer.pop() {
        let mut slices = [io::IoSlice::new(&[]); 1 + offload::MOST_JOINED];
        slices[0] = io::IoSlice::new(batch.prefix());
        for (slice, part) in slices[1..].iter_mut().zip(batch.parts()) {
            *slice = io::IoSlice::new(part.of(pool.get(&delivered[part.handle as usize])));
        }
        if !host.deliver(&slices[..1 + batch.parts().len()])? {
            tally.host_refused += batch.parts().len() as u64;
        }
    }
    Ok(())
}

/// The kernel refuses this frame, not the wire.
fn is_about_the_frame(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMSGSIZE | libc::EINVAL | libc::ENOMEM))
}
