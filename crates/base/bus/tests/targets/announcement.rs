//! Arbitrary texts as announcements and findings of collectors. `fuzz/` has this target, too.

use bus::collectors::{Announcement, CollectorSet, LatestFinding, in_order};
use bus::key::OrderKey;

/// Checks that what can be read is written the same again, that no text has the tag of a key by chance, and that nothing is
/// believed for ever.
pub(crate) fn announcement(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let key = OrderKey::new([7; 16]);
    if let Ok(finding) = LatestFinding::parse(text, None) {
        assert_eq!(LatestFinding::parse(&finding.to_text(Some(&key)), Some(&key)), Ok(finding));
        assert!(LatestFinding::parse(text, Some(&key)).is_err());
    }
    let Ok(said) = Announcement::parse(text, None) else { return };
    assert!(Announcement::parse(text, Some(&key)).is_err());
    assert_eq!(Announcement::parse(&said.to_text(Some(&key)), Some(&key)).as_ref(), Ok(&said));
    assert!(said.is_over(said.expires_ms.saturating_add(1_001)) || said.expires_ms > u64::MAX - 1_001);
    let mut set = CollectorSet::default();
    set.learn(said.clone());
    assert_eq!(in_order("cable", set.iter().map(|known| known.name.as_str())), [said.name]);
}
