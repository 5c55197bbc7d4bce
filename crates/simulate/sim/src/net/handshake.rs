//! Handshakes of TCP where a setup asks for them: SYN, SYN-ACK, and both again if either is lost.
//!
//! The first wait is a second, and each next one is twice as long (RFC 6298 §2.1), as often as Linux tries. The content of
//! a handshake is not simulated; a connection's first RTT is measured as if there were none.

use units::{Span, Time};
use wire::ip::Ecn;

use super::end::OutgoingSegment;
use super::events::NetworkEvent;
use super::index::{ConnectionId, EndId};
use super::programs::NetworkProgram;
use super::transports::{Body, Handshake, TCP_HEADERS};
use super::world::Network;

const FIRST_WAIT: Span = Span::from_ms(1_000);
/// Linux gives up after six retries.
const LONGEST_WAIT: Span = Span::from_ms(64_000);
/// Length of a frame without data.
pub(super) const SYN_LEN: u32 = TCP_HEADERS;

impl<P: NetworkProgram> Network<'_, P> {
    /// A connection is asked for.
    pub(super) fn shake(&mut self, now: Time, id: ConnectionId) {
        self.flows.connections[id].handshake = Some((now + FIRST_WAIT, FIRST_WAIT));
        self.queue.schedule(now + FIRST_WAIT, NetworkEvent::Shake { connection: id });
        self.say(now, id.source(), Handshake::Syn);
    }

    /// Time to ask again, unless it was answered or the number is another connection's by now.
    pub(super) fn shake_again(&mut self, now: Time, id: ConnectionId) {
        let flow = &mut self.flows.connections[id];
        let Some((_, waited)) = flow.handshake.filter(|(at, _)| *at == now) else { return };
        if waited >= LONGEST_WAIT {
            return self.connection_fails(now, id);
        }
        let wait = waited * 2;
        flow.handshake = Some((now + wait, wait));
        self.queue.schedule(now + wait, NetworkEvent::Shake { connection: id });
        self.say(now, id.source(), Handshake::Syn);
    }

    /// A step of the handshake has arrived at an end.
    pub(super) fn shaken(&mut self, now: Time, at: EndId, step: Handshake) {
        match step {
            Handshake::Fin => {}
            Handshake::Syn => self.say(now, at, Handshake::SynAck),
            Handshake::SynAck => {
                let flow = &mut self.flows.connections[at.connection()];
                let bytes = flow.row.bytes;
                // Every SYN is answered, and one answer is enough.
                if flow.handshake.take().is_some() {
                    self.first_bytes(now, at.connection(), bytes);
                }
            }
        }
    }

    pub(super) fn say(&mut self, now: Time, end: EndId, step: Handshake) {
        if self.hosts.of(end).dead {
            return;
        }
        let segment = OutgoingSegment {
            body: Body::Handshake(step),
            len: SYN_LEN as u16,
            ecn: Ecn::NotCapable,
            control: false,
            level: 0,
        };
        let packet = self.packet(now, end, segment);
        let at = self.hosts.port_of(end);
        if !self.fabric.ports[at].protected {
            return self.send_behind(now, at, packet);
        }
        let port = &mut self.fabric.ports[at];
        let time = port.time_of(segment.len);
        if let Some(queues) = &mut port.queues {
            queues.push(&mut self.packets, packet, time);
        }
        self.serve(now, at);
    }
}
