//! A meter on a real interface: LossRadar, li-thesis §5.3.
//!
//! ```text
//!   interface ──ring──▶ out  ──signature──▶ digest of the batch ─┐ every 10 ms
//!                       came ──signature──▶ digest of the batch ─┴──▶ Report ──▶ the collector
//! ```
//!
//! Packets that leave go into one digest, packets that arrive into another; the time at which the kernel saw a packet
//! decides to which batch it belongs. A batch in which nothing passed is reported as well: so others know that time has
//! passed. The ring is polled every few milliseconds rather than for every packet, which costs least.
//!
//! Super-frames of segmentation and receive offloads (`cut`) are cut into what is on the wire; frames of a protected link
//! (`tag`) are looked into for their numbers.
//!
//! [`digests`] carries reports to a collector, by TCP or Redis, and compares them there. [`flows`] is another meter: every flow of a
//! switch, for the map.
//!
//! Invariant: what passed and could not be looked at is counted in the report of its batch, so that it is never taken for
//! lost.

pub mod cost;
mod cut;
#[forbid(unsafe_code)]
pub mod digests;
#[forbid(unsafe_code)]
pub mod flows;
mod recall;
mod tag;

use capture::LinkType;
use std::io::{self, PipeReader};
use std::os::fd::AsRawFd;
use std::time::Duration;

use radar::digest::{Digest, DigestShape};
use radar::meter::Meter;
use radar::packet::{Flow, Packet};
use radar::read;
use radar::rounds::RoundTable;
use radar::segment::{MeterReport, ReportFacts};
use radar::signature::Signature;
use radar::trail::trail_hash;

use cut::SegmentCutter;
use linux::SystemError;
use linux::clock::{Clock, time_of_day};
use linux::net::{Netlink, Offload};
use linux::packet::{PacketSocket, PacketSocketOptions, RingFrame};
use linux::poll;
use wire::ethernet::{ETHERNET, TAG};
use wire::ip;

pub use recall::MeterTrail;
use recall::TrailWriter;

/// Time between two looks at a ring that has something in it.
const NAP: Duration = Duration::from_millis(2);
/// Frames taken at a time.
const AT_A_TIME: usize = 4_096;
/// Frames that a ring holds: of beginnings some 30 ms of a million packets a second, of whole super-frames 64 MB.
const BEGINNINGS: usize = 32_768;
const SUPER_FRAMES: usize = 1_024;
/// Enough of a frame: every header that it may have, and as much of its packet as is looked at.
const SNAP: usize = 256;
/// The longest super-frame; with the ring's own header that is a slot of 64 KB.
const LONGEST_SUPER_FRAME: usize = (64 << 10) - 256;
/// A clock that is further off than this has been set.
const CLOCK_WAS_SET: u64 = 2_000_000_000;

#[derive(Clone, Debug)]
pub struct MeterConfig {
    pub interface: String,
    pub segment: String,
    /// The name of this end of the segment.
    pub end: String,
    /// Duration of a batch.
    pub batch: Duration,
    /// Shapes of the digests of packets that leave and of packets that arrive.
    pub shapes: [DigestShape; 2],
    /// Counts frames for other hosts, too.
    pub promiscuous: bool,
    /// A number that no other run of a meter has.
    pub life: u64,
    /// Bytes for the latest packets; none are kept with zero.
    pub trail: usize,
}

/// Counters of a meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterCounters {
    /// IP packets that left, and that arrived.
    pub packets: [u64; 2],
    /// Frames that carry no IP packet.
    pub other: u64,
    /// Frames that passed unseen: the ring was full, or they were too long for it.
    pub missed: u64,
    /// Super-frames, which were cut into packets.
    pub super_frames: u64,
    /// Frames with a number of the protected link's.
    pub tagged: u64,
    pub batches: u64,
}

pub struct LiveMeter {
    config: MeterConfig,
    index: u32,
    mtu: u32,
    socket: PacketSocket,
    /// Super-frames come: whole frames are needed.
    whole: bool,
    state: MeterState,
    trail: MeterTrail,
}

impl std::fmt::Debug for LiveMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveMeter").field("config", &self.config).finish_non_exhaustive()
    }
}

/// State that frames change.
struct MeterState {
    length: u64,
    longest: usize,
    shapes: [DigestShape; 2],
    meters: [Meter; 2],
    /// Numbers of the link's, each way.
    numbers: [tag::BatchNumbers; 2],
    /// The first batch that is open.
    next: u64,
    /// Missed packets that are not reported yet.
    untold: u64,
    /// Batches up to this one may miss packets.
    doubted: u64,
    cut: SegmentCutter,
    /// Packets that come round, each way.
    rounds: [RoundTable; 2],
    seen: MeterCounters,
}

/// Event that a person should know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterNotice {
    /// Super-frames come, because an offload is on.
    SuperFrames,
    /// The clock was set; what passed meanwhile is not judged.
    ClockWasSet,
    InterfaceDown,
}

impl LiveMeter {
    /// Opens a meter in the network namespace of the calling thread.
    pub fn open(config: MeterConfig) -> Result<Self, SystemError> {
        let netlink = Netlink::open()?;
        let name = &config.interface;
        // On a protected link the meter takes the wire: losses there never show at the stand-in.
        let link = netlink.wire_of(name)?;
        let link =
            link.ok_or_else(|| SystemError(format!("there is no interface {name}; `ip link` shows which there are")))?;
        // An offload that cannot be queried counts as off.
        let whole =
            [Offload::Tso, Offload::Gro].iter().any(|offload| netlink.offload(&link.name, *offload).unwrap_or(false));
        let socket = open_socket(&config, link.index, whole)?;
        let length = config.batch.as_nanos() as u64;
        let state = MeterState {
            length,
            longest: link.mtu as usize + ETHERNET + TAG,
            shapes: config.shapes,
            meters: config.shapes.map(Meter::new),
            numbers: [tag::BatchNumbers::default(); 2],
            next: now() / length,
            untold: 0,
            doubted: 0,
            cut: SegmentCutter::default(),
            rounds: [RoundTable::default(), RoundTable::default()],
            seen: MeterCounters::default(),
        };
        let trail = MeterTrail::new(config.trail, length);
        Ok(Self { config, index: link.index, mtu: link.mtu, socket, whole, state, trail })
    }

    /// True if super-frames were to be expected when it was opened.
    pub fn expects_super_frames(&self) -> bool {
        self.whole
    }

    pub fn seen(&self) -> MeterCounters {
        self.state.seen
    }

    /// The latest packets, for a collector's questions.
    pub fn trail(&self) -> MeterTrail {
        self.trail.clone()
    }

    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Reports batch by batch until the time is over, or `stop` has something to read or is closed at its other end.
    pub fn run(
        &mut self,
        stop: &PipeReader,
        until: Option<Duration>,
        report: &mut dyn FnMut(&MeterReport),
        notice: &mut dyn FnMut(MeterNotice),
    ) -> Result<MeterCounters, SystemError> {
        let clock = Clock::start();
        let mut told_of_super_frames = false;
        loop {
            let took = self.look(report);
            if self.state.cut.any() && !std::mem::replace(&mut told_of_super_frames, true) {
                notice(MeterNotice::SuperFrames);
                self.take_whole_frames()?;
            }
            // Packets still in the ring belong to batches that must stay open for them.
            if took < AT_A_TIME && self.close(report) {
                notice(MeterNotice::ClockWasSet);
            }
            if until.is_some_and(|until| clock.elapsed() >= until) || self.wait(took, stop, notice)? {
                return Ok(self.state.seen);
            }
        }
    }

    /// Takes what is in the ring, or much of it; how many frames that was.
    fn look(&mut self, report: &mut dyn FnMut(&MeterReport)) -> usize {
        let Self { config, socket, state, trail, .. } = self;
        state.note_missed(socket.overflowed());
        let mut trail = trail.writer();
        socket.receive(AT_A_TIME, |frame| {
            let batch = (frame.at.as_nanos() as u64 / state.length).max(state.next);
            // Only the two latest batches are open; time closes them, unless this program was held up.
            while batch >= state.next + 2 && batch - state.next < clock_was_set(state.length) {
                state.over(config, report);
            }
            state.on_frame(batch.min(state.next + 1), &frame, &mut trail);
        })
    }

    /// Reports the batches that are over. True if the clock was set.
    fn close(&mut self, report: &mut dyn FnMut(&MeterReport)) -> bool {
        let batch = now() / self.state.length;
        self.state.note_missed(self.socket.overflowed());
        if batch.abs_diff(self.state.next) > clock_was_set(self.state.length) {
            self.config.life = self.config.life.wrapping_add(1);
            self.state.begin(batch);
            self.trail.writer().forget();
            return true;
        }
        while self.state.next < batch {
            self.state.over(&self.config, report);
        }
        false
    }

    /// True if it is time to end.
    fn wait(
        &mut self,
        took: usize,
        stop: &PipeReader,
        notice: &mut dyn FnMut(MeterNotice),
    ) -> Result<bool, SystemError> {
        let failed = |error: io::Error| SystemError(error.to_string());
        let to_close = Duration::from_nanos(self.state.length - now() % self.state.length);
        // A ring that fills is left alone for a moment; one that is empty is waited for.
        let (most, ring) = match took {
            0 => (to_close, self.socket.fd()),
            AT_A_TIME.. => (Duration::ZERO, -1),
            _ => (NAP.min(to_close), -1),
        };
        let fds = [(stop.as_raw_fd(), false), (ring, false)];
        let [stopped, ring] = poll::wait(&fds, most).map_err(failed)?;
        if ring == poll::Readiness::Failed
            && let Err(error) = self.socket.take_error()
        {
            let link = Netlink::open()?.wire_of(&self.config.interface)?;
            if link.is_none_or(|link| link.index != self.index) {
                return Err(SystemError(format!("{} is gone: {error}", self.config.interface)));
            }
            notice(MeterNotice::InterfaceDown);
        }
        Ok(stopped != poll::Readiness::Nothing)
    }

    /// Changes from the beginnings of frames to whole frames. The rest of the old ring is not read any more.
    fn take_whole_frames(&mut self) -> Result<(), SystemError> {
        if !std::mem::replace(&mut self.whole, true) {
            self.socket = open_socket(&self.config, self.index, true)?;
            self.state.note_missed(1);
        }
        Ok(())
    }
}

/// Packet that a meter sees in a frame, also in that of a protected link; `None` if there is no IP packet in it.
pub fn packet(frame: &[u8]) -> Option<Packet> {
    read_packet(frame, tag::inside(frame, frame.len()).as_ref())
}

fn read_packet(frame: &[u8], tagged: Option<&tag::TaggedFrame<'_>>) -> Option<Packet> {
    match tagged {
        None => read::packet(frame, LinkType::Ethernet, read::DEPTH),
        Some(tagged) => read::packet(tagged.packet?, LinkType::Ip, read::DEPTH),
    }
}

/// Flow of the packet that a router says has expired, in a frame of ICMP.
fn read_expired(frame: &[u8], tagged: Option<&tag::TaggedFrame<'_>>) -> Option<Flow> {
    match tagged {
        None => read::expired_flow(frame, LinkType::Ethernet),
        Some(tagged) => read::expired_flow(tagged.packet?, LinkType::Ip),
    }
}

/// Batches that a clock may be off before it must have been set.
fn clock_was_set(length: u64) -> u64 {
    (CLOCK_WAS_SET / length).max(2)
}

fn now() -> u64 {
    time_of_day().as_nanos() as u64
}

fn open_socket(config: &MeterConfig, index: u32, whole: bool) -> Result<PacketSocket, SystemError> {
    let (longest, frames) = if whole { (LONGEST_SUPER_FRAME, SUPER_FRAMES) } else { (SNAP, BEGINNINGS) };
    let options = PacketSocketOptions {
        vnet: true,
        longest,
        frames,
        send_buffer: 4_096,
        promiscuous: config.promiscuous,
        outgoing_too: true,
    };
    match PacketSocket::open(index, &options) {
        Ok(socket) if whole => Ok(socket),
        Ok(socket) => Ok(socket.only_beginnings()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(SystemError(format!(
            "{}: {error}; a meter needs root, sudo or the capability CAP_NET_RAW",
            config.interface
        ))),
        Err(error) => Err(SystemError(format!("packet socket on {}: {error}", config.interface))),
    }
}

impl MeterState {
    fn on_frame(&mut self, batch: u64, frame: &RingFrame<'_>, trail: &mut TrailWriter<'_>) {
        let way = usize::from(!frame.outgoing);
        trail.at = frame.at.as_nanos() as u64;
        if !SegmentCutter::is_super_frame(frame, self.longest) {
            return self.on_bytes(batch, way, frame.bytes, frame.len, trail);
        }
        self.seen.super_frames += 1;
        let mut cut = std::mem::take(&mut self.cut);
        match cut.cut(frame, self.shapes[way].fields.ip_id) {
            Some(pieces) => pieces.for_each(|piece| self.on_bytes(batch, way, piece, piece.len(), trail)),
            None => self.note_missed(1),
        }
        self.cut = cut;
    }

    fn on_bytes(&mut self, batch: u64, way: usize, bytes: &[u8], len: usize, trail: &mut TrailWriter<'_>) {
        let tagged = tag::inside(bytes, len);
        let packet = read_packet(bytes, tagged.as_ref());
        self.seen.tagged += u64::from(tagged.is_some());
        let number = tagged.as_ref().and_then(|tagged| tagged.number);
        match (number, &packet) {
            (Some(number), _) => self.numbers[way].of(batch > self.next).on_number(number),
            (None, Some(_)) => self.numbers[way].of(batch > self.next).on_other(),
            (None, None) => {}
        }
        match packet {
            Some(packet) => {
                let is_told = way == 1 && matches!(packet.flow.protocol, ip::ICMP | ip::ICMP_V6);
                if is_told && let Some(flow) = read_expired(bytes, tagged.as_ref()) {
                    trail.tell_expired(&flow);
                }
                self.on_packet(batch, way, &packet, trail);
            }
            None => self.seen.other += 1,
        }
    }

    fn on_packet(&mut self, batch: u64, way: usize, packet: &Packet, trail: &mut TrailWriter<'_>) {
        self.seen.packets[way] += 1;
        let signature = Signature::new(packet, self.shapes[way].fields);
        let hash = trail_hash(&signature);
        self.rounds[way].on_packet(way as u8, hash, packet.ttl, &packet.flow);
        trail.record(way, batch, hash, packet);
        let over = self.meters[way].insert(batch, &signature);
        debug_assert!(over.is_none(), "there are never three batches");
    }

    /// Counts frames that passed unseen before now, but after the batches that have ended.
    fn note_missed(&mut self, frames: u64) {
        if frames > 0 {
            self.seen.missed += frames;
            self.untold += frames;
            self.doubted = now() / self.length;
        }
    }

    /// The first batch that is open is over.
    fn over(&mut self, config: &MeterConfig, report: &mut dyn FnMut(&MeterReport)) {
        let batch = self.next;
        self.next += 1;
        self.seen.batches += 1;
        let mut missed = std::mem::take(&mut self.untold);
        if batch <= self.doubted {
            missed = missed.max(1);
        }
        let [out, came] = [0, 1].map(|way| {
            let closed = self.meters[way].close(batch + 1).pop();
            closed.map_or_else(|| Digest::new(self.shapes[way]), |closed| closed.digest)
        });
        let told = MeterReport {
            segment: config.segment.clone(),
            end: config.end.clone(),
            life: config.life,
            batch,
            length: self.length,
            missed,
            out,
            out_number: self.numbers[0].over(),
            came,
            came_number: self.numbers[1].over(),
            facts: ReportFacts { rounds: self.rounds.iter_mut().filter_map(RoundTable::take).collect() },
        };
        report(&told);
        for (meter, digest) in self.meters.iter_mut().zip([told.out, told.came]) {
            meter.give_back(radar::meter::Batch { number: batch, digest });
        }
    }

    fn begin(&mut self, batch: u64) {
        self.meters = self.shapes.map(Meter::new);
        self.next = batch;
        (self.untold, self.doubted) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
