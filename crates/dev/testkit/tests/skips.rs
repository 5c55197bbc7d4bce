//! Skips as a user meets them: this binary starts itself again, as cargo would, without and with `HITLESS_TESTS=all`.

use std::io::{self, ErrorKind};
use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;

/// Set in the processes that the stories start, each of which is one of the tests below that do nothing otherwise.
const CHILD: &str = "HITLESS_TESTKIT_CHILD";

/// The skips of all children of this process are in one file.
static TURN: Mutex<()> = Mutex::new(());

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

fn child(name: &str, tests: Option<&str>) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // Two threads: with one, the harness runs a test on the main thread, which does not have its name.
    command.args(["--exact", name, "--test-threads", "2"]).env(CHILD, "1").env_remove("HITLESS_TESTS");
    command.envs(tests.map(|value| ("HITLESS_TESTS", value)));
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.success(), [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat())
}

#[test]
fn child_skips() {
    if is_child() {
        testkit::skip("the moon is not full");
    }
}

#[test]
fn child_skips_in_part() {
    if is_child() {
        testkit::skip_part("the stars are not out");
    }
}

#[test]
fn child_may_not() {
    if is_child() {
        assert_eq!(testkit::permitted(Err::<(), _>(io::Error::from(ErrorKind::PermissionDenied))), None);
    }
}

#[test]
fn child_fails_otherwise() {
    if is_child() {
        testkit::permitted(Err::<(), _>(io::Error::from(ErrorKind::AddrInUse)));
    }
}

#[test]
fn child_lacks_a_program() {
    if is_child() {
        assert!(!testkit::installed("hitless-no-such-program"));
    }
}

#[test]
fn child_reports() {
    if is_child() {
        assert_eq!(testkit::report(), ExitCode::SUCCESS, "tests were skipped");
    }
}

const SKIPPING: [(&str, &str); 4] = [
    ("child_skips", "skipped: child_skips: the moon is not full"),
    ("child_skips_in_part", "skipped in part: child_skips_in_part: the stars are not out"),
    ("child_may_not", "skipped: child_may_not: permission denied"),
    ("child_lacks_a_program", "skipped: child_lacks_a_program: hitless-no-such-program is not installed"),
];

#[test]
fn a_skip_is_seen_though_output_is_captured_and_counted_at_the_end() {
    if is_child() {
        return;
    }
    let _turn = TURN.lock().unwrap();
    for (name, line) in SKIPPING {
        let (passed, said) = child(name, None);
        assert!(passed && said.lines().any(|said| said == line), "{name}: {said}");
    }
    let (passed, said) = child("child_reports", None);
    assert!(passed, "{said}");
    for line in [
        "3 tests skipped (HITLESS_TESTS=all makes that a failure):",
        "    1  the moon is not full (skips 1)",
        "    1  permission denied (skips 1)",
        "    1  hitless-no-such-program is not installed (skips 1)",
        "1 test skipped in part (HITLESS_TESTS=all makes that a failure):",
        "    1  the stars are not out (skips 1)",
    ] {
        assert!(said.lines().any(|said| said == line), "{line} in {said}");
    }
}

#[test]
fn with_hitless_tests_all_a_skip_is_a_failure() {
    if is_child() {
        return;
    }
    let _turn = TURN.lock().unwrap();
    for (name, line) in SKIPPING {
        let (passed, said) = child(name, Some("all"));
        let reason = line.rsplit_once(": ").unwrap().1;
        assert!(!passed && said.contains(&format!("which HITLESS_TESTS=all forbids: {reason}")), "{name}: {said}");
    }
    assert!(!child("child_reports", Some("all")).0, "the reporter fails as well");
}

#[test]
fn an_error_that_is_neither_a_permission_nor_a_missing_program_fails_the_test() {
    if is_child() {
        return;
    }
    let (passed, said) = child("child_fails_otherwise", None);
    assert!(!passed && said.contains("address in use"), "{said}");
}

#[test]
fn another_value_of_hitless_tests_is_refused() {
    if is_child() {
        return;
    }
    let _turn = TURN.lock().unwrap();
    let (passed, said) = child("child_skips", Some("al"));
    assert!(!passed && said.contains("HITLESS_TESTS=al: expected all, or nothing"), "{said}");
}
