//! The run directory, which a daemon with capabilities trusts: others may not write to it, and no link in it is followed.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::bad_days::{signal, wait_for_end};
use super::*;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_run_directory_that_others_may_write_to_is_refused() {
    let Some(lab) = Lab::new() else { return };
    let directory = lab.directory(0);
    fs::create_dir_all(directory.path()).unwrap();
    set_mode(directory.path(), 0o777);
    for args in [
        &["link", "up", "w0"][..],
        &["link", "up", "w0", "--background"],
        &["link", "down", "hit0"],
        &["rack", "join", "w0"],
        &["rack", "switch", "w0", "lo", "--rate", "1G"],
        &["monitor", "--action", "protect"],
    ] {
        let (code, _, said) = lab.run(0, args);
        assert!(code == 2 && said.lines().count() == 1, "{args:?}: {code}: {said}");
        assert!(said.contains("others may write to it (mode 0777)"), "{args:?}: {said}");
    }
    assert!(!lab.has(0, "hit0") && fs::read_dir(directory.path()).unwrap().count() == 0);
    // The same for the group, and for a stranger's directory.
    set_mode(directory.path(), 0o770);
    assert_eq!(lab.run(0, &["link", "up", "w0"]).0, 2);
    set_mode(directory.path(), 0o755);
    let mut daemon = lab.up(0, &[]);
    signal(&daemon, "TERM");
    assert_eq!(wait_for_end(&mut daemon), 0);
    if std::os::unix::fs::chown(directory.path(), Some(12_345), None).is_ok() {
        let (code, _, said) = lab.run(0, &["link", "up", "w0"]);
        assert!(code == 2 && said.contains("it belongs to user 12345"), "{code}: {said}");
    }
}

#[test]
fn a_run_directory_of_the_system_that_others_may_write_to_is_no_wrong_argument() {
    let Some(lab) = Lab::new() else { return };
    let path = PathBuf::from(format!("/run/hitless/netns-{}", lab.stage.ends[0].number().unwrap()));
    if testkit::permitted(fs::create_dir_all(&path)).is_none() {
        return;
    }
    set_mode(&path, 0o777);
    let mut command = lab.hitless(0, &["link", "up", "w0"]);
    command.env_remove("HITLESS_RUN_DIR");
    let (code, _, said) = outcome(command);
    fs::remove_dir(&path).unwrap();
    assert!(code == 1 && said.contains("others may write to it") && said.lines().count() == 1, "{code}: {said}");
}

#[test]
fn links_in_a_run_directory_are_not_followed() {
    let Some(lab) = Lab::new() else { return };
    let directory = lab.directory(0);
    drop(directory.make().unwrap());
    let victim = lab.folder.join("victim");
    fs::write(&victim, "precious").unwrap();
    let place = |name: &str| directory.path().join(name);
    // The next version of notes is a file of our own, whatever was in its place.
    symlink(&victim, place("hit0.json.next")).unwrap();
    let mut daemon = lab.up(0, &[]);
    signal(&daemon, "TERM");
    assert_eq!(wait_for_end(&mut daemon), 0);
    assert!(!place("hit0.json.next").is_symlink());
    for (link, args) in [
        ("hit0.lock", &["link", "up", "w0"][..]),
        ("w0.wire.lock", &["link", "up", "w0"]),
        ("hit0.log", &["link", "up", "w0", "--background"]),
        ("hit0.json", &["link", "up", "w0"]),
        ("hit0.json", &["link", "down", "hit0"]),
    ] {
        symlink(&victim, place(link)).unwrap();
        let (code, _, said) = lab.run(0, args);
        assert!(code == 1 && said.lines().count() == 1, "{link}, {args:?}: {code}: {said}");
        let _ = fs::remove_file(place(link));
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!lab.has(0, "hit0"));
}

#[test]
fn nothing_outside_of_the_program_sets_the_clock_of_a_daemon() {
    let program = fs::read(env!("CARGO_BIN_EXE_hitless")).unwrap();
    for name in ["HITLESS_TEST_CLOCK_BACK", "HITLESS_TEST_"] {
        let found = program.windows(name.len()).any(|bytes| bytes == name.as_bytes());
        assert!(!found, "the program reads {name} from its environment");
    }
    let Some(lab) = Lab::new() else { return };
    for args in [
        &["link", "up", "w0", "--test-clock-back", "3600"][..],
        &["link", "up", "w0", "--background", "--test-clock-back", "1"],
    ] {
        let (code, _, said) = lab.run(0, args);
        assert!(code == 2 && said.contains("only `hitless soak --faults` may ask for it"), "{code}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let (_, help, _) = lab.run(0, &["link", "up", "--help"]);
    assert!(!help.contains("test-clock-back"));
}
