//! Order of epochs. They count on a circle, as sequence numbers do: no number is the last one, so no message, forged or
//! not, can use them up.

/// True if `a` comes after `b`. For two at opposite ends of the circle neither does.
pub(crate) fn is_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

/// True if `a` comes before `b`. For two at opposite ends of the circle neither does.
pub(crate) fn is_before(a: u32, b: u32) -> bool {
    is_after(b, a)
}

/// Farthest that one message may move an end: a thirty-second of the circle. So nobody brings an end round to an epoch that
/// its peer is still in with a message or two, and two ends at opposite sides meet after sixteen.
pub const FARTHEST: u32 = 1 << 27;

/// True if one message may move an end from `current` to `next`.
pub(crate) fn is_near(current: u32, next: u32) -> bool {
    next.wrapping_sub(current) <= FARTHEST
}

/// The epoch that follows `current` where the peer asks for `least` or later, as far as one message may move us. Frames
/// carry an epoch modulo four, and those of two in a row must differ.
pub(crate) fn following(current: u32, least: u32) -> u32 {
    let next = current.wrapping_add(1);
    let chosen = match is_after(next, least) {
        true => next,
        false if is_near(current, least) => least,
        false => current.wrapping_add(FARTHEST),
    };
    if chosen % 4 == current % 4 { chosen.wrapping_add(1) } else { chosen }
}

/// First sequence number of an epoch, counted from those of the first. Epochs that look alike on a frame begin far apart: a
/// frame sent in one is out of the window in the other, so that frames are neither delivered twice nor acknowledged unseen
/// where two ends believe in different ones.
pub(crate) fn first_number(epoch: u32) -> u32 {
    const GOLDEN: u32 = 0x9e37_79b1;
    const UNUSED: u32 = u32::BITS - 17;
    (epoch / 4).wrapping_mul(GOLDEN) >> UNUSED
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERESTING: [u32; 9] =
        [0, 1, 3, 0x7fff_fffe, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_fffe, 0xffff_ffff];

    #[test]
    fn every_epoch_is_followed_by_one_that_the_asker_accepts_or_that_is_nearer_to_it() {
        for current in INTERESTING {
            for least in INTERESTING {
                let next = following(current, least);
                let moved = next.wrapping_sub(current);
                assert!(moved <= FARTHEST + 1, "{current:#x} to {next:#x}");
                assert!(!is_before(next, least) || moved >= FARTHEST, "{next:#x} for {least:#x} after {current:#x}");
                assert_ne!(next % 4, current % 4, "{next:#x} after {current:#x}");
            }
        }
    }

    #[test]
    fn the_circle_has_no_last_epoch() {
        assert_eq!(following(u32::MAX, 0), 0);
        assert_eq!(following(u32::MAX, u32::MAX - 9), 0);
        assert!(is_after(0, u32::MAX) && is_before(u32::MAX, 0));
        assert!(!is_after(0, 1 << 31) && !is_before(0, 1 << 31));
    }

    #[test]
    fn two_ends_meet_after_a_few_messages_wherever_they_are() {
        for start in INTERESTING {
            for asked in INTERESTING {
                let mut epoch = start;
                let messages = (1..).find(|_| {
                    epoch = following(epoch, asked);
                    !is_before(epoch, asked)
                });
                assert!(messages.unwrap() <= 17, "from {start:#x} to {asked:#x}");
            }
        }
    }

    #[test]
    fn epochs_that_look_alike_begin_far_apart() {
        let apart = |a: u32, b: u32| {
            let distance = first_number(a).wrapping_sub(first_number(b)) % (1 << 17);
            distance.min((1 << 17) - distance)
        };
        for start in [1u32, 70_001, 0x8000_0000] {
            for step in (4..80).step_by(4).chain([FARTHEST, 2 * FARTHEST]) {
                let other = start.wrapping_add(step);
                assert!(apart(start, other) > 4_096, "{start:#x} and {other:#x}");
            }
        }
        assert_eq!(first_number(1), 0);
    }
}
