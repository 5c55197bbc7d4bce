//! Super-frames: one frame of a capture that was many packets on the wire.
//!
//! A host hands its card up to 64 KB at once, and the card cuts it (TSO, GSO); what arrives is joined before a capture sees it
//! (GRO, LRO). A capture has no word of that. Cut here, packets have the headers that [`wire::gso`] makes, as the host's own
//! stack would; what is joined on arrival has segments of one size but for the last, so it is cut where it was joined.
//!
//! [`sizes`] finds how long the packets of each flow are on the wire. Invariant: the packets of a super-frame have the same
//! signatures as those packets have in a capture that shows them one by one, unless the sender left the identification
//! unchanged: then identifications must not be compared.

pub(crate) mod sizes;

use wire::layers::{IpLayer, IpVersion};
use wire::{gso, ip};

/// The longest Ethernet frame without jumbo frames, with two tags.
pub(crate) const ORDINARY_FRAME: u32 = 1_522;
/// The longest IP packet of a wire, without jumbo frames and with them.
const ORDINARY_PACKET: usize = 1_500;
const JUMBO_PACKET: usize = 9_216;

/// The transport header and payload of a packet, by its lengths on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransportPart {
    pub layer: IpLayer,
    /// Length of the transport header.
    pub header: usize,
    pub payload: usize,
}

impl TransportPart {
    /// Reads the lengths of TCP or UDP in whole packets; `on_wire` is the length of the packet as the capture records it.
    pub(crate) fn of(bytes: &[u8], on_wire: usize) -> Option<Self> {
        let layer = IpLayer::of(bytes, 0)?;
        if layer.fragment.is_some() {
            return None;
        }
        let header = match layer.protocol {
            ip::TCP => usize::from(bytes.get(layer.transport + 12)? >> 4) * 4,
            ip::UDP => 8,
            _ => return None,
        };
        // A card that cuts what is longer than 64 KB is handed it with no length.
        let has_no_length = matches!((layer.version, layer.total), (IpVersion::V4, 0) | (IpVersion::V6, 40));
        let total = if has_no_length { on_wire } else { layer.total };
        let payload = total.checked_sub(layer.transport)?.checked_sub(header)?;
        (header >= 8).then_some(Self { layer, header, payload })
    }

    /// Transport header and payload.
    pub(crate) fn len(&self) -> usize {
        self.header + self.payload
    }

    /// The whole packet.
    pub(crate) fn packet(&self) -> usize {
        self.layer.transport + self.len()
    }

    fn headers(&self) -> usize {
        self.layer.transport + self.header
    }

    pub(crate) fn is_tcp(&self) -> bool {
        self.layer.protocol == ip::TCP
    }

    /// IPv4 with an identification of zero.
    pub(crate) fn has_zero_id(&self, bytes: &[u8]) -> bool {
        self.layer.version == IpVersion::V4 && bytes.get(4..6) == Some(&[0, 0])
    }
}

/// One packet of a super-frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WirePacket<'a> {
    /// Captured bytes, from the IP header on.
    pub bytes: &'a [u8],
    /// Length on the wire.
    pub len: usize,
}

/// A super-frame that is handed out packet by packet. Its memory is used again for the next one.
#[derive(Debug, Default)]
pub(crate) struct SuperFrame {
    bytes: Vec<u8>,
    part: Option<TransportPart>,
    /// Payload of every packet but the last.
    size: usize,
    /// Payload that has been handed out.
    done: usize,
    packet: Vec<u8>,
}

impl SuperFrame {
    /// Takes what a capture kept of a frame from its IP header on.
    pub(crate) fn load(&mut self, bytes: &[u8], part: TransportPart, size: usize) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        (self.part, self.size, self.done) = (Some(part), size.max(1), 0);
    }

    pub(crate) fn next(&mut self) -> Option<WirePacket<'_>> {
        let part = self.part.filter(|part| self.done < part.payload)?;
        let start = self.done;
        let payload = (part.payload - start).min(self.size);
        self.done += payload;
        let headers = part.headers();
        let kept = |from: usize, until: usize| self.bytes.get(from..until.min(self.bytes.len())).unwrap_or_default();
        self.packet.clear();
        self.packet.extend_from_slice(kept(0, headers));
        self.packet.extend_from_slice(kept(headers + start, headers + start + payload));
        self.patch(&part, start, headers + payload);
        Some(WirePacket { bytes: &self.packet, len: headers + payload })
    }

    fn patch(&mut self, part: &TransportPart, start: usize, len: usize) {
        let packet = &mut self.packet;
        let mut put = |at: usize, value: usize| {
            if let Some(field) = packet.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
                *field = (value as u16).to_be_bytes();
            }
        };
        match part.layer.version {
            IpVersion::V4 => put(2, len),
            IpVersion::V6 => put(4, len - part.layer.version.header_len()),
        }
        if !part.is_tcp() {
            put(part.layer.transport + 4, len - part.layer.transport);
        }
        if part.layer.version == IpVersion::V4 {
            gso::patch_identification(packet, start / self.size);
        }
        if let Some(header) = packet.get_mut(part.layer.transport..).filter(|_| part.is_tcp()) {
            gso::patch_tcp(header, start, self.done == part.payload, gso::TCP_CWR);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
