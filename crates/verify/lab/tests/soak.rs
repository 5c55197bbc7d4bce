//! A soak of five seconds, with what is installed.

use std::time::Duration;

use lab::soak::{self, Soak, SoakObserver, SoakPlan, SoakSnapshot};
use link::config::LinkMode;
use linux::net::{Namespace, become_root_of_own_namespaces};
use standin::HostBackend;
use units::{Bytes, Prob, StopFlag};

struct Quiet;

#[expect(clippy::print_stderr, reason = "a test should say what it went without")]
impl SoakObserver for Quiet {
    fn tick(&self, _: Duration) {}
    fn look(&self, _: &SoakSnapshot) {}
    fn remark(&self, text: &str) {
        eprintln!("{text}");
    }
}

fn soak(burst: f64) -> Soak {
    let plan = SoakPlan {
        duration: Duration::from_secs(5),
        loss: Prob::literal(1e-3),
        burst,
        // Little enough that a busy machine has time for it.
        rate: Some("200M".parse().expect("a rate")),
        mode: LinkMode::default(),
        host: HostBackend::default(),
        queue: Bytes::new(2 << 20),
        seed: 1,
    };
    // On a thread of its own, which alone moves.
    std::thread::scope(|scope| {
        let told = scope.spawn(|| {
            let standing = become_root_of_own_namespaces(false).expect("a network of its own");
            soak::run(&plan, standing, &StopFlag::new(), &Quiet).expect("a soak")
        });
        told.join().expect("no panic").expect("nobody stops it")
    })
}

/// All that does not depend on how busy the machine is; what does may be tried again.
fn check(burst: f64) {
    const TRIES: u32 = 5;
    for attempt in 1..=TRIES {
        let soak = soak(burst);
        let verdict = |name: &str| soak.verdicts.iter().find(|verdict| verdict.name == name).expect("a verdict");
        for traffic in &soak.traffic {
            assert_eq!(traffic.differing, 0, "{traffic:?}");
        }
        assert!(soak.complete && soak.wire.dropped > 0 && soak.recovered > 0, "{soak:?}");
        if ["equal", "given_up", "protected", "memory"].into_iter().all(|name| verdict(name).holds) {
            return;
        }
        assert!(attempt < TRIES, "{soak:?}");
    }
}

/// One after the other: each looks at the memory of the whole program.
#[test]
fn programs_notice_losses_neither_in_bursts_nor_one_by_one() {
    let Some(_) = testkit::permitted(Namespace::new()) else { return };
    // It goes on without those that are not there.
    ["iperf3", "memcached", "python3"].into_iter().filter_map(testkit::missing).for_each(testkit::skip_part);
    check(4.0);
    check(1.0);
}
