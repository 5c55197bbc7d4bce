//! Frame numbers on a circle of 32 bits. Without `Ord`: ask [`FecNumber::offset_from`].

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct FecNumber(pub u32);

impl FecNumber {
    pub(crate) fn plus(self, frames: u32) -> Self {
        Self(self.0.wrapping_add(frames))
    }

    /// Frames from `base` to here, negative if before; exact below half the circle.
    pub(crate) fn offset_from(self, base: Self) -> i32 {
        self.0.wrapping_sub(base.0) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap() {
        let last = FecNumber(u32::MAX);
        assert_eq!(last.plus(1), FecNumber(0));
        assert_eq!(last.plus(6).offset_from(last), 6);
        assert_eq!(last.offset_from(last.plus(6)), -6);
    }
}
