//! `hitless model melo`.

use results::model::MeloAnswer;
use roce::melo::{ChipMemory, PoolConfig};

use crate::args::MeloArgs;
use crate::output::{CommandResult, Failure, print};

/// PSNs have 24 bits: more packets are never on their way.
const MOST_PACKETS: u64 = 1 << 24;

pub(super) fn run(args: &MeloArgs, json: bool) -> CommandResult {
    let account = account(args)?;
    print(json, &MeloAnswer::from(&account), || account.to_string())
}

fn account(args: &MeloArgs) -> Result<ChipMemory, Failure> {
    let mtu = super::check_mtu(args.mtu)?;
    let packets = args.bdp.get().div_ceil(u64::from(mtu));
    if !(1..=MOST_PACKETS).contains(&packets) {
        return Err(Failure::Usage(format!(
            "--bdp {}: expected 1 to {MOST_PACKETS} packets of {mtu} bytes, as many as PSNs can tell apart",
            args.bdp
        )));
    }
    let pool = PoolConfig { bits: args.pool.unwrap_or(packets.next_power_of_two() as u32), block: args.block };
    ChipMemory::new(args.connections, args.bdp, mtu, pool).map_err(|error| {
        let given = args.pool.map_or_else(|| format!("--bdp {}", args.bdp), |bits| format!("--pool {bits}"));
        Failure::Usage(format!("{given} --block {}: {error}", args.block))
    })
}
