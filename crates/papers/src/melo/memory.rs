//! melo.memory: bytes of each connection and bits of the pools (§3.2.4), from `transport`'s own account.

use report::claim::{ClaimError, MeasuredValue};
use report::runner::{ComputedValues, Effort};
use roce::melo::ChipMemory;

pub(super) fn compute(_effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let account = ChipMemory::of_the_paper();
    let values = [
        ("holes", f64::from(account.hole_bytes)),
        ("numbers", f64::from(account.number_bytes)),
        ("pointers", f64::from(account.pointer_bytes)),
        ("side-bits", f64::from(account.side_bits())),
        ("per-connection", account.per_connection()),
        ("of-context", account.share_of_context()),
        ("with-sender", account.per_connection_with_sender()),
        ("with-bitmaps", account.per_connection_with_bitmaps()),
    ];
    let mut computed = ComputedValues::default();
    for (name, value) in values {
        computed.value(name, MeasuredValue::exact(value, account.connections.into()));
    }
    Ok(Some(computed))
}
