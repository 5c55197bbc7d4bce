//! Whole numbers of a range, as people write them: `300`, `3K`, `1e9`.

use std::ops::{Bound, RangeBounds};

/// Reads a whole number of this range. The range ends where the type does.
pub fn whole_within<T: TryFrom<u64>>(
    allowed: impl RangeBounds<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    let least = match allowed.start_bound() {
        Bound::Included(least) => *least,
        Bound::Excluded(below) => below.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let largest = u64::MAX >> (64 - 8 * size_of::<T>().min(8));
    let most = match allowed.end_bound() {
        Bound::Included(most) => *most,
        Bound::Excluded(beyond) => beyond.saturating_sub(1),
        Bound::Unbounded => largest,
    };
    move |text| {
        let number = crate::whole(text).filter(|number| (least..=most).contains(number));
        let expected = || match most {
            most if most == largest => format!("expected a whole number of at least {least} such as 1000, 300K or 2e7"),
            most => format!("expected a whole number from {least} to {most}"),
        };
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_people_write_them() {
        let (small, large) = (whole_within::<u32>(1..=1_000), whole_within::<usize>(..));
        assert_eq!((small("1e3"), small("7"), large("1e9"), large("0")), (Ok(1_000), Ok(7), Ok(1_000_000_000), Ok(0)));
        assert_eq!(small("0"), Err("expected a whole number from 1 to 1000".into()));
        assert!(small("2K").is_err() && small("many").is_err() && small("1.5").is_err() && small("-1").is_err());
        let jobs = whole_within::<u16>(1..);
        assert_eq!(jobs("1e3"), Ok(1_000));
        assert!(jobs("70000").is_err_and(|error| error.contains("at least 1")));
    }
}
