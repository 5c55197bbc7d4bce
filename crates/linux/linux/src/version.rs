//! The kernel's version, where nothing else tells what it can do.

use std::fs;

/// True if the kernel is of this version, or newer. One that does not say is taken for old.
pub fn is_at_least(major: u32, minor: u32) -> bool {
    fs::read_to_string("/proc/sys/kernel/osrelease").ok().and_then(|release| parse(&release)) >= Some((major, minor))
}

/// Major and minor number of a release such as `6.18.44-fc`.
fn parse(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(|byte: char| !byte.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_a_major_and_a_minor_number() {
        assert_eq!(parse("6.18.44-fc-v509\n"), Some((6, 18)));
        assert_eq!(parse("5.4-rc1"), Some((5, 4)));
        assert_eq!((parse("6"), parse("unknown"), parse("")), (None, None, None));
        assert!(parse("6.10") > parse("6.2"), "by number and not by letter");
        assert!(is_at_least(3, 0) && !is_at_least(1_000, 0));
    }
}
