//! How TCP connections come about, where a setup wants to see it: SYN, SYN-ACK, and again if either is lost.
//!
//! The first wait is a second and each next one twice as long (RFC 6298 §2.1), as long as Linux tries. What is said in a
//! handshake is not simulated, only that it is said; a connection's first RTT is as if there were none.

use machine::SwitchProgram;
use units::{Span, Time};
use wire::ip::Ecn;

use super::end::Segment;
use super::events::Event;
use super::packet::{Body, Handshake, Packet};
use super::speech::TCP_HEADERS;
use super::world::Network;

const FIRST_WAIT: Span = Span::from_ms(1_000);
/// Linux gives up after six retries.
const LONGEST_WAIT: Span = Span::from_ms(64_000);
/// Of a frame without data.
pub const SYN_LEN: u32 = TCP_HEADERS;

impl<P: SwitchProgram<Frame = Packet>> Network<'_, P> {
    /// A connection is asked for.
    pub(super) fn shake(&mut self, now: Time, place: u32) {
        self.flows[place as usize].handshake = Some((now + FIRST_WAIT, FIRST_WAIT));
        self.queue.schedule(now + FIRST_WAIT, Event::Shake { place });
        self.say(now, place * 2, Handshake::Syn);
    }

    /// Time to ask again, unless it was answered or is another connection's place by now.
    pub(super) fn shake_again(&mut self, now: Time, place: u32) {
        let flow = &mut self.flows[place as usize];
        let Some((_, waited)) = flow.handshake.filter(|(at, _)| *at == now) else { return };
        if waited >= LONGEST_WAIT {
            return self.connection_fails(now, place);
        }
        let wait = waited * 2;
        flow.handshake = Some((now + wait, wait));
        self.queue.schedule(now + wait, Event::Shake { place });
        self.say(now, place * 2, Handshake::Syn);
    }

    /// An end is told that the other wants a connection, or that it has one.
    pub(super) fn shaken(&mut self, now: Time, at: u32, step: Handshake) {
        match step {
            Handshake::Syn => self.say(now, at, Handshake::SynAck),
            Handshake::SynAck => {
                let flow = &mut self.flows[at as usize / 2];
                let bytes = flow.row.bytes;
                // Every SYN is answered, and one answer is enough.
                if flow.handshake.take().is_some() {
                    self.first_bytes(now, at / 2, bytes);
                }
            }
        }
    }

    fn say(&mut self, now: Time, end: u32, step: Handshake) {
        let segment = Segment { body: Body::Handshake(step), len: SYN_LEN as u16, ecn: Ecn::NotCapable };
        let packet = self.packet(now, end, segment);
        let at = self.hosts[self.ends[end as usize].host as usize].port;
        if !self.ports[at as usize].protected {
            return self.send_behind(now, at, packet);
        }
        let port = &mut self.ports[at as usize];
        let time = port.time_of(segment.len);
        if let Some(queues) = &mut port.queues {
            queues.push(&mut self.packets, packet, time);
        }
        self.serve(now, at);
    }
}
