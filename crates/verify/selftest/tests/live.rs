//! A few cases, once each: what is said of the kernel's own connections is true.

use linux::net::{Namespace, become_root_of_own_namespaces};
use selftest::agreement::{self, AgreementPlan, AgreementReport};
use selftest::batch::{self, SelftestPlan, SelftestReport};
use selftest::case::TestCase;
use units::StopFlag;

/// On a thread of its own, which alone moves.
fn in_own_namespace<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let moved = scope.spawn(|| {
            become_root_of_own_namespaces(false).expect("a network of its own");
            run()
        });
        moved.join().expect("no panic")
    })
}

fn selftest(cases: &[TestCase]) -> SelftestReport {
    let plan = SelftestPlan { cases, runs: 1, seed: 1, keep: None };
    in_own_namespace(|| batch::run(&plan, &StopFlag::new()).expect("a stage"))
}

#[test]
fn losses_and_waits_of_the_kernel_are_named() {
    let Some(_) = testkit::permitted(Namespace::new()) else { return };
    let cases = [TestCase::LoneTail, TestCase::Middle, TestCase::SmallWindow, TestCase::SlowServer];
    let report = selftest(&cases);
    assert_eq!((report.wrong, report.runs), (0, 4), "{}", report.text());
    assert!(report.complete && report.not_counted < 4, "{}", report.text());
    let losses: Vec<u64> = report.cases.iter().map(|row| row.losses).collect();
    assert_eq!((losses[0], losses[1], losses[3]), (1, 4, 0), "{}", report.text());
}

#[test]
fn the_shadow_follows_the_kernel() {
    let Some(_) = testkit::permitted(Namespace::new()) else { return };
    let plan = AgreementPlan { connections: 10, seed: 1, keep: None };
    let report: AgreementReport = in_own_namespace(|| agreement::run(&plan, &StopFlag::new()).expect("a stage"));
    let rows: Vec<(u64, bool)> = report.rows.iter().map(|row| (row.connections, row.segments > 100)).collect();
    assert_eq!(rows, [(10, true); 3], "{}", report.text());
    // With so few connections a busy machine makes a difference.
    assert!(report.rows.iter().all(|row| row.agreement > 0.9), "{}", report.text());
}

#[test]
fn an_interrupted_selftest_says_what_it_knows() {
    let Some(_) = testkit::permitted(Namespace::new()) else { return };
    let stop = StopFlag::new();
    stop.stop();
    let plan = SelftestPlan { cases: &TestCase::ALL, runs: 1, seed: 1, keep: None };
    let report = in_own_namespace(|| batch::run(&plan, &stop).expect("nothing runs"));
    assert!(!report.complete && report.runs == 0, "{report:?}");
}
