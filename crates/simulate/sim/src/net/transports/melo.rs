//! MELO: what is missing is remembered in a pool that all connections of a host share.

use roce::melo::{Melo, Nic, PoolConfig};
use roce::selective::{SelectiveConfig, SelectiveConnection};

use super::Site;
use super::selective::{SelectiveSetup, SimRecovery};
use settings::KeyShape::One;
use settings::{Keys, ReadResult, SettingsReader};

pub type MeloSetup = SelectiveSetup<PoolConfig>;

impl SimRecovery for Melo<u16> {
    type Memory = PoolConfig;

    const NAME: &'static str = "melo";
    const KEYS: Keys = &[("pool", One), ("block", One)];

    fn read(table: &SettingsReader<'_>) -> ReadResult<PoolConfig> {
        let usual = PoolConfig::default();
        let pool = PoolConfig {
            bits: table.small("pool", 1..=u32::MAX)?.unwrap_or(usual.bits),
            block: table.small("block", 1..=u32::MAX)?.unwrap_or(usual.block),
        };
        pool.blocks::<u16>().map_err(|error| table.wrong(if table.has("pool") { "pool" } else { "block" }, error))?;
        Ok(pool)
    }

    fn connect(config: SelectiveConfig, pool: &PoolConfig, at: &mut Site<'_>) -> SelectiveConnection<Self> {
        let nic = at.nic.get_or_insert_with(|| Nic::new(*pool).expect("checked when the setup was made"));
        SelectiveConnection::melo(config, nic)
    }

    fn close(connection: &mut SelectiveConnection<Self>) {
        connection.swap_out();
    }

    fn shared_pool(pool: &PoolConfig) -> Option<PoolConfig> {
        Some(*pool)
    }
}
