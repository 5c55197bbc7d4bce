//! The frames that a super-frame stands for, in memory of their own that is kept from one to the next.

use std::ops::Range;

use super::{FrameSink, MalformedSuperFrame, VnetHeader, segment};

#[derive(Debug, Default)]
pub struct Pieces {
    bytes: Vec<u8>,
    pieces: Vec<Range<usize>>,
}

impl Pieces {
    /// Cuts `frame` into the frames that it stands for, with complete checksums.
    pub fn of(&mut self, vnet: &VnetHeader, frame: &[u8]) -> Result<impl Iterator<Item = &[u8]>, MalformedSuperFrame> {
        self.bytes.clear();
        self.pieces.clear();
        segment(vnet, frame, self)?;
        Ok(self.pieces.iter().map(|piece| &self.bytes[piece.clone()]))
    }
}

impl FrameSink for Pieces {
    fn next(&mut self, len: usize) -> Option<&mut [u8]> {
        let start = self.bytes.len();
        self.bytes.resize(start + len, 0);
        self.pieces.push(start..start + len);
        Some(&mut self.bytes[start..])
    }
}
