//! Controllers in a closed loop: some senders, one switch, one bottleneck, packet by packet.
//!
//! A packet takes a quarter of the round trip to the switch and three quarters back as an acknowledgement. The switch stamps and
//! marks when a packet leaves. Senders send while less than a window is in flight, and their pace follows the rate at once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use congestion::hpcc::{IntForm, Reaction};
use congestion::{
    AckFeedback, CnpDelivery, ControlSite, Controller, ControllerConfig, DcqcnConfig, HpccConfig, RdmaControl,
    RdmaDctcpConfig, SwiftConfig, TelemetrySample,
};
use units::{Bytes, Rate, Span, Time};
use wire::int::IntHop;

const PAYLOAD: u64 = 1_000;
const WIRE: u64 = 1_090;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake(usize),
    Arrival(usize),
    Departure,
    Ack(usize),
}

struct Sender {
    control: Controller,
    sent: u64,
    acked: u64,
    last_sent: Option<Time>,
    /// The wake-up that counts.
    wakes_at: Time,
    sent_at: VecDeque<Time>,
    /// Telemetry and mark of acknowledgements under way.
    under_way: VecDeque<(IntHop, bool)>,
}

struct Bottleneck {
    rate: Rate,
    site: ControlSite,
    mark_above: u64,
    now: Time,
    order: u64,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    senders: Vec<Sender>,
    queue: VecDeque<usize>,
    busy: bool,
    joined: u64,
    left: u64,
    /// Queue at every departure.
    seen: Vec<(Time, u64)>,
}

impl Bottleneck {
    fn new(config: &ControllerConfig, flows: usize, gbps: u64, rtt: Span, mark_above: u64) -> Self {
        let rate = Rate::gbps(gbps);
        let base_rtt = rtt + rate.span_of(Bytes::new(WIRE)) * 2;
        let site = ControlSite { line_rate: rate, base_rtt, mtu: PAYLOAD as u32, hops: 1 };
        let sender = |_| Sender {
            control: Controller::new(config, &site),
            sent: 0,
            acked: 0,
            last_sent: None,
            wakes_at: Time::NEVER,
            sent_at: VecDeque::new(),
            under_way: VecDeque::new(),
        };
        let senders = (0..flows).map(sender).collect();
        let (events, queue, seen) = (BinaryHeap::new(), VecDeque::new(), Vec::new());
        let (now, order, busy, joined, left) = (Time::ZERO, 0, false, 0, 0);
        Self { rate, site, mark_above, now, order, events, senders, queue, busy, joined, left, seen }
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, event)));
    }

    fn run(&mut self, until: Span) {
        (0..self.senders.len()).for_each(|flow| self.send(flow));
        while let Some(Reverse((at, _, event))) = self.events.pop().filter(|next| next.0.0 <= Time::ZERO + until) {
            self.now = at;
            match event {
                Event::Wake(flow) if self.senders[flow].wakes_at == at => self.send(flow),
                Event::Wake(_) => {}
                Event::Arrival(flow) => {
                    self.joined += WIRE;
                    self.queue.push_back(flow);
                    self.depart();
                }
                Event::Departure => {
                    self.busy = false;
                    self.depart();
                }
                Event::Ack(flow) => self.acknowledge(flow),
            }
        }
    }

    /// Sends what window and pace allow, and sets the next wake-up.
    fn send(&mut self, flow: usize) {
        let sender = &mut self.senders[flow];
        sender.control.advance(self.now);
        let pace = sender.control.rate().unwrap_or(self.rate).min(self.rate);
        let may_at = sender.last_sent.map_or(self.now, |last| last + pace.span_of(Bytes::new(WIRE)));
        let has_room = (sender.sent - sender.acked) * PAYLOAD < sender.control.window();
        if has_room && may_at <= self.now {
            sender.sent += 1;
            sender.last_sent = Some(self.now);
            sender.sent_at.push_back(self.now);
            sender.control.on_sent(self.now, WIRE);
            let arrival = self.now + self.rate.span_of(Bytes::new(WIRE)) + self.site.base_rtt / 4;
            self.schedule(arrival, Event::Arrival(flow));
            return self.send(flow);
        }
        let sender = &mut self.senders[flow];
        let paced = if has_room { may_at } else { Time::NEVER };
        sender.wakes_at = paced.min(sender.control.changes_at());
        let at = sender.wakes_at;
        if at < Time::NEVER {
            self.schedule(at, Event::Wake(flow));
        }
    }

    fn depart(&mut self) {
        if self.busy {
            return;
        }
        let Some(flow) = self.queue.pop_front() else { return };
        self.busy = true;
        let queue = self.joined - self.left - WIRE;
        let tx_bytes = self.left;
        let rate_mbps = (self.rate.bits_per_second() / 1_000_000) as u32;
        let hop = IntHop { at: self.now, tx_bytes, queue: queue as u32, rate_mbps };
        self.left += WIRE;
        self.seen.push((self.now, queue));
        self.senders[flow].under_way.push_back((hop, queue > self.mark_above));
        let done = self.now + self.rate.span_of(Bytes::new(WIRE));
        self.schedule(done, Event::Departure);
        self.schedule(done + (self.site.base_rtt / 4) * 3, Event::Ack(flow));
    }

    fn acknowledge(&mut self, flow: usize) {
        let now = self.now;
        let sender = &mut self.senders[flow];
        let (hop, marked) = sender.under_way.pop_front().unwrap();
        let rtt = now.since(sender.sent_at.pop_front().unwrap());
        sender.acked += 1;
        sender.control.on_ack(&AckFeedback {
            now,
            acked: sender.acked,
            sent: sender.sent,
            packets: 1,
            bytes: PAYLOAD,
            marked: u32::from(marked),
            rtt: Some(rtt),
            one_way: None,
            telemetry: Some(TelemetrySample { path: 5, hops: &[hop] }),
        });
        self.send(flow);
    }

    /// Utilization between two times.
    fn utilization(&self, from_us: u64, to_us: u64) -> f64 {
        let (from, to) = (Span::from_us(from_us), Span::from_us(to_us));
        let packets = self.between(from_us, to_us).count() as u64;
        packets as f64 * WIRE as f64 / self.rate.bytes_in(to - from).get() as f64
    }

    /// In any 5 µs between 20 and 200.
    fn least_utilization(&self) -> f64 {
        (20..195).map(|from| self.utilization(from, from + 5)).fold(1.0, f64::min)
    }

    fn between(&self, from_us: u64, to_us: u64) -> impl Iterator<Item = u64> {
        let (from, to) = (Time::ZERO + Span::from_us(from_us), Time::ZERO + Span::from_us(to_us));
        self.seen.iter().filter(move |(at, _)| (from..to).contains(at)).map(|(_, queue)| *queue)
    }

    /// Queue that `share` of the packets do not exceed.
    fn quantile(&self, from_us: u64, to_us: u64, share: f64) -> u64 {
        let mut queues: Vec<u64> = self.between(from_us, to_us).collect();
        queues.sort_unstable();
        queues[((queues.len() - 1) as f64 * share) as usize]
    }

    fn peak(&self) -> u64 {
        self.seen.iter().map(|(_, queue)| *queue).max().unwrap()
    }

    /// Jain's index of what was acknowledged.
    fn fairness(&self) -> f64 {
        let shares: Vec<f64> = self.senders.iter().map(|sender| sender.acked as f64).collect();
        shares.iter().sum::<f64>().powi(2)
            / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
    }
}

fn hpcc(config: HpccConfig, flows: usize, us: u64) -> Bottleneck {
    let mut link = Bottleneck::new(&ControllerConfig::Hpcc(config), flows, 100, Span::from_us(4), u64::MAX);
    link.run(Span::from_us(us));
    link
}

#[test]
fn one_hpcc_flow_uses_eta_of_the_link_without_a_queue() {
    let link = hpcc(HpccConfig { w_ai: Some(0.0), ..HpccConfig::default() }, 1, 500);
    let used = link.utilization(100, 500);
    assert!((used - 0.95).abs() < 0.01, "{used}");
    assert_eq!(link.peak(), 0);
}

#[test]
fn sixteen_hpcc_flows_end_near_eta_with_hardly_a_queue() {
    for int in [IntForm::Exact, IntForm::Packed(1), IntForm::Packed(4)] {
        let link = hpcc(HpccConfig { int: Some(int), ..HpccConfig::default() }, 16, 1_500);
        assert!((700_000..900_000).contains(&link.peak()), "{}", link.peak());
        let (used, p95) = (link.utilization(500, 1_500), link.quantile(500, 1_500, 0.95));
        assert!((0.93..0.99).contains(&used), "{used}");
        assert!(p95 <= 6_000, "{p95}");
        assert!(link.fairness() > 0.8, "{}", link.fairness());
    }
}

#[test]
fn hpcc_drains_an_incast_without_letting_the_link_run_dry() {
    let link = hpcc(HpccConfig { w_ai: Some(80.0), ..HpccConfig::default() }, 16, 300);
    let after = link.between(120, 300).max().unwrap();
    assert!(after < link.peak() * 6 / 100, "{after} of {}", link.peak());
    let least = link.least_utilization();
    assert!(least > 0.5, "{least}");
}

#[test]
fn reacting_to_every_acknowledgement_lets_the_link_run_dry() {
    let link = hpcc(HpccConfig { reaction: Reaction::PerAck, w_ai: Some(80.0), ..HpccConfig::default() }, 16, 300);
    let least = link.least_utilization();
    assert!(least < 0.1, "{least}");
}

#[test]
fn dcqcn_cuts_until_marks_stop() {
    let config = DcqcnConfig { cnp: CnpDelivery::Echo, ..DcqcnConfig::VENDOR };
    let mut link = Bottleneck::new(&ControllerConfig::Dcqcn(config), 8, 25, Span::from_us(5), 100_000);
    link.run(Span::from_us(2_000));
    assert!(link.peak() > 300_000, "{}", link.peak());
    let rates: Vec<f64> =
        link.senders.iter().map(|sender| sender.control.rate().unwrap().bits_per_second() as f64 / 1e9).collect();
    assert!(rates.iter().all(|rate| *rate < 12.0), "{rates:?}");
    let late = link.quantile(1_500, 2_000, 0.95);
    assert!(late < link.peak() / 2, "{late} of {}", link.peak());
}

#[test]
fn dctcp_and_swift_keep_the_link_busy_and_the_queue_at_their_target() {
    let mut dctcp =
        Bottleneck::new(&ControllerConfig::Dctcp(RdmaDctcpConfig::default()), 4, 100, Span::from_us(12), 300_000);
    dctcp.run(Span::from_us(4_000));
    assert!(dctcp.utilization(2_000, 4_000) > 0.9, "{}", dctcp.utilization(2_000, 4_000));
    assert!(dctcp.quantile(2_000, 4_000, 0.99) < 350_000);

    let mut swift =
        Bottleneck::new(&ControllerConfig::Swift(SwiftConfig::default()), 4, 100, Span::from_us(12), u64::MAX);
    swift.run(Span::from_us(4_000));
    assert!(swift.utilization(2_000, 4_000) > 0.95, "{}", swift.utilization(2_000, 4_000));
    // 6 µs beyond the base are 75 KB; few flows are scaled by some more.
    assert!(swift.quantile(2_000, 4_000, 0.95) < 200_000, "{}", swift.quantile(2_000, 4_000, 0.95));
}
