//! Cost of recording: the kernel's own TCP between two namespaces, with a recorder and without, in turn.
//!
//! Processor time is that of the threads of both applications, in which the kernel does most of its work for them, and that
//! of the recorder. On a machine that others use, too, it is more meaningful than rates are.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use linux::SystemError;
use linux::clock::{Clock, thread_time};
use linux::net::{InterfaceAddress, Namespace, Netlink};
use serde::Serialize;
use units::samples::upper_median;

use crate::record::{RecordConfig, RecordSummary, record};

const NAMES: [&str; 2] = ["ev0", "ev1"];
const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];
const PORT: u16 = 7_000;
/// A request or an answer, and a write of a transfer.
const SMALL: usize = 100;
const LARGE: usize = 65_536;
/// Wait until the recorder has its tracepoints.
const SETTLE: Duration = Duration::from_millis(300);

/// Load that both ends make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CostLoad {
    /// One end sends as fast as it can.
    Transfer,
    /// A hundred bytes each way, one after another.
    Requests,
}

/// One measurement.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    packets: f64,
    seconds: f64,
    bytes: f64,
    /// Processor time of both applications, and of the recorder.
    ends: f64,
    recorder: f64,
    missed: u64,
}

/// Medians over the rounds of one load.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CostRow {
    pub load: CostLoad,
    pub rounds: u32,
    /// Packets a second, without a recorder and with one.
    pub packets_per_second: [f64; 2],
    pub bytes_per_second: [f64; 2],
    /// Processor time of both applications for each packet, in nanoseconds.
    pub ends_ns: [f64; 2],
    /// Processor time of the recorder for each packet, in nanoseconds.
    pub recorder_ns: f64,
    /// Packets and events that the recorder did not get, in all rounds.
    pub missed: u64,
}

/// Measures each load in turn, `rounds` times. Needs root.
pub fn measure(rounds: u32, lasts: Duration) -> Result<Vec<CostRow>, SystemError> {
    let ends = [Namespace::new()?, Namespace::new()?];
    connect(&ends)?;
    [CostLoad::Transfer, CostLoad::Requests].map(|load| measure_load(&ends, load, rounds, lasts)).into_iter().collect()
}

fn measure_load(ends: &[Namespace; 2], load: CostLoad, rounds: u32, lasts: Duration) -> Result<CostRow, SystemError> {
    let (mut plain, mut recorded) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        plain.push(run(ends, load, lasts)?);
        recorded.push(with_recorder(ends, load, lasts)?);
    }
    let of = |value: fn(&Sample) -> f64| [median(&plain, value), median(&recorded, value)];
    Ok(CostRow {
        load,
        rounds,
        packets_per_second: of(|sample| sample.packets / sample.seconds),
        bytes_per_second: of(|sample| sample.bytes / sample.seconds),
        ends_ns: of(|sample| 1e9 * sample.ends / sample.packets),
        recorder_ns: median(&recorded, |sample| 1e9 * sample.recorder / sample.packets),
        missed: recorded.iter().map(|sample| sample.missed).sum(),
    })
}

fn median(samples: &[Sample], value: fn(&Sample) -> f64) -> f64 {
    upper_median(&mut samples.iter().map(value).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// A pair of interfaces with an address each, one in each namespace.
fn connect(ends: &[Namespace; 2]) -> Result<(), SystemError> {
    ends[0].with(|| {
        let netlink = Netlink::open()?;
        netlink.add_veth(NAMES[0], NAMES[1])?;
        netlink.set_namespace(netlink.existing_link(NAMES[1])?.index, &ends[1])
    })??;
    for (end, (name, address)) in ends.iter().zip(NAMES.iter().zip(ADDRESSES)) {
        end.with(|| {
            let netlink = Netlink::open()?;
            let index = netlink.existing_link(name)?.index;
            let address = address.parse().map_err(|error| SystemError(format!("{address}: {error}")))?;
            netlink.add_address(index, &InterfaceAddress::new(address, 24))?;
            netlink.set_up(index, true).map_err(SystemError::from)
        })??;
    }
    Ok(())
}

/// Packets that came to either end so far.
fn packets(ends: &[Namespace; 2]) -> Result<u64, SystemError> {
    let mut sum = 0;
    for (end, name) in ends.iter().zip(NAMES) {
        let ports = end.with(|| Netlink::open().and_then(|netlink| netlink.ports()))??;
        sum += ports.iter().find(|port| port.name == name).and_then(|port| port.rx_packets).unwrap_or_default();
    }
    Ok(sum)
}

fn with_recorder(ends: &[Namespace; 2], load: CostLoad, lasts: Duration) -> Result<Sample, SystemError> {
    let out = std::env::temp_dir().join(format!("hitless-cost-{}.pcapng", std::process::id()));
    // Left by an earlier process with this number.
    let _ = fs::remove_file(&out);
    let (stop, stopper) = io::pipe().map_err(|error| SystemError(error.to_string()))?;
    let recorded: Result<(Sample, RecordSummary), SystemError> = thread::scope(|scope| {
        let config = RecordConfig { interface: NAMES[0].to_owned(), out: PathBuf::from(&out), lasts: None };
        let recorder = scope.spawn(move || ends[0].with(|| record(&config, &stop)).map_err(SystemError::from)?);
        thread::sleep(SETTLE);
        let sample = run(ends, load, lasts);
        drop(stopper);
        let summary = recorder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((sample?, summary?))
    });
    let _ = fs::remove_file(&out);
    let (sample, summary) = recorded?;
    let missed = summary.packets_missed + summary.events_missed;
    Ok(Sample { recorder: summary.cpu_seconds, missed, ..sample })
}

fn run(ends: &[Namespace; 2], load: CostLoad, lasts: Duration) -> Result<Sample, SystemError> {
    let failed = |error: io::Error| SystemError(format!("TCP between two namespaces: {error}"));
    let listener = ends[1].with(|| TcpListener::bind((ADDRESSES[1], PORT)))?.map_err(failed)?;
    let before = packets(ends)?;
    let (client, server) = thread::scope(|scope| {
        let server = scope.spawn(|| timed(|| answer(&listener, load)));
        let client = ends[0].with(|| timed(|| ask(load, lasts)));
        (client, server.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let ((seconds, client_time), (bytes, server_time)) = (client?.map_err(failed)?, server.map_err(failed)?);
    let packets = packets(ends)?.saturating_sub(before).max(1) as f64;
    Ok(Sample { packets, seconds, bytes: bytes as f64, ends: client_time + server_time, ..Sample::default() })
}

/// Result of the work, and the processor time that it took.
fn timed<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<(T, f64)> {
    let before = thread_time();
    let result = work()?;
    Ok((result, (thread_time() - before).as_secs_f64()))
}

/// The end that begins; how long it took.
fn ask(load: CostLoad, lasts: Duration) -> io::Result<f64> {
    let mut stream = TcpStream::connect((ADDRESSES[1], PORT))?;
    stream.set_nodelay(true)?;
    let buffer = vec![0; if load == CostLoad::Transfer { LARGE } else { SMALL }];
    let clock = Clock::start();
    while clock.elapsed() < lasts {
        stream.write_all(&buffer)?;
        if load == CostLoad::Requests {
            stream.read_exact(&mut [0; SMALL])?;
        }
    }
    Ok(clock.elapsed().as_secs_f64())
}

/// The end that answers; how many bytes it received.
fn answer(listener: &TcpListener, load: CostLoad) -> io::Result<u64> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; if load == CostLoad::Transfer { LARGE } else { SMALL }];
    let mut bytes = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(bytes),
            got => bytes += got as u64,
        }
        if load == CostLoad::Requests {
            stream.write_all(&buffer)?;
        }
    }
}
