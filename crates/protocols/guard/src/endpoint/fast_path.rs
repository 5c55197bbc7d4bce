//! The short way: what nearly every frame is, on a link with nothing urgent.
//!
//! The same decisions as in `ingress` and `egress`, with everything that cannot apply left out; any frame
//! that is not the next one, its acknowledgement or a new one goes the long way.

use machine::{FrameBody, Out, Pull, QueueId};
use units::Time;
use wire::link::FrameKind;

use super::{ClassPair, Endpoint, WIRE, lane};
use crate::packet::LinkPacket;
use crate::session::SessionState;

impl<B: FrameBody> Endpoint<B> {
    pub(super) fn is_smooth(&self) -> bool {
        let urgent = |line: &ClassPair<B>| line.rx.owes_notice() || line.tx.has_requests();
        self.life.state() == SessionState::Active
            && self.lines.len() == 1
            && self.auto.is_none()
            && !self.life.has_message()
            && self.bare.is_empty()
            && !self.lines.iter().any(urgent)
    }

    /// The short way for what nearly every frame is: the next one, or its acknowledgement. Gives the
    /// packet back if it is anything else.
    #[inline(always)]
    pub(super) fn on_frame_smoothly<O: Out<Self>>(
        &mut self,
        now: Time,
        packet: LinkPacket<B>,
        out: &mut O,
    ) -> Option<LinkPacket<B>> {
        let epoch = self.life.epoch();
        let line = &mut self.lines[0];
        if let Some(seq) = packet.header.as_data(epoch, line.class) {
            let Some(body) = packet.body else { return Some(packet) };
            self.counters.rx_ok += 1;
            line.rx.on_data(now, seq, body, &mut self.counters, out);
            self.smooth = !line.rx.owes_notice();
            if line.rx.owes_ack() || !self.smooth {
                out.wake(WIRE);
            }
        } else if let Some((latest, wish)) = packet.header.as_ack(epoch, line.class)
            && packet.body.is_none()
            && line.tx.is_in_order()
        {
            self.counters.rx_ack += 1;
            let fresh = line.tx.is_fresh(latest);
            match line.tx.on_ack(latest, wish, out) {
                Ok(()) if fresh => self.silence.end(),
                Ok(()) => {}
                Err(_) => self.counters.rx_bad += 1,
            }
            out.wake(WIRE);
        } else {
            return Some(packet);
        }
        None
    }

    /// The short way out: a new frame, or else the acknowledgement that is due.
    #[inline(always)]
    pub(super) fn pull_smoothly<O: Out<Self>>(&mut self, out: &mut O) -> Option<Pull> {
        let epoch = self.life.epoch();
        let line = &mut self.lines[0];
        if self.params.protects {
            if let Some(body) = line.tx.take(lane(line.class), &mut self.counters, out) {
                let seq = line.tx.push(out.keep(&body));
                self.counters.tx_ok += 1;
                let feedback = (line.rx.owes_ack() || line.rx.may_ack()).then(|| line.rx.acknowledge());
                out.transmit(WIRE, LinkPacket::new(epoch, FrameKind::Data(line.class, seq), feedback, Some(body)));
                return Some(Pull::Sent);
            }
        } else if out.waiting(QueueId(0)) || out.waiting(QueueId(1)) {
            return None;
        }
        if !line.rx.owes_ack() {
            return (!line.tx.wants_dummies()).then_some(Pull::Idle);
        }
        self.counters.tx_ack += 1;
        out.transmit(WIRE, LinkPacket::new(epoch, FrameKind::Ack, Some(line.rx.acknowledge()), None));
        Some(if line.tx.wants_dummies() { Pull::Sent } else { Pull::Last })
    }
}
