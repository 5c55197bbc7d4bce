//! A worked example: the simplest link protocol that masks loss. It is part of the tests only.
//!
//! Every frame is sent twice, with a number. The receiver delivers the copy that arrives first and drops the other. A frame
//! is lost only if both copies are: a loss of p becomes p², for half of the link's speed.
//!
//! Adding it took this file, and one line in the list of `protocols.rs`. A protocol that also runs elsewhere has its
//! machine in the `guard` crate.

use guard::pool::PoolShare;
use guard::{Counters, EndpointNote};
use machine::{FrameBody, Machine, Out, Port, Pull, QueueId};
use units::{Bytes, Time};
use wire::ethernet::on_wire;

use super::{LinkMachine, LinkProtocol, LinkSite, OnWire};
use crate::link::LinkSimConfig;
use crate::net::{EndpointPair, LinkSetup, PacketHandle};
use settings::{Keys, ReadResult, SettingsReader};

/// Bytes of the number on the wire.
const NUMBER: u32 = 4;

/// A frame with its number, from 1. It has 64 bits, so that it never wraps in a simulation.
#[derive(Clone, Debug)]
pub(crate) struct NumberedFrame<B> {
    number: u64,
    body: B,
}

impl<B: FrameBody> OnWire for NumberedFrame<B> {
    type Body = B;

    fn wire_bytes(&self) -> u32 {
        on_wire(self.frame_bytes())
    }

    fn frame_bytes(&self) -> u32 {
        self.body.len() + NUMBER
    }

    fn body(&self) -> Option<&B> {
        Some(&self.body)
    }

    fn handles(&self) -> &[B] {
        std::slice::from_ref(&self.body)
    }
}

/// One end; each can send and receive.
#[derive(Debug)]
pub(crate) struct TwiceEndpoint<B> {
    /// The second copy of the frame that was sent last.
    second: Option<NumberedFrame<B>>,
    received: u64,
    counters: Counters,
}

impl<B: FrameBody> Machine for TwiceEndpoint<B> {
    type Frame = NumberedFrame<B>;
    type Inner = B;
    type Timer = usize;
    type Command = ();
    type Done = ();
    type Note = EndpointNote;

    fn on_frame<O: Out<Self>>(&mut self, _now: Time, _port: Port, frame: NumberedFrame<B>, out: &mut O) {
        if frame.number <= self.received {
            self.counters.rx_duplicate_seq += 1;
            return out.release(frame.body);
        }
        self.counters.given_up += frame.number - self.received - 1;
        self.counters.rx_ok += 1;
        self.received = frame.number;
        out.deliver(QueueId(0), frame.body);
    }

    fn on_timer<O: Out<Self>>(&mut self, _now: Time, _key: usize, _out: &mut O) {}

    fn on_command<O: Out<Self>>(&mut self, _now: Time, _command: (), _out: &mut O) {}

    fn pull<O: Out<Self>>(&mut self, _now: Time, port: Port, out: &mut O) -> Pull {
        if let Some(copy) = self.second.take() {
            self.counters.tx_replay += 1;
            out.transmit(port, copy);
            return Pull::Sent;
        }
        let Some(body) = out.take(QueueId(0)) else { return Pull::Idle };
        self.counters.tx_ok += 1;
        let number = self.counters.tx_ok;
        self.second = Some(NumberedFrame { number, body: out.keep(&body) });
        out.transmit(port, NumberedFrame { number, body });
        Pull::Sent
    }
}

impl<B: FrameBody> LinkMachine for TwiceEndpoint<B> {
    fn is_calm(&self) -> bool {
        true
    }

    fn fingerprint(&self, _now: Time) -> u64 {
        u64::from(self.second.is_some())
    }

    fn is_drained(&self) -> bool {
        self.second.is_none()
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn tx_peak(&self) -> Bytes {
        self.tx_buffered()
    }

    fn rx_peak(&self) -> Bytes {
        Bytes::ZERO
    }

    fn tx_buffered(&self) -> Bytes {
        self.second.as_ref().map_or(Bytes::ZERO, |copy| Bytes::new(u64::from(copy.body.len())))
    }

    fn rx_held(&self) -> Bytes {
        Bytes::ZERO
    }

    fn limit_reorder<O: Out<Self>>(&mut self, _share: PoolShare, _out: &mut O) {}
}

/// Configuration; it has no keys.
#[derive(Clone, Copy, Debug)]
pub struct SendTwice;

impl LinkProtocol for SendTwice {
    type Machine = TwiceEndpoint<PacketHandle>;

    const NAMES: &'static [&'static str] = &["send-twice"];
    const KEYS: Keys = &[];

    fn read(_table: &SettingsReader<'_>, _name: &str, _path: LinkSimConfig, _link: &mut LinkSetup) -> ReadResult<Self> {
        Ok(Self)
    }

    fn pair(&self, site: LinkSite) -> EndpointPair<Self::Machine> {
        let end = || TwiceEndpoint { second: None, received: 0, counters: Counters::default() };
        EndpointPair::new([end(), end()], None, site.random, QueueId(0))
    }
}

mod tests {
    use faults::{FaultSchedule, LossModel};
    use settings::tree::TreeNode;
    use settings::{SettingsReader, UsedKeys};
    use tcp::TcpConfig;
    use units::{Prob, Rate, Span, Unwatched};

    use crate::link::LinkSimConfig;
    use crate::net::{self, LinkSetup, NetworkSetup, Protection, TrafficSetup, TransportSetup};
    use crate::topology::Topology;
    use crate::workload::{FlowSeries, Workload};

    #[test]
    fn a_new_link_protocol_is_a_file_and_a_line_and_masks_loss() {
        let rate = Rate::gbps(10);
        let topology = Topology::dumbbell(1, rate, rate, Span::from_ns(50)).unwrap();
        let link = topology.link_between("left", "right").unwrap().link();
        let [src, dst] = ["h0", "h1"].map(|name| topology.node(name).unwrap());
        let mut setup = NetworkSetup::new(topology);
        let forward = FaultSchedule::always(LossModel::PerFrame(Prob::literal(0.01)));
        let (reverse, protection) = (FaultSchedule::default(), Protection::None);
        let mut protected = LinkSetup { link, forward, reverse, protection, activate_at: None };
        let (tree, used) = (TreeNode::parse("protect = 'send-twice'").unwrap(), UsedKeys::default());
        let path = LinkSimConfig { rate, ..LinkSimConfig::default() };
        crate::protocols::read(&SettingsReader::new(&tree, &used), path, &mut protected).unwrap();
        setup.links.push(protected);
        let series = FlowSeries { src, dst, bytes: 100_000, count: 100, gap: Span::ZERO, group: 0 };
        setup.traffic.push(TrafficSetup {
            name: "example".into(),
            transport: TransportSetup::Tcp(TcpConfig::default()),
            work: Workload::Series(series),
            reply: 0,
            acknowledged: false,
            class: 0,
            ack_class: None,
            queue_pairs: None,
        });
        let outcome = net::run(setup, &Unwatched).unwrap();
        assert!(outcome.flows.iter().all(|flow| flow.received == 100_000));
        let lost: u64 = outcome.ports.iter().map(|port| port.corrupted).sum();
        let (_, tally) = &outcome.links[0];
        let unmasked = tally.counters.iter().map(|end| end.given_up).sum::<u64>();
        assert!(lost > 100 && unmasked <= 5, "{lost} copies lost, {unmasked} frames with both");
        assert_eq!(tally.counters[0].tx_ok, tally.counters[0].tx_replay);
    }
}
