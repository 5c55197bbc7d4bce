//! HPCC computed without simulating: windows, queues, the price of telemetry, an incast.
//!
//! Formulas are those of [`congestion::theory`]. Packets have the thesis's headers: 48 bytes and telemetry with room for every hop
//! around a payload, and ACKs of 46 bytes and telemetry, at least 60.

use chart::table::{Align, Table};
use congestion::theory::periodic::PeriodicSources;
use congestion::theory::{self, PacketOverhead};
use serde::Serialize;
use units::{Bytes, Rate, Span};
use wire::int::{IntHeader, IntWord};

use super::text::{percent, small};

/// Headers of a data packet without telemetry.
const HEADERS: u32 = 48;
/// Bytes of an ACK besides telemetry, and of the shortest frame.
const ACK: u32 = 46;
const SHORTEST_ACK: u32 = 60;
/// Queues whose probability is given, in packets.
const TAIL: [u32; 7] = [1, 2, 5, 10, 20, 50, 100];

/// Question about HPCC. All numbers are above 0; `load` and `eta` are at most 1.
#[derive(Clone, Copy, Debug)]
pub struct HpccQuestion {
    pub rate: Rate,
    /// T.
    pub rtt: Span,
    pub flows: u32,
    /// Payload of a full packet.
    pub mtu: u32,
    /// Switches that write telemetry.
    pub hops: u32,
    /// η.
    pub eta: f64,
    /// Bytes; by the thesis's rule if `None`.
    pub w_ai: Option<f64>,
    /// Share of a link that payload uses, for the price that long flows pay.
    pub load: f64,
    /// Flows that begin at once.
    pub fan_in: u32,
    /// Ports of the last switch that they arrive by.
    pub ports: u32,
    /// Buffer of that switch.
    pub buffer: Bytes,
    /// Share of what is left of the buffer that an ingress queue may take.
    pub alpha: f64,
}

/// Output of `--json` for HPCC.
#[derive(Debug, Serialize)]
pub struct HpccAnswer {
    w_init: u64,
    w_ai: f64,
    u: f64,
    queue: HpccQueue,
    int_share: f64,
    /// `None` if the load leaves long flows nothing.
    long_flow_ratio: Option<f64>,
    wraps_us: IntWraps,
    incast: HpccIncast,
}

/// Paced flows at the target utilization, in packets; in bytes what stands there if the steps are too large.
#[derive(Debug, Serialize)]
struct HpccQueue {
    mean: f64,
    tail: Vec<QueueTail>,
    standing_bytes: f64,
}

#[derive(Debug, Serialize)]
struct QueueTail {
    packets: u32,
    p: f64,
}

#[derive(Debug, Serialize)]
struct IntWraps {
    time: f64,
    bytes: f64,
}

#[derive(Debug, Serialize)]
struct HpccIncast {
    peak_bytes: f64,
    pauses: bool,
    ports: u32,
    threshold_bytes: f64,
    /// The fewest ports with which nothing is paused, at most one for each flow.
    ports_without_pause: Option<u32>,
}

impl HpccQuestion {
    /// W_init, which is also the bandwidth-delay product.
    pub fn w_init(&self) -> Bytes {
        self.rate.bytes_in(self.rtt)
    }

    /// Packets have room for five switches in any case.
    fn charged_hops(&self) -> usize {
        self.hops.max(5) as usize
    }

    fn int_bytes(&self) -> u32 {
        IntHeader::len_with(self.charged_hops()) as u32
    }

    fn overhead(&self, int: u32) -> PacketOverhead {
        PacketOverhead {
            payload: self.mtu.into(),
            headers: (HEADERS + int).into(),
            ack: (ACK + int).max(SHORTEST_ACK).into(),
        }
    }

    fn long_flow_ratio(&self) -> Option<f64> {
        let (without, with) = (self.overhead(0), self.overhead(self.int_bytes()));
        let has_room = with.used(self.load) < self.eta;
        has_room.then(|| theory::long_flow_ratio(self.load, self.eta, &without, &with))
    }

    fn incast(&self) -> HpccIncast {
        let (buffer, alpha) = (self.buffer.get() as f64, self.alpha);
        let wire_share = 1.0 + f64::from(HEADERS + self.int_bytes()) / f64::from(self.mtu);
        let peak = theory::incast_peak(self.fan_in.into(), self.w_init().get() as f64, wire_share);
        let pauses = |ports: u32| theory::incast_pauses(peak, ports.into(), buffer, alpha);
        HpccIncast {
            peak_bytes: peak,
            pauses: pauses(self.ports),
            ports: self.ports,
            threshold_bytes: theory::dynamic_threshold(buffer, alpha, self.ports.into()),
            ports_without_pause: (1..=self.fan_in).find(|ports| !pauses(*ports)),
        }
    }
}

impl From<&HpccQuestion> for HpccAnswer {
    fn from(question: &HpccQuestion) -> Self {
        let HpccQuestion { rate, flows, eta, .. } = *question;
        let w_init = question.w_init();
        let bdp = w_init.get() as f64;
        let w_ai = question.w_ai.unwrap_or_else(|| theory::w_ai(bdp, eta, flows.into()));
        let u = theory::equilibrium_utilization(eta, w_ai, flows.into(), bdp);
        let sources = PeriodicSources { sources: flows, load: eta };
        let (time, bytes) = theory::int_wraps(rate);
        Self {
            w_init: w_init.get(),
            w_ai,
            u,
            queue: HpccQueue {
                mean: sources.mean(),
                tail: TAIL.map(|packets| QueueTail { packets, p: sources.tail(packets.into()) }).into(),
                standing_bytes: theory::equilibrium_queue(u, bdp),
            },
            int_share: theory::int_share(question.charged_hops(), question.mtu.into()),
            long_flow_ratio: question.long_flow_ratio(),
            wraps_us: IntWraps { time: time.as_us(), bytes: bytes.as_us() },
            incast: question.incast(),
        }
    }
}

pub fn hpcc_text(question: &HpccQuestion, answer: &HpccAnswer) -> String {
    let HpccQuestion { rate, rtt, flows, mtu, hops, .. } = question;
    format!(
        "{rate}, round trip {rtt}, {flows} flows, packets of {mtu} B of payload over {hops} switches\n\n{}{}\n{}\n{}\n{}",
        windows(question, answer),
        advice(question, answer),
        queue(question, answer),
        telemetry(question, answer),
        incast(question, answer)
    )
}

fn windows(question: &HpccQuestion, answer: &HpccAnswer) -> Table {
    let mut table = Table::new(&[("window", Align::Left), ("", Align::Right), ("", Align::Left)]);
    let rule =
        if question.w_ai.is_some() { "as given" } else { "W_init (1 − η) / flows: the largest without a queue" };
    let share = answer.u * answer.w_init as f64 / f64::from(question.flows);
    for (what, value, how) in [
        ("of a new flow, W_init", bytes(answer.w_init as f64), "rate · round trip".into()),
        ("additive step, W_AI", bytes(answer.w_ai), rule.into()),
        ("of each flow, when all are there", bytes(share), format!("{:.1} packets", share / f64::from(question.mtu))),
        ("utilization then, U", format!("{} %", percent(answer.u)), "η + flows · W_AI / W_init".into()),
        ("queue that stands then", bytes(answer.queue.standing_bytes), "what U has above 100 %".into()),
    ] {
        table.row(vec![what.into(), value, how]);
    }
    table
}

/// Remarks on results that deserve a sentence.
fn advice(question: &HpccQuestion, answer: &HpccAnswer) -> String {
    let mut lines = String::new();
    let bdp = answer.w_init as f64;
    if answer.u * bdp < f64::from(question.flows) * f64::from(question.mtu) {
        lines += "windows are below one packet: pacing alone keeps the queue short\n";
    }
    if answer.queue.standing_bytes > 0.5 {
        let largest = theory::w_ai(bdp, question.eta, question.flows.into());
        lines += &format!(
            "flows move in step: expect a multiple of the standing queue; without one W_AI is at most {}\n",
            bytes(largest)
        );
    }
    lines
}

fn queue(question: &HpccQuestion, answer: &HpccAnswer) -> String {
    let mut table = Table::new(&[("queue of more than", Align::Right), ("share of time", Align::Right)]);
    for QueueTail { packets, p } in &answer.queue.tail {
        let unit = if *packets == 1 { "packet" } else { "packets" };
        table.row(vec![format!("{packets} {unit}"), small(*p)]);
    }
    format!(
        "{table}mean {:.2} packets, if all flows are paced and fill {} % (ΣD/D/1); {:.2} at 100 %\n",
        answer.queue.mean,
        percent(question.eta),
        PeriodicSources::mean_at_full_load(question.flows)
    )
}

fn telemetry(question: &HpccQuestion, answer: &HpccAnswer) -> String {
    let long = match answer.long_flow_ratio {
        Some(ratio) => format!("long flows take {ratio:.2} times as long as without HPCC at a load of"),
        None => "nothing is left for long flows at a load of".into(),
    };
    let IntWraps { time, bytes } = answer.wraps_us;
    format!(
        "telemetry: {} B on every packet, {} % of its payload; {long} {} %\n\
         its bytes wrap after {:.1} ms at line rate, its time after {:.1} ms: a flow forgets it when silent for {:.1} ms\n",
        question.int_bytes(),
        percent(answer.int_share),
        percent(question.load),
        bytes / 1e3,
        time / 1e3,
        bytes.min(time) / 2e3
    )
}

fn incast(question: &HpccQuestion, answer: &HpccAnswer) -> String {
    let HpccIncast { peak_bytes, pauses, ports, threshold_bytes, ports_without_pause } = answer.incast;
    let by = if ports == 1 { "one port, which".into() } else { format!("{ports} ports, each of which") };
    let verdict = if pauses { "PFC pauses" } else { "PFC pauses nobody" };
    let mut text = format!(
        "incast of {}: a queue of at most {}, which arrives by {by} may hold {}: {verdict}\n",
        question.fan_in,
        bytes(peak_bytes),
        bytes(threshold_bytes)
    );
    match ports_without_pause {
        Some(1) => {}
        Some(least) => text += &format!("if it arrives equally by {least} ports or more, PFC pauses nobody\n"),
        None => text += "it pauses by any number of ports: a larger buffer or α would help, or fewer flows at once\n",
    }
    let longest = f64::from(IntWord::QUEUE_MAX) * f64::from(IntWord::QUEUE_UNIT);
    if peak_bytes > longest {
        text += &format!("telemetry cannot say more than {}: it saturates\n", bytes(longest));
    }
    text
}

fn bytes(bytes: f64) -> String {
    if bytes < 1_000.0 { format!("{bytes:.1} B") } else { Bytes::new(bytes.round() as u64).to_string() }
}
