//! `hitless soak`: real programs through a protected link, for an hour; or bad days, one after the other.

mod faults;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use chart::table::{Align, Table, micros as us, thousands};
use indicatif::{ProgressBar, ProgressStyle};
use lab::soak::{Soak, SoakObserver, SoakPlan, SoakSnapshot, what};
use linux::net::{NetworkPrivilege, become_root_of_own_namespaces};
use units::{Span, StopFlag};

use crate::args::SoakArgs;
use crate::output::{CommandResult, Failure, print, say};
use crate::wire::corruption;

pub(crate) fn run(args: &SoakArgs, json: bool) -> CommandResult {
    if args.faults {
        return faults::run(args, json);
    }
    let plan = plan(args)?;
    let (standing, stop) = begin(args.rootless)?;
    let progress = SoakProgress::new(plan.duration);
    let soak = lab::soak::run(&plan, standing, &stop, &progress);
    progress.bar.finish_and_clear();
    let Some(soak) = soak.map_err(|trouble| Failure::Outside(trouble.0))? else {
        return Err(Failure::Interrupted);
    };
    print(json, &soak, || text(&soak))?;
    match soak.verdicts.iter().filter(|verdict| !verdict.holds).count() {
        _ if !soak.complete => Err(Failure::Interrupted),
        0 => Ok(()),
        faults => Err(Failure::Outside(format!("{faults} of {} do not hold", soak.verdicts.len()))),
    }
}

/// Enters namespaces of our own, and lets Ctrl-C end the soak in an orderly way.
pub(crate) fn begin(rootless: bool) -> Result<(NetworkPrivilege, Arc<StopFlag>), Failure> {
    // Before anything starts a thread: afterwards the kernel refuses it.
    let standing = become_root_of_own_namespaces(rootless)
        .map_err(|error| Failure::Outside(format!("this machine does not let us have network namespaces: {error}")))?;
    let stop = Arc::new(StopFlag::new());
    let handler = Arc::clone(&stop);
    // Programs are started that only we end, so there is no faster way out than this.
    let _ = ctrlc::set_handler(move || handler.stop());
    Ok((standing, stop))
}

fn plan(args: &SoakArgs) -> Result<SoakPlan, Failure> {
    let usage = |key: &str, text: &str, error: units::ParseError| Failure::Usage(format!("--{key} {text}: {error}"));
    let rate = match args.rate.as_str() {
        "none" => None,
        text => Some(text.parse().map_err(|error| usage("rate", text, error))?),
    };
    let duration = duration(args, Duration::from_hours(1))?;
    if args.loss.get() > 0.1 {
        return Err(Failure::Usage(format!("--loss {}: expected at most 0.1, or nothing gets through", args.loss)));
    }
    corruption::model(args.loss, Some(args.burst), None)?;
    Ok(SoakPlan {
        duration,
        loss: args.loss,
        burst: args.burst,
        rate,
        mode: args.mode.parse().map_err(|error| usage("mode", &args.mode, error))?,
        host: args.backend.parse().map_err(|error| usage("backend", &args.backend, error))?,
        queue: args.queue,
        seed: args.seed,
    })
}

fn duration(args: &SoakArgs, default: Duration) -> Result<Duration, Failure> {
    args.duration.map_or(Ok(default), soak_duration)
}

/// Checks the duration that `--for` gives.
pub(crate) fn soak_duration(given: Span) -> Result<Duration, Failure> {
    let duration = Duration::from_nanos(given.as_ps() / 1_000);
    if (Duration::from_secs(5)..=Duration::from_hours(1_000)).contains(&duration) {
        return Ok(duration);
    }
    Err(Failure::Usage(format!("--for {given}: expected 5s to 1000h")))
}

pub(crate) struct SoakProgress {
    pub(crate) bar: ProgressBar,
    terminal: bool,
}

impl SoakProgress {
    pub(crate) fn new(duration: Duration) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(duration.as_secs()) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{elapsed} {wide_bar} {msg}") {
            bar.set_style(style);
        }
        Self { bar, terminal }
    }

    pub(crate) fn advance(&self, elapsed: Duration) {
        self.bar.set_position(elapsed.as_secs());
    }

    pub(crate) fn print(&self, text: &str) {
        if self.terminal { self.bar.println(text) } else { say(text) }
    }
}

impl SoakObserver for SoakProgress {
    fn tick(&self, elapsed: Duration) {
        self.advance(elapsed);
    }

    fn look(&self, look: &SoakSnapshot) {
        self.bar.set_message(format!(
            "lost on the wire {}, recovered {}, given up {}, memory {}",
            thousands(look.wire.dropped),
            thousands(look.recovered),
            look.given_up,
            megabytes(look.resident_bytes),
        ));
    }

    fn remark(&self, text: &str) {
        self.print(text);
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / f64::from(1 << 20))
}

fn text(soak: &Soak) -> String {
    let rate = soak.rate_gbps.map_or("no rate limit".to_owned(), |rate| format!("{rate} Gbit/s"));
    let losses =
        if soak.burst > 1.0 { format!("in bursts of {} frames", soak.burst) } else { "independent".to_owned() };
    let root = if soak.rootless { "without root, " } else { "" };
    let mut text = format!(
        "{:.0} s, loss {} each way {losses}, {rate}, {}, {root}backend {}\n\n{}\n",
        soak.seconds,
        soak.loss,
        soak.mode,
        soak.backend,
        traffic(soak)
    );
    if soak.wire.offered > 0 {
        text += &format!(
            "wire: {} of {} frames lost ({:.2e}), {} found no room\n",
            thousands(soak.wire.dropped),
            thousands(soak.wire.offered),
            soak.wire.dropped as f64 / soak.wire.offered as f64,
            thousands(soak.wire_overflowed + soak.ring_overflow),
        );
    }
    let delay = |delay: Option<f64>| delay.map_or("–".to_owned(), us);
    text += &format!(
        "link: recovered {}, given up {}; a recovery took {} (p50), {} (p99), {} (longest)\n",
        thousands(soak.recovered),
        soak.given_up,
        delay(soak.recovery_p50_us),
        delay(soak.recovery_p99_us),
        delay(soak.recovery_max_us),
    );
    text +=
        &format!("congestion: {} frames were dropped by the queue before the link\n\n", thousands(soak.queue_dropped));
    for verdict in &soak.verdicts {
        text += &format!("{}  {}\n", if verdict.holds { "ok   " } else { "FAULT" }, verdict.because);
    }
    text
}

fn traffic(soak: &Soak) -> Table {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("completed", Align::Right),
        ("MB", Align::Right),
        ("compared", Align::Left),
        ("failed", Align::Right),
        ("p50", Align::Right),
        ("p99.9", Align::Right),
        ("slowest", Align::Right),
    ]);
    let delay = |delay: Option<f64>| delay.map_or(String::new(), us);
    for traffic in &soak.traffic {
        let compared = match (traffic.compared_bytes, traffic.differing, traffic.retransmitted) {
            (0, _, Some(again)) => format!("{} segments sent again", thousands(again)),
            (0, ..) => String::new(),
            (_, 0, _) => "all equal".to_owned(),
            (_, differing, _) => format!("{} DIFFER", thousands(differing)),
        };
        table.row(vec![
            what(traffic.name).to_owned(),
            thousands(traffic.completed),
            thousands(traffic.bytes / 1_000_000),
            compared,
            thousands(traffic.failed),
            delay(traffic.p50_us),
            delay(traffic.p999_us),
            delay(traffic.slowest_us),
        ]);
    }
    table
}
