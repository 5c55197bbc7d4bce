//! Meters on interfaces of their own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};

use radar::signature::Fields;

use super::*;
use lab::stage;
use linux::net::testing::in_namespaces;
use linux::net::{InterfaceAddress, Namespace};

fn config(interface: &str) -> MeterConfig {
    MeterConfig {
        interface: interface.to_owned(),
        segment: "cable".to_owned(),
        end: interface.to_owned(),
        batch: Duration::from_millis(10),
        shapes: [DigestShape::new(600, 1, Fields::ALL); 2],
        promiscuous: false,
        trail: 1 << 20,
        life: 1,
    }
}

/// A cable between two hosts, with or without offloads.
fn cable(ends: &[Namespace; 2], offloads: bool) {
    ends[0]
        .with(|| {
            let netlink = Netlink::open().unwrap();
            netlink.add_veth("w0", "w1").unwrap();
            netlink.set_namespace(netlink.existing_link("w1").unwrap().index, &ends[1]).unwrap();
        })
        .unwrap();
    for (end, namespace) in ends.iter().enumerate() {
        namespace
            .with(|| {
                let netlink = Netlink::open().unwrap();
                let index = netlink.existing_link(stage::plug(end)).unwrap().index;
                let _ = netlink.no_ipv6_autoconf(index);
                netlink.set_offloads(stage::plug(end), offloads).unwrap();
                netlink.set_up(index, true).unwrap();
                netlink.add_address(index, &InterfaceAddress::new(stage::address(end), 24)).unwrap();
            })
            .unwrap();
    }
    for (end, namespace) in ends.iter().enumerate() {
        let wait = || {
            let netlink = Netlink::open().unwrap();
            netlink.wait_until_running(netlink.existing_link(stage::plug(end)).unwrap().index).unwrap();
        };
        namespace.with(wait).unwrap();
    }
}

/// Meters both ends of a cable while `story` runs; returns what each saw, and each way's difference in the end.
fn metered(ends: &[Namespace; 2], story: impl FnOnce()) -> ([MeterCounters; 2], [Digest; 2]) {
    std::thread::scope(|scope| {
        let (stop, stopper) = io::pipe().unwrap();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let meters = [0, 1].map(|end| {
            let (stop, ready) = (stop.try_clone().unwrap(), ready.clone());
            scope.spawn(move || {
                ends[end].enter().unwrap();
                let mut meter = LiveMeter::open(config(stage::plug(end))).unwrap();
                ready.send(()).unwrap();
                let mut sums = [0, 1].map(|_| Digest::new(DigestShape::new(600, 1, Fields::ALL)));
                let mut batches = Vec::new();
                let report = &mut |report: &MeterReport| {
                    sums[0].merge(&report.out).unwrap();
                    sums[1].merge(&report.came).unwrap();
                    batches.push(report.batch);
                };
                let seen = meter.run(&stop, None, report, &mut |_| ()).unwrap();
                assert!(batches.windows(2).all(|pair| pair[1] == pair[0] + 1), "every batch, and in order");
                (seen, sums)
            })
        });
        (0..2).for_each(|_| is_ready.recv().unwrap());
        story();
        // Time for packets in the ring and for the open batch.
        std::thread::sleep(Duration::from_millis(200));
        drop(stopper);
        let [left, right] = meters.map(|meter| meter.join().unwrap());
        let difference = |out: &Digest, came: &Digest| {
            let mut out = out.clone();
            out.subtract(came).unwrap();
            out
        };
        let ways = [difference(&left.1[0], &right.1[1]), difference(&right.1[0], &left.1[1])];
        ([left.0, right.0], ways)
    })
}

#[test]
fn what_leaves_by_one_end_arrives_by_the_other() {
    in_namespaces(|ends: [Namespace; 2]| {
        cable(&ends, false);
        let open = |end: usize| ends[end].with(|| UdpSocket::bind((stage::address(end), 7_000)).unwrap()).unwrap();
        let [left, right] = [open(0), open(1)];
        let (seen, ways) = metered(&ends, || {
            for number in 0..200_u32 {
                left.send_to(&[number.to_le_bytes(); 100].concat(), (stage::address(1), 7_000)).unwrap();
            }
            right.send_to(b"thanks", (stage::address(0), 7_000)).unwrap();
        });
        assert_eq!(seen.map(|seen| seen.packets), [[200, 1], [1, 200]]);
        assert_eq!(seen.map(|seen| seen.missed + seen.super_frames), [0, 0]);
        for mut way in ways {
            assert_eq!(way.decode(), radar::digest::DecodedDigest::default());
        }
    });
}

#[test]
fn super_frames_count_as_the_packets_that_they_stand_for() {
    in_namespaces(|ends: [Namespace; 2]| {
        cable(&ends, true);
        let listener = ends[1].with(|| TcpListener::bind((stage::address(1), 7_000)).unwrap()).unwrap();
        let transfer = |bytes: usize| {
            let mut sender = ends[0].with(|| TcpStream::connect((stage::address(1), 7_000)).unwrap()).unwrap();
            let (mut receiver, _) = listener.accept().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || sender.write_all(&vec![5; bytes]).unwrap());
                assert_eq!(receiver.read_to_end(&mut Vec::new()).unwrap(), bytes);
            });
        };
        // A meter whose machine was busy may miss frames, and says so: then again with less, down to what any ring holds.
        let attempts = (0..6).map(|halved| 3_000_000 >> halved).map(|bytes| {
            let (seen, ways) = metered(&ends, || transfer(bytes));
            assert!(seen[0].super_frames > 0, "offloads are on: {seen:?}");
            (bytes, seen, ways)
        });
        let mut complete = attempts.filter(|(_, seen, _)| seen.iter().all(|seen| seen.missed == 0));
        let (bytes, seen, ways) = complete.next().expect("a transfer of which no frame was missed");
        // 1,448 bytes each: far more than there were frames.
        assert!(seen[0].packets[0] >= bytes as u64 / 1_448, "{seen:?}");
        for mut way in ways {
            assert_eq!(way.decode(), radar::digest::DecodedDigest::default());
        }
    });
}

#[test]
fn an_idle_meter_tells_that_time_passes() {
    in_namespaces(|ends: [Namespace; 2]| {
        cable(&ends, false);
        let (seen, _) = metered(&ends, || std::thread::sleep(Duration::from_millis(300)));
        assert!(seen.iter().all(|seen| seen.batches >= 20 && seen.packets == [0, 0]), "{seen:?}");
    });
}

#[test]
fn an_interface_that_is_not_there_is_an_error_with_advice() {
    in_namespaces(|[namespace]| {
        let trouble = namespace.with(|| LiveMeter::open(config("nowhere")).unwrap_err()).unwrap();
        assert!(trouble.0.contains("no interface nowhere") && trouble.0.contains("ip link"), "{trouble:?}");
    });
}
