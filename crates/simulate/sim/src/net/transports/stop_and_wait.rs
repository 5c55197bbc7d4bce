//! A worked example: the simplest transport that loses nothing. It is part of the tests only.
//!
//! The sender sends one packet and waits for its acknowledgement, or for the timer, and then sends it again. The receiver
//! acknowledges what it has and counts what it had not.
//!
//! Adding it took this file, and one line in the list of `transports.rs`.

use machine::{Conversation, Machine, Out, Port, Pull};
use radar::packet::TcpFields as StreamSegment;
use units::{Span, Time};
use wire::ip::Ecn;
use wire::{ipv4, udp};

use super::{HeaderWriter, PacketSizes, SimTransport, Site};
use crate::net::address;
use crate::net::end::{FlowCounters, FlowProgress};
use settings::KeyShape::One;
use settings::{Keys, ReadResult, SettingsReader};

const HEADERS: u32 = 14 + 20 + 8 + 4;
const PAYLOAD: u32 = 1_000;
const SERVED_PORT: u16 = 7_777;

/// Packet on the wire: bytes from this offset on, or the acknowledgement of all bytes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingPacket {
    Data { offset: u64, len: u32 },
    Ack { offset: u64 },
}

/// The one timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetransmissionTimer;

impl From<RetransmissionTimer> for usize {
    fn from(_: RetransmissionTimer) -> usize {
        0
    }
}

/// Reports a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentAgain;

/// One end; each can send and receive.
#[derive(Debug)]
pub struct StopAndWait {
    timeout: Span,
    asked: u64,
    acknowledged: u64,
    /// A packet is on its way, or must be sent (again).
    waiting: bool,
    received: u64,
    owes_ack: bool,
}

impl Machine for StopAndWait {
    type Frame = WaitingPacket;
    type Inner = ();
    type Timer = RetransmissionTimer;
    type Command = u64;
    type Done = u64;
    type Note = SentAgain;

    fn on_frame<O: Out<Self>>(&mut self, _now: Time, port: Port, frame: WaitingPacket, out: &mut O) {
        match frame {
            WaitingPacket::Data { offset, len } => {
                if offset == self.received {
                    self.received += u64::from(len);
                    out.complete(self.received);
                }
                self.owes_ack = true;
            }
            WaitingPacket::Ack { offset } if offset > self.acknowledged => {
                self.acknowledged = offset;
                self.waiting = false;
                out.disarm(RetransmissionTimer);
            }
            WaitingPacket::Ack { .. } => {}
        }
        out.wake(port);
    }

    fn on_timer<O: Out<Self>>(&mut self, _now: Time, _key: RetransmissionTimer, out: &mut O) {
        self.waiting = false;
        out.note(SentAgain);
        out.wake(Port(0));
    }

    fn on_command<O: Out<Self>>(&mut self, _now: Time, bytes: u64, out: &mut O) {
        self.asked += bytes;
        out.wake(Port(0));
    }

    fn pull<O: Out<Self>>(&mut self, now: Time, port: Port, out: &mut O) -> Pull {
        if std::mem::take(&mut self.owes_ack) {
            out.transmit(port, WaitingPacket::Ack { offset: self.received });
            return Pull::Sent;
        }
        let left = self.asked - self.acknowledged;
        if self.waiting || left == 0 {
            return Pull::Idle;
        }
        let len = left.min(u64::from(PAYLOAD)) as u32;
        self.waiting = true;
        out.arm(RetransmissionTimer, now + self.timeout);
        out.transmit(port, WaitingPacket::Data { offset: self.acknowledged, len });
        Pull::Last
    }
}

impl SimTransport for StopAndWait {
    /// Time that it waits for an acknowledgement.
    type Setup = Span;

    const NAMES: &'static [&'static str] = &["stop-and-wait"];
    const KEYS: Keys = &[("wait", One)];

    fn read(table: &SettingsReader<'_>, _name: &str) -> ReadResult<Span> {
        let longest = Span::from_ms(1_000);
        Ok(table.span("wait", Span::from_ns(1)..=longest)?.unwrap_or(Span::from_ms(1)))
    }

    fn connect(timeout: &Span, _at: &mut Site<'_>) -> Self {
        Self { timeout: *timeout, asked: 0, acknowledged: 0, waiting: false, received: 0, owes_ack: false }
    }

    fn sizes(_timeout: &Span) -> PacketSizes {
        PacketSizes { payload: PAYLOAD, frame: PAYLOAD + HEADERS, longest: PAYLOAD + HEADERS, acknowledge: 0 }
    }

    fn send(bytes: u64) -> u64 {
        bytes
    }

    fn on_done(received: u64, progress: &mut FlowProgress) {
        progress.received = Some(received);
    }

    fn on_note(_note: SentAgain, counters: &mut FlowCounters) {
        counters.retransmitted += 1;
    }

    fn frame_len(frame: &WaitingPacket) -> u32 {
        match frame {
            WaitingPacket::Data { len, .. } => len + HEADERS,
            WaitingPacket::Ack { .. } => HEADERS,
        }
    }

    fn ecn(_frame: &WaitingPacket) -> Ecn {
        Ecn::NotCapable
    }

    fn with_ecn(frame: WaitingPacket, _ecn: Ecn) -> WaitingPacket {
        frame
    }

    fn ports(who: Conversation) -> [u16; 2] {
        address::ports(who, SERVED_PORT)
    }

    fn signature(frame: &WaitingPacket) -> (Option<StreamSegment>, u64) {
        let (WaitingPacket::Data { offset, .. } | WaitingPacket::Ack { offset }) = frame;
        (None, *offset)
    }

    fn write_headers(_frame: &WaitingPacket, writer: &mut HeaderWriter<'_>) {
        let ip = writer.ip(ipv4::UDP, writer.inside);
        let [source, destination] = Self::ports(writer.who);
        udp::UdpHeader { source, destination, checked: true }.emit(&ip, writer.out);
    }
}

mod tests {
    use faults::{FaultSchedule, LossModel};
    use settings::tree::TreeNode;
    use settings::{SettingsReader, UsedKeys};
    use units::{Prob, Rate, Span};

    use crate::net::{self, LinkSetup, NetworkSetup, Protection, TrafficSetup, TransportSetup, transports};
    use crate::topology::Topology;
    use crate::workload::{FlowSeries, Workload};
    use units::Unwatched;

    /// The transport of a `[[traffic]]` with these keys.
    fn transport(table: &str) -> TransportSetup {
        let (tree, used) = (TreeNode::parse(table).unwrap(), UsedKeys::default());
        let read = transports::read(&SettingsReader::new(&tree, &used)).unwrap();
        let listed = |used: &str| transports::KEYS.iter().any(|keys| keys.iter().any(|(key, _)| *key == used));
        assert!(used.into_inner().iter().all(|key| key == "transport" || listed(key)));
        read
    }

    #[test]
    fn a_new_transport_is_a_file_and_a_line_and_a_scenario_can_ask_for_it() {
        let rate = Rate::gbps(10);
        let topology = Topology::dumbbell(1, rate, rate, Span::from_ns(50)).unwrap();
        let link = topology.link_between("left", "right").unwrap().link();
        let [src, dst] = ["h0", "h1"].map(|name| topology.node(name).unwrap());
        let mut setup = NetworkSetup::new(topology);
        let forward = FaultSchedule::always(LossModel::PerFrame(Prob::literal(0.05)));
        let (reverse, protection) = (FaultSchedule::default(), Protection::None);
        setup.links.push(LinkSetup { link, forward, reverse, protection, activate_at: None });
        let series = FlowSeries { src, dst, bytes: 100_000, count: 3, gap: Span::ZERO, group: 0 };
        setup.traffic.push(TrafficSetup {
            name: "example".into(),
            transport: transport("transport = 'stop-and-wait'\nwait = '50us'"),
            work: Workload::Series(series),
            reply: 0,
            acknowledged: false,
            class: 0,
            ack_class: None,
            queue_pairs: None,
        });
        let outcome = net::run(setup, &Unwatched).unwrap();
        assert_eq!(outcome.flows.iter().map(|flow| flow.received).collect::<Vec<_>>(), [100_000; 3]);
        let (lost, again) = (outcome.ports.iter().map(|port| port.corrupted).sum::<u64>(), &outcome.flows);
        let again: u32 = again.iter().map(|flow| flow.tally.retransmitted).sum();
        assert!(lost > 0 && u64::from(again) >= lost, "{lost} lost, {again} sent again");
    }
}
