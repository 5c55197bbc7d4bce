//! Segments in and out, as scripts: `scripts/*.txt`, one story each, in the manner of packetdrill.
//!
//! ```text
//! config mss=1000 profile=rfc rto_min=1ms handshake=30us
//! 0us   write 3000                        the application writes
//! 0us   > 0:3000 by 1000 ack 0            three segments leave (`by` splits them)
//! 30us  < ack 1000 sack 2000:3000         a segment comes in
//! 40us  > 1000:2000 ack 0 (sack)          a copy leaves, because of SACK; also (probe), (timeout)
//! 40us  flight 1000                       what the connection says of itself
//! ```
//!
//! Segments that leave must be those of the script, less than a microsecond before that time, in that order, and no more. A
//! segment that comes in returns the timestamp of the last one that left unless it says `echo TIME`. Flags: `ece`, `cwr`,
//! `ect`, `ce`, `psh`, `fin`, `rst`, `noack`. `together` before several `<` hands them in before anything can leave.
//!
//! With `kernel=` in its configuration a connection has a socket: the application can `write N more`, `read N`,
//! `shutdown`, `close` and `abort` as well, and set `nodelay`, `cork` and `uncork`. A segment without payload that is not
//! a plain acknowledgement is written with its position, `4000:4000 fin`; with `windows=on` its window is compared, too.
//! `> any` is whatever left, without a comparison.

use std::collections::VecDeque;

use machine::{Machine, Port, Pull};
use tcp::cc::Algorithm;
use tcp::{
    LossDetection, Phase, Reordering, Sack, SegmentFlags, TcpCommand, TcpConfig, TcpConnection, TcpNote,
    TcpRetransmitCause, TcpSegment, TimerProfile,
};
use testkit::{RecordedAction, Recorder};
use units::{Span, Time};
use wire::ip::Ecn;

macro_rules! scripts {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            Script::run(include_str!(concat!("scripts/", stringify!($name), ".txt")));
        })*
    };
}

scripts! {
    rfc2018_sack_blocks
    rfc2883_dsack_blocks
    rack_finds_a_loss
    rack_finds_a_lost_copy
    rack_waits_for_what_is_late
    rack_learns_to_wait_longer
    tlp_repairs_the_tail
    tlp_with_new_data
    tlp_once_a_flight
    tlp_after_a_recovery
    tlp_finds_no_loss
    rto_backs_off
    rto_was_spurious
    rto_in_a_recovery
    linux_ticks
    linux_quick_acks
    rfc_delayed_acks
    prr_halves_gently
    dctcp_marks
    ecn_echo
    idle_restart
    bbr_paces
    off_fills_the_window
    newreno_repairs_hole_by_hole
    newreno_counts_no_window_updates
    limited_transmit_without_sack
    dupacks_and_a_threshold_that_grew
    linux_4_4_fack
    linux_4_4_early_retransmit
    no_timestamps_no_undo
    zero_window_probes
    small_window_is_used_by_a_probe
    nagle_and_nodelay
    cork_and_more
    psh_ends_writes_and_bursts
    read_opens_the_window
    close_first
    close_last
    close_unread_resets
    marks_glide_down
    send_buffer_blocks_a_write
}

struct Script {
    connection: TcpConnection,
    out: Recorder<TcpConnection>,
    now: Time,
    left: VecDeque<(Time, String)>,
    /// The timestamp that left last.
    stamp: u32,
    pull_at: Option<Time>,
    /// Reductions that turned out to be for nothing.
    spurious: usize,
    /// Windows are part of what leaves.
    windows: bool,
}

impl Script {
    fn run(text: &str) {
        let mut lines = text.lines().enumerate().filter(|(_, line)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        let (_, first) = lines.next().expect("a script configures first");
        let mut script = Self {
            connection: TcpConnection::new(&config(first), Time::ZERO),
            out: Recorder::default(),
            now: Time::ZERO,
            left: VecDeque::new(),
            stamp: 0,
            pull_at: None,
            spurious: 0,
            windows: first.contains("windows=on"),
        };
        for (number, line) in lines {
            script.line(line).unwrap_or_else(|why| panic!("line {}: {line}\n{why}", number + 1));
        }
        assert!(script.left.is_empty(), "left as well: {:?}", script.left);
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (time, rest) = line.trim().split_once(' ').ok_or("a time, then what happens")?;
        let at = Time::ZERO + time.parse::<Span>().map_err(|error| error.to_string())?;
        self.advance(at);
        let (verb, rest) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
        let words = rest.split_whitespace().collect::<Vec<_>>();
        match verb {
            "write" | "read" | "shutdown" | "close" | "abort" | "nodelay" | "cork" | "uncork" => {
                self.connection.on_command(at, command(verb, &words), &mut self.out);
                self.pull();
            }
            "<" => {
                self.hand_in(&words);
                self.pull();
            }
            "together" => words.split(|word| *word == "<").skip(1).for_each(|words| self.hand_in(words)),
            "pull" => self.pull(),
            ">" if words == ["any"] => self.left.clear(),
            ">" => return expand(&words).into_iter().try_for_each(|expected| self.expect(at, &expected)),
            "nothing" => {}
            _ => return same(&words.join(" "), &self.fact(verb)),
        }
        Ok(())
    }

    fn fact(&self, name: &str) -> String {
        let connection = &self.connection;
        match name {
            "window" => connection.window().to_string(),
            "threshold" => connection.threshold().to_string(),
            "flight" => connection.bytes_in_flight().to_string(),
            "unsent" => connection.unsent().to_string(),
            "rto" => connection.rto().to_string(),
            "delivered" => connection.delivered().to_string(),
            "spurious" => self.spurious.to_string(),
            "readable" => connection.readable().to_string(),
            "reordering" => connection.info(self.now).reordering.to_string(),
            "cwnd" => connection.info(self.now).snd_cwnd.to_string(),
            "state" => format!("{:?}", connection.state()),
            "ca" => format!("{:?}", connection.info(self.now).ca_state),
            "sndbuf_limited" => connection.info(self.now).sndbuf_limited.to_string(),
            "rwnd_limited" => connection.info(self.now).rwnd_limited.to_string(),
            "idle" => (connection.is_idle() && self.out.timers.is_empty()).to_string(),
            "phase" => match connection.phase() {
                Phase::Open => "open".into(),
                Phase::Recovery { until } => format!("recovery {until}"),
                Phase::Loss { until } => format!("loss {until}"),
            },
            other => panic!("no such fact: {other}"),
        }
    }

    /// Lets timers go off and paced segments leave until `at`.
    fn advance(&mut self, at: Time) {
        loop {
            let next = [self.out.next_deadline(), self.pull_at].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= at) else { break };
            self.now = self.now.max(next);
            if let Some(timer) = self.out.due(self.now) {
                self.connection.on_timer(self.now, timer, &mut self.out);
            }
            self.pull();
        }
        self.now = at;
    }

    fn hand_in(&mut self, words: &[&str]) {
        let segment = parse(words, self.stamp, self.now);
        self.connection.on_frame(self.now, Port(0), segment, &mut self.out);
    }

    fn pull(&mut self) {
        self.spurious += self.out.acts().iter().filter(|act| **act == RecordedAction::Note(TcpNote::Undone)).count();
        self.pull_at = None;
        let mut more = false;
        loop {
            let pulled = self.connection.pull(self.now, Port(0), &mut self.out);
            let mut why = "";
            for act in self.out.acts() {
                match act {
                    RecordedAction::Note(TcpNote::Retransmitted { cause, .. }) => {
                        why = match cause {
                            TcpRetransmitCause::Sack => " (sack)",
                            TcpRetransmitCause::Probe => " (probe)",
                            TcpRetransmitCause::Timeout => " (timeout)",
                        };
                    }
                    RecordedAction::Transmit(segment) => {
                        self.stamp = segment.timestamp;
                        self.left.push_back((self.now, print(&segment, self.windows) + why));
                    }
                    _ => {}
                }
            }
            match pulled {
                Pull::Sent => more = true,
                Pull::NotBefore(at) => return self.pull_at = Some(at),
                Pull::Last => {
                    let again = self.connection.pull(self.now, Port(0), &mut self.out);
                    return assert!(!matches!(again, Pull::Sent | Pull::Last), "that was not the last");
                }
                Pull::Idle => return assert!(!more, "that was the last"),
            }
        }
    }

    fn expect(&mut self, at: Time, expected: &str) -> Result<(), String> {
        let (time, left) = self.left.pop_front().ok_or("nothing left")?;
        same(expected, &left)?;
        if at.since(time) < Span::from_us(1) { Ok(()) } else { Err(format!("it left at {}", time.since(Time::ZERO))) }
    }
}

fn command(verb: &str, words: &[&str]) -> TcpCommand {
    match (verb, words) {
        ("write", [bytes]) => TcpCommand::Send(number(bytes)),
        ("write", [bytes, "more"]) => TcpCommand::SendMore(number(bytes)),
        ("read", [bytes]) => TcpCommand::Read(number(bytes)),
        ("shutdown", []) => TcpCommand::ShutdownWrite,
        ("close", []) => TcpCommand::Close,
        ("abort", []) => TcpCommand::Abort,
        ("nodelay", []) => TcpCommand::NoDelay(true),
        ("cork" | "uncork", []) => TcpCommand::Cork(verb == "cork"),
        _ => panic!("no such call: {verb} {words:?}"),
    }
}

fn same(expected: &str, got: &str) -> Result<(), String> {
    if expected == got { Ok(()) } else { Err(format!("expected {expected}\n     got {got}")) }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("a number, not {word}"))
}

fn span(word: &str) -> Span {
    word.parse().unwrap_or_else(|_| panic!("a time, not {word}"))
}

fn pair(word: &str) -> (u64, u64) {
    let (from, to) = word.split_once(':').unwrap_or_else(|| panic!("from:to, not {word}"));
    (number(from), number(to))
}

/// `0:2000 by 1000 ack 0` is two segments.
fn expand(words: &[&str]) -> Vec<String> {
    match words {
        [range, "by", size, rest @ ..] => {
            let (from, to) = pair(range);
            let size = number(size);
            let rest = rest.join(" ");
            let starts = (from..to).step_by(size as usize);
            starts.map(|start| format!("{start}:{} {rest}", to.min(start + size))).collect()
        }
        _ => vec![words.join(" ")],
    }
}

const FLAGS: [(SegmentFlags, &str); 4] = [
    (SegmentFlags::PSH, "psh"),
    (SegmentFlags::FIN, "fin"),
    (SegmentFlags::RST, "rst"),
    (SegmentFlags::NO_ACK, "noack"),
];

fn print(segment: &TcpSegment, windows: bool) -> String {
    let mut text = String::new();
    let special = segment.flags.has(SegmentFlags::FIN) || segment.flags.has(SegmentFlags::RST);
    if segment.len > 0 || special {
        text += &format!("{}:{} ", segment.seq, segment.seq + u64::from(segment.len));
    }
    text += &format!("ack {}", segment.ack);
    if !segment.sack.is_empty() {
        text += " sack";
    }
    let position = |offset: i32| segment.ack.checked_add_signed(i64::from(offset)).expect("within the stream");
    for (from, to) in segment.sack.blocks() {
        text += &format!(" {}:{}", position(*from), position(*to));
    }
    let flags = [(segment.ece, " ece"), (segment.cwr, " cwr"), (segment.ecn == Ecn::Capable, " ect")];
    flags.into_iter().filter(|(set, _)| *set).for_each(|(_, name)| text += name);
    FLAGS.iter().filter(|(flag, _)| segment.flags.has(*flag)).for_each(|(_, name)| text += &format!(" {name}"));
    if windows {
        text += &format!(" win {}", segment.window);
    }
    text
}

fn parse(words: &[&str], stamp: u32, now: Time) -> TcpSegment {
    let mut segment = TcpSegment { window: 1 << 30, echo: stamp, ..TcpSegment::default() };
    segment.timestamp = (now.as_ps() / 1_000_000) as u32;
    let mut words = words.iter().peekable();
    if let Some(range) = words.next_if(|word| word.contains(':')) {
        let (from, to) = pair(range);
        segment.seq = from;
        segment.len = (to - from) as u32;
    }
    while let Some(word) = words.next() {
        match *word {
            "ack" => segment.ack = number(words.next().expect("a number")),
            "win" => segment.window = number(words.next().expect("a number")) as u32,
            "echo" => segment.echo = (span(words.next().expect("a time")).as_ps() / 1_000_000) as u32,
            "sack" => {
                while let Some(block) = words.next_if(|word| word.contains(':')) {
                    let (from, to) = pair(block);
                    push(&mut segment.sack, segment.ack, from, to);
                }
            }
            "ece" => segment.ece = true,
            "cwr" => segment.cwr = true,
            "ect" => segment.ecn = Ecn::Capable,
            "ce" => segment.ecn = Ecn::Experienced,
            other => match FLAGS.iter().find(|(_, name)| *name == other) {
                Some((flag, _)) => segment.flags = segment.flags.with(*flag),
                None => panic!("no such word: {other}"),
            },
        }
    }
    segment
}

fn push(sack: &mut Sack, ack: u64, from: u64, to: u64) {
    let offset = |position: u64| (position as i64 - ack as i64) as i32;
    assert!(sack.push(offset(from), offset(to)), "too many blocks");
}

fn config(line: &str) -> TcpConfig {
    let mut config =
        TcpConfig { mss: 1_000, algorithm: Algorithm::Reno, profile: TimerProfile::rfc(), ..TcpConfig::default() };
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("config"), "a script configures first");
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or_else(|| panic!("key=value, not {word}"));
        match key {
            "mss" => config.mss = number(value) as u32,
            "window" => config.initial_window = number(value) as u32,
            "algorithm" => config.algorithm = value.parse().expect("an algorithm"),
            "profile" if value == "linux" => config.profile = TimerProfile::linux(),
            "profile" if value == "rfc" => config.profile = TimerProfile::rfc(),
            "rto_min" | "ack_delay" | "phase" => tune(&mut config.profile, key, span(value)),
            "handshake" => config.handshake_rtt = Some(span(value)),
            "ecn" => config.ecn = value == "on",
            "kernel" => {
                let kernel = TcpConfig::linux(value.parse().expect("a kernel"));
                config = TcpConfig { mss: config.mss, algorithm: config.algorithm, profile: config.profile, ..kernel };
            }
            "sack" => config.sack = value == "on",
            "timestamps" => config.timestamps = value == "on",
            "detection" if value == "dupacks" => config.detection = LossDetection::DUPACKS,
            "buffer" => config.receive_buffer = number(value),
            "peer_window" | "first_window" | "scale" | "divisor" | "sndbuf" => {
                tune_socket(&mut config, key, number(value))
            }
            "windows" => {}
            "reordering" => config.reordering = if value == "fixed" { Reordering::Fixed } else { Reordering::Adaptive },
            other => panic!("no such setting: {other}"),
        }
    }
    config
}

fn tune_socket(config: &mut TcpConfig, key: &str, value: u64) {
    let socket = config.socket.as_mut().expect("kernel= comes before");
    match key {
        "peer_window" => socket.peer_window = value,
        "first_window" => socket.first_window = value as u32,
        "scale" => socket.window_scale = value as u8,
        "sndbuf" => socket.send_buffer = Some(value),
        _ => socket.tso.window_divisor = value as u32,
    }
}

fn tune(profile: &mut TimerProfile, key: &str, value: Span) {
    match (profile, key) {
        (TimerProfile::Linux { rto_min, .. } | TimerProfile::Rfc { rto_min, .. }, "rto_min") => *rto_min = value,
        (TimerProfile::Linux { phase, .. }, "phase") => *phase = value,
        (TimerProfile::Rfc { max_ack_delay, .. }, "ack_delay") => *max_ack_delay = value,
        (profile, key) => panic!("{profile:?} has no {key}"),
    }
}
