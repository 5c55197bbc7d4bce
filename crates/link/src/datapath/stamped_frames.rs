//! Frames off the wire that have their number in their addresses.
//!
//! One may be the segment of a super-frame, or several of them that the kernel joined. Each is handed to the endpoint as if
//! it had come alone, behind a header. Invariant: only a frame of the epoch that is agreed reaches the endpoint, so a
//! stamp never drives the life cycle.

use guard::{Endpoint, LinkPacket, SessionState, WIRE};
use linux::offload::{VnetHeader, segment, tcp_seq, unpush};
use machine::Machine;
use units::Time;
use wire::link::{AddressStamp, Feedback, FlowControl, FrameKind, LinkHeader, StampedData};

use crate::context::{LinkContext, ReceivedRun};
use crate::pool::PoolFrame;

/// Room for the segments of a super-frame, kept from one to the next.
#[derive(Debug, Default)]
pub(crate) struct StampedFrames(Vec<PoolFrame>);

impl StampedFrames {
    pub(crate) fn on_frame(
        &mut self,
        now: Time,
        vnet: &VnetHeader,
        bytes: &[u8],
        endpoint: &mut Endpoint<PoolFrame>,
        context: &mut LinkContext,
    ) {
        let (stamp, lower) = match AddressStamp::parse(bytes) {
            Ok(Some(stamp)) => match stamp {
                AddressStamp::Data(StampedData { lower, .. }) => (stamp, lower),
                AddressStamp::Probe(it) | AddressStamp::Answer(it) | AddressStamp::Lesson(it) => (stamp, it.lower),
            },
            Ok(None) | Err(_) => return context.tally.rx_stamp_bad += 1,
        };
        let is_agreed = context.stamper.is_agreed()
            && matches!(endpoint.state(), SessionState::Active | SessionState::Closing)
            && context.framing.peer().is_some();
        if !is_agreed {
            context.tally.rx_stamp_dropped += 1;
        } else if lower == context.framing.is_lower() {
            context.tally.rx_looped += 1;
        } else if let AddressStamp::Data(data) = stamp {
            if data.epoch == endpoint.epoch() {
                self.on_data(now, vnet, bytes, &data, endpoint, context);
            } else {
                context.tally.rx_stamp_dropped += 1;
            }
        } else {
            context.on_probe(stamp);
        }
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
        let Some(first) = first_index(vnet, bytes, stamp) else { return context.tally.rx_stamp_bad += 1 };
        let mut cut = ReceivedRun { pool: &mut context.pool, frames: &mut self.0 };
        match segment(vnet, bytes, &mut cut) {
            Ok(counts) => context.tally.no_buffer += u64::from(counts.dropped),
            Err(_) => return context.tally.rx_stamp_bad += 1,
        }
        context.tally.rx_stamped_runs += 1;
        if let Some(last) = self.0.last().filter(|_| stamp.pushed) {
            let is_unfinished = context.pool.is_unfinished(last);
            unpush(context.pool.get_mut(last), is_unfinished);
        }
        // One acknowledgement for all of them.
        let mut feedback = stamp.acknowledges.map(|(class, latest)| Feedback::new(class, latest, FlowControl::Flow));
        for (number, frame) in (first..).zip(self.0.drain(..)) {
            context.framing.restore_addresses(context.pool.get_mut(&frame));
            context.tally.rx_stamped += 1;
            context.tally.wire_rx_frames += 1;
            context.tally.wire_rx_bytes += frame.bytes() as u64;
            let kind = FrameKind::Data(stamp.class, stamp.number.plus(number));
            let header = LinkHeader::new(stamp.epoch, kind, feedback.take());
            endpoint.on_frame(now, WIRE, LinkPacket { header, body: Some(frame) }, context);
        }
    }
}

/// Which segment the frame begins with; `None` if it contradicts its stamp.
fn first_index(vnet: &VnetHeader, bytes: &[u8], stamp: &StampedData) -> Option<u32> {
    let is_joined = vnet.gso_type != VnetHeader::GSO_NONE;
    match stamp.run {
        None => (!is_joined).then_some(0),
        Some(run) => {
            let index = stamp.index(tcp_seq(bytes)?)?;
            (!is_joined || vnet.gso_size == run.size).then_some(index)
        }
    }
}
