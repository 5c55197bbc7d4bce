//! `hitless model melo`.

use serde::Serialize;
use transport::roce::melo::{Account, PoolConfig};

use crate::args::MeloArgs;
use crate::output::{Done, Failure, print};

/// PSNs have 24 bits: more packets are never on their way.
const MOST_PACKETS: u64 = 1 << 24;

#[derive(Serialize)]
struct Answer {
    connections: u32,
    bdp_bytes: u64,
    mtu_bytes: u32,
    block_bits: u32,
    /// Of each connection.
    hole_bytes: u32,
    number_bytes: u32,
    pointer_bytes: u32,
    sender_bytes: u32,
    /// Of one side.
    pool_bits: u32,
    next_bits: u32,
    free_bits: u32,
    side_bits: u32,
    bytes_per_connection: f64,
    bytes_per_connection_with_sender: f64,
    bytes_per_connection_with_bitmaps: f64,
    share_of_context: f64,
}

pub fn run(args: &MeloArgs, json: bool) -> Done {
    let account = account(args)?;
    let answer = Answer {
        connections: account.connections,
        bdp_bytes: account.bdp.get(),
        mtu_bytes: account.mtu,
        block_bits: account.pool.block,
        hole_bytes: account.hole_bytes,
        number_bytes: account.number_bytes,
        pointer_bytes: account.pointer_bytes,
        sender_bytes: account.sender_bytes,
        pool_bits: account.pool_bits,
        next_bits: account.next_bits,
        free_bits: account.free_bits,
        side_bits: account.side_bits(),
        bytes_per_connection: account.per_connection(),
        bytes_per_connection_with_sender: account.per_connection_with_sender(),
        bytes_per_connection_with_bitmaps: account.per_connection_with_bitmaps(),
        share_of_context: account.share_of_context(),
    };
    print(json, &answer, || account.to_string())
}

fn account(args: &MeloArgs) -> Result<Account, Failure> {
    let mtu = super::check_mtu(args.mtu)?;
    let packets = args.bdp.get().div_ceil(u64::from(mtu));
    if !(1..=MOST_PACKETS).contains(&packets) {
        return Err(Failure::Usage(format!(
            "--bdp {}: expected 1 to {MOST_PACKETS} packets of {mtu} bytes, as many as PSNs can tell apart",
            args.bdp
        )));
    }
    let pool = PoolConfig { bits: args.pool.unwrap_or(packets.next_power_of_two() as u32), block: args.block };
    Account::new(args.connections, args.bdp, mtu, pool).map_err(|error| {
        let given = args.pool.map_or_else(|| format!("--bdp {}", args.bdp), |bits| format!("--pool {bits}"));
        Failure::Usage(format!("{given} --block {}: {error}", args.block))
    })
}
