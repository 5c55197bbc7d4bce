//! The process that lets a link fail open: it is looked after while its daemon lives, and ends only when a successor has taken over.

use std::os::unix::net::UnixStream;

use super::bad_days::{arrivals, signal, wait_for_end};
use super::*;

fn kill(pid: u32) {
    let killed = Command::new("sh").args(["-c", &format!("kill -KILL {pid}")]).status().unwrap();
    assert!(killed.success(), "{pid}");
}

/// Both ends with addresses and protected; what the left one says is kept.
struct Pair {
    lab: Lab,
    left: Option<Daemon>,
    right: Daemon,
    sockets: [UdpSocket; 2],
}

impl Pair {
    fn new() -> Option<Self> {
        let lab = Lab::new()?;
        for end in 0..2 {
            lab.stage.address(end, stage::plug(end)).unwrap();
        }
        let [left, right] = [0, 1].map(|end| lab.up(end, &["--take-over", "--mtu", "1500"]));
        lab.wait_until_protected();
        let sockets = [0, 1]
            .map(|end| lab.stage.ends[end].with(|| UdpSocket::bind((stage::address(end), 9_000)).unwrap()).unwrap());
        Some(Self { lab, left: Some(left), right, sockets })
    }

    fn keeper(&self) -> Option<u32> {
        self.lab.ask(0)?.keeper.pid
    }

    /// Datagrams go each way, however long it takes to begin.
    fn passes(&self) {
        for end in 0..2 {
            let stop = StopFlag::new();
            let (from, to) = (&self.sockets[end], self.sockets[1 - end].local_addr().unwrap());
            std::thread::scope(|scope| {
                scope.spawn(|| witness::send(from, to, 1_000, 200, &stop));
                let arrived = std::panic::catch_unwind(|| arrivals(&self.sockets[1 - end], 50));
                stop.stop();
                arrived.unwrap();
            });
            // Frames under way must not count the next time.
            let socket = &self.sockets[1 - end];
            socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            while socket.recv(&mut [0; 2_000]).is_ok() {}
        }
    }

    fn kill_left(&mut self) -> String {
        let mut left = self.left.take().unwrap();
        left.kill();
        left.said()
    }

    /// The next daemon takes over, and its orderly end leaves nothing behind, no keeper either.
    fn end(mut self) {
        let mut again = self.lab.up(0, &["--take-over", "--mtu", "1500"]);
        self.lab.wait_until_protected();
        self.passes();
        for daemon in [&mut again, &mut self.right] {
            signal(daemon, "TERM");
            assert_eq!(wait_for_end(daemon), 0);
        }
        assert_eq!(fs::read_dir(self.lab.directory(0).path()).unwrap().count(), 0);
        assert!(!self.lab.has(0, "hit0"));
    }
}

#[test]
fn a_keeper_that_dies_is_replaced() {
    let Some(mut pair) = Pair::new() else { return };
    let first = pair.keeper().unwrap();
    kill(first);
    wait_for("another keeper", || pair.keeper().is_some_and(|keeper| keeper != first));
    let status = pair.lab.ask(0).unwrap();
    assert!(status.keeper.replaced == 1 && status.keeper.is_ready(), "{:?}", status.keeper);
    let (_, said, _) = pair.lab.run(0, &["link", "status"]);
    assert!(said.contains("replaced 1 times"), "{said}");
    // A second after the other, so that a report each would be too many.
    kill(pair.keeper().unwrap());
    wait_for("a third keeper", || pair.lab.ask(0).is_some_and(|status| status.keeper.replaced == 2));
    wait_for("it to be ready", || pair.keeper().is_some());
    pair.passes();
    let said = pair.kill_left();
    assert_eq!(said.matches("the keeper has ended").count(), 1, "{said}");
    // The point of it all.
    pair.passes();
    assert!(pair.lab.ask(0).is_none(), "nobody serves it");
    pair.end();
}

#[test]
fn a_connection_that_is_closed_at_once_does_not_end_a_keeper() {
    let Some(mut pair) = Pair::new() else { return };
    pair.kill_left();
    pair.passes();
    let keeper = pair.lab.directory(0).keeper("hit0");
    for round in 0..20 {
        let mut stranger = UnixStream::connect(&keeper).unwrap();
        if round % 2 == 0 {
            // Nobody has the lock, so nobody has taken over.
            let _ = stranger.write_all(b"taken");
        }
    }
    pair.passes();
    assert!(UnixStream::connect(&keeper).is_ok(), "the keeper still answers");
    pair.end();
}

#[test]
fn one_that_hangs_at_the_keeper_does_not_keep_a_successor_from_it() {
    let Some(mut pair) = Pair::new() else { return };
    pair.kill_left();
    let keeper = pair.lab.directory(0).keeper("hit0");
    wait_for("the keeper", || keeper.exists());
    // More than it listens to at a time.
    let _hangs = [(); 12].map(|()| UnixStream::connect(&keeper).unwrap());
    pair.passes();
    pair.end();
}

#[test]
fn a_successor_that_crashes_half_way_leaves_the_link_failing_open() {
    if !testkit::installed("strace") {
        return;
    }
    let Some(mut pair) = Pair::new() else { return };
    pair.kill_left();
    pair.passes();
    let mut crashes = 0;
    for (call, step) in [("sendto", 7), ("ioctl", 3), ("bind", 1)] {
        for nth in (1..).step_by(step) {
            let traced = pair.lab.hitless(0, &["link", "up", "w0", "--take-over", "--mtu", "1500"]);
            let mut strace = Command::new("strace");
            strace.args(["-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={call}"));
            strace.args(["-e", &format!("inject={call}:signal=SIGKILL:when={nth}")]);
            strace.arg(traced.get_program()).args(traced.get_args());
            strace.env("HITLESS_RUN_DIR", pair.lab.directory(0).path());
            strace.env(daemon::keeper::LAB, std::process::id().to_string());
            pair.lab.stage.ends[0].prepare(&mut strace).unwrap();
            let mut daemon = Daemon(strace.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
            let mut serves = false;
            wait_for("a crash or a link", || {
                let has_ended = daemon.0.try_wait().unwrap().is_some();
                serves = !has_ended && pair.lab.ask(0).is_some();
                serves || has_ended
            });
            if serves {
                // Killed with its tracer; the next round finds a keeper again.
                let pid = pair.lab.ask(0).map(|status| status.pid);
                pid.into_iter().for_each(kill);
                daemon.0.wait().unwrap();
                pair.passes();
                break;
            }
            crashes += 1;
            pair.passes();
        }
    }
    eprintln!("{crashes} crashes, and frames passed after each");
    assert!(crashes > 5, "{crashes}");
    pair.end();
}
