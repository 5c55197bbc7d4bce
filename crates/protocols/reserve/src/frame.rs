//! Frames and packets that a host of the rack sends and receives.

use wire::reserve::{DataMark, HostKey, ReserveMessage};

/// A frame of the layer above, as a handle.
pub trait RackFrame {
    /// Length in bytes as the switch will see it, frame check included; with the mark, where that takes room.
    fn len(&self) -> u32;

    /// True if the frame has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Receiver of the frame; `None` if it does not reserve: broadcast, multicast, a host that has not joined.
    fn destination(&self) -> Option<HostKey>;

    /// Sender of the frame.
    fn source(&self) -> HostKey;

    /// Class; 0 goes first.
    fn class(&self) -> u8;
}

/// A frame between a host and its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservePacket<B> {
    /// A message of ours, without a frame of the layer above. Goes before data at every port.
    Message(ReserveMessage),
    /// A frame of the layer above.
    Data {
        /// Mark of a frame that is part of a burst.
        mark: Option<DataMark>,
        /// The frame itself.
        body: B,
    },
}
