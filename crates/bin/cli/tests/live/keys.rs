//! Keys, recordings and strangers, with real daemons.

use std::io::IoSlice;
use std::os::unix::fs::PermissionsExt;

use linux::packet::PacketSocket;
use standin::wire_socket;

use super::*;

const PEER: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

impl Lab {
    fn key(&self, name: &str, digits: &str) -> String {
        let path = self.folder.join(name);
        fs::write(&path, digits.repeat(16)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.display().to_string()
    }

    /// Result of `f` with a socket beside the daemon's on the wire of one end.
    fn on_wire<T: Send>(&self, end: usize, f: impl FnOnce(&mut PacketSocket) -> T + Send) -> T {
        let on_wire = || {
            let index = Netlink::open().unwrap().existing_link(stage::plug(end)).unwrap().index;
            f(&mut PacketSocket::open(index, &wire_socket(1_600, 4_096)).unwrap())
        };
        self.stage.ends[end].with(on_wire).unwrap()
    }

    fn counter(&self, end: usize, name: &str) -> u64 {
        self.ask(end).map_or(0, |status| status.counters[name])
    }

    fn sockets(&self) -> [UdpSocket; 2] {
        [0, 1].map(|end| self.stage.ends[end].with(|| UdpSocket::bind((stage::address(end), 9_000)).unwrap()).unwrap())
    }
}

fn put(socket: &mut PacketSocket, frame: &[u8]) {
    while !socket.send_one(&[IoSlice::new(frame)]).unwrap() {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Number of datagrams that say `text` and come before a pause of `quiet`.
fn received(socket: &UdpSocket, text: &[u8], quiet: Duration) -> usize {
    socket.set_read_timeout(Some(quiet)).unwrap();
    let mut buffer = [0; 2_000];
    let datagrams = std::iter::from_fn(|| socket.recv(&mut buffer).ok().map(|len| buffer[..len] == *text));
    datagrams.filter(|is_that| *is_that).count()
}

/// Sends until one arrives.
fn wait_until_passes(from: &UdpSocket, to: &UdpSocket) {
    let address = to.local_addr().unwrap();
    wait_for("a datagram to pass", || {
        from.send_to(b"honest", address).unwrap();
        received(to, b"honest", Duration::from_millis(50)) > 0
    });
}

#[test]
fn recorded_datagrams_are_not_delivered_again_after_a_restart() {
    let Some(lab) = Lab::new() else { return };
    let key = lab.key("key", "a1");
    // Frames pass sealed, not protected: nothing but the seal keeps a recording out.
    let args = ["--key", &key, "--dormant", "--mtu", "1500"];
    let [mut left, mut right] = [0, 1].map(|end| lab.up(end, &args));
    (0..2).for_each(|end| lab.stage.address(end, "hit0").unwrap());
    let sockets = lab.sockets();
    let to = sockets[1].local_addr().unwrap();
    // Addresses are resolved before anything is recorded.
    wait_until_passes(&sockets[0], &sockets[1]);
    let recorded = lab.on_wire(1, |wire| {
        for _ in 0..5 {
            sockets[0].send_to(b"recorded", to).unwrap();
        }
        let mut delivered = 0;
        wait_for("what is recorded", || {
            delivered += received(&sockets[1], b"recorded", Duration::from_millis(50));
            delivered == 5
        });
        let mut recorded = Vec::new();
        wire.receive(4_096, |frame| recorded.push(frame.bytes.to_vec()));
        recorded
    });
    assert!(recorded.len() >= 5, "{}", recorded.len());
    // With the sender there, and without.
    for sender_is_there in [true, false] {
        if !sender_is_there {
            left.kill();
        }
        right.kill();
        right = lab.up(1, &args);
        let before = lab.counter(1, "wire_rx_frames");
        lab.on_wire(0, |wire| recorded.iter().for_each(|frame| put(wire, frame)));
        wait_for("the recording to arrive", || lab.counter(1, "wire_rx_frames") >= before + recorded.len() as u64);
        assert_eq!(received(&sockets[1], b"recorded", Duration::from_millis(300)), 0, "the recording was delivered");
        let refused = ["rx_early", "rx_forged", "rx_replayed"].map(|name| lab.counter(1, name));
        assert!(refused.iter().sum::<u64>() >= 5, "{refused:?}");
    }
    left = lab.up(0, &args);
    wait_until_passes(&sockets[0], &sockets[1]);
    drop((left, right));
}

#[test]
fn a_restart_with_a_key_is_no_outage() {
    let Some(lab) = Lab::new() else { return };
    let key = lab.key("key", "a1");
    let args = ["--key", &key, "--mtu", "1500"];
    let mut daemons = [0, 1].map(|end| lab.up(end, &args));
    (0..2).for_each(|end| lab.stage.address(end, "hit0").unwrap());
    lab.wait_until_protected();
    let sockets = lab.sockets();
    for end in [0, 1, 1, 0] {
        daemons[end].kill();
        daemons[end] = lab.up(end, &args);
        lab.wait_until_protected();
        for from in 0..2 {
            wait_until_passes(&sockets[from], &sockets[1 - from]);
        }
    }
}

#[test]
fn an_end_without_the_key_says_that_the_peer_has_one() {
    let Some(lab) = Lab::new() else { return };
    let key = lab.key("key", "a1");
    let _daemons = [lab.up(0, &["--key", &key]), lab.up(1, &[])];
    let problem = |end: usize| lab.ask(end).and_then(|status| status.problem).unwrap_or_default();
    wait_for("the end without a key to say so", || problem(1).contains("the peer uses --key"));
    wait_for("the end with the key to say so", || problem(0).contains("has the peer got the same --key?"));
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let Some(lab) = Lab::new() else { return };
    let key = lab.key("key", "a1");
    for mode in [0o640, 0o660, 0o604] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let (code, _, said) = lab.run(0, &["link", "up", "w0", "--key", &key]);
        assert!(code == 2 && said.contains("chmod 600") && said.lines().count() == 1, "{code}: {said}");
        assert!(!lab.has(0, "hit0"));
    }
}

#[test]
fn thousands_of_frames_from_strangers_make_few_lines() {
    const FRAMES: u16 = 3_000;
    let Some(lab) = Lab::new() else { return };
    let key = lab.key("key", "a1");
    let peer = wire::ethernet::Mac(PEER).to_string();
    for seal in [&[][..], &["--key", &key]] {
        let mut daemon = lab.up(0, &[&["--peer", &peer][..], seal].concat());
        lab.on_wire(1, |wire| {
            for number in 0..FRAMES {
                let [high, low] = number.to_be_bytes();
                // A Hello, were it well-formed and the peer's.
                put(wire, &[&[0xff; 6][..], &[2, 0, 0, 9, high, low], &[0x88, 0xb5, 0xc0], &[0; 60]].concat());
                if number % 100 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        // Some may find the ring full.
        let stranger = || lab.counter(0, "rx_stranger") + lab.counter(0, "ring_overflow");
        wait_for("the frames to be counted", || stranger() >= u64::from(FRAMES));
        assert!(lab.counter(0, "rx_stranger") > 1_000);
        assert_eq!(lab.run(0, &["link", "down"]).0, 0);
        let said = daemon.said();
        assert!(said.contains("is the cable in the right port?"), "{said}");
        assert!(said.lines().count() < 12, "{} lines: {said}", said.lines().count());
    }
}

#[test]
fn a_daemon_whose_words_nobody_reads_keeps_its_link() {
    let Some(lab) = Lab::new() else { return };
    let (unread, full) = std::io::pipe().unwrap();
    std::thread::scope(|scope| {
        // Keeps it as full as it gets, so that the first word blocks.
        let mut writer = full.try_clone().unwrap();
        scope.spawn(move || drop(writer.write_all(&vec![b'.'; 1 << 20])));
        std::thread::sleep(Duration::from_millis(300));
        let mut command = lab.hitless(0, &["link", "up", stage::plug(0), "--mtu", "1500"]);
        let left = Daemon(command.stdin(Stdio::null()).stderr(full).spawn().unwrap());
        wait_for("the daemon to answer", || lab.ask(0).is_some());
        let right = lab.up(1, &["--mtu", "1500"]);
        (0..2).for_each(|end| lab.stage.address(end, "hit0").unwrap());
        lab.wait_until_protected();
        let sockets = lab.sockets();
        wait_until_passes(&sockets[0], &sockets[1]);
        let (code, _, said) = lab.run(0, &["link", "down"]);
        assert_eq!(code, 0, "{said}");
        assert!(!lab.has(0, "hit0"));
        // Ends the writer, too.
        drop((left, right, unread));
    });
}
