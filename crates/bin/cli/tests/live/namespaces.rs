//! State that another network namespace left, or another start of the machine: the kernel gives the number of a namespace that is
//! gone to the next one, and nothing of the dead one may show up there.

use std::net::Ipv4Addr;

use lab::stage::GuestHost;

use super::bad_days::{signal, wait_for_end};
use super::*;

const DEAD: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 7);
const OWN: Ipv4Addr = Ipv4Addr::new(172, 20, 0, 5);

/// Routes and addresses that a host which owns `address` has on the interface that stands for its wire.
fn own(address: Ipv4Addr) -> Vec<String> {
    let [first, second, third, _] = address.octets();
    vec![format!("0.0.0.0/0 via {first}.{second}.{third}.1"), format!("{address}/24")]
}

/// The program on a guest; with the run directory of the system if none is given.
fn hitless(guest: &GuestHost, directory: Option<&Path>, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hitless"));
    command.args(args).env_remove("HITLESS_RUN_DIR").env(daemon::keeper::LAB, std::process::id().to_string());
    command.envs(directory.map(|path| ("HITLESS_RUN_DIR", path)));
    guest.namespace.prepare(&mut command).unwrap();
    command
}

/// A daemon on a guest that has taken over its interface.
fn up(guest: &GuestHost, directory: Option<&Path>, address: Ipv4Addr) -> Daemon {
    let mut command = hitless(guest, directory, &["link", "up", GuestHost::PLUG, "--take-over"]);
    let mut daemon = Daemon(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    wait_for("the daemon to take over", || {
        assert_eq!(daemon.0.try_wait().unwrap(), None, "the daemon ended");
        guest.holdings("hit0").unwrap().iter().any(|held| held.starts_with(&address.to_string()))
    });
    wait_for("the daemon to answer", || keeper(guest, directory).is_some());
    daemon
}

fn keeper(guest: &GuestHost, directory: Option<&Path>) -> Option<u64> {
    let (_, status, _) = outcome(hitless(guest, directory, &["link", "status", "hit0", "--json"]));
    serde_json::from_str::<serde_json::Value>(&status).ok()?["keeper"]["pid"].as_u64()
}

/// Kills the processes of a guest as a container runtime does: all of them, without a word.
fn kill_all(guest: &GuestHost, directory: Option<&Path>, mut daemon: Daemon) {
    let keeper = keeper(guest, directory).unwrap();
    // One that is stopped starts no other keeper, and a keeper that is dead does not act.
    signal(&daemon, "STOP");
    assert!(Command::new("sh").args(["-c", &format!("kill -KILL {keeper}")]).status().unwrap().success());
    daemon.kill();
    let file = |name: &str| directory.map(|path| path.join(name));
    wait_for("the keeper to be gone", || !fs::exists(format!("/proc/{keeper}")).unwrap());
    assert!(file("hit0.json").is_none_or(|notes| notes.exists()), "no notes are left");
}

/// A host in a namespace that the system takes for one that died with its link up, and the run directory that it left. Where others make
/// namespaces too, the kernel may give the number to one of them: then the directory is given the successor's.
fn successor() -> (GuestHost, PathBuf) {
    let dead = GuestHost::new(DEAD).unwrap();
    let number = dead.namespace.number().unwrap();
    let directory = |number: u64| Path::new("/run/hitless").join(format!("netns-{number}"));
    kill_all(&dead, None, up(&dead, None, DEAD));
    assert!(directory(number).join("hit0.json").exists());
    assert_eq!(dead.holdings("hit0").unwrap(), own(DEAD));
    drop(dead);
    let guest = GuestHost::numbered(number, OWN).unwrap();
    let own = guest.namespace.number().unwrap();
    eprintln!("the number {number} came {}", if own == number { "again" } else { "to somebody else" });
    if own != number {
        fs::rename(directory(number), directory(own)).unwrap();
    }
    (guest, directory(own))
}

#[test]
fn a_namespace_with_the_number_of_a_dead_one_gets_nothing_of_it() {
    if testkit::permitted(Namespace::new()).is_none()
        || testkit::permitted(fs::create_dir_all("/run/hitless")).is_none()
    {
        return;
    }
    let (guest, directory) = successor();
    let mut daemon = up(&guest, None, OWN);
    assert_eq!(guest.holdings("hit0").unwrap(), own(OWN));
    assert!(directory.join("hit0.json.aside").exists());
    signal(&daemon, "TERM");
    assert_eq!(wait_for_end(&mut daemon), 0);
    let said = daemon.said();
    assert!(said.contains("another network namespace") && said.contains("notes of hit0 put aside"), "{said}");
    assert_eq!(guest.holdings(GuestHost::PLUG).unwrap(), own(OWN));
    assert!(!directory.exists(), "{:?}", fs::read_dir(&directory).map(Iterator::collect::<Vec<_>>));
}

#[test]
fn notes_of_another_namespace_are_put_aside_and_never_applied() {
    if testkit::permitted(Namespace::new()).is_none() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("hitless-elsewhere-{}", std::process::id()));
    let (dead, guest) = (GuestHost::new(DEAD).unwrap(), GuestHost::new(OWN).unwrap());
    let notes = folder.join("hit0.json");
    for command in ["up", "down"] {
        kill_all(&dead, Some(&folder), up(&dead, Some(&folder), DEAD));
        // Here the dead one need not be dead: what counts is that it is another.
        if command == "down" {
            let (code, _, said) = outcome(hitless(&guest, Some(&folder), &["link", "down", "hit0"]));
            assert!(code == 1 && said.contains("put aside as") && said.contains("hit0.json.aside"), "{said}");
            assert!(!notes.exists());
        } else {
            let mut daemon = up(&guest, Some(&folder), OWN);
            assert_eq!(guest.holdings("hit0").unwrap(), own(OWN));
            signal(&daemon, "TERM");
            assert_eq!(wait_for_end(&mut daemon), 0);
            let said = daemon.said();
            assert!(said.contains("nothing of them is applied"), "{said}");
        }
        assert_eq!(guest.holdings(GuestHost::PLUG).unwrap(), own(OWN), "{command}");
        // The other one can still be put right by hand: its stand-in is adopted by its mark.
        let mut again = up(&dead, Some(&folder), DEAD);
        signal(&again, "TERM");
        assert_eq!(wait_for_end(&mut again), 0);
        assert_eq!(dead.holdings(GuestHost::PLUG).unwrap(), own(DEAD), "{command}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{command}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn notes_of_before_the_machine_was_started_are_put_aside() {
    let Some(lab) = Lab::new() else { return };
    lab.stage.address(0, "w0").unwrap();
    let mut daemon = lab.up(0, &["--take-over"]);
    let keeper = lab.ask(0).unwrap().keeper.pid.unwrap();
    assert!(Command::new("sh").args(["-c", &format!("kill -KILL {keeper}")]).status().unwrap().success());
    daemon.kill();
    let path = lab.directory(0).notes("hit0");
    let mut notes: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert!(notes["namespace"]["boot"].as_str().is_some_and(|boot| boot.len() == 36), "{notes}");
    notes["namespace"]["boot"] = "00000000-0000-0000-0000-000000000000".into();
    fs::write(&path, notes.to_string()).unwrap();
    // The machine was started: what was made is gone, and the interface is called as ever.
    lab.stage.ends[0]
        .with(|| {
            let netlink = Netlink::open().unwrap();
            netlink.delete_link(netlink.existing_link("hit0").unwrap().index).unwrap();
            netlink.rename(netlink.existing_link("w0w").unwrap().index, "w0").unwrap();
        })
        .unwrap();
    let (code, _, said) = lab.run(0, &["link", "down", "hit0"]);
    assert!(code == 1 && said.contains("before the machine was started"), "{said}");
    let held = |interface: &str| {
        let addresses = || {
            let netlink = Netlink::open().unwrap();
            netlink.addresses(netlink.existing_link(interface).unwrap().index).unwrap()
        };
        lab.stage.ends[0].with(addresses).unwrap().into_iter().filter(|address| address.ip().is_ipv4()).count()
    };
    assert_eq!(held("w0"), 0, "no address of the former start");
}

#[test]
fn a_run_directory_shared_by_two_namespaces_costs_neither_its_frames() {
    let Some(lab) = Lab::new() else { return };
    lab.stage.address(0, "w0").unwrap();
    lab.up(0, &["--take-over"]).kill();
    let keeper = lab.directory(0).keeper("hit0");
    wait_for("the keeper to pass frames", || keeper.exists());
    let guest = GuestHost::new(OWN).unwrap();
    let directory = lab.directory(0);
    let (code, _, said) =
        outcome(hitless(&guest, Some(directory.path()), &["link", "up", GuestHost::PLUG, "--take-over"]));
    assert!(code == 1 && said.contains("a keeper in another network namespace"), "{code}: {said}");
    assert!(keeper.exists() && directory.notes("hit0").exists() && lab.has(0, "hit0"));
    assert_eq!(guest.holdings(GuestHost::PLUG).unwrap(), own(OWN));
    assert_eq!(lab.run(0, &["link", "down", "hit0"]).0, 0);
}
