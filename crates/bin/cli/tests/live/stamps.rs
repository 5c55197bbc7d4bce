//! Frames with their numbers in their addresses, over real interfaces.

use super::*;

const STAMPED: [&str; 2] = ["--mtu", "1500"];

fn stamped(lab: &Lab) -> [Daemon; 2] {
    let daemons = [0, 1].map(|end| lab.up(end, &STAMPED));
    (0..2).for_each(|end| lab.stage.address(end, "hit0").unwrap());
    lab.wait_until_protected();
    daemons
}

fn wait_until_stamped(lab: &Lab) {
    wait_for("stamps", || (0..2).all(|end| lab.ask(end).is_some_and(|status| status.stamp.state == "used")));
}

/// Sends bytes by the kernel's own TCP; they must arrive as they were. `meanwhile` runs beside it.
fn transfer(lab: &Lab, bytes: u64, meanwhile: impl FnOnce(&StopFlag) + Send) {
    let (stop, done) = (StopFlag::new(), StopFlag::new());
    let verdict = std::thread::scope(|scope| {
        lab.stage.serve(scope, &stop).unwrap();
        scope.spawn(|| meanwhile(&done));
        let verdict = lab.stage.ends[0].with(|| load::transfer(lab.stage.server(), bytes, 7, &stop)).unwrap();
        done.stop();
        stop.stop();
        verdict
    });
    assert!(verdict.unwrap().is_intact());
}

fn count(status: &LinkStatus, name: &str) -> u64 {
    status.counters[name]
}

#[test]
fn stamped_super_frames_over_a_lossy_wire_arrive_whole_with_either_backend() {
    for backend in ["tap", "veth"] {
        let Some(lab) = Lab::new() else { return };
        let _daemons = [0, 1].map(|end| lab.up(end, &["--mtu", "1500", "--backend", backend]));
        (0..2).for_each(|end| lab.stage.address(end, "hit0").unwrap());
        lab.wait_until_protected();
        wait_until_stamped(&lab);
        lab.stage.set_loss(units::Prob::literal(1e-2)).unwrap();
        transfer(&lab, 20_000_000, |_| ());
        let [left, right] = [0, 1].map(|end| lab.ask(end).unwrap());
        let counts = |status: &LinkStatus| format!("{backend}: {:?}", status.counters);
        assert!(count(&left, "tx_stamped") > 10_000, "{}", counts(&left));
        assert!(count(&left, "tx_stamped") > 3 * count(&left, "tx_stamped_runs"), "{}", counts(&left));
        assert!(count(&right, "rx_stamped") > 10_000 && count(&right, "rx_stamp_bad") == 0, "{}", counts(&right));
        assert!(right.recovered > 50 && right.given_up == 0, "{}", counts(&right));
        assert_eq!([&left, &right].map(|status| status.stamp.state.as_str()), ["used"; 2]);
        let (code, text, _) = lab.run(0, &["link", "status"]);
        assert!(
            code == 0 && text.lines().any(|line| line.trim_start().starts_with("stamp") && line.contains("used")),
            "{text}"
        );
    }
}

#[test]
fn bursts_of_losses_are_recovered_whatever_becomes_of_the_stamp() {
    let Some(lab) = Lab::new() else { return };
    let _daemons = stamped(&lab);
    wait_until_stamped(&lab);
    // Bursts that lose most stamped frames may switch stamps off for a minute. A transfer may be over before many bursts have come.
    let has_recovered = (0..20).any(|_| {
        transfer(&lab, 40_000_000, |done| {
            while !done.is_stopped() {
                for (loss, ms) in [(0.3, 2), (0.0, 20)] {
                    lab.stage.set_loss(units::Prob::literal(loss)).unwrap();
                    std::thread::sleep(Duration::from_millis(ms));
                }
            }
            lab.stage.set_loss(units::Prob::literal(0.0)).unwrap();
        });
        lab.ask(1).unwrap().recovered > 50
    });
    assert!(has_recovered, "{:?}", lab.ask(1).unwrap().counters);
}

#[test]
fn a_daemon_that_is_killed_and_started_again_is_stamped_to_again() {
    let Some(lab) = Lab::new() else { return };
    let mut daemons = stamped(&lab);
    wait_until_stamped(&lab);
    for (end, daemon) in daemons.iter_mut().enumerate() {
        transfer(&lab, 20_000_000, |_| {
            std::thread::sleep(Duration::from_millis(5));
            daemon.kill();
            *daemon = lab.up(end, &STAMPED);
        });
        lab.wait_until_protected();
        wait_until_stamped(&lab);
    }
}

#[test]
fn with_stamps_at_one_end_only_there_are_none_and_both_ends_say_why() {
    let Some(lab) = Lab::new() else { return };
    let _daemons = [lab.up(0, &["--mtu", "1500", "--stamp", "off"]), lab.up(1, &STAMPED)];
    (0..2).for_each(|end| lab.stage.address(end, "hit0").unwrap());
    lab.wait_until_protected();
    lab.stage.set_loss(units::Prob::literal(1e-3)).unwrap();
    transfer(&lab, 20_000_000, |_| ());
    let stamps = [0, 1].map(|end| lab.ask(end).unwrap().stamp);
    assert_eq!(stamps.each_ref().map(|stamp| stamp.state.as_str()), ["off"; 2]);
    let why = stamps.map(|stamp| stamp.why.unwrap());
    assert!(why[0].contains("--stamp off") && why[1].contains("peer"), "{why:?}");
    assert_eq!([0, 1].map(|end| lab.ask(end).unwrap().counters["tx_stamped"]), [0; 2]);
}

#[test]
fn down_puts_back_the_offloads_that_stamps_need_also_after_a_kill() {
    let Some(lab) = Lab::new() else { return };
    let offloads = || {
        let read = || {
            let netlink = Netlink::open().unwrap();
            [linux::net::Offload::Gro, linux::net::Offload::Tso].map(|offload| netlink.offload("w0", offload).unwrap())
        };
        lab.stage.ends[0].with(read).unwrap()
    };
    lab.stage.ends[0].with(|| Netlink::open().unwrap().set_offloads("w0", true).unwrap()).unwrap();
    for gro in [true, false] {
        let set = || Netlink::open().unwrap().set_offload("w0", linux::net::Offload::Gro, gro).unwrap();
        lab.stage.ends[0].with(set).unwrap();
        let mut daemon = lab.up(0, &[]);
        assert_eq!(offloads(), [true, false]);
        daemon.kill();
        let mut again = lab.up(0, &[]);
        assert_eq!(lab.run(0, &["link", "down"]).0, 0);
        assert!(again.0.wait().unwrap().success());
        assert_eq!(offloads(), [gro, true]);
    }
}
