//! Test of what a signal removes. It is alone in its process, because a signal removes what all threads write.

use std::fs;
use std::io::Write;

use files::{WholeFile, WholeFolder, without_unfinished};

#[test]
fn what_a_signal_interrupts_is_removed_and_cannot_be_finished() {
    let folder = std::env::temp_dir().join(format!("hitless-signal-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let count = || fs::read_dir(&folder).unwrap().count();
    let mut file = WholeFile::create(&folder.join("file")).unwrap();
    file.write_all(b"half").unwrap();
    let below = WholeFolder::create(&folder.join("folder")).unwrap();
    fs::write(below.path().join("one"), "1").unwrap();
    assert_eq!(count(), 2);
    without_unfinished(|| assert_eq!(count(), 0));
    assert!(file.finish().is_err() && below.finish().is_err());
    assert_eq!(count(), 0);
    fs::remove_dir(&folder).unwrap();
}
