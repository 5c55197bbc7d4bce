//! melo.memory: bytes of each connection and bits of the pools (§3.2.4), from `transport`'s own account.

use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use roce::melo::{ChipMemory, PoolConfig};
use units::Bytes;

pub(super) fn compute(_effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let account = ChipMemory::of_the_paper();
    // 100 Gb/s for 200 µs, in packets of 1,000 B (§3.2.3).
    let naive = ChipMemory::new(account.connections, Bytes::new(2_500_000), 1_000, PoolConfig::default());
    let naive = naive.map_err(ClaimError::new)?;
    let values = [
        ("holes", f64::from(account.hole_bytes)),
        ("numbers", f64::from(account.number_bytes)),
        ("pointers", f64::from(account.pointer_bytes)),
        ("side-bits", f64::from(account.side_bits())),
        ("per-connection", account.per_connection()),
        ("of-context", account.share_of_context()),
        ("with-sender", account.per_connection_with_sender()),
        ("with-bitmaps", account.per_connection_with_bitmaps()),
        ("bitmap-bits", f64::from(naive.bitmap_bits)),
        ("bitmap-of-context", naive.bitmap_of_context()),
        ("connections-left", 1.0 / (1.0 + naive.bitmap_of_context())),
    ];
    let mut computed = ComputedValues::default();
    for (name, value) in values {
        computed.value(name, MeasuredValue::exact(value, account.connections.into()));
    }
    Ok(Some(computed))
}
