//! The wire between two hosts: delays everything, loses what its script says, and keeps what it lost and what passed.
//!
//! A packet socket at each end sees what passes, with the kernel's own times: the wire may be late, its captures are not.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::Duration;

use explain::terms::EndSide;
use faults::Random;
use linux::clock::Clock;
use linux::poll;
use units::StopFlag;

use crate::script::{ScriptedFate, ScriptedPacket, WireScript};
use crate::stage::HostPlug;

/// Time that it waits before it checks for a stop.
const LOOK: Duration = Duration::from_millis(20);
const TCP: u8 = 6;
/// The longest packet without payload.
const HEADERS: u32 = 120;
/// Time that packets are on their way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireDelay {
    /// One way.
    pub each: Duration,
    /// Extra delay of packets with payload.
    pub payload: Duration,
}

impl WireDelay {
    fn of(self, payload: bool) -> Duration {
        self.each + if payload { self.payload } else { Duration::ZERO }
    }
}

/// A packet that the wire dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WireLoss {
    pub from: EndSide,
    pub seq: u32,
    pub len: u32,
    pub is_syn: bool,
}

/// A packet as the packet socket of an end saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SocketPacket {
    /// Time since 1970.
    pub at: Duration,
    pub len: u32,
    pub bytes: Vec<u8>,
    pub outgoing: bool,
}

/// Packets that passed, and packets that did not.
#[derive(Debug, Default)]
pub(crate) struct WireRecord {
    pub dropped: Vec<WireLoss>,
    /// Packets in each end's capture.
    pub seen: [Vec<SocketPacket>; 2],
}

/// Drops each packet with this chance.
#[derive(Debug)]
pub(crate) struct RandomLoss {
    pub random: Random,
    pub chance: f64,
}

#[derive(Debug)]
pub(crate) struct TestWire {
    pub plugs: [HostPlug; 2],
    pub delay: WireDelay,
    pub script: WireScript,
    pub loss: Option<RandomLoss>,
    first: [Option<u32>; 2],
    /// Packets by the time at which they are due; the number keeps the order of those that are due at once.
    on_way: BTreeMap<(Duration, u64), (usize, Vec<u8>)>,
    carried: u64,
    /// Delivery time of the last packet each way: packets do not overtake each other, unless the script says so.
    last_due: [Duration; 2],
    record: WireRecord,
}

impl TestWire {
    pub(crate) fn new(plugs: [HostPlug; 2], delay: WireDelay, script: WireScript, loss: Option<RandomLoss>) -> Self {
        let record = WireRecord::default();
        let (first, last_due) = ([None; 2], [Duration::ZERO; 2]);
        Self { plugs, delay, script, loss, first, on_way: BTreeMap::new(), carried: 0, last_due, record }
    }

    /// Carries packets until it is stopped.
    pub(crate) fn run(mut self, stop: &StopFlag) -> io::Result<WireRecord> {
        let clock = Clock::start();
        while !stop.is_stopped() {
            let next = self.on_way.keys().next().map(|(due, _)| due.saturating_sub(clock.elapsed()));
            let fds = [(self.plugs[0].tun.fd(), false), (self.plugs[1].tun.fd(), false)];
            poll::wait(&fds, next.unwrap_or(LOOK).min(LOOK))?;
            for end in 0..2 {
                self.take_in(end, clock.elapsed())?;
            }
            self.let_out(clock.elapsed())?;
            self.look();
        }
        self.look();
        Ok(self.record)
    }

    fn take_in(&mut self, end: usize, now: Duration) -> io::Result<()> {
        while let Some(packet) = self.plugs[end].tun.receive()? {
            let Some(content) = read(packet, end, &mut self.first) else { continue };
            let by_chance = self.loss.as_mut().is_some_and(|loss| loss.random.unit() < loss.chance);
            let fate = if by_chance { Some(ScriptedFate::Lost) } else { self.script.fate(&content) };
            let later = match fate {
                Some(ScriptedFate::Lost) => {
                    let ScriptedPacket { from, seq, len, is_syn, .. } = content;
                    self.record.dropped.push(WireLoss { from, seq, len, is_syn });
                    continue;
                }
                Some(ScriptedFate::Late(later)) => later,
                None => Duration::ZERO,
            };
            self.carried += 1;
            let mut due = (now + self.delay.of(content.len > 0)).max(self.last_due[end]);
            self.last_due[end] = due;
            due += later;
            self.on_way.insert((due, self.carried), (1 - end, packet.to_vec()));
        }
        Ok(())
    }

    fn let_out(&mut self, now: Duration) -> io::Result<()> {
        while let Some(entry) = self.on_way.first_entry().filter(|entry| entry.key().0 <= now) {
            let (end, packet) = entry.remove();
            self.plugs[end].tun.send(&packet)?;
        }
        Ok(())
    }

    /// Empties the packet sockets.
    fn look(&mut self) {
        for (plug, seen) in self.plugs.iter_mut().zip(&mut self.record.seen) {
            plug.sniffer.receive(usize::MAX, |frame| {
                let (at, len, outgoing) = (frame.at, frame.len as u32, frame.outgoing);
                seen.push(SocketPacket { at, len, bytes: frame.bytes.to_vec(), outgoing });
            });
        }
    }
}

/// Parses an IPv4 packet with TCP; `None` for other packets, which the wire does not carry.
fn read(packet: &[u8], end: usize, first: &mut [Option<u32>; 2]) -> Option<ScriptedPacket> {
    let header = usize::from(packet.first()? & 15) * 4;
    if packet.first()? >> 4 != 4 || *packet.get(9)? != TCP {
        return None;
    }
    let tcp = packet.get(header..)?;
    let word = |at: usize| Some(u32::from_be_bytes(*tcp.get(at..)?.first_chunk()?));
    let (seq, ack, flags) = (word(4)?, word(8)?, *tcp.get(13)?);
    let len = (tcp.len() - usize::from(tcp.get(12)? >> 4) * 4) as u32;
    let is_syn = flags & 2 != 0;
    if is_syn {
        first[end] = Some(seq.wrapping_add(1));
    }
    let from = [EndSide::Client, EndSide::Server][end];
    let position = seq.wrapping_sub(first[end]?);
    let acked = first[1 - end].map_or(0, |first| ack.wrapping_sub(first));
    Some(ScriptedPacket { from, seq, position, len, acked, is_syn, is_fin: flags & 1 != 0 })
}

impl WireRecord {
    /// Longest time that packets took beyond the delay, unless the script held them up; `None` if some were lost that the
    /// wire did not drop.
    pub(crate) fn lag(&self, delay: WireDelay) -> Option<Duration> {
        let lags: Option<Vec<Duration>> = (0..2).map(|end| self.lag_from(end, delay)).collect();
        let left = |end: usize| self.seen[end].iter().filter(|packet| packet.outgoing).count();
        let came = |end: usize| self.seen[end].iter().filter(|packet| !packet.outgoing).count();
        let is_whole = left(0) + left(1) == came(0) + came(1) + self.dropped.len();
        lags.filter(|_| is_whole)?.into_iter().max()
    }

    fn lag_from(&self, end: usize, delay: WireDelay) -> Option<Duration> {
        let mut left: HashMap<&[u8], Vec<Duration>> = HashMap::new();
        for packet in self.seen[end].iter().filter(|packet| packet.outgoing) {
            left.entry(&packet.bytes).or_default().push(packet.at);
        }
        let mut most = Duration::ZERO;
        let mut before = Duration::ZERO;
        for packet in self.seen[1 - end].iter().filter(|packet| !packet.outgoing) {
            let sent = left.get_mut(packet.bytes.as_slice()).filter(|times| !times.is_empty())?.remove(0);
            // The script held up a packet that was overtaken.
            if sent >= before {
                most = most.max(packet.at.saturating_sub(sent + delay.of(packet.len > HEADERS)));
                before = sent;
            }
        }
        Some(most)
    }
}
