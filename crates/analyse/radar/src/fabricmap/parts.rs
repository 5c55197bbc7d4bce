//! A slot in pieces that fit into a report of the meters' transport, and slots out of pieces.
//!
//! ```text
//!   "HLFP"  part:16  parts:16  slot:64  a piece of the slot's bytes
//! ```
//!
//! Pieces of a meter come in order, or do not come. Invariant: slots that are not whole take no more than the memory that they
//! are given, whoever sends them; a slot of which a piece is missing is never put together.

use std::collections::BTreeMap;

const MAGIC: [u8; 4] = *b"HLFP";
const HEAD: usize = 16;
/// Bytes of a slot in one piece.
const PIECE: usize = 1 << 20;
/// Pieces of a slot.
const MOST_PARTS: usize = 64;

/// Splits a slot into pieces; `None` if it is longer than any may be.
pub fn split(slot: u64, bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let pieces = bytes.len().div_ceil(PIECE).max(1);
    if pieces > MOST_PARTS {
        return None;
    }
    let piece = |at: usize| {
        let part = &bytes[at * PIECE..bytes.len().min((at + 1) * PIECE)];
        let mut out = Vec::with_capacity(HEAD + part.len());
        out.extend(MAGIC);
        out.extend((at as u16).to_le_bytes());
        out.extend((pieces as u16).to_le_bytes());
        out.extend(slot.to_le_bytes());
        out.extend(part);
        out
    };
    Some((0..pieces).map(piece).collect())
}

/// The slots of all meters that have begun to come.
#[derive(Debug)]
pub struct SlotAssembler {
    /// By the meter's incarnation.
    begun: BTreeMap<u64, PartialSlot>,
    memory: usize,
    held: usize,
}

#[derive(Debug)]
struct PartialSlot {
    slot: u64,
    next: usize,
    parts: usize,
    bytes: Vec<u8>,
}

impl SlotAssembler {
    pub fn new(memory: usize) -> Self {
        Self { begun: BTreeMap::new(), memory, held: 0 }
    }

    /// Takes a piece from a meter, of which `missing` did not come before this one; the slot, once it is whole.
    pub fn on_piece(&mut self, life: u64, missing: u64, piece: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let head: &[u8; HEAD] = piece
            .first_chunk()
            .filter(|head| head[..4] == MAGIC)
            .ok_or("not a report of `hitless radar flows meter`")?;
        let short = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let (part, parts) = (short(4), short(6));
        let slot = head[8..].iter().rev().fold(0, |slot, byte| slot << 8 | u64::from(*byte));
        let bytes = &piece[HEAD..];
        if part >= parts || parts > MOST_PARTS || bytes.len() > PIECE {
            return Err("a piece of a slot that contradicts itself".to_owned());
        }
        if parts == 1 {
            self.forget(life);
            return Ok(Some(bytes.to_vec()));
        }
        let is_next =
            |begun: &PartialSlot| (begun.slot, begun.next, begun.parts) == (slot, part, parts) && missing == 0;
        let mut begun = match self.take(life) {
            Some(begun) if is_next(&begun) => begun,
            _ if part == 0 => PartialSlot { slot, next: 0, parts, bytes: Vec::new() },
            _ => return Err(format!("slot {slot}: a piece of it did not come")),
        };
        begun.bytes.extend(bytes);
        begun.next += 1;
        if begun.next == parts {
            return Ok(Some(begun.bytes));
        }
        if self.held + begun.bytes.len() > self.memory {
            return Err("there is no memory for slots that are not whole: give more --memory".to_owned());
        }
        self.held += begun.bytes.len();
        self.begun.insert(life, begun);
        Ok(None)
    }

    fn take(&mut self, life: u64) -> Option<PartialSlot> {
        let begun = self.begun.remove(&life)?;
        self.held -= begun.bytes.len();
        Some(begun)
    }

    fn forget(&mut self, life: u64) {
        drop(self.take(life));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at * 7 % 251) as u8).collect()
    }

    #[test]
    fn slots_of_two_meters_are_put_together_each_for_itself() {
        let mut whole = SlotAssembler::new(16 << 20);
        let long = slot(2 * PIECE + 5);
        let pieces = split(9, &long).unwrap();
        assert_eq!(pieces.len(), 3);
        for piece in &pieces[..2] {
            assert_eq!(whole.on_piece(1, 0, piece), Ok(None));
            assert_eq!(whole.on_piece(2, 0, piece), Ok(None));
        }
        assert_eq!(whole.on_piece(3, 0, &split(4, b"short").unwrap()[0]), Ok(Some(b"short".to_vec())));
        assert_eq!(whole.on_piece(2, 0, &pieces[2]), Ok(Some(long.clone())));
        assert_eq!(whole.on_piece(1, 0, &pieces[2]), Ok(Some(long)));
        assert_eq!(whole.held, 0);
    }

    #[test]
    fn a_slot_of_which_a_piece_is_missing_is_given_up() {
        let mut whole = SlotAssembler::new(16 << 20);
        let pieces = split(9, &slot(3 * PIECE)).unwrap();
        assert_eq!(whole.on_piece(1, 0, &pieces[0]), Ok(None));
        assert!(whole.on_piece(1, 1, &pieces[2]).unwrap_err().contains("did not come"));
        assert!(whole.on_piece(1, 0, &pieces[1]).is_err());
        assert_eq!(whole.held, 0);
    }

    #[test]
    fn strangers_without_number_take_no_more_memory() {
        let mut whole = SlotAssembler::new(3 * PIECE);
        let first = &split(9, &slot(2 * PIECE)).unwrap()[0];
        let kept = (0..100).filter(|life| whole.on_piece(*life, 0, first).is_ok()).count();
        assert_eq!((kept, whole.held), (3, 3 * PIECE));
        for bytes in
            [&b""[..], b"HLFP", &[0; 40], b"HLFP\x05\0\x05\0\0\0\0\0\0\0\0\0", b"HLFP\0\0\xff\xff\0\0\0\0\0\0\0\0"]
        {
            assert!(whole.on_piece(7, 0, bytes).is_err());
        }
        assert!(split(1, &slot(MOST_PARTS * PIECE + 1)).is_none());
    }
}
