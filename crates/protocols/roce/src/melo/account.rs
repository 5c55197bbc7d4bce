//! On-chip memory of MELO.
//!
//! MELO §3.2.3 and §3.2.4, and the scheme that the paper compares it with: a bitmap for each connection.

use std::fmt;

use units::Bytes;

use super::pool::{BlockPointer, PoolConfig, PoolError};
use super::resend::Resend;
use super::track::ReceiveTrack;

/// Bytes that a ConnectX-3 Pro keeps of each connection as it is (footnote 4 of the paper).
pub const QP_CONTEXT: u32 = 248;

/// Memory on the chip of one NIC, in bytes of a connection and bits of the pools.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChipMemory {
    /// Connections, at least 1.
    pub connections: u32,
    /// Bandwidth-delay product: bytes that a connection may have outstanding.
    pub bdp: Bytes,
    /// Bytes of a full packet, at least 1.
    pub mtu: u32,
    /// Configuration of each of the two pools, one for receivers and one for senders.
    pub pool: PoolConfig,
    /// Width of a pointer to a block: 8, or 16 where the pool has more than 256 blocks.
    pub slot_bits: u32,

    /// Bytes of each connection at the receiver for its three latest holes.
    pub hole_bytes: u32,
    /// Bytes of each connection at the receiver for RCV.NXT and RCV.HIGH.
    pub number_bytes: u32,
    /// Bytes of each connection at the receiver for pointers to its first and last block.
    pub pointer_bytes: u32,
    /// Bytes of each connection at the sender, which the paper does not count.
    pub sender_bytes: u32,

    /// Bits of one pool that stand for packets.
    pub pool_bits: u32,
    /// Bits of one pool for the pointer beside each block.
    pub next_bits: u32,
    /// Bits of one pool for its array of free slots.
    pub free_bits: u32,

    /// Bits of one bitmap of a bandwidth-delay product.
    pub bitmap_bits: u32,
}

impl ChipMemory {
    /// # Panics
    /// If there are no connections, or the MTU is zero.
    pub fn new(connections: u32, bdp: Bytes, mtu: u32, pool: PoolConfig) -> Result<Self, PoolError> {
        assert!(connections > 0 && mtu > 0, "nothing to account for");
        match pool.blocks::<u8>() {
            Ok(blocks) => Ok(Self::with_slots::<u8>(blocks, connections, bdp, mtu, pool)),
            Err(PoolError::TooMany { .. }) => {
                pool.blocks::<u16>().map(|blocks| Self::with_slots::<u16>(blocks, connections, bdp, mtu, pool))
            }
            Err(error) => Err(error),
        }
    }

    /// Settings of the paper: 300 connections, 1 MB, packets of 1 KB, 1,024 bits in blocks of 8.
    pub fn of_the_paper() -> Self {
        Self::with_slots::<u8>(128, 300, Bytes::new(1_000_000), 1_000, PoolConfig::default())
    }

    fn with_slots<S: BlockPointer>(blocks: u32, connections: u32, bdp: Bytes, mtu: u32, pool: PoolConfig) -> Self {
        let [hole_bytes, number_bytes, pointer_bytes] = ReceiveTrack::<S>::BYTES;
        Self {
            connections,
            bdp,
            mtu,
            pool,
            slot_bits: S::BITS,
            hole_bytes,
            number_bytes,
            pointer_bytes,
            sender_bytes: Resend::<S>::BYTES.iter().sum(),
            pool_bits: pool.bits,
            next_bits: blocks * S::BITS,
            free_bits: blocks * S::BITS,
            bitmap_bits: bdp.get().div_ceil(u64::from(mtu)) as u32,
        }
    }

    /// Bytes of each connection at the receiver.
    pub(crate) fn receiver_bytes(&self) -> u32 {
        self.hole_bytes + self.number_bytes + self.pointer_bytes
    }

    /// Bits of the pool of one side and its management, however many connections there are.
    pub fn side_bits(&self) -> u32 {
        self.pool_bits + self.next_bits + self.free_bits
    }

    /// Bytes of both pools, shared out among the connections.
    pub(crate) fn pools_each(&self) -> f64 {
        f64::from(2 * self.side_bits()) / 8.0 / f64::from(self.connections)
    }

    /// Bytes of a connection as the paper adds them up.
    pub fn per_connection(&self) -> f64 {
        f64::from(self.receiver_bytes()) + self.pools_each()
    }

    /// Bytes of a connection, with those that the sender keeps.
    pub fn per_connection_with_sender(&self) -> f64 {
        self.per_connection() + f64::from(self.sender_bytes)
    }

    /// Beside what a NIC keeps already.
    pub fn share_of_context(&self) -> f64 {
        self.per_connection() / f64::from(QP_CONTEXT)
    }

    /// One bitmap of a bandwidth-delay product beside what a NIC keeps already.
    pub fn bitmap_of_context(&self) -> f64 {
        f64::from(self.bitmap_bits) / 8.0 / f64::from(QP_CONTEXT)
    }

    /// Bytes of a connection with a bitmap of its own at each end, as IRN has it.
    pub fn per_connection_with_bitmaps(&self) -> f64 {
        f64::from(2 * self.bitmap_bits) / 8.0
    }
}

impl fmt::Display for ChipMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connections, bdp, mtu, pool, .. } = self;
        let bytes = |f: &mut fmt::Formatter<'_>, what: &str, bytes: f64| writeln!(f, "{what:<44} {bytes:>8.2} B");
        writeln!(f, "{connections} connections, BDP {bdp}, MTU {mtu} B, blocks of {} bits", pool.block)?;
        bytes(f, "three latest holes", self.hole_bytes.into())?;
        bytes(f, "RCV.NXT and RCV.HIGH", self.number_bytes.into())?;
        bytes(f, "first and last block", self.pointer_bytes.into())?;
        writeln!(
            f,
            "{:<44} {:>8} b: {} bits, {} next pointers, {} free slots",
            "pool of one side",
            self.side_bits(),
            self.pool_bits,
            self.next_bits,
            self.free_bits
        )?;
        bytes(f, "both pools, for each connection", self.pools_each())?;
        bytes(f, "each connection", self.per_connection())?;
        writeln!(
            f,
            "{:<44} {:>8.1} %",
            format!("of the {QP_CONTEXT} B that a NIC keeps"),
            100.0 * self.share_of_context()
        )?;
        bytes(f, "each connection, with the sender's pointers", self.per_connection_with_sender())?;
        bytes(f, "each connection, with bitmaps of its own", self.per_connection_with_bitmaps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_comes_to_23_bytes_for_each_connection() {
        let account = ChipMemory::of_the_paper();
        assert_eq!((account.hole_bytes, account.number_bytes, account.pointer_bytes), (12, 6, 2));
        assert_eq!((account.pool_bits, account.next_bits, account.free_bits), (1_024, 1_024, 1_024));
        assert_eq!(account.per_connection().round(), 23.0);
        assert_eq!((account.share_of_context() * 1_000.0).round(), 91.0);
        assert_eq!(account.per_connection_with_sender().round(), 31.0);
        assert_eq!(account.per_connection_with_bitmaps(), 250.0);
    }

    #[test]
    fn more_blocks_need_wider_pointers() {
        let pool = PoolConfig { bits: 4_096, block: 8 };
        let account = ChipMemory::new(300, Bytes::new(4_000_000), 1_000, pool).unwrap();
        assert_eq!((account.slot_bits, account.pointer_bytes), (16, 4));
        assert_eq!(account.next_bits, 512 * 16);
        assert!(ChipMemory::new(300, Bytes::new(1), 1, PoolConfig { bits: 4, block: 8 }).is_err());
    }

    #[test]
    fn the_account_is_printed_in_full() {
        let text = ChipMemory::of_the_paper().to_string();
        assert!(text.contains("three latest holes                              12.00 B"), "{text}");
        assert!(text.contains("each connection                                 22.56 B"), "{text}");
    }
}
