//! Frames off the wire that have their number in their addresses.
//!
//! One may be the segment of a super-frame, or several of them that the kernel joined. Each is handed to the endpoint as if
//! it had come alone, behind a header. Invariant: only a frame with the tag of the session and epoch that are agreed reaches
//! the endpoint, and only while our own probes are answered, so a stamp never drives the life cycle.

use guard::{Endpoint, LinkPacket, SessionState, WIRE};
use linux::offload::{VnetHeader, segment, tcp_seq, unpush};
use machine::Machine;
use standin::PoolFrame;
use units::Time;
use wire::link::{AddressStamp, Feedback, FlowControl, FrameKind, LinkHeader, StampableFrame, StampedData};

use crate::context::{LinkContext, ReceivedRun};

/// Room for the segments of a super-frame, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct StampedFrames(Vec<PoolFrame>);

impl StampedFrames {
    /// False if it is an ordinary frame, though its addresses begin as those of a stamp do.
    pub(crate) fn on_frame(
        &mut self,
        now: Time,
        vnet: &VnetHeader,
        bytes: &[u8],
        endpoint: &mut Endpoint<PoolFrame>,
        context: &mut LinkContext,
    ) -> bool {
        let data = match AddressStamp::parse(bytes) {
            Ok(Some(AddressStamp::Data(data))) => data,
            Ok(Some(AddressStamp::Probe { .. })) => {
                context.on_stamped_probe(bytes, endpoint.identity());
                return true;
            }
            Ok(None) | Err(_) => return false,
        };
        let stamper = &context.stamper;
        let is_open = stamper.session() == endpoint.identity()
            && matches!(endpoint.state(), SessionState::Active | SessionState::Closing)
            && context.framing.peer().is_some();
        if is_open && data.tag == stamper.peer_tag() {
            if stamper.believes(now) {
                self.on_data(now, vnet, bytes, &data, endpoint, context);
            } else {
                context.statistics.tally.rx_stamp_dropped += 1;
            }
        } else if is_open && data.tag == stamper.own_tag() {
            context.statistics.tally.rx_looped += 1;
        } else if first_index(vnet, bytes, &data).is_some() {
            // The frame belongs to another session: an older one, another pair's, or a forged one.
            context.statistics.tally.rx_stamp_stranger += 1;
        } else {
            return false;
        }
        true
    }

    fn on_data(
        &mut self,
        now: Time,
        vnet: &VnetHeader,
        bytes: &[u8],
        stamp: &StampedData,
        endpoint: &mut Endpoint<PoolFrame>,
        context: &mut LinkContext,
    ) {
        let Some(first) = first_index(vnet, bytes, stamp) else { return context.statistics.tally.rx_stamp_bad += 1 };
        let mut cut = ReceivedRun { pool: &mut context.memory.pool, frames: &mut self.0 };
        match segment(vnet, bytes, &mut cut) {
            Ok(counts) => context.statistics.tally.no_buffer += u64::from(counts.dropped),
            Err(_) => return context.statistics.tally.rx_stamp_bad += 1,
        }
        context.statistics.tally.rx_stamped_runs += 1;
        if let Some(last) = self.0.last().filter(|_| stamp.pushed) {
            let is_unfinished = context.memory.pool.is_unfinished(last);
            unpush(context.memory.pool.get_mut(last), is_unfinished);
        }
        // One acknowledgement for all of them.
        let StampableFrame { class, number: first_number, acknowledges } = stamp.frame;
        let mut feedback = acknowledges.map(|(class, latest)| Feedback::new(class, latest, FlowControl::Flow));
        for (number, frame) in (first..).zip(self.0.drain(..)) {
            context.framing.restore_addresses(context.memory.pool.get_mut(&frame));
            context.statistics.tally.rx_stamped += 1;
            context.statistics.tally.wire_rx_frames += 1;
            context.statistics.tally.wire_rx_bytes += frame.bytes() as u64;
            let kind = FrameKind::Data(class, first_number.plus(number));
            let header = LinkHeader::new(endpoint.epoch(), kind, feedback.take());
            endpoint.on_frame(now, WIRE, LinkPacket { header, body: Some(frame) }, context);
        }
    }
}

/// Index of the segment that the frame begins with; `None` if it contradicts its stamp.
fn first_index(vnet: &VnetHeader, bytes: &[u8], stamp: &StampedData) -> Option<u32> {
    let is_joined = vnet.gso_type != VnetHeader::GSO_NONE;
    let index = stamp.index(tcp_seq(bytes)?)?;
    (!is_joined || vnet.gso_size == stamp.run.size).then_some(index)
}
