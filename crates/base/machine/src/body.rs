//! Frames of the layer above, as far as a machine may know them.

/// A frame of the layer above, as a handle: a slab index, a buffer slot, bytes.
pub trait FrameBody {
    /// Length in bytes, frame check included.
    fn len(&self) -> u32;

    /// True if the frame has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl FrameBody for Vec<u8> {
    fn len(&self) -> u32 {
        Vec::len(self) as u32
    }

    fn is_empty(&self) -> bool {
        Vec::is_empty(self)
    }
}
