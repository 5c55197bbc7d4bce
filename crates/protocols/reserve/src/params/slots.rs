//! Cost of a burst: a number of units, and the time for which they occupy a port.

use units::Span;
use wire::ethernet::on_wire;
use wire::reserve::Demand;

use super::{RackParams, SlotUnit};

/// Converts demands to units (frames or bytes) and units to time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotTable {
    unit: SlotUnit,
    /// Picoseconds per unit, times 2¹⁶.
    per_unit: u64,
    slot: Span,
}

impl SlotTable {
    /// Makes the table. Slots are longer by the share of frames without reservation.
    pub(crate) fn new(params: &RackParams) -> Self {
        let slot = params.slot.scale(1.0 / (1.0 - params.ingress_share.get()));
        let units = match params.unit {
            SlotUnit::Frames => 1,
            SlotUnit::Bytes => u64::from(params.full_frame()),
        };
        Self { unit: params.unit, per_unit: (slot.as_ps() << 16).div_ceil(units), slot }
    }

    /// Time for which a full frame occupies a port.
    pub(crate) fn slot(&self) -> Span {
        self.slot
    }

    /// Units counted for a burst.
    #[inline]
    pub(crate) fn units(&self, demand: Demand) -> u32 {
        match self.unit {
            SlotUnit::Frames => u32::from(demand.frames),
            SlotUnit::Bytes => demand.bytes,
        }
    }

    /// Units counted for one frame of this length, check included.
    #[inline]
    pub(crate) fn units_of_frame(&self, len: u32) -> u32 {
        match self.unit {
            SlotUnit::Frames => 1,
            SlotUnit::Bytes => on_wire(len),
        }
    }

    /// Time that this number of units takes.
    #[inline]
    pub(crate) fn time(&self, units: u32) -> Span {
        self.time_of(u64::from(units))
    }

    /// Time of a counter's value; a counter below zero takes no time.
    #[inline]
    pub(crate) fn time_of_count(&self, units: i64) -> Span {
        self.time_of(u64::try_from(units).unwrap_or(0))
    }

    #[inline]
    fn time_of(&self, units: u64) -> Span {
        // Rounded up: a slot is never shorter than its frames.
        match units.checked_mul(self.per_unit) {
            Some(product) => Span::from_ps(product.div_ceil(1 << 16)),
            None => Span::from_ps((u128::from(units) * u128::from(self.per_unit)).div_ceil(1 << 16) as u64),
        }
    }

    /// Number of units in this many slots.
    pub(crate) fn units_of_slots(&self, slots: u32) -> i64 {
        let each = (self.slot.as_ps() << 16) / self.per_unit;
        i64::from(slots) * each as i64
    }
}

#[cfg(test)]
mod tests {
    use units::{Prob, Rate, Time};

    use super::super::SchedulerKind;
    use super::*;

    fn params(unit: SlotUnit) -> RackParams {
        let slot = Span::from_ps(123_040);
        RackParams { unit, slot, ..RackParams::new(SchedulerKind::Clock, 6, Rate::gbps(100)) }
    }

    #[test]
    fn a_short_frame_costs_a_slot_in_frames_and_its_bytes_in_bytes() {
        let frames = SlotTable::new(&params(SlotUnit::Frames));
        let bytes = SlotTable::new(&params(SlotUnit::Bytes));
        assert_eq!(frames.time(frames.units_of_frame(64)), Span::from_ps(123_040));
        assert_eq!(bytes.time(bytes.units_of_frame(64)), Span::from_ps(84 * 80));
        assert_eq!(bytes.time(bytes.units_of_frame(1_518)), Span::from_ps(123_040));
        assert_eq!((frames.units_of_slots(15), bytes.units_of_slots(15)), (15, 15 * 1_538));
    }

    #[test]
    fn a_share_for_others_makes_slots_longer() {
        let share = Prob::new(0.1).expect("a probability");
        let slots = SlotTable::new(&RackParams { ingress_share: share, ..params(SlotUnit::Frames) });
        assert_eq!(slots.slot(), Span::from_ps(136_711));
    }

    #[test]
    fn a_counter_of_any_size_is_converted() {
        let slots = SlotTable::new(&params(SlotUnit::Frames));
        assert_eq!(slots.time_of_count(-3), Span::ZERO);
        assert!(Time::ZERO + slots.time_of_count(1 << 40) > Time::ZERO);
    }
}
