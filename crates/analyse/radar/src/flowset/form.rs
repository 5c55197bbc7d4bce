//! A flowset as bytes, for files and networks.
//!
//! ```text
//!   "HLFS"  version:8  rows:8  filter hashes:8  widths:8  row:32  filter words:32  seed:64
//!   flows:64  packets:64  flow check:64  packet check:64
//!   filter: 64 bits each …
//!   cells: low words, 14 bytes; IPv6's, 24 bytes, if any has them; flow count; packet count …
//!   CRC-32
//! ```
//!
//! Numbers are little-endian. Counts are as wide as the largest needs: 1, 2 or 4 bytes. `widths` has the logarithm of that of
//! flows in bits 0 and 1, of packets in bits 2 and 3, and in bit 4 whether there is IPv6.

use super::key::WORDS_V4;
use super::shape::FlowsetShape;
use super::{Flowset, High};
use crate::form::{FormError, VERSION};

const MAGIC: [u8; 4] = *b"HLFS";
const HEAD: usize = 56;
const CHECK: usize = 4;
/// Bits 8 to 23 of the second word of a key are never used.
const LOW: usize = 14;
const HIGH: usize = 24;

/// Widths in which the cells of a flowset are written.
#[derive(Clone, Copy, Debug)]
struct Widths {
    flows: usize,
    packets: usize,
    has_high: bool,
}

impl Widths {
    fn of(flowset: &Flowset) -> Self {
        let bytes = |counts: &[u32]| match counts.iter().max() {
            Some(0x1_0000..) => 4,
            Some(0x100..) => 2,
            _ => 1,
        };
        Self {
            flows: bytes(&flowset.flow_counts),
            packets: bytes(&flowset.packet_counts),
            has_high: !flowset.high.is_empty(),
        }
    }

    fn to_bits(self) -> u8 {
        (self.flows.ilog2() | self.packets.ilog2() << 2 | u32::from(self.has_high) << 4) as u8
    }

    fn from_bits(bits: u8) -> Option<Self> {
        let widths = Self { flows: 1 << (bits & 3), packets: 1 << (bits >> 2 & 3), has_high: bits >> 4 == 1 };
        (bits >> 5 == 0 && widths.flows <= 4 && widths.packets <= 4).then_some(widths)
    }

    fn cell(self) -> usize {
        LOW + if self.has_high { HIGH } else { 0 } + self.flows + self.packets
    }

    fn size(self, shape: &FlowsetShape) -> usize {
        HEAD + shape.filter_words() as usize * 8 + shape.cells() * self.cell() + CHECK
    }
}

impl Flowset {
    pub fn to_bytes(&self) -> Vec<u8> {
        let widths = Widths::of(self);
        let shape = self.shape();
        let mut out = Vec::with_capacity(widths.size(shape));
        out.extend(MAGIC);
        out.extend([VERSION, shape.rows() as u8, shape.filter_hashes(), widths.to_bits()]);
        out.extend((shape.row() as u32).to_le_bytes());
        out.extend(shape.filter_words().to_le_bytes());
        let sums = [shape.seed, self.flows, self.packets, self.flow_check, self.packet_check];
        sums.iter().chain(&self.filter).for_each(|word| out.extend(word.to_le_bytes()));
        for (at, [first, second]) in self.low.iter().enumerate() {
            out.extend(first.to_le_bytes());
            out.extend(&(second >> 24).to_le_bytes()[..5]);
            out.push(*second as u8);
            if let Some(high) = self.high.get(at) {
                high.iter().for_each(|word| out.extend(word.to_le_bytes()));
            }
            out.extend(&self.flow_counts[at].to_le_bytes()[..widths.flows]);
            out.extend(&self.packet_counts[at].to_le_bytes()[..widths.packets]);
        }
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormError> {
        let head: &[u8; HEAD] = bytes.first_chunk().ok_or(FormError::Foreign)?;
        if head[..4] != MAGIC {
            return Err(FormError::Foreign);
        }
        if head[4] != VERSION {
            return Err(FormError::Version(head[4]));
        }
        let word = |at: usize| number(&head[at..at + 8]);
        let (row, filter_words) = (number(&head[8..12]) as u32, number(&head[12..16]) as u32);
        let widths = Widths::from_bits(head[7]).ok_or(FormError::Malformed)?;
        let cells = (row as usize).saturating_mul(head[5].into());
        let shape = FlowsetShape::new(head[5], cells, head[6], u64::from(filter_words) * 64, word(16));
        let is_as_said = (shape.rows(), shape.row()) == (head[5].into(), row as usize)
            && (shape.filter_hashes(), shape.filter_words()) == (head[6], filter_words);
        if !is_as_said || bytes.len() != widths.size(&shape) {
            return Err(FormError::Malformed);
        }
        let (body, check) = bytes.split_at(bytes.len() - CHECK);
        if check != crc32fast::hash(body).to_le_bytes() {
            return Err(FormError::Corrupted);
        }
        let mut flowset = Self::new(shape);
        (flowset.flows, flowset.packets) = (word(24), word(32));
        (flowset.flow_check, flowset.packet_check) = (word(40), word(48));
        flowset.read(&body[HEAD..], widths);
        Ok(flowset)
    }

    /// Filter and cells, of which there are as many bytes as there must be.
    fn read(&mut self, body: &[u8], widths: Widths) {
        let (filter, cells) = body.split_at(self.filter.len() * 8);
        self.filter = filter.chunks_exact(8).map(number).collect();
        if widths.has_high {
            self.high = vec![High::default(); self.low.len()];
        }
        for (at, cell) in cells.chunks_exact(widths.cell()).enumerate() {
            let (low, rest) = cell.split_at(LOW);
            let second = number(&low[8..13]) << 24 | u64::from(low[13]);
            let words: [u64; WORDS_V4] = [number(&low[..8]), second];
            self.low[at] = words;
            let (high, counts) = rest.split_at(rest.len() - widths.flows - widths.packets);
            if let Some(words) = self.high.get_mut(at) {
                words.iter_mut().zip(high.chunks_exact(8)).for_each(|(word, bytes)| *word = number(bytes));
            }
            let (flows, packets) = counts.split_at(widths.flows);
            (self.flow_counts[at], self.packet_counts[at]) = (number(flows) as u32, number(packets) as u32);
        }
    }
}

/// Reads a number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
