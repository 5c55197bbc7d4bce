//! Draws of a trial: configurations, a path, and the actions of applications.

use faults::Random;
use tcp::cc::Algorithm;
use tcp::{LinuxVersion, LossDetection, Reordering, TcpCommand, TcpConfig, TcpSocketConfig, TimerProfile};
use units::{Bytes, Rate, Span};

use crate::LogSide;

/// Headers of a frame, with what is around it.
const HEADERS: u32 = 90;

/// Draws the configurations of both ends: mostly alike, as they are in a data center.
pub(super) fn configs(random: &mut Random) -> [TcpConfig; 2] {
    let client = config(random);
    let other = config(random);
    let alike = random.below(4) > 0 || client.algorithm == Algorithm::Dctcp || other.algorithm == Algorithm::Dctcp;
    if alike || client.socket.is_some() != other.socket.is_some() {
        return [client; 2];
    }
    // Both ends agree on these in the handshake.
    [client, TcpConfig { sack: client.sack, timestamps: client.timestamps, ecn: client.ecn, ..other }]
}

fn config(random: &mut Random) -> TcpConfig {
    let version = LinuxVersion::ALL[random.below(3) as usize];
    let usual = if random.below(2) == 0 { TcpConfig::linux(version) } else { TcpConfig::default() };
    let algorithm = Algorithm::ALL[random.below(Algorithm::ALL.len() as u64) as usize];
    let detections = [usual.detection, LossDetection::RACK, LossDetection::LINUX_4_4, LossDetection::DUPACKS];
    let mut flag = |one_of| random.below(one_of) == 0;
    let (sack, timestamps, ecn, idle_restart) = (!flag(8), !flag(8), flag(2), !flag(4));
    let (fixed, gentle_marks, prr_follows_advances, shaken) = (flag(4), flag(2), flag(2), flag(2));
    let impatient = usual.socket.is_some() && random.below(8) == 0;
    let user_timeout = impatient.then(|| Span::from_ms(1 + random.below(2_000)));
    // Half of the sockets have a buffer that grows with what is read.
    let grows = usual.socket.is_some() && random.below(2) == 0;
    let first_buffer = grows.then(|| 10_000 + random.below(200_000));
    let reads_at_once = usual.socket.is_some() && random.below(4) == 0;
    TcpConfig {
        mss: 100 + random.below(8_900) as u32,
        initial_window: 1 + random.below(20) as u32,
        algorithm,
        profile: profile(random),
        ecn,
        reordering: if fixed { Reordering::Fixed } else { Reordering::Adaptive },
        receive_buffer: 20_000 + random.below(4 << 20),
        handshake_rtt: shaken.then(|| Span::from_us(1 + random.below(1_000))),
        idle_restart,
        seed: random.below(1 << 32) as u32,
        sack,
        timestamps,
        detection: detections[random.below(4) as usize],
        gentle_marks,
        prr_follows_advances,
        socket: usual.socket.map(|socket| TcpSocketConfig { user_timeout, first_buffer, reads_at_once, ..socket }),
        ..usual
    }
}

fn profile(random: &mut Random) -> TimerProfile {
    let rto_min = Span::from_us([200, 1_000, 16_000, 200_000][random.below(4) as usize]);
    if random.below(3) == 0 {
        return TimerProfile::Rfc { rto_min, max_ack_delay: Span::from_us(50 + random.below(40_000)) };
    }
    let hz = [100, 250, 1_000][random.below(3) as usize];
    TimerProfile::Linux { hz, rto_min, phase: Span::from_us(random.below(10_000)) }
}

/// Path between two hosts.
#[derive(Debug)]
pub(super) struct TrialPath {
    rate: Rate,
    pub delay: Span,
    loss: f64,
    longest_burst: u64,
    mark: f64,
    reorder: f64,
    duplicate: f64,
    busy: f64,
    /// Time for which a host gathers arriving frames; zero for not at all.
    pub batch: Span,
}

impl TrialPath {
    pub(super) fn draw(random: &mut Random) -> Self {
        let mut one_of = |choices: &[f64]| choices[random.below(choices.len() as u64) as usize];
        let (loss, mark) = (one_of(&[0.0, 0.001, 0.01, 0.1]), one_of(&[0.0, 0.01, 0.3]));
        let (reorder, duplicate) = (one_of(&[0.0, 0.0, 0.01, 0.1]), one_of(&[0.0, 0.0, 0.0, 0.02]));
        let busy = one_of(&[0.0, 0.1, 0.5]);
        let rate = Rate::from_bits_per_second(one_of(&[1e7, 1e8, 1e9, 1e10, 1e11]) as u64);
        let delay = Span::from_ns(one_of(&[500.0, 5_000.0, 50_000.0, 500_000.0, 20_000_000.0]) as u64);
        let longest_burst = one_of(&[0.0, 0.0, 3.0, 30.0]) as u64;
        let batch = Span::from_ns(one_of(&[0.0, 5_000.0, 50_000.0]) as u64);
        let delay = delay + Span::from_ps(random.below(1_000_000));
        Self { rate, delay, loss, longest_burst, mark, reorder, duplicate, busy, batch }
    }

    pub(super) fn sending(&self, len: u32) -> Span {
        self.rate.span_of(Bytes::new(u64::from(len + HEADERS)))
    }

    /// Time for which the interface serves others before it serves this connection again.
    pub(super) fn others(&self, random: &mut Random) -> Span {
        if random.unit() < self.busy { self.sending(9_000).scale(random.unit()) } else { Span::ZERO }
    }

    pub(super) fn marks(&self, random: &mut Random) -> bool {
        random.unit() < self.mark
    }

    /// Additional delay of each copy of a frame; `None` if it is lost.
    pub(super) fn fate(&self, random: &mut Random) -> Option<Vec<Span>> {
        if random.unit() < self.loss {
            return None;
        }
        let late = if random.unit() < self.reorder { self.delay.scale(random.unit()) } else { Span::ZERO };
        let twice = random.unit() < self.duplicate;
        Some(if twice { vec![late, late + self.delay.scale(random.unit())] } else { vec![late] })
    }

    /// Frames that are lost behind one that is.
    pub(super) fn burst(&self, random: &mut Random) -> u64 {
        if self.longest_burst == 0 { 0 } else { random.below(self.longest_burst) }
    }
}

/// Actions of applications.
#[derive(Debug)]
pub(super) struct TrialWork {
    /// Begins the connection with a handshake that is not over.
    pub handshake: bool,
    requests: Vec<u64>,
    reply: u64,
    answered: u64,
    closes: bool,
    lazy: bool,
    longest_pause: u64,
}

impl TrialWork {
    pub(super) fn draw(random: &mut Random, socket: bool) -> Self {
        let size = |random: &mut Random| {
            let most = [100, 20_000, 300_000][random.below(3) as usize];
            1 + random.below(most)
        };
        let requests = (0..=random.below(4)).map(|_| size(random)).collect();
        let reply = if random.below(2) == 0 { 0 } else { size(random) };
        let longest_pause = [1, 1_000, 100_000][random.below(3) as usize];
        let (handshake, closes, lazy) = (random.below(2) == 0, socket && random.below(2) == 0, random.below(2) == 0);
        Self { handshake, requests, reply, answered: 0, closes, lazy, longest_pause }
    }

    /// Time until an application does the next thing.
    pub(super) fn pause(&self, random: &mut Random) -> Span {
        Span::from_us(random.below(self.longest_pause))
    }

    pub(super) fn reads(&self, readable: u64, random: &mut Random) -> u64 {
        if self.lazy { 1 + random.below(readable) } else { readable }
    }

    /// Next command of an application.
    pub(super) fn next(
        &mut self,
        side: LogSide,
        delivered: u64,
        peer_closed: bool,
        random: &mut Random,
    ) -> Option<TcpCommand> {
        if side == LogSide::Server {
            if self.reply > 0 && delivered > self.answered {
                self.answered = delivered;
                return Some(TcpCommand::Send(self.reply));
            }
            return (peer_closed && std::mem::take(&mut self.closes)).then_some(TcpCommand::Close);
        }
        match self.requests.pop() {
            Some(bytes) if random.below(8) == 0 => Some(TcpCommand::SendMore(bytes)),
            Some(bytes) => Some(TcpCommand::Send(bytes)),
            None if self.closes && delivered > 0 => Some(TcpCommand::ShutdownWrite),
            None => None,
        }
    }
}
