//! Common parts of the RDMA transports: keys of a scenario, and headers of RoCEv2.

use congestion::{ControlSite, ControllerConfig};
use machine::Conversation;
use roce::{AckSyndrome, MessagePart, RdmaFraming, RoceCompletion, RoceNote, RoceOperation, RocePacket};
use units::Span;
use wire::ip::Ecn;
use wire::roce as format;
use wire::{ipv4, udp};

use super::{HeaderWriter, PacketSizes, Site, controllers};
use crate::net::address;
use crate::net::end::{FlowCounters, FlowProgress};
use settings::{ReadResult, SettingsReader};

/// Bytes of an Ethernet header, before what the invariant check covers.
const ETHERNET: usize = 14;

/// Settings that all queue pairs have, whichever way they recover.
pub(super) fn read(table: &SettingsReader<'_>) -> ReadResult<roce::RoceConfig> {
    let usual = roce::RoceConfig::default();
    let timeouts = Span::from_ps(1)..=roce::RoceConfig::timeout_for(u8::MAX);
    let congestion = controllers::read(table)?;
    // Acknowledgements carry a controller's input; marks are of use to the controller alone.
    let ack_every = if congestion.wants_every_ack() { 1 } else { usual.ack_every };
    Ok(roce::RoceConfig {
        mtu: table.small("mtu", 64..=4_096)?.unwrap_or(usual.mtu),
        timeout: table.span("timeout", timeouts)?.unwrap_or(usual.timeout),
        retry_count: table.small("retries", 0..=u32::MAX)?.unwrap_or(usual.retry_count),
        ack_every: table.small("ack_every", 1..=65_536)?.unwrap_or(ack_every),
        rate: table.parsed("rate")?,
        congestion,
        ecn: if table.flag("ecn")?.unwrap_or(congestion.wants_marks()) { Ecn::Capable } else { Ecn::NotCapable },
        ..usual
    })
}

#[inline]
pub(super) fn on_done(done: RoceCompletion, progress: &mut FlowProgress) {
    match done {
        RoceCompletion::Completed(requests) => progress.completed = Some(requests),
        RoceCompletion::Received(messages) => progress.placed = Some(messages),
        RoceCompletion::Failed => progress.failed = true,
    }
}

pub(super) fn on_note(note: RoceNote, counters: &mut FlowCounters) {
    match note {
        RoceNote::Retransmitted { packets, .. } => counters.retransmitted += packets as u32,
        RoceNote::Timeout => counters.timeouts += 1,
        RoceNote::NakReceived => counters.naks += 1,
        RoceNote::Dummy => counters.dummies += 1,
        RoceNote::TailRepeated => counters.tails_repeated += 1,
        RoceNote::OutOfOrder => counters.out_of_order += 1,
        RoceNote::NakSent | RoceNote::IdleTimeout | RoceNote::Duplicate | RoceNote::Dropped | RoceNote::Invalid => {}
    }
}

pub(super) fn sizes(mtu: u32, framing: &RdmaFraming, congestion: &ControllerConfig) -> PacketSizes {
    let collects = congestion.wants_telemetry();
    let frame = mtu + u32::from(framing.data_headers(collects));
    let acknowledge = u32::from(framing.ack_len(collects));
    PacketSizes { payload: mtu, frame, longest: frame + u32::from(framing.first), acknowledge }
}

/// Site of a connection, as its controller needs it.
pub(super) fn control_site(at: &Site<'_>, mtu: u32) -> ControlSite {
    ControlSite { line_rate: at.line_rate, base_rtt: at.base_rtt, mtu, hops: at.hops }
}

pub(super) fn largest_message(mtu: u32) -> u64 {
    roce::MAX_MESSAGE.min(u64::from(roce::MAX_OUTSTANDING) * u64::from(mtu))
}

/// UDP ports of a flow's packets, derived from its number. Both directions use the same pair, so that ECMP hashes them alike.
pub(super) fn ports(who: Conversation) -> [u16; 2] {
    address::roce_ports(who)
}

pub(super) fn write_headers(packet: &RocePacket, writer: &mut HeaderWriter<'_>) {
    // Each end of a flow has a queue pair of its own; 0 and 1 are reserved.
    let queue_pair = 2 + 2 * writer.who.flow + u32::from(writer.who.forward);
    if packet.opcode == RoceOperation::Notification {
        return write_notification(queue_pair, writer);
    }
    let header = format::RoceHeader {
        opcode: opcode(packet.opcode),
        queue_pair,
        psn: packet.psn.number(),
        ack_request: packet.ack_request,
        pad: 0,
        extended: extended(packet),
    };
    let inside = udp::UdpHeader::LEN + header.size() + packet.payload as usize + format::RoceHeader::CHECK;
    let ip = writer.ip(ipv4::UDP, inside as u16);
    let [source, destination] = ports(writer.who);
    udp::UdpHeader { source, destination, checked: false }.emit(&ip, writer.out);
    header.emit(writer.out);
    writer.out.resize(writer.out.len() + packet.payload as usize, 0);
    format::append_icrc(writer.out, ETHERNET);
}

fn write_notification(queue_pair: u32, writer: &mut HeaderWriter<'_>) {
    let inside = udp::UdpHeader::LEN + format::CongestionNotification::LEN + format::RoceHeader::CHECK;
    let ip = writer.ip(ipv4::UDP, inside as u16);
    let [source, destination] = ports(writer.who);
    udp::UdpHeader { source, destination, checked: false }.emit(&ip, writer.out);
    format::CongestionNotification { queue_pair }.emit(writer.out);
    format::append_icrc(writer.out, ETHERNET);
}

/// Opcode of a packet that is not a notification.
fn opcode(opcode: RoceOperation) -> format::Opcode {
    use format::Opcode as Wire;
    let by_part = |part, [first, middle, last, only]: [Wire; 4]| match part {
        MessagePart::First => first,
        MessagePart::Middle => middle,
        MessagePart::Last => last,
        MessagePart::Only => only,
    };
    match opcode {
        RoceOperation::Send(part) => by_part(part, [Wire::SendFirst, Wire::SendMiddle, Wire::SendLast, Wire::SendOnly]),
        RoceOperation::Write(part) => {
            by_part(part, [Wire::WriteFirst, Wire::WriteMiddle, Wire::WriteLast, Wire::WriteOnly])
        }
        RoceOperation::ReadRequest => Wire::ReadRequest,
        RoceOperation::ReadResponse(part) => by_part(
            part,
            [Wire::ReadResponseFirst, Wire::ReadResponseMiddle, Wire::ReadResponseLast, Wire::ReadResponseOnly],
        ),
        RoceOperation::Acknowledge(_) | RoceOperation::Notification => Wire::Acknowledge,
    }
}

fn extended(packet: &RocePacket) -> Option<format::ExtensionHeader> {
    let msn = packet.msn;
    match packet.opcode {
        RoceOperation::Write(part) if part.is_first() => Some(format::ExtensionHeader::Rdma { len: packet.dma_len }),
        RoceOperation::ReadRequest => Some(format::ExtensionHeader::Rdma { len: packet.dma_len }),
        RoceOperation::Acknowledge(syndrome) => {
            let is_nak = matches!(syndrome, AckSyndrome::SequenceError);
            let syndrome = if is_nak { format::Syndrome::SEQUENCE_ERROR } else { format::Syndrome::ACK };
            Some(format::ExtensionHeader::Ack { syndrome, msn })
        }
        RoceOperation::ReadResponse(MessagePart::First | MessagePart::Last | MessagePart::Only) => {
            Some(format::ExtensionHeader::Ack { syndrome: format::Syndrome::ACK, msn })
        }
        RoceOperation::Notification => None,
        RoceOperation::Send(_) | RoceOperation::Write(_) | RoceOperation::ReadResponse(MessagePart::Middle) => None,
    }
}
