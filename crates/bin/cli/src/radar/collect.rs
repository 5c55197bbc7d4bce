//! `hitless radar collect`: losses between meters, as they happen.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use bus::collectors::LONGEST_NAME;
use bus::key::OrderKey;
use linux::clock::{Clock, time_of_day};
use linux::poll::{self, Readiness};
use meter::digests::announcer::{AnnounceError, Announcer, CollectorIdentity};
use meter::digests::collector::text::{
    cause_line, json_cause, json_late, json_loss, json_summary, json_trouble, late_line, loss_line, summary_text,
};
use meter::digests::collector::{CollectorEvent, CollectorSummary};
use meter::digests::{Collector, CollectorReports, ReportReceiver, queue};
use units::Timestamp;
use units::{Bytes, StopFlag};

use crate::args::CollectArgs;
use crate::output::{CommandResult, Failure, put, say};

/// Least memory; with less, a few meters with many cells would find no room.
const LEAST_MEMORY: Bytes = Bytes::new(64_000_000);
/// By the thesis's rule a lost packet with so little time to live has expired.
const EXPIRED: u8 = 1;
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Interval at which the collector checks whether it is time to end.
const TICK: Duration = Duration::from_millis(20);

pub(super) fn run(args: &CollectArgs, json: bool) -> CommandResult {
    let until = super::seconds(args.seconds)?;
    let key = super::key(args.key.as_deref())?;
    let memory = memory(args)?;
    let rule = args.causes.rule(EXPIRED).map_err(|error| Failure::Usage(error.to_string()))?;
    let inlet = receiver(&args.listen, args.from.is_some())?.with_connections(args.connections);
    let announcer = announcer(args, &inlet, key.as_ref())?;
    let log = args.log.as_ref().map(|path| {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        opened.map_err(|error| Failure::not_created(format_args!("--log {}", path.display()), &error))
    });
    let mut out = CollectOutput { json, log: log.transpose()?.zip(args.log.as_deref()) };
    let stop = super::stop_on_signal()?;
    say(&format!("waiting for meters at {inlet}; Ctrl-C ends it"));
    let ending = StopFlag::new();
    // A quarter for reports that come in, half for what segments hold, and the rest for the report that is being compared.
    let (put, received) = queue(memory / 4);
    let summaries = std::thread::scope(|scope| {
        let taking = scope.spawn(|| inlet.run(key.as_ref(), &put, &ending, &say));
        let words = received.words();
        let announcing = announcer.as_ref().map(|announcer| scope.spawn(move || announcer.run(&words, &say)));
        let collector = Collector::new(args.ends as usize, u64::from(args.patience), memory / 2).with_rule(rule);
        let shared = announcer.as_ref().map(|announcer| SharedWork { announcer, name: announcer.name(), leaves: None });
        let summaries = compare(collector, &received, &stop, until, &mut out, shared);
        ending.stop();
        announcer.iter().for_each(Announcer::end);
        announcing.map(|announcing| announcing.join());
        let ended = taking.join().unwrap_or(Ok(()));
        ended.map_err(|error| Failure::Outside(error.to_string())).and(summaries)
    })?;
    out.summaries(&summaries, args.top)?;
    if summaries.is_empty() {
        return Err(Failure::Outside("no meter has reported: nothing was compared".to_owned()));
    }
    if summaries.iter().all(|summary| summary.ends.len() < args.ends as usize) {
        return Err(Failure::Outside(format!("no segment was heard of {} ends: nothing was compared", args.ends)));
    }
    Ok(())
}

fn memory(args: &CollectArgs) -> Result<usize, Failure> {
    if args.memory < LEAST_MEMORY {
        return Err(Failure::Usage(format!("--memory {}: expected {LEAST_MEMORY} at least", args.memory)));
    }
    Ok(usize::try_from(args.memory.get()).unwrap_or(usize::MAX))
}

/// Place at which meters are listened to.
pub(super) fn receiver(text: &str, is_announced: bool) -> Result<ReportReceiver, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("--listen {text}: {why}"));
    let address = daemon::options::parse_address(text).ok_or_else(|| wrong(&"expected ADDRESS:PORT, or a port"))?;
    if is_announced && address.ip().is_unspecified() {
        return Err(wrong(&"with --from, give the address at which meters reach this host"));
    }
    ReportReceiver::listen(address).map_err(|error| Failure::Outside(format!("--listen {text}: {error}")))
}

/// This collector's part on the bus, if it is one of several.
fn announcer(args: &CollectArgs, inlet: &ReportReceiver, key: Option<&OrderKey>) -> Result<Option<Announcer>, Failure> {
    let Some(from) = &args.from else {
        return match &args.bus_ca {
            Some(_) => Err(Failure::Usage("--bus-ca: it belongs to --from rediss://…".to_owned())),
            None => Ok(None),
        };
    };
    let place = super::redis("--from", from, args.bus_ca.as_deref())?;
    let name = args.name.clone().unwrap_or_else(super::hostname);
    let is_name =
        !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains(|c: char| c.is_control() || c == ' ');
    if !is_name {
        return Err(Failure::Usage(format!("--name {name:?}: expected 1 to {LONGEST_NAME} characters without spaces")));
    }
    let address = inlet.address().map_err(|error| Failure::Outside(error.to_string()))?.to_string();
    let identity = CollectorIdentity { name, address, patience: u64::from(args.patience) };
    let announcer = Announcer::new(place, key.cloned(), identity);
    match announcer.claim() {
        Ok(()) => Ok(Some(announcer)),
        Err(taken @ AnnounceError::Taken { .. }) => Err(Failure::Usage(taken.to_string())),
        Err(error) => Err(Failure::Outside(error.to_string())),
    }
}

fn compare(
    mut collector: Collector,
    received: &CollectorReports,
    stop: &io::PipeReader,
    until: Option<Duration>,
    out: &mut CollectOutput<'_>,
    mut shared: Option<SharedWork<'_>>,
) -> Result<Vec<CollectorSummary>, Failure> {
    let clock = Clock::start();
    let mut next_look = LOOK_EVERY;
    loop {
        match received.recv_timeout(TICK) {
            Ok(report) => {
                let news = collector.on_received(now(), &report);
                if report.question.is_none() {
                    received.answer(report.life, collector.refusal());
                }
                for question in collector.questions() {
                    // A question that finds no room is not asked: the collector goes on without.
                    let _ = received.ask(question);
                }
                out.news(news)?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                out.news(collector.end())?;
                return Ok(collector.finish());
            }
        }
        if clock.elapsed() >= next_look {
            next_look = clock.elapsed() + LOOK_EVERY;
            out.news(collector.look(now()))?;
            shared.iter().try_for_each(|shared| shared.publish(&collector))?;
        }
        if let Some(shared) = &mut shared
            && let Some(leaves) = shared.leaves
        {
            if clock.elapsed() >= leaves {
                out.news(collector.look(now()))?;
                out.news(collector.end())?;
                return Ok(collector.finish());
            }
            continue;
        }
        let stopped = poll::wait(&[(stop.as_raw_fd(), false)], Duration::ZERO);
        let stopped = stopped.map_err(|error| Failure::Outside(error.to_string()))?;
        if stopped != [Readiness::Nothing] || until.is_some_and(|until| clock.elapsed() >= until) {
            if let Some(shared) = &mut shared {
                shared.leaves = Some(clock.elapsed() + shared.announcer.leave(collector.longest_batch()));
                continue;
            }
            out.news(collector.look(now()))?;
            out.news(collector.end())?;
            return Ok(collector.finish());
        }
    }
}

/// A collector among others.
struct SharedWork<'a> {
    announcer: &'a Announcer,
    name: &'a str,
    /// The time at which the others have taken over.
    leaves: Option<Duration>,
}

impl SharedWork<'_> {
    fn publish(&self, collector: &Collector) -> CommandResult {
        if self.announcer.is_displaced() {
            let name = self.name;
            return Err(Failure::Outside(format!(
                "another collector announces itself as {name}: give each its own --name"
            )));
        }
        self.announcer.publish(collector.findings(now(), self.name));
        Ok(())
    }
}

fn now() -> Timestamp {
    Timestamp(time_of_day().as_nanos() as u64)
}

/// Destination of lines.
struct CollectOutput<'a> {
    json: bool,
    log: Option<(File, &'a Path)>,
}

impl CollectOutput<'_> {
    fn news(&mut self, news: Vec<CollectorEvent>) -> CommandResult {
        for news in news {
            match news {
                CollectorEvent::Lost(lost) => self.line(json_loss(&lost), || loss_line(&lost))?,
                CollectorEvent::Late(late) => self.line(json_late(&late), || late_line(&late))?,
                CollectorEvent::Cause(cause) => self.line(json_cause(&cause), || cause_line(&cause))?,
                CollectorEvent::Heard { segment, end } => say(&format!("{segment}: {end} reports")),
                CollectorEvent::Silent { segment, end } => self.trouble(&format!("{segment}: {end} is silent"))?,
                CollectorEvent::Back { segment, end } => self.trouble(&format!("{segment}: {end} reports again"))?,
                CollectorEvent::Trouble(text) => self.trouble(&text)?,
            }
        }
        Ok(())
    }

    /// A line about a packet, which the log gets, too.
    fn line(&mut self, json: String, text: impl FnOnce() -> String) -> CommandResult {
        if let Some((log, path)) = &mut self.log {
            let failed = |error| Failure::Outside(format!("--log {}: {error}", path.display()));
            writeln!(log, "{json}").map_err(failed)?;
        }
        put(&if self.json { json } else { text() })
    }

    fn trouble(&self, text: &str) -> CommandResult {
        say(text);
        if self.json { put(&json_trouble(text)) } else { Ok(()) }
    }

    fn summaries(&self, summaries: &[CollectorSummary], top: usize) -> CommandResult {
        if self.json {
            return summaries.iter().try_for_each(|summary| put(&json_summary(summary)));
        }
        summaries.iter().try_for_each(|summary| put(summary_text(summary, top).trim_end()))
    }
}
