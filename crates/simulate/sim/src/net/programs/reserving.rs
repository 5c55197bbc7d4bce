//! Reservations: the switch of a rack answers its hosts, and lets their packets pass when their time has come.
//!
//! PL2, by [`ReservingSwitch`]. A rack is a switch with hosts; other switches only forward. An RSV is turned round as its
//! answer, or held until its answer is due. What the switch sends by itself (copies of GRTs for receivers) leaves when the
//! program is woken, at once. Packets that come from other racks carry marks of those: here they are not reserved.
//!
//! Every run compares the data in the queue of a port with the bound. A queue beyond it is an error of this program, except
//! with the scheduler of the paper, which has no bound, and above protected links: a link that repeats frames or holds them
//! back carries less than slots assume.

use machine::{DropReason, Forward, SwitchOut, SwitchPort, SwitchProgram, Ticket, Visit};
use reserve::{
    Charge, DataAnswer, FrameVisit, MessageAnswer, MessageVisit, PortReservation, RackParams, ReservingSwitch,
    SchedulerKind, SwitchCounters,
};
use units::{Bytes, Span, Time};
use wire::ethernet::{MIN_FRAME, on_wire};
use wire::reserve::{BurstId, HostKey, ReserveHeader, ReserveMessage, ReserveVerb};

use super::NetworkProgram;
use crate::net::packet::SimPacket;
use crate::net::reserving_host::RackSetup;
use crate::net::setup::NetworkSetup;
use crate::net::transports::Body;
use crate::topology::{DirectedLink, NodeId};

/// Tag on a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReserveTag {
    header: Option<ReserveHeader>,
    /// Charge while it is in a queue.
    charge: Charge,
    /// Bytes that it takes in a queue of data.
    queued: u16,
}

/// Totals of the racks of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct RackOutcome {
    /// All switches together, over all their runs.
    pub switches: SwitchCounters,
    /// The most bytes of data that waited at each port, in the order of ports: only those of racks.
    pub peaks: Vec<(DirectedLink, Bytes)>,
    /// The most that waited at any port in each quarter of the time that the run may take.
    pub quarters: [Bytes; 4],
    /// The most that may wait at a port.
    pub bound: Bytes,
    /// Packets that joined a longer queue, where there is a bound.
    pub violations: u64,
    /// Time for which the fullest port is still reserved at the end.
    pub reserved_left: Span,
    /// Distance of port counters from zero at the end, in frames or bytes: the largest, with its sign.
    pub counted_left: i64,
    /// Messages that found no room in a queue.
    pub messages_dropped: u64,
    /// Times that a switch was restarted.
    pub restarts: u64,
}

/// One rack.
#[derive(Debug)]
struct SimRack {
    switch: ReservingSwitch,
    params: RackParams,
    /// Length up to which a queue keeps its bound.
    least_bound: u64,
    /// True if one of its links may fall behind its slots, because it repeats frames or holds them back.
    falls_behind: bool,
    /// Counters of runs that are over.
    before: SwitchCounters,
    restarts: u64,
    /// Bytes queued, by port.
    queued: Vec<u64>,
    peaks: Vec<u64>,
    links: Vec<DirectedLink>,
}

/// An answer that a packet gets when it leaves the switch by this port.
#[derive(Debug)]
struct LatePacket {
    port: u32,
    about: BurstId,
    message: ReserveMessage,
}

/// The program of all switches.
#[derive(Debug)]
pub(crate) struct ReservingProgram {
    /// Racks by switch.
    racks: Vec<Option<SimRack>>,
    /// Place of each directed link's port among those of its switch, and the host that sends by it, if one does.
    places: Vec<u16>,
    hosts: Vec<Option<HostKey>>,
    /// Shows receivers what is granted to their senders.
    copies_grants: bool,
    /// Frames to make, held frames to drop, and what is to be written on frames that leave.
    copies: Vec<(SwitchPort, SimPacket)>,
    dropped: Vec<Ticket>,
    written: Vec<LatePacket>,
    restarts: Vec<(Time, u32)>,
    wake_at: Time,
    until: Time,
    quarters: [u64; 4],
    /// Current quarter of the run, and its end.
    quarter: usize,
    quarter_ends: Time,
    violations: u64,
    messages_dropped: u64,
}

impl SimRack {
    fn counters(&self) -> SwitchCounters {
        let mut sum = self.before;
        sum += *self.switch.counters();
        sum
    }

    /// The most that may wait at a port; none if nothing is promised.
    fn bound(&self) -> Option<u64> {
        let counters = self.counters();
        let policed = self.params.ingress_share.get() > 0.0;
        let is_open = counters.unreserved > 0 && !policed;
        if self.params.scheduler == SchedulerKind::Paper || self.falls_behind || is_open {
            return None;
        }
        // Includes packets treated as unsolicited, wanted or not, and grants of runs before.
        let unsolicited = self.params.unsolicited || counters.uncovered + counters.early > 0;
        let bound = RackParams { unsolicited, ..self.params }.bound(self.params.ports - 1).total();
        Some(bound.get() * (1 + self.restarts))
    }

    /// Restarts the switch, which forgets all reservations.
    fn restart(&mut self, dropped: &mut Vec<Ticket>) {
        for port in 0..self.params.ports {
            self.switch.on_port_down(port, |token| dropped.push(Ticket(token as u32)));
        }
        self.before = self.counters();
        self.restarts += 1;
        let epoch = self.switch.epoch().wrapping_add(1);
        self.switch = made(self.params, epoch);
    }
}

/// # Panics
/// If the parameters are not valid, which is found out when a scenario is read.
fn made(params: RackParams, epoch: u16) -> ReservingSwitch {
    ReservingSwitch::new(params, epoch).expect("parameters are checked before")
}

impl ReservingProgram {
    pub(crate) fn new(setup: &NetworkSetup, rack: &RackSetup) -> Self {
        let topology = &setup.topology;
        let mut places = vec![0; topology.directed().count()];
        let racks = topology.switches().map(|node| rack_at(setup, node, rack, &mut places)).collect();
        let key = |node| topology.hosts().position(|host| host == node).map(|number| HostKey::new(number as u64));
        let number = |node| topology.switches().position(|switch| switch == node).unwrap_or_default() as u32;
        let mut restarts: Vec<(Time, u32)> = rack.restarts.iter().map(|(at, node)| (*at, number(*node))).collect();
        restarts.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
        let mut program = Self {
            racks,
            places,
            hosts: topology.directed().map(|link| key(topology.from(link))).collect(),
            copies_grants: rack.resets,
            copies: Vec::new(),
            dropped: Vec::new(),
            written: Vec::new(),
            restarts,
            wake_at: Time::NEVER,
            until: setup.until,
            quarters: [0; 4],
            quarter: 0,
            quarter_ends: end_of_quarter(0, setup.until),
            violations: 0,
            messages_dropped: 0,
        };
        program.wake_next();
        program
    }

    /// Totals, for a run that ended at this time.
    pub(crate) fn finish(self, ended: Time) -> RackOutcome {
        let racks = || self.racks.iter().flatten();
        let mut switches = SwitchCounters::default();
        racks().for_each(|rack| switches += rack.counters());
        let peaks = racks().flat_map(|rack| rack.links.iter().copied().zip(rack.peaks.iter().copied().map(Bytes::new)));
        let mut peaks: Vec<(DirectedLink, Bytes)> = peaks.collect();
        peaks.sort_unstable_by_key(|(link, _)| *link);
        let ports = |rack: &SimRack| (0..rack.params.ports).map(|port| rack.switch.reserved(ended, port)).collect();
        let left: Vec<PortReservation> = racks().flat_map::<Vec<_>, _>(ports).collect();
        let counted = left.iter().flat_map(|port| <[i64; 2]>::from(port.counted));
        let bound = racks().map(|rack| rack.params.bound(rack.params.ports - 1).total()).max().unwrap_or_default();
        RackOutcome {
            switches,
            quarters: self.quarters.map(Bytes::new),
            bound,
            violations: self.violations,
            reserved_left: left.iter().map(|port| port.send.max(port.recv)).max().unwrap_or_default(),
            counted_left: counted.max_by_key(|count| count.unsigned_abs()).unwrap_or_default(),
            messages_dropped: self.messages_dropped,
            restarts: racks().map(|rack| rack.restarts).sum(),
            peaks,
        }
    }

    fn wake_next(&mut self) {
        let racks = self.racks.iter().flatten().map(|rack| rack.switch.wake_at()).min().unwrap_or(Time::NEVER);
        self.wake_at = racks.min(self.restarts.last().map_or(Time::NEVER, |(at, _)| *at));
    }

    fn on_message(&mut self, now: Time, at: Visit, frame: &mut SimPacket, tag: &mut ReserveTag) -> Forward {
        let Some(ReserveHeader::Message(message)) = tag.header else { return Forward::Pass };
        let Some(sender) = self.hosts[frame.came_by.index()] else { return Forward::Pass };
        let Some(rack) = &mut self.racks[at.at.switch as usize] else { return Forward::Pass };
        let (from, to) = (self.places[frame.came_by.reversed().index()], self.places[at.at.port as usize]);
        let visit = MessageVisit { from, peer: Some(to), source: Some(from), token: u64::from(at.ticket.0) };
        let answer = rack.switch.on_message(now, visit, &message);
        self.wake_at = self.wake_at.min(rack.switch.wake_at());
        match answer {
            MessageAnswer::Reply(reply) => {
                if self.copies_grants && rack.switch.copies_grants() {
                    self.copy(at.at, frame, &reply, sender);
                }
                tag.header = Some(ReserveHeader::Message(reply));
                Forward::Back
            }
            MessageAnswer::Kept(replaced) => {
                self.drop_held(replaced);
                Forward::Hold
            }
            MessageAnswer::Done => Forward::Drop,
        }
    }

    /// Shows the receiver the grants of its sender.
    fn copy(&mut self, at: SwitchPort, frame: &SimPacket, reply: &ReserveMessage, sender: HostKey) {
        let Some(message) = ReservingSwitch::copy_for_receiver(reply, sender) else { return };
        self.copies.push((at, *frame));
        self.written.push(LatePacket { port: at.port, about: message.about.id, message });
        self.wake_at = Time::ZERO;
    }

    fn drop_held(&mut self, token: Option<u64>) {
        if let Some(token) = token {
            self.dropped.push(Ticket(token as u32));
            self.wake_at = Time::ZERO;
        }
    }

    fn on_data(&mut self, now: Time, at: Visit, frame: &mut SimPacket, tag: &mut ReserveTag) -> Forward {
        let Some(rack) = &mut self.racks[at.at.switch as usize] else { return Forward::Pass };
        let to = self.places[at.at.port as usize];
        let from = self.places[frame.came_by.reversed().index()];
        let visit = FrameVisit { from, to, len: u32::from(frame.len) };
        let mark = match &tag.header {
            Some(ReserveHeader::Mark(mark)) if self.hosts[frame.came_by.index()].is_some() => Some(mark),
            _ => None,
        };
        match rack.switch.on_data(now, visit, mark) {
            DataAnswer::Pass(charge) => {
                let queued = on_wire(u32::from(frame.len));
                (tag.charge, tag.queued) = (charge, queued as u16);
                let length = &mut rack.queued[usize::from(to)];
                *length += u64::from(queued);
                if *length > rack.peaks[usize::from(to)] {
                    rack.peaks[usize::from(to)] = *length;
                }
                let length = *length;
                while now >= self.quarter_ends && self.quarter < 3 {
                    self.quarter += 1;
                    self.quarter_ends = end_of_quarter(self.quarter, self.until);
                }
                let longest = &mut self.quarters[self.quarter];
                *longest = length.max(*longest);
                let exceeds = length > rack.least_bound && rack.bound().is_some_and(|bound| length > bound);
                self.violations += u64::from(exceeds);
                Forward::Pass
            }
            DataAnswer::Cut(message) => {
                (frame.body, frame.len, frame.class) = (Body::Reservation, MIN_FRAME as u16, 0);
                tag.header = Some(ReserveHeader::Message(message));
                Forward::Back
            }
            DataAnswer::Drop => Forward::Drop,
        }
    }

    /// A packet has left the queue of a port, or was not let in.
    fn on_gone(&mut self, switch: u32, port: u32, tag: &mut ReserveTag) {
        let Some(rack) = &mut self.racks[switch as usize] else { return };
        let queued = u64::from(std::mem::take(&mut tag.queued));
        if queued == 0 {
            return;
        }
        rack.queued[usize::from(self.places[port as usize])] -= queued;
        rack.switch.on_gone(std::mem::take(&mut tag.charge));
    }
}

/// End of a quarter of a run's time.
fn end_of_quarter(quarter: usize, until: Time) -> Time {
    Time::from_ps(until.as_ps() / 4 * (quarter as u64 + 1))
}

/// A switch with hosts, and the places of its ports.
fn rack_at(network: &NetworkSetup, node: NodeId, setup: &RackSetup, places: &mut [u16]) -> Option<SimRack> {
    let topology = &network.topology;
    let links: Vec<DirectedLink> = topology.directed().filter(|link| topology.from(*link) == node).collect();
    for (place, link) in links.iter().enumerate() {
        places[link.index()] = place as u16;
    }
    if !links.iter().any(|link| topology.is_host(topology.to(*link))) {
        return None;
    }
    let params = RackParams { ports: links.len() as u16, ..setup.params };
    let none = vec![0; links.len()];
    Some(SimRack {
        switch: made(params, 1),
        params,
        least_bound: params.bound(params.ports - 1).total().get(),
        falls_behind: links.iter().any(|link| network.protects(link.link())),
        before: SwitchCounters::default(),
        restarts: 0,
        queued: none.clone(),
        peaks: none,
        links,
    })
}

impl NetworkProgram for ReservingProgram {}

impl SwitchProgram for ReservingProgram {
    type Frame = SimPacket;
    type Tag = ReserveTag;

    fn watches_departures(&self) -> bool {
        true
    }

    #[inline]
    fn on_route(&mut self, now: Time, at: Visit, frame: &mut SimPacket, tag: &mut ReserveTag) -> Forward {
        match frame.body {
            Body::Reservation => self.on_message(now, at, frame, tag),
            _ => self.on_data(now, at, frame, tag),
        }
    }

    fn on_sent(&mut self, _now: Time, at: SwitchPort, frame: &mut SimPacket, tag: &mut ReserveTag) {
        if self.written.is_empty() || !matches!(frame.body, Body::Reservation) {
            return;
        }
        // One that was held still says what its sender said; one that was made says nothing.
        let asks = match &tag.header {
            None => None,
            Some(ReserveHeader::Message(ReserveMessage { verb: ReserveVerb::Rsv, about })) => Some(about.id),
            Some(_) => return,
        };
        let same = |late: &LatePacket| late.port == at.port && asks.is_none_or(|id| id == late.about);
        if let Some(found) = self.written.iter().position(same) {
            tag.header = Some(ReserveHeader::Message(self.written.remove(found).message));
        }
    }

    #[inline]
    fn on_departure(&mut self, _now: Time, at: SwitchPort, _left: u64, _frame: &mut SimPacket, tag: &mut ReserveTag) {
        self.on_gone(at.switch, at.port, tag);
    }

    fn on_drop(&mut self, _now: Time, link: u32, reason: DropReason, frame: &mut SimPacket, tag: &mut ReserveTag) {
        if reason != DropReason::Full {
            return;
        }
        self.messages_dropped += u64::from(matches!(frame.body, Body::Reservation));
        let owner = self
            .racks
            .iter()
            .position(|rack| rack.as_ref().is_some_and(|rack| rack.links.contains(&DirectedLink(link))));
        if let Some(switch) = owner {
            self.on_gone(switch as u32, link, tag);
        }
    }

    #[inline]
    fn clear(tag: &mut ReserveTag) {
        (tag.header, tag.queued) = (None, 0);
    }

    #[inline]
    fn write_reserve(tag: &mut ReserveTag, header: Option<ReserveHeader>) {
        tag.header = header;
    }

    #[inline]
    fn reserve_header(tag: &ReserveTag) -> Option<&ReserveHeader> {
        tag.header.as_ref()
    }

    #[inline]
    fn wake_at(&self) -> Time {
        self.wake_at
    }

    fn on_wake<O: SwitchOut<SimPacket>>(&mut self, now: Time, out: &mut O) {
        while let Some((_, switch)) = self.restarts.pop_if(|(at, _)| *at <= now) {
            if let Some(rack) = &mut self.racks[switch as usize] {
                rack.restart(&mut self.dropped);
            }
        }
        self.dropped.drain(..).for_each(|ticket| out.release(ticket, Forward::Drop));
        self.copies.drain(..).for_each(|(at, frame)| out.send(at, frame));
        for rack in self.racks.iter_mut().flatten() {
            while let Some(late) = rack.switch.on_wake(now) {
                let port = rack.links[usize::from(late.port)].0;
                let (about, message) = (late.message.about.id, late.message);
                self.written.push(LatePacket { port, about, message });
                out.release(Ticket(late.token as u32), Forward::Back);
            }
        }
        self.wake_next();
    }
}
