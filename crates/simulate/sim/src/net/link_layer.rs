//! Links under a link protocol: what their machines do to packets, and what that leads to.

use machine::DropReason;
use units::Time;

use super::events::NetworkEvent;
use super::packet::Tags;
use super::programs::NetworkProgram;
use super::protected::ProtectContext;
use super::world::Network;
use crate::protocols::{Protected, each_protocol};
use crate::topology::DirectedLink;

impl<P: NetworkProgram> Network<'_, P> {
    /// Lets the machine at the sending side of a port act, then sends its packets on their way.
    pub(super) fn with_link(
        &mut self,
        now: Time,
        port: DirectedLink,
        act: impl FnOnce(&mut Protected, usize, &mut ProtectContext<'_>),
    ) {
        let Some(link) = &mut self.fabric.links[port.link()] else { return };
        let marks = self.fabric.ports[port].may_mark_leaving();
        let mut around = ProtectContext {
            now,
            at: port,
            port: &mut self.fabric.ports[port],
            packets: &mut self.packets,
            queue: &mut self.queue,
            ends: &mut self.hosts.ends,
            follows_copies: marks || Tags::<P::Tag>::ANY,
            notes_losses: self.flows.has_jobs,
            actions: &mut self.link_actions,
        };
        act(link, port.side(), &mut around);
        if marks {
            self.mark_taken(port);
        }
        self.leave_queue(now, port);
        // Copies carry what the program writes at departure, too.
        while let Some((packet, copy)) = self.link_actions.copied.pop() {
            self.tags.copy(packet, copy);
        }
        while let Some((packet, corrupted)) = self.link_actions.sent.pop() {
            self.capture(now, port, packet, corrupted);
        }
        while let Some(packet) = self.link_actions.corrupted.pop() {
            self.note_loss(now, port, DropReason::Corrupted, packet);
        }
        while let Some(packet) = self.link_actions.released.pop() {
            self.discard(packet);
        }
        if !self.link_actions.delivered.is_empty() {
            let mut delivered = std::mem::take(&mut self.link_actions.delivered);
            for packet in delivered.drain(..) {
                let arrived = self.packets.get_mut(packet);
                arrived.came_by = port.reversed();
                let hop = self.fabric.hop(arrived.route);
                self.arrive(now, packet, hop);
            }
            self.link_actions.delivered = delivered;
        }
    }

    /// Marks packets that have left the queue for the link, and the copies that the link has made of them meanwhile.
    fn mark_taken(&mut self, port: DirectedLink) {
        for at in 0..self.link_actions.taken.len() {
            self.mark_leaving(port, self.link_actions.taken[at]);
        }
        for (packet, copy) in &self.link_actions.copied {
            self.packets.get_mut(*copy).ecn = self.packets.get(*packet).ecn;
        }
    }

    /// A frame that left by `port` is for the machine that sends the other way. `slow` if the hardware has taken its time
    /// before it acts.
    pub(super) fn link_arrives(&mut self, now: Time, port: DirectedLink, frame: u32, slow: bool) {
        let mut later = None;
        self.with_link(now, port.reversed(), |link, side, around| {
            each_protocol!(link, pair => {
                if slow { pair.act(side, around, frame) } else { later = pair.arrive(side, around, frame) }
            });
        });
        if let Some(at) = later {
            self.queue.schedule(at, NetworkEvent::LinkActs { port, frame });
        }
    }
}
