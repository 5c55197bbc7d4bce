//! Tunnels over hit0: what an overlay of containers does to a link.

mod cable_lab;

use cable_lab::Lab;

const BACKENDS: [&str; 2] = ["tap", "veth"];

/// A tunnel between the two ends over these interfaces, with an address at each end of it. False if this kernel has no
/// such.
fn dig(lab: &Lab, kind: &str, over: [&str; 2]) -> bool {
    for (end, over) in over.into_iter().enumerate() {
        let (local, remote) = (cable_lab::address(end), cable_lab::address(1 - end));
        let options = match kind {
            "vxlan" => format!("id 7 local {local} remote {remote} dstport 4789 dev {over}"),
            "vxlan-with-checksums" => format!("id 8 local {local} remote {remote} dstport 4790 dev {over} udpcsum"),
            "geneve" => format!("id 7 remote {remote}"),
            _ => format!("local {local} remote {remote}"),
        };
        let kind = kind.split('-').next().unwrap();
        match lab.try_ip(end, &format!("link add tun1 type {kind} {options}")) {
            Err(error) if error.contains("Unknown device type") => return false,
            made => made.map(drop).unwrap(),
        }
        // The most that any of these tunnels leaves of hit0's.
        lab.ip(end, "link set tun1 mtu 1400 up");
        lab.ip(end, &format!("addr add 10.78.0.{}/24 dev tun1", 1 + end));
    }
    true
}

fn transfer_both_ways(lab: &Lab, what: &str) {
    for from in 0..2 {
        let to = ["10.78.0.1", "10.78.0.2"][1 - from].parse().unwrap();
        lab.transfer(from, to, 8_000_000).unwrap_or_else(|error| panic!("{what}, from {from}: {error}"));
    }
}

fn bulk_tcp_inside(kind: &str, backend: &str) -> bool {
    let Some(lab) = Lab::new(1_600) else { return false };
    if !testkit::installed("ip") {
        return false;
    }
    let _daemons = [0, 1].map(|end| lab.up(end, &["--backend", backend]));
    (0..2).for_each(|end| lab.give_address(end, "hit0"));
    lab.wait_until_protected();
    if !dig(&lab, kind, ["hit0", "hit0"]) {
        return false;
    }
    transfer_both_ways(&lab, &format!("{kind} over {backend}"));
    let status = [0, 1].map(|end| lab.status(end).unwrap());
    assert!(status.iter().all(|status| status.counters["host_malformed"] == 0), "{kind} over {backend}: {status:?}");
    true
}

#[test]
fn bulk_tcp_inside_vxlan_arrives_whole_over_every_host_backend() {
    for backend in BACKENDS {
        for kind in ["vxlan", "vxlan-with-checksums"] {
            bulk_tcp_inside(kind, backend);
        }
    }
}

/// Over a veth such a peer leaves the segmentation of what is inside the tunnel undone.
#[test]
fn bulk_tcp_inside_vxlan_of_a_plain_peer_arrives_whole() {
    for kind in ["vxlan", "vxlan-with-checksums"] {
        let Some(lab) = Lab::new(1_600) else { return };
        if !testkit::installed("ip") {
            return;
        }
        lab.give_address(1, "w1");
        let _daemon = lab.up(0, &[]);
        lab.give_address(0, "hit0");
        assert!(dig(&lab, kind, ["hit0", "w1"]), "a kernel without VXLAN");
        transfer_both_ways(&lab, kind);
    }
}

/// Those that the kernel at hand has; most kernels for containers lack some.
#[test]
fn bulk_tcp_inside_geneve_gre_and_ipip_arrives_whole_over_every_host_backend() {
    for kind in ["geneve", "gre", "gretap", "ipip"] {
        for backend in BACKENDS {
            bulk_tcp_inside(kind, backend);
        }
    }
}

#[test]
fn what_a_vnet_header_cannot_describe_is_left_to_the_kernel() {
    for backend in BACKENDS {
        let Some(lab) = Lab::new(1_600) else { return };
        let _daemon = lab.up(0, &["--backend", backend]);
        let names = [
            "tx-udp_tnl-segmentation",
            "tx-udp_tnl-csum-segmentation",
            "tx-gre-segmentation",
            "tx-gre-csum-segmentation",
            "tx-ipxip4-segmentation",
            "tx-ipxip6-segmentation",
            "tx-sctp-segmentation",
            "tx-checksum-sctp",
        ];
        let on = lab.with(0, |netlink| netlink.features_on("hit0", &names).unwrap());
        assert_eq!(on, [""; 0], "{backend}");
        assert!(lab.with(0, |netlink| netlink.offload("hit0", linux::net::Offload::Tso).unwrap()), "{backend}");
    }
}
