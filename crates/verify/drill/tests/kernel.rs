//! The scripts of this crate on this host's TCP.

mod scripts;

use drill::batch::{DrillVerdict, against_kernel};
use linux::net::Namespace;

/// On a busy machine a script may have to be run again.
const ROUNDS: usize = 20;

#[test]
fn the_kernel_passes_all_scripts() {
    let Some(_) = testkit::permitted(Namespace::new()) else { return };
    let mut scripts = scripts::all();
    for _ in 0..ROUNDS {
        let rows = against_kernel(&scripts);
        let unsupported = rows.iter().find(|row| row.result == DrillVerdict::NotApplicable);
        assert_eq!(unsupported, None, "every script is for every kernel");
        let failed: Vec<&String> =
            rows.iter().filter(|row| row.result == DrillVerdict::Failed).map(|row| &row.file).collect();
        if failed.is_empty() {
            return;
        }
        let is_busy = rows.iter().filter_map(|row| row.why.as_ref()).all(|why| why.contains("busy"));
        assert!(is_busy, "{rows:#?}");
        scripts.retain(|script| failed.contains(&&script.file));
    }
    panic!("this machine was too busy {ROUNDS} times for {scripts:#?}");
}
