//! `hitless radar map`: what is wrong in a fabric, from a recording or from live flow meters.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use bus::collectors::LONGEST_NAME;
use bus::key::OrderKey;
use fleet::Fabric;
use linux::clock::{Clock, time_of_day};
use linux::poll::{self, Readiness};
use meter::digests::announcer::{Announcer, CollectorIdentity};
use meter::digests::{CollectorReports, RedisCollectorAddress, ReportReceiver, queue};
use radar::fabricmap::answer::{MapAnswer, finding_line, json_finding};
use radar::fabricmap::findings::Finding;
use radar::fabricmap::parts::SlotAssembler;
use radar::fabricmap::ports::{FabricPorts, LinkPort, PortLink, PortsError};
use radar::fabricmap::recording::{RecordingError, RecordingReader};
use radar::fabricmap::routes::PortRoutes;
use radar::fabricmap::{FabricMap, FabricMapOptions};
use radar::segment::ReportMarks;
use units::{Bytes, Span, StopFlag, Timestamp};

use crate::args::{FlowReportArgs, MapArgs};
use crate::output::{CommandResult, Failure, put, say};
use crate::results::{check_file, write_file};

const LEAST_MEMORY: Bytes = Bytes::new(64_000_000);
/// Interval at which it is checked whether it is time to end.
const TICK: Duration = Duration::from_millis(20);
/// Refusals that are said, with so long in between.
const REFUSED_EVERY: Duration = Duration::from_secs(1);

pub(super) fn run(args: &MapArgs, json: bool) -> CommandResult {
    let ports = fabric_ports(&args.topology)?;
    let routes = args.routes.as_deref().map(|path| routes(path, &ports)).transpose()?;
    if let Some(path) = &args.html {
        check_file("--html", path)?;
    }
    let nanoseconds = |span: Span| span.as_ps() / 1_000;
    let options = FabricMapOptions {
        way: nanoseconds(args.way),
        clock_error: nanoseconds(args.clock_error),
        patience: args.reports.patience.into(),
        memory: memory(&args.reports)? / 2,
    };
    let mut map = FabricMap::new(ports, routes, options);
    let mut is_interrupted = false;
    match &args.recording {
        Some(path) => is_interrupted = from_recording(path, &mut map, json)?,
        None => {
            let taken = reports(&args.reports)?;
            taken.take(&mut |TakenReport { now, bytes }| {
                let found = map.on_report(Some(now), bytes);
                map.remarks().iter().for_each(|remark| say(remark));
                match found {
                    Ok(news) => tell(&news, json).map(|()| None),
                    Err(refusal) => Ok(Some(refusal)),
                }
            })?;
        }
    }
    let (answer, news) = map.finish();
    tell(&news, json)?;
    conclude(args, &answer, json)?;
    if is_interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

fn conclude(args: &MapArgs, answer: &MapAnswer, json: bool) -> CommandResult {
    if answer.slots == 0 {
        return Err(Failure::Outside("no flow meter has reported: there is nothing to map".to_owned()));
    }
    if let Some(path) = &args.html {
        write_file("--html", path, |out| out.write_all(answer.html().as_bytes()))?;
    }
    if answer.late > 0 {
        say(&format!("{} reports came after their slot was judged: give more --patience", answer.late));
    }
    put(if json { answer.json() } else { answer.text(args.top) }.trim_end())
}

fn tell(news: &[Finding], json: bool) -> CommandResult {
    news.iter().try_for_each(|finding| match json {
        true => put(&json_finding(finding)),
        false => {
            say(&finding_line(finding));
            Ok(())
        }
    })
}

/// Takes the reports of a recording. True if somebody wanted it to end before.
fn from_recording(path: &Path, map: &mut FabricMap, json: bool) -> Result<bool, Failure> {
    let name = path.display();
    let wrong = |error: RecordingError| Failure::Usage(format!("{name}: {error}"));
    let from: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(File::open(path).map_err(|error| Failure::Usage(format!("{name}: {error}")))?),
    };
    let stop = crate::terminal::stop_on_ctrl_c();
    let mut reader = RecordingReader::new(BufReader::new(from)).map_err(wrong)?;
    let mut number = 0_u64;
    while !stop.is_stopped() {
        let report = match reader.next_report() {
            Ok(Some(report)) => report,
            Ok(None) => break,
            Err(error @ RecordingError::CutShort(_)) => {
                say(&format!("{name}: {error}; the map is of those"));
                break;
            }
            Err(error) => return Err(wrong(error)),
        };
        number += 1;
        let news = map.on_report(None, report);
        let news = news.map_err(|refusal| Failure::Usage(format!("{name}: report {number}: {refusal}")))?;
        map.remarks().iter().for_each(|remark| say(&format!("{name}: {remark}")));
        tell(&news, json)?;
    }
    Ok(stop.is_stopped())
}

fn routes(path: &Path, ports: &FabricPorts) -> Result<PortRoutes, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("{}:{why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&format_args!(" {error}")))?;
    PortRoutes::parse(ports, &text).map_err(|error| wrong(&error))
}

/// The switches and links of a topology, with the ports of each link.
pub(super) fn fabric_ports(path: &Path) -> Result<FabricPorts, Failure> {
    let fabric = Fabric::load(path).map_err(|error| Failure::Usage(error.to_string()))?;
    let wrong = |error: PortsError| Failure::Usage(format!("{}: {error}", path.display()));
    let mut links = Vec::new();
    for (number, link) in (0..).zip(fabric.links()) {
        let name = fabric.name(fleet::LinkId(number)).to_string();
        let Some([lower, upper]) = &link.ports else { return Err(wrong(PortsError::NoPort(name))) };
        let end = |switch: fleet::SwitchId, port: &str| LinkPort { switch: switch.index(), port: port.to_owned() };
        let ends = [end(link.lower, lower), end(link.upper, upper)];
        links.push(PortLink { name, ends, rate: link.rate.bits_per_second() });
    }
    let switches = fabric.switches().iter().map(|switch| switch.name.clone()).collect();
    FabricPorts::new(switches, links).map_err(wrong)
}

pub(super) fn memory(args: &FlowReportArgs) -> Result<usize, Failure> {
    if args.memory < LEAST_MEMORY {
        return Err(Failure::Usage(format!("--memory {}: expected {LEAST_MEMORY} at least", args.memory)));
    }
    Ok(usize::try_from(args.memory.get()).unwrap_or(usize::MAX))
}

/// A report, and when it came.
pub(super) struct TakenReport {
    pub now: Timestamp,
    pub bytes: Vec<u8>,
}

/// Reports of live meters.
pub(super) struct FlowReports {
    receiver: ReportReceiver,
    /// How meters find this collector, where it is not by its address.
    announcer: Option<Announcer>,
    key: Option<OrderKey>,
    memory: usize,
    until: Option<Duration>,
}

/// Place from which reports are to be taken.
pub(super) fn reports(args: &FlowReportArgs) -> Result<FlowReports, Failure> {
    let until = super::seconds(args.seconds)?;
    let key = super::key(args.key.as_deref())?;
    let listen = args.listen.as_deref();
    let receiver = super::collect::receiver(listen.unwrap_or("0.0.0.0:0"), listen.is_some() && args.from.is_some())?;
    let from = args.from.as_deref().map(|from| super::redis("--from", from, args.bus_ca.as_deref())).transpose()?;
    let announcer = from.map(|from| announcer(&from.of_flows(), listen, &receiver, key.clone())).transpose()?;
    Ok(FlowReports { receiver, announcer, key, memory: memory(args)?, until })
}

/// Announces this collector, by the host's name if it listens at all addresses.
fn announcer(
    place: &RedisCollectorAddress,
    listen: Option<&str>,
    receiver: &ReportReceiver,
    key: Option<OrderKey>,
) -> Result<Announcer, Failure> {
    let address = receiver.address().map_err(|error| Failure::Outside(error.to_string()))?;
    let (host, port) = (super::hostname(), address.port());
    let address = listen.map_or_else(|| format!("{host}:{port}"), |_| address.to_string());
    let host: String = host.chars().filter(char::is_ascii_graphic).take(LONGEST_NAME - 6).collect();
    let identity = CollectorIdentity { name: format!("{host}-{port}"), address, patience: 1 };
    let announcer = Announcer::new(place.clone(), key, identity);
    announcer.claim().map_err(|error| Failure::Outside(error.to_string()))?;
    Ok(announcer)
}

impl FlowReports {
    /// Takes reports until it is time to end. `on_report` gives the reason if it refuses one.
    pub(super) fn take(
        &self,
        on_report: &mut dyn FnMut(TakenReport) -> Result<Option<String>, Failure>,
    ) -> CommandResult {
        let stop = super::stop_on_signal()?;
        say(&format!("waiting for flow meters at {}; Ctrl-C ends it", self.receiver));
        let ending = StopFlag::new();
        // A quarter for pieces that come in, a quarter for slots that are not whole.
        let (put, received) = queue(self.memory / 4);
        std::thread::scope(|scope| {
            let taking = scope.spawn(|| self.receiver.run(self.key.as_ref(), &put, &ending, &say));
            let words = received.words();
            let announcing = self.announcer.as_ref().map(|announcer| scope.spawn(move || announcer.run(&words, &say)));
            let taken = self.follow(&received, &stop, on_report);
            ending.stop();
            self.announcer.iter().for_each(Announcer::end);
            announcing.map(|announcing| announcing.join());
            let ended = taking.join().unwrap_or(Ok(()));
            ended.map_err(|error| Failure::Outside(error.to_string())).and(taken)
        })
    }

    fn follow(
        &self,
        received: &CollectorReports,
        stop: &io::PipeReader,
        on_report: &mut dyn FnMut(TakenReport) -> Result<Option<String>, Failure>,
    ) -> CommandResult {
        let clock = Clock::start();
        let mut slots = SlotAssembler::new(self.memory / 4);
        let mut refusals = RefusalLog::default();
        loop {
            match received.recv_timeout(TICK) {
                // Around a planned change another collector has it.
                Ok(piece) if !ReportMarks::from_bits(piece.flags).judges => {}
                Ok(piece) => {
                    let now = Timestamp(time_of_day().as_nanos() as u64);
                    let refusal = match slots.on_piece(piece.life, piece.missing, &piece.report) {
                        Ok(None) => None,
                        Ok(Some(bytes)) => on_report(TakenReport { now, bytes })?,
                        Err(why) => Some(why),
                    };
                    received.answer(piece.life, refusal.as_deref());
                    refusals.say(refusal, clock.elapsed());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let stopped = poll::wait(&[(stop.as_raw_fd(), false)], Duration::ZERO);
            let stopped = stopped.map_err(|error| Failure::Outside(error.to_string()))?;
            if stopped != [Readiness::Nothing] || self.until.is_some_and(|until| clock.elapsed() >= until) {
                return Ok(());
            }
        }
    }
}

/// Refusals, which a sender of nonsense causes a hundred times a second.
#[derive(Debug, Default)]
struct RefusalLog {
    next: Duration,
    unsaid: u64,
}

impl RefusalLog {
    fn say(&mut self, refusal: Option<String>, now: Duration) {
        let Some(why) = refusal else { return };
        if now < self.next {
            self.unsaid += 1;
            return;
        }
        self.next = now + REFUSED_EVERY;
        match std::mem::take(&mut self.unsaid) {
            0 => say(&why),
            more => say(&format!("{why} (and {more} more reports before it)")),
        }
    }
}
