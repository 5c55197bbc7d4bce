use testkit::Recorder;

use super::*;
use crate::config::TimerProfile;

const MSS: u32 = 1_000;

struct Peer {
    receiver: TcpReceiver,
    out: Recorder<TcpConnection>,
    now: Time,
}

impl Peer {
    fn new(profile: TimerProfile) -> Self {
        let config = TcpConfig { mss: MSS, profile, receive_buffer: 50_000, ..TcpConfig::default() };
        Self { receiver: TcpReceiver::new(&config, Time::ZERO), out: Recorder::default(), now: Time::ZERO }
    }

    fn gets(&mut self, seq: u64, len: u32) -> SegmentArrival {
        let segment = TcpSegment { seq, len, ..TcpSegment::default() };
        self.receiver.on_data(self.now, &segment, Span::from_ms(200), None, &mut self.out)
    }

    fn says(&mut self, len: u32) -> TcpSegment {
        let mut segment = TcpSegment { len, ..TcpSegment::default() };
        self.receiver.fill(self.now, &mut segment, &mut self.out);
        segment
    }

    fn waits(&mut self, span: Span) {
        self.now += span;
        while self.out.due(self.now).is_some() {
            self.receiver.on_timer(self.now, Span::from_ms(200), &mut self.out);
        }
    }
}

#[test]
fn what_comes_is_placed() {
    let mut peer = Peer::new(TimerProfile::rfc());
    assert_eq!(peer.gets(0, MSS), SegmentArrival::InOrder);
    assert_eq!(peer.gets(2_000, MSS), SegmentArrival::OutOfOrder);
    assert_eq!(peer.gets(2_000, MSS), SegmentArrival::Duplicate);
    assert_eq!(peer.gets(500, MSS), SegmentArrival::Filling);
    assert_eq!(peer.gets(1_500, MSS), SegmentArrival::Filling);
    assert_eq!(peer.receiver.delivered(), 3_000);
    assert_eq!(peer.gets(0, MSS), SegmentArrival::Duplicate);
    assert_eq!(peer.gets(53_000, MSS), SegmentArrival::Outside);
    assert_eq!(peer.gets(u64::MAX - 10, MSS), SegmentArrival::Outside);
}

#[test]
fn what_was_told_least_recently_fills_the_rest() {
    let mut peer = Peer::new(TimerProfile::rfc());
    for seq in [10_000, 8_000, 6_000, 4_000, 2_000] {
        peer.gets(seq, MSS);
    }
    let offsets = |sack: Sack| sack.blocks().iter().map(|block| block.0).collect::<Vec<_>>();
    assert_eq!(offsets(peer.says(0).sack), [2_000, 4_000, 6_000]);
    // The three ranges become one, which leaves room for those reported before.
    peer.gets(3_000, MSS);
    peer.gets(5_000, MSS);
    assert_eq!(offsets(peer.says(0).sack), [2_000, 10_000, 8_000]);
}

#[test]
fn a_duplicate_is_told_of_with_the_range_that_holds_it() {
    let mut peer = Peer::new(TimerProfile::rfc());
    for seq in [2_000, 4_000, 6_000, 8_000] {
        peer.gets(seq, MSS);
    }
    peer.says(0);
    peer.gets(2_000, MSS);
    let sack = peer.says(0).sack;
    assert_eq!(sack.blocks(), [(2_000, 3_000), (2_000, 3_000), (8_000, 9_000)]);
}

#[test]
fn a_long_segment_joins_all_that_it_reaches() {
    let mut peer = Peer::new(TimerProfile::rfc());
    peer.gets(2_000, MSS);
    peer.gets(4_000, MSS);
    peer.gets(8_000, MSS);
    assert_eq!(peer.gets(0, 4_500), SegmentArrival::Filling);
    assert_eq!(peer.receiver.delivered(), 5_000);
    assert_eq!(peer.says(0).sack.blocks(), [(3_000, 4_000)]);
}

#[test]
fn the_first_timestamp_is_taken_whatever_it_is() {
    let mut peer = Peer::new(TimerProfile::rfc());
    let timestamp = 3 << 30;
    let segment = TcpSegment { seq: 0, len: MSS, timestamp, ..TcpSegment::default() };
    peer.receiver.on_data(peer.now, &segment, Span::from_ms(200), None, &mut peer.out);
    assert_eq!(peer.says(0).echo, timestamp);
}

#[test]
fn the_timestamp_returned_is_that_of_the_first_segment_not_acknowledged() {
    let mut peer = Peer::new(TimerProfile::rfc());
    for (seq, timestamp) in [(0, 10), (1_000, 20)] {
        let segment = TcpSegment { seq, len: MSS, timestamp, ..TcpSegment::default() };
        peer.receiver.on_data(peer.now, &segment, Span::from_ms(200), None, &mut peer.out);
    }
    assert_eq!(peer.says(0).echo, 10);
}

#[test]
fn a_timer_that_is_not_needed_goes_off_in_silence() {
    let mut peer = Peer::new(TimerProfile::rfc());
    peer.gets(0, MSS);
    peer.gets(1_000, MSS);
    assert!(peer.receiver.is_ack_due());
    peer.says(0);
    peer.waits(Span::from_ms(40));
    assert!(!peer.receiver.owes_ack() && peer.out.timers.is_empty());
    peer.gets(2_000, MSS);
    peer.waits(Span::from_ms(39));
    assert!(!peer.receiver.is_ack_due());
    peer.waits(Span::from_ms(1));
    assert!(peer.receiver.is_ack_due());
}

/// A request every 5 ms and an answer 2 ms later.
#[test]
fn an_application_that_answers_ends_quick_acknowledgements() {
    let mut peer = Peer::new(TimerProfile::linux());
    let mut at_once = Vec::new();
    for request in 0..5 {
        peer.waits(Span::from_ms(5));
        peer.gets(request * 100, 100);
        at_once.push(peer.receiver.is_ack_due());
        if peer.receiver.is_ack_due() {
            peer.says(0);
        }
        peer.waits(Span::from_ms(2));
        peer.says(100);
    }
    assert_eq!(at_once, [true, true, true, false, false]);
}
