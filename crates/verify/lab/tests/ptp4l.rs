//! linuxptp's own ptp4l follows a plan with the files that `hitless clock plan --ptp4l` writes.

use lab::clock_demo::run_ptp4l;
use linux::net::Namespace;
use units::StopFlag;

#[test]
fn ptp4l_has_the_planned_parents_and_after_failures_the_planned_backups() {
    if !testkit::installed("ptp4l") || !testkit::installed("pmc") {
        return;
    }
    let Some(_) = testkit::permitted(Namespace::new()) else { return };
    let mut outcomes = Vec::new();
    // A machine that lets no ptp4l run for half a second makes it miss Announces.
    for _ in 0..2 {
        let outcome = run_ptp4l(&StopFlag::default()).unwrap().expect("it is installed");
        if outcome.as_planned && outcome.backup_after_cut && outcome.backup_root_after_death {
            return;
        }
        outcomes.push(outcome.to_string());
    }
    panic!("{outcomes:#?}");
}
