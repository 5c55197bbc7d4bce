//! A stream arrives once and in order for any behaviour of the network; nothing breaks for any segment of a peer.

use machine::{Machine, Port, Pull};
use proptest::prelude::*;
use tcp::cc::Algorithm;
use tcp::{
    Reordering, Sack, SegmentFlags, TcpCommand, TcpConfig, TcpConnection, TcpProgress, TcpSegment, TimerProfile,
};
use testkit::{Duo, Fate, Recorder, Side};
use units::{Span, Time};
use wire::ip::Ecn;

/// Fate of the next segment in the channel.
#[derive(Clone, Copy, Debug)]
enum Luck {
    Passes,
    Lost,
    Late(u8),
    Twice,
    Marked,
}

fn luck() -> impl Strategy<Value = Luck> {
    prop_oneof![
        12 => Just(Luck::Passes),
        2 => Just(Luck::Lost),
        2 => (1u8..60).prop_map(Luck::Late),
        1 => Just(Luck::Twice),
        1 => Just(Luck::Marked),
    ]
}

fn profile() -> impl Strategy<Value = TimerProfile> {
    prop_oneof![
        (0u64..1_000).prop_map(|us| TimerProfile::Linux {
            hz: 1_000,
            rto_min: Span::from_ms(1),
            phase: Span::from_us(us)
        }),
        Just(TimerProfile::linux()),
        Just(TimerProfile::rfc()),
        Just(TimerProfile::Rfc { rto_min: Span::from_us(200), max_ack_delay: Span::from_us(100) }),
    ]
}

fn config() -> impl Strategy<Value = TcpConfig> {
    (
        profile(),
        0..Algorithm::ALL.len(),
        any::<bool>(),
        any::<bool>(),
        1u32..12,
        prop::option::of(10u64..100),
        2_000u64..200_000,
    )
        .prop_map(|(profile, algorithm, ecn, fixed, initial_window, handshake, receive_buffer)| TcpConfig {
            mss: 1_000,
            initial_window,
            algorithm: Algorithm::ALL[algorithm],
            profile,
            ecn,
            reordering: if fixed { Reordering::Fixed } else { Reordering::Adaptive },
            receive_buffer,
            handshake_rtt: handshake.map(Span::from_us),
            ..TcpConfig::default()
        })
}

/// The last event of each kind that an end was notified of.
fn totals(events: &[TcpProgress]) -> (u64, u64) {
    events.iter().fold((0, 0), |(acknowledged, delivered), done| match *done {
        TcpProgress::Acknowledged(to) => {
            assert!(to > acknowledged, "acknowledged twice");
            (to, delivered)
        }
        TcpProgress::Delivered(to) => {
            assert!(to > delivered, "delivered twice");
            (acknowledged, to)
        }
        other => panic!("only a socket says {other:?}"),
    })
}

/// Runs until nothing happens any more; the channel is kind once its luck is used up.
fn run(config: &TcpConfig, writes: [&[u16]; 2], lucks: &[Luck]) {
    let now = Time::ZERO;
    let ends = [TcpConnection::new(config, now), TcpConnection::new(config, now)];
    let [left, right] = ends;
    let mut duo = Duo::new(left, right, Span::from_ns(100), Span::from_us(10));
    let mut lucks = lucks.iter().copied();
    let mut copies = Vec::new();
    let longest = writes[0].len().max(writes[1].len());
    for turn in 0..longest {
        for (side, writes) in Side::BOTH.into_iter().zip(writes) {
            if let Some(bytes) = writes.get(turn) {
                duo.command(side, TcpCommand::Send(u64::from(*bytes)));
            }
        }
        let pause = duo.now + Span::from_us(25);
        while duo.next_event().is_some_and(|at| at <= pause) {
            step(&mut duo, &mut lucks, &mut copies);
        }
        duo.now = duo.now.max(pause);
    }
    let mut steps = 0;
    while duo.next_event().is_some() {
        step(&mut duo, &mut lucks, &mut copies);
        steps += 1;
        assert!(steps < 200_000, "never falls quiet");
    }
    let sums = writes.map(|writes| writes.iter().map(|bytes| u64::from(*bytes)).sum::<u64>());
    for side in Side::BOTH {
        let (mine, theirs) = (sums[side as usize], sums[side.other() as usize]);
        assert_eq!(totals(&duo.events(side)), (mine, theirs));
        let end = duo.machine(side);
        assert!(end.is_idle() && end.bytes_in_flight() == 0 && end.unsent() == 0, "{end:?}");
    }
}

fn step(duo: &mut Duo<TcpConnection>, lucks: &mut impl Iterator<Item = Luck>, copies: &mut Vec<(Side, TcpSegment)>) {
    duo.step(&mut |side, segment| match lucks.next().unwrap_or(Luck::Passes) {
        Luck::Passes => Fate::Arrives,
        Luck::Lost => Fate::Lost,
        Luck::Late(us) => Fate::Late(Span::from_us(u64::from(us))),
        Luck::Twice => {
            copies.push((side.other(), *segment));
            Fate::Arrives
        }
        Luck::Marked => {
            let marked = TcpSegment { ecn: segment.ecn.marked(), ..*segment };
            copies.push((side.other(), marked));
            Fate::Lost
        }
    });
    for (side, segment) in copies.drain(..) {
        duo.inject(side, segment);
    }
}

fn segment() -> impl Strategy<Value = TcpSegment> {
    let near = || prop_oneof![0u64..30_000, any::<u64>()];
    let block = || (any::<i16>(), any::<i16>(), any::<bool>());
    let blocks = prop::collection::vec(block(), 0..4);
    (near(), near(), 0u32..3_000, any::<[u32; 3]>(), blocks, 0u8..3, any::<[bool; 2]>()).prop_map(
        |(seq, ack, len, [window, timestamp, echo], blocks, ecn, [ece, cwr])| {
            let mut sack = Sack::default();
            for (from, to, wide) in blocks {
                let scale = if wide { 65_536 } else { 1 };
                let (from, to) = (i32::from(from) * scale, i32::from(to) * scale);
                if from < to {
                    sack.push(from, to);
                }
            }
            let ecn = [Ecn::NotCapable, Ecn::Capable, Ecn::Experienced][usize::from(ecn)];
            TcpSegment { seq, ack, len, window, timestamp, echo, sack, ecn, ece, cwr, flags: SegmentFlags::NONE }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_written_arrives_once_and_in_order(
        config in config(),
        one in prop::collection::vec(1u16..20_000, 1..12),
        other in prop::collection::vec(1u16..20_000, 0..6),
        lucks in prop::collection::vec(luck(), 0..300),
    ) {
        run(&config, [&one, &other], &lucks);
    }

    #[test]
    fn no_segment_from_outside_breaks_a_connection(
        config in config(),
        written in 0u64..60_000,
        segments in prop::collection::vec((segment(), 0u64..3_000, 0u8..6), 1..80),
    ) {
        let mut now = Time::ZERO;
        let mut connection = TcpConnection::new(&config, now);
        let mut out = Recorder::default();
        connection.on_command(now, TcpCommand::Send(written), &mut out);
        for (segment, us, pulls) in segments {
            now += Span::from_us(us);
            while let Some(timer) = out.due(now) {
                connection.on_timer(now, timer, &mut out);
            }
            connection.on_frame(now, Port(0), segment, &mut out);
            for _ in 0..pulls {
                if !matches!(connection.pull(now, Port(0), &mut out), Pull::Sent) {
                    break;
                }
            }
            out.acts();
            prop_assert!(connection.bytes_in_flight() + connection.unsent() <= written);
        }
    }
}
