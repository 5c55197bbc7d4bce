//! `hitless radar collect`: losses between meters, as they happen.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use linux::clock::{Clock, time_of_day};
use linux::poll::{self, Readiness};
use meter::digests::collector::text::{
    cause_line, json_cause, json_late, json_loss, json_summary, json_trouble, late_line, loss_line, summary_text,
};
use meter::digests::collector::{CollectorEvent, CollectorSummary};
use meter::digests::{Collector, CollectorAddress, CollectorReports, ReportReceiver, queue};
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
    let inlet = receiver(args.listen.as_deref(), args.from.as_deref(), args.bus_ca.as_deref())?;
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
        let collector = Collector::new(args.ends as usize, u64::from(args.patience), memory / 2).with_rule(rule);
        let summaries = compare(collector, &received, &stop, until, &mut out);
        ending.stop();
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

/// Place from which reports of meters come.
pub(super) fn receiver(listen: Option<&str>, from: Option<&str>, ca: Option<&Path>) -> Result<ReportReceiver, Failure> {
    if let Some(from) = from {
        return match super::place(from, ca) {
            Ok(CollectorAddress::Redis(place)) => Ok(ReportReceiver::Redis(place)),
            Ok(CollectorAddress::Tcp(text)) => {
                Err(Failure::Usage(format!("--from {text}: expected redis://HOST[:PORT]")))
            }
            Err(why) => Err(Failure::Usage(format!("--from {why}"))),
        };
    }
    let text = listen.unwrap_or_default();
    let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("--listen {text}: {why}"));
    let address = daemon::options::parse_address(text).ok_or_else(|| wrong(&"expected ADDRESS:PORT, or a port"))?;
    ReportReceiver::listen(address).map_err(|error| Failure::Outside(format!("--listen {text}: {error}")))
}

fn compare(
    mut collector: Collector,
    received: &CollectorReports,
    stop: &io::PipeReader,
    until: Option<Duration>,
    out: &mut CollectOutput<'_>,
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
        }
        let stopped = poll::wait(&[(stop.as_raw_fd(), false)], Duration::ZERO);
        let stopped = stopped.map_err(|error| Failure::Outside(error.to_string()))?;
        if stopped != [Readiness::Nothing] || until.is_some_and(|until| clock.elapsed() >= until) {
            out.news(collector.look(now()))?;
            out.news(collector.end())?;
            return Ok(collector.finish());
        }
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
