//! One end has hitless and the other has not, yet or any more: traffic passes unprotected, even if the other end leaves
//! checksums or segmentation undone on its frames.

mod cable_lab;

use cable_lab::{Lab, address};

const BACKENDS: [&str; 2] = ["tap", "veth"];

fn passes_both_ways(lab: &Lab, what: &str) {
    for from in 0..2 {
        lab.udp(from, 100).unwrap_or_else(|error| panic!("{what}, UDP from {from}: {error}"));
        lab.transfer(from, address(1 - from), 8_000_000)
            .unwrap_or_else(|error| panic!("{what}, TCP from {from}: {error}"));
    }
}

#[test]
fn tcp_and_udp_pass_to_and_from_a_plain_kernel_that_leaves_checksums_undone() {
    for backend in BACKENDS {
        let Some(lab) = Lab::new(1_500) else { return };
        lab.give_address(1, "w1");
        let _daemon = lab.up(0, &["--backend", backend]);
        lab.give_address(0, "hit0");
        passes_both_ways(&lab, backend);
        let status = lab.status(0).unwrap();
        assert_eq!(status.counters["no_buffer"], 0);
    }
}

#[test]
fn tcp_and_udp_pass_after_one_end_was_taken_down() {
    for backend in BACKENDS {
        let Some(lab) = Lab::new(1_600) else { return };
        (0..2).for_each(|end| lab.give_address(end, cable_lab::PLUGS[end]));
        let _daemons = [0, 1].map(|end| lab.up(end, &["--take-over", "--backend", backend]));
        lab.wait_until_protected();
        passes_both_ways(&lab, "protected");
        let (code, said) = lab.run(1, &["link", "down"]);
        assert_eq!(code, 0, "{said}");
        passes_both_ways(&lab, "one end taken down");
    }
}

#[test]
fn datagrams_of_1440_and_1472_bytes_from_a_plain_peer_arrive_although_hit0_has_a_smaller_mtu() {
    for backend in BACKENDS {
        let Some(lab) = Lab::new(1_500) else { return };
        lab.give_address(1, "w1");
        // It is the length that is looked at here.
        lab.with(1, |netlink| netlink.set_offloads("w1", false).unwrap());
        let _daemon = lab.up(0, &["--backend", backend]);
        lab.give_address(0, "hit0");
        assert!(lab.with(0, |netlink| netlink.existing_link("hit0").unwrap().mtu) < 1_468);
        for size in [1_000, 1_424, 1_440, 1_472] {
            lab.udp(1, size).unwrap_or_else(|error| panic!("{backend}, {size}: {error}"));
        }
        assert_eq!(lab.status(0).unwrap().counters["no_buffer"], 0);
    }
}
