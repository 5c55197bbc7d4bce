//! Logs that are damaged are refused with the place; a replay that differs says so.

#[path = "targets/log.rs"]
mod targets;

use deter::{ConnectionLog, ConnectionRecorder, LogFault, LogHeader, LogLevel, LogSide, record_trial, replay};
use machine::{Machine, Port};
use tcp::{TcpCommand, TcpConfig, TcpConnection, TcpSink};
use units::{Span, Time};

fn header(mss: u32) -> LogHeader {
    let ends = [TcpConfig { mss, ..TcpConfig::default() }; 2];
    LogHeader { level: LogLevel::Times, point: 1, seed: 2, flow: 3, hosts: [4, 5], began: Time::ZERO, ends }
}

/// Ten segments of 1,000 bytes; the first `arrive` at the server, which answers.
fn ten_segments(header: &LogHeader, arrive: u64) -> Vec<u8> {
    let mut recorder = ConnectionRecorder::new(header);
    let config = TcpConfig { mss: 1_000, ..TcpConfig::default() };
    let [mut client, mut server] = [0, 1].map(|_| TcpConnection::new(&config, Time::ZERO));
    let (now, mut sink) = (Time::ZERO + Span::from_us(1), TcpSink::default());
    client.on_command(now, TcpCommand::Send(10_000), &mut sink);
    recorder.command(LogSide::Client, now, TcpCommand::Send(10_000));
    for _ in 0..10 {
        client.pull(now, Port(0), &mut sink);
        recorder.pull(LogSide::Client, now, sink.left.last());
    }
    let mut answers = TcpSink::default();
    for number in 0..arrive {
        server.on_frame(now, Port(0), sink.left[number as usize], &mut answers);
        recorder.frame(LogSide::Server, now, number, None);
        server.pull(now, Port(0), &mut answers);
        recorder.pull(LogSide::Server, now, answers.left.last());
        answers.left.clear();
    }
    recorder.finish()
}

#[test]
fn an_end_that_was_set_otherwise_is_not_exact() {
    let log = ten_segments(&header(1_000), 4);
    assert!(replay(&ConnectionLog::read(&log).unwrap(), &mut ()).unwrap().is_exact());
    let log = ten_segments(&header(999), 4);
    let difference = replay(&ConnectionLog::read(&log).unwrap(), &mut ()).unwrap().difference.unwrap();
    assert_eq!((difference.side, difference.segment, difference.until), (LogSide::Client, 0, 9));
}

#[test]
fn a_frame_that_nobody_sent_is_an_error() {
    let mut recorder = ConnectionRecorder::new(&header(1_000));
    recorder.frame(LogSide::Server, Time::ZERO, 0, None);
    let log = recorder.finish();
    let error = replay(&ConnectionLog::read(&log).unwrap(), &mut ()).unwrap_err();
    assert_eq!(error.fault, LogFault::Segment { side: LogSide::Server, call: 1, number: 0 });
}

#[test]
fn parts_of_two_logs_are_no_log() {
    let [one, other] = [1, 2].map(|seed| record_trial(seed, LogLevel::Times).unwrap());
    for at in 1..one.len().min(other.len()) {
        let mixed = [&one[..at], &other[at..]].concat();
        assert!(mixed == other || ConnectionLog::read(&mixed).is_err(), "from byte {at} on");
    }
    let twice = [one.clone(), one.clone()].concat();
    assert_eq!(ConnectionLog::read(&twice).unwrap_err().at, one.len());
}

#[test]
fn a_log_with_a_wrong_byte_is_refused_or_replayed() {
    let log = record_trial(1, LogLevel::Times).unwrap();
    targets::log(&log);
    for at in 0..log.len() {
        for wrong in [0x01, 0x80, 0xff] {
            let mut changed = log.clone();
            changed[at] ^= wrong;
            targets::log(&changed);
        }
        targets::log(&log[..at]);
    }
}

#[test]
fn another_version_is_refused_by_its_name() {
    let log = ten_segments(&header(1_000), 1);
    let fault = |at: usize| {
        let mut changed = log.clone();
        changed[at] ^= 0x40;
        ConnectionLog::read(&changed).unwrap_err().fault
    };
    assert_eq!(fault(0), LogFault::NotALog);
    assert!(matches!(fault(6), LogFault::Format(_)));
    assert!(matches!(fault(8), LogFault::Behaviour(_)));
}

#[test]
fn times_at_which_sums_would_wrap_are_refused() {
    for began in [1 << 63, u64::MAX] {
        let header = LogHeader { began: Time::from_ps(began), ..header(1_000) };
        let log = ConnectionRecorder::new(&header).finish();
        assert_eq!(ConnectionLog::read(&log).unwrap_err().fault, LogFault::Value("time"));
    }
}

#[test]
fn a_log_that_is_still_written_is_replayed_as_far_as_it_is_there() {
    let mut recorder = ConnectionRecorder::new(&header(1_000));
    let config = TcpConfig { mss: 1_000, ..TcpConfig::default() };
    let (mut client, mut sink) = (TcpConnection::new(&config, Time::ZERO), TcpSink::default());
    client.on_command(Time::ZERO, TcpCommand::Send(10_000), &mut sink);
    recorder.command(LogSide::Client, Time::ZERO, TcpCommand::Send(10_000));
    for _ in 0..20_000 {
        sink.left.clear();
        client.pull(Time::ZERO, Port(0), &mut sink);
        recorder.pull(LogSide::Client, Time::ZERO, sink.left.last());
    }
    let so_far = recorder.take();
    assert_eq!(ConnectionLog::read(&so_far).unwrap_err().fault, LogFault::Cut);
    for cut in [0, 3] {
        let log = ConnectionLog::read_so_far(&so_far[..so_far.len() - cut]).unwrap();
        let result = replay(&log, &mut ()).unwrap();
        assert!(!log.is_complete() && result.is_exact());
        assert_eq!(result.segments, if cut == 0 { 10 } else { 0 });
    }
}
