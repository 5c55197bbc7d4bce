//! Connections with sockets: whatever the network, the application and the kernel's age, a stream arrives once and in
//! order, both ends close, and no segment from outside breaks anything.

use machine::{Machine, Port, Pull};
use proptest::prelude::*;
use tcp::cc::Algorithm;
use tcp::{
    LinuxVersion, LossDetection, Sack, SegmentFlags, TcpCommand, TcpConfig, TcpConnection, TcpProgress, TcpSegment,
    TcpSocketConfig, TcpState,
};
use testkit::{Duo, Fate, Recorder, Side};
use units::{Span, Time};
use wire::ip::Ecn;

fn config() -> impl Strategy<Value = TcpConfig> {
    let socket = (2_000u64..100_000, 0u8..9, prop::option::of(5_000u64..60_000), any::<bool>()).prop_map(
        |(buffer, window_scale, send_buffer, nodelay)| TcpSocketConfig {
            first_window: buffer as u32,
            peer_window: buffer,
            window_scale,
            send_buffer,
            nodelay,
            ..TcpSocketConfig::default()
        },
    );
    let version = (0..LinuxVersion::ALL.len()).prop_map(|index| LinuxVersion::ALL[index]);
    let algorithm = prop_oneof![Just(Algorithm::Reno), Just(Algorithm::Cubic)];
    (version, socket, algorithm, any::<[bool; 5]>()).prop_map(
        |(version, socket, algorithm, [sack, timestamps, ecn, counts, known])| TcpConfig {
            mss: 1_000,
            algorithm,
            sack,
            timestamps,
            ecn,
            detection: if counts { LossDetection::DUPACKS } else { TcpConfig::linux(version).detection },
            handshake_rtt: known.then_some(Span::from_us(20)),
            receive_buffer: socket.peer_window.max(4_000),
            socket: Some(TcpSocketConfig {
                version,
                compresses_sacks: !timestamps,
                first_buffer: counts.then_some(4_000),
                ..socket
            }),
            ..TcpConfig::linux(version)
        },
    )
}

/// One of ten segments is lost, one late, for each number; then the network is kind.
fn fate(luck: Option<u8>) -> Fate {
    match luck {
        Some(0..=25) => Fate::Lost,
        Some(late @ 26..=50) => Fate::Late(Span::from_us(u64::from(late))),
        _ => Fate::Arrives,
    }
}

/// An application that writes, reads a little at a time, and closes when the peer has.
struct Reader {
    delivered: u64,
    acknowledged: u64,
    closed: bool,
}

fn collect(duo: &mut Duo<TcpConnection>, side: Side, reader: &mut Reader) {
    for event in duo.events(side) {
        match event {
            TcpProgress::Delivered(to) => {
                assert!(to > reader.delivered, "delivered twice");
                reader.delivered = to;
            }
            TcpProgress::Acknowledged(to) => {
                assert!(to >= reader.acknowledged, "acknowledged twice");
                reader.acknowledged = to;
            }
            TcpProgress::Closed => reader.closed = true,
            TcpProgress::Written(_) | TcpProgress::PeerClosed => {}
            TcpProgress::Reset | TcpProgress::TimedOut => panic!("{side:?}: {event:?}"),
        }
    }
}

fn run(config: &TcpConfig, writes: [&[u16]; 2], lucks: &[u8], appetite: u64) {
    let ends = [(); 2].map(|()| TcpConnection::new(config, Time::ZERO));
    let [left, right] = ends;
    let mut duo = Duo::new(left, right, Span::from_ns(100), Span::from_us(10));
    let mut lucks = lucks.iter().copied();
    let mut readers = [0; 2].map(|_| Reader { delivered: 0, acknowledged: 0, closed: false });
    for (side, writes) in Side::BOTH.into_iter().zip(writes) {
        for bytes in writes {
            duo.command(side, TcpCommand::Send(u64::from(*bytes)));
        }
        duo.command(side, TcpCommand::ShutdownWrite);
    }
    for step in 0..400_000_u64 {
        if duo.next_event().is_none() && Side::BOTH.iter().all(|side| duo.machine(*side).readable() == 0) {
            break;
        }
        assert!(step < 399_999, "never falls quiet: {:?}", duo.machine(Side::Left));
        duo.step(&mut |_, _| fate(lucks.next()));
        for side in Side::BOTH {
            collect(&mut duo, side, &mut readers[side as usize]);
            let readable = duo.machine(side).readable();
            if readable > 0 && (step % 7 == 0 || duo.next_event().is_none()) {
                duo.command(side, TcpCommand::Read(readable.min(appetite)));
            }
        }
    }
    let sums = writes.map(|writes| writes.iter().map(|bytes| u64::from(*bytes)).sum::<u64>());
    for side in Side::BOTH {
        let reader = &readers[side as usize];
        assert_eq!((reader.acknowledged, reader.delivered), (sums[side as usize], sums[side.other() as usize]));
        let state = duo.machine(side).state();
        assert!(reader.closed && matches!(state, TcpState::TimeWait | TcpState::Closed), "{state:?}");
    }
}

fn segment() -> impl Strategy<Value = TcpSegment> {
    let near = || prop_oneof![0u64..30_000, Just(u64::MAX), any::<u64>()];
    let block = (any::<i16>(), 1i16..3_000);
    let flags = (0usize..32).prop_map(|bits| {
        let all =
            [SegmentFlags::PSH, SegmentFlags::FIN, SegmentFlags::RST, SegmentFlags::NO_ACK, SegmentFlags::NO_TIMESTAMP];
        let set = all.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
        set.fold(SegmentFlags::NONE, |flags, (_, flag)| flags.with(*flag))
    });
    (near(), near(), 0u32..3_000, any::<[u32; 3]>(), prop::option::of(block), flags, any::<[bool; 2]>()).prop_map(
        |(seq, ack, len, [window, timestamp, echo], block, flags, [ece, cwr])| {
            let mut sack = Sack::default();
            if let Some((from, len)) = block {
                sack.push(i32::from(from), i32::from(from) + i32::from(len));
            }
            TcpSegment { seq, ack, len, window, timestamp, echo, sack, ecn: Ecn::Capable, ece, cwr, flags }
        },
    )
}

fn command() -> impl Strategy<Value = TcpCommand> {
    prop_oneof![
        4 => (0u64..20_000).prop_map(TcpCommand::Send),
        1 => (0u64..2_000).prop_map(TcpCommand::SendMore),
        4 => (0u64..20_000).prop_map(TcpCommand::Read),
        1 => any::<bool>().prop_map(TcpCommand::NoDelay),
        1 => any::<bool>().prop_map(TcpCommand::Cork),
        1 => (1u64..50_000).prop_map(TcpCommand::SendBuffer),
        1 => (1u64..5_000).prop_map(|ms| TcpCommand::UserTimeout(Some(Span::from_ms(ms)))),
        1 => prop_oneof![Just(TcpCommand::ShutdownWrite), Just(TcpCommand::Close), Just(TcpCommand::Abort)],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_written_arrives_and_both_ends_close(
        config in config(),
        one in prop::collection::vec(1u16..20_000, 0..8),
        other in prop::collection::vec(1u16..5_000, 0..4),
        lucks in prop::collection::vec(any::<u8>(), 0..200),
        // Less than a segment at a time may leave a window in which a copy does not fit; our sender does not cut copies to it.
        appetite in 4_000u64..30_000,
    ) {
        run(&config, [&one, &other], &lucks, appetite);
    }

    #[test]
    fn no_segment_and_no_command_breaks_a_socket(
        config in config(),
        events in prop::collection::vec((prop::option::of(segment()), command(), 0u64..30_000, 0u8..6), 1..80),
    ) {
        let mut now = Time::ZERO;
        let mut connection = TcpConnection::new(&config, now);
        let mut out = Recorder::default();
        for (segment, command, us, pulls) in events {
            now += Span::from_us(us);
            while let Some(timer) = out.due(now) {
                connection.on_timer(now, timer, &mut out);
            }
            match segment {
                Some(segment) => connection.on_frame(now, Port(0), segment, &mut out),
                None => connection.on_command(now, command, &mut out),
            }
            for _ in 0..pulls {
                if !matches!(connection.pull(now, Port(0), &mut out), Pull::Sent) {
                    break;
                }
            }
            out.acts();
            let info = connection.info(now);
            prop_assert!(info.sacked + info.lost <= info.unacked.max(info.sacked), "{info:?}");
            prop_assert!(info.rwnd_limited + info.sndbuf_limited <= info.busy_time);
        }
    }
}

#[test]
fn a_part_of_a_segment_that_left_as_a_window_probe_is_sent_again_if_it_is_lost() {
    let config = TcpConfig {
        mss: 1_000,
        algorithm: Algorithm::Reno,
        sack: false,
        timestamps: false,
        ecn: false,
        receive_buffer: 4_000,
        handshake_rtt: None,
        socket: Some(TcpSocketConfig {
            first_window: 2_000,
            peer_window: 2_000,
            window_scale: 7,
            send_buffer: None,
            nodelay: false,
            ..TcpSocketConfig::default()
        }),
        ..TcpConfig::linux(LinuxVersion::ALL[1])
    };
    run(
        &config,
        [&[10_128], &[3_758, 3_427, 1_816]],
        &[
            26, 26, 0, 0, 51, 51, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 51, 51, 51, 51, 51, 51, 51, 0, 51,
            51, 0, 26, 26, 26, 26, 26, 0, 0, 26, 26, 26, 26, 26, 26, 0, 0, 0,
        ],
        1945,
    );
}

/// Delay of the timer after a write of `bytes`, with a round trip of 33 ms and 250 ticks a second.
fn probe_after(version: LinuxVersion, bytes: u64) -> Span {
    let profile = tcp::TimerProfile::Linux { hz: 250, rto_min: Span::from_ms(1_000), phase: Span::ZERO };
    let base = TcpConfig::linux(version);
    let config = TcpConfig { mss: 1_000, profile, handshake_rtt: Some(Span::from_ms(33)), ..base };
    let mut connection = TcpConnection::new(&config, Time::ZERO);
    let mut sink = tcp::TcpSink::default();
    connection.on_command(Time::ZERO, TcpCommand::Send(bytes), &mut sink);
    while connection.pull(Time::ZERO, Port(0), &mut sink) == Pull::Sent {}
    sink.timers[tcp::TcpTimer::Loss as usize].expect("something is in flight").since(Time::ZERO)
}

#[test]
fn a_probe_waits_as_its_kernel_says() {
    // 33 ms are nine jiffies to 4.4, which doubles them, and for a lone segment adds half of them and 200 ms; a timer goes off
    // with the tick behind it, a long one on every eighth. Others double 33 ms, and then add two jiffies, two milliseconds
    // or 200.
    let both = |version| [2_000, 1_000].map(|bytes| probe_after(version, bytes));
    assert_eq!(both(LinuxVersion::V4_4), [18 + 1, 64].map(|jiffies| Span::from_ms(4 * jiffies)));
    assert_eq!(both(LinuxVersion::V5_4), [19 + 1, 72].map(|jiffies| Span::from_ms(4 * jiffies)));
    assert_eq!(both(LinuxVersion::Current), [17 + 1, 72].map(|jiffies| Span::from_ms(4 * jiffies)));
}

#[test]
fn segments_behind_a_gap_are_reported_three_times_at_once_and_then_together() {
    let acknowledgements = |version| {
        // A window that cannot grow: while it does, each segment is acknowledged at once.
        let base = TcpConfig::linux(version);
        let socket = base.socket.map(|socket| TcpSocketConfig { first_window: 60_000, ..socket });
        let config = TcpConfig { mss: 1_000, receive_buffer: 60_000, socket, ..base };
        let mut connection = TcpConnection::new(&config, Time::ZERO);
        let mut sink = tcp::TcpSink::default();
        let at = |us| Time::ZERO + Span::from_us(us);
        // Quick acknowledgements are used up first.
        for n in (0..40).chain(50..60) {
            let segment = TcpSegment { seq: n * 1_000, len: 1_000, window: 60_000, ..TcpSegment::default() };
            connection.on_frame(at(n * 10), Port(0), segment, &mut sink);
            connection.on_command(at(n * 10), TcpCommand::Read(1_000), &mut sink);
            while connection.pull(at(n * 10), Port(0), &mut sink) == Pull::Sent {}
        }
        sink.left.iter().filter(|segment| !segment.sack.is_empty()).count()
    };
    assert_eq!(LinuxVersion::ALL.map(acknowledgements), [10, 3, 3]);
}

#[test]
fn to_read_at_once_is_to_read_after_each_segment() {
    let left = |reads_at_once| {
        let base = TcpConfig::linux(LinuxVersion::Current);
        let socket = base.socket.map(|socket| TcpSocketConfig { reads_at_once, ..socket });
        let config = TcpConfig { mss: 1_000, receive_buffer: 60_000, socket, ..base };
        let mut connection = TcpConnection::new(&config, Time::ZERO);
        let mut sink = tcp::TcpSink::default();
        // The tenth is late.
        for (n, place) in (0..9).chain(10..20).chain([9]).chain(20..100).enumerate() {
            let now = Time::ZERO + Span::from_us(n as u64 * 10);
            let segment = TcpSegment { seq: place * 1_000, len: 1_000, window: 60_000, ..TcpSegment::default() };
            connection.on_frame(now, Port(0), segment, &mut sink);
            if !reads_at_once {
                connection.on_command(now, TcpCommand::Read(connection.readable()), &mut sink);
            }
            assert_eq!(connection.readable(), 0);
            while connection.pull(now, Port(0), &mut sink) == Pull::Sent {}
        }
        assert_eq!(connection.delivered(), 100_000);
        sink.left
    };
    let (at_once, later) = (left(true), left(false));
    assert!(at_once.len() > 40, "{}", at_once.len());
    assert_eq!(at_once, later);
}

#[test]
fn a_receive_buffer_grows_with_what_is_read() {
    let window_after = |first_buffer, reads: bool| {
        let socket = TcpSocketConfig { first_window: 10_000, first_buffer, ..TcpSocketConfig::default() };
        let config = TcpConfig {
            mss: 1_000,
            timestamps: false,
            receive_buffer: 1 << 20,
            socket: Some(socket),
            ..TcpConfig::linux(LinuxVersion::Current)
        };
        let mut connection = TcpConnection::new(&config, Time::ZERO);
        let mut sink = tcp::TcpSink::default();
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        let mut sent = 0;
        for round in 0..8 {
            // A window each round trip of 10 ms.
            let until = sent + u64::from(sink.left.last().map_or(10_000, |segment| segment.window)) / 1_000 * 1_000;
            while sent < until {
                let segment = TcpSegment {
                    seq: sent,
                    len: 1_000,
                    window: 60_000,
                    flags: SegmentFlags::NO_TIMESTAMP,
                    ..TcpSegment::default()
                };
                connection.on_frame(at(10 * round), Port(0), segment, &mut sink);
                sent += 1_000;
                if reads {
                    connection.on_command(at(10 * round), TcpCommand::Read(1_000), &mut sink);
                }
                while connection.pull(at(10 * round), Port(0), &mut sink) == Pull::Sent {}
            }
        }
        sink.left.last().map_or(0, |segment| segment.window)
    };
    assert_eq!(window_after(Some(20_000), false), 0, "nobody reads");
    let (grown, fixed) = (window_after(Some(20_000), true), window_after(None, true));
    assert!((200_000..1 << 20).contains(&grown), "{grown}");
    assert!(fixed >= grown, "{fixed}: there was room from the start");
}
