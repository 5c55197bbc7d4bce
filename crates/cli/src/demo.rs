//! `hitless demo`: the whole story in about a minute.

mod page;
mod simulated;
mod story;

use std::fs;
use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lab::demo::{Case, Plan, Story, Watch};
use linux::net::become_root_of_own_namespaces;
use units::{Prob, Rate};

use crate::args::DemoArgs;
use crate::output::{Done, Failure, print, say};
use crate::terminal::stop_on_ctrl_c;

pub fn run(args: &DemoArgs, json: bool) -> Done {
    let plan = plan(args)?;
    // Before a minute is spent on what could then not be written.
    if let Some(path) = &args.html {
        fs::File::create(path).map_err(|error| Failure::Usage(format!("--html {}: {error}", path.display())))?;
    }
    // Before anything starts a thread: afterwards the kernel refuses it.
    let standing = if args.simulated { None } else { Some(become_root_of_own_namespaces(args.rootless)) };
    let stop = stop_on_ctrl_c();
    let story = match standing {
        Some(Ok(standing)) => {
            let progress = Progress::new();
            let story = lab::demo::run(&plan, standing, &stop, &progress);
            progress.bar.finish_and_clear();
            story.map_err(|trouble| Failure::Outside(trouble.0))?
        }
        Some(Err(error)) => {
            say(&format!(
                "this machine does not let us have network namespaces ({error}); here is the story simulated"
            ));
            simulated::run(&plan, &stop)
        }
        None => simulated::run(&plan, &stop),
    };
    let Some(story) = story else { return Err(Failure::Interrupted) };
    if let Some(path) = &args.html {
        fs::write(path, page::page(&story, &plan))
            .map_err(|error| Failure::Usage(format!("--html {}: {error}", path.display())))?;
    }
    print(json, &story, || story::text(&story, &plan))?;
    if let Some(path) = &args.html {
        say(&format!("charts are in {}", path.display()));
    }
    if stop.load(Ordering::SeqCst) { Err(Failure::Interrupted) } else { Ok(()) }
}

fn plan(args: &DemoArgs) -> Result<Plan, Failure> {
    let usage = |key: &str, text: &str, error: units::ParseError| Failure::Usage(format!("--{key} {text}: {error}"));
    let rate = parse_rate(&args.rate)?;
    if !(100..=100_000_000).contains(&args.requests.0) {
        return Err(Failure::Usage(format!("--requests {}: expected 100 to 100M", args.requests.0)));
    }
    if args.loss.get() > 0.1 {
        return Err(Failure::Usage(format!("--loss {}: expected at most 0.1, or nothing gets through", args.loss)));
    }
    Ok(Plan {
        loss: args.loss,
        heavy_loss: Prob::literal(1e-2),
        rate,
        rounds: args.rounds,
        round_trips: args.requests.0 as u32,
        bulk: check_seconds(args.seconds)?,
        mode: args.mode.parse().map_err(|error| usage("mode", &args.mode, error))?,
        host: args.backend.parse().map_err(|error| usage("backend", &args.backend, error))?,
        wire: args.wire.parse().map_err(|error| usage("wire", &args.wire, error))?,
    })
}

/// A rate, or `none` for as fast as the machine is.
pub fn parse_rate(text: &str) -> Result<Option<Rate>, Failure> {
    if text == "none" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error| Failure::Usage(format!("--rate {text}: {error}, or none")))
}

/// How long bulk transfers take.
pub fn check_seconds(seconds: f64) -> Result<Duration, Failure> {
    match seconds {
        0.2..=3_600.0 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(Failure::Usage(format!("--seconds {seconds}: expected 0.2 to 3600"))),
    }
}

/// What a case is called in text.
pub fn title(case: Case) -> &'static str {
    match case {
        Case::Clean => "clean wire, plain TCP",
        Case::Corrupting => "corrupting wire, plain TCP",
        Case::Protected => "corrupting wire, hitless",
        Case::CleanChain => "clean wire, hitless",
    }
}

struct Progress {
    bar: ProgressBar,
    terminal: bool,
}

impl Progress {
    fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(1) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{elapsed} {wide_bar} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, terminal }
    }
}

impl Watch for Progress {
    fn begin(&self, round: u32, case: Case, what: &str, step: u32, steps: u32) {
        self.bar.set_length(u64::from(steps));
        self.bar.set_position(u64::from(step));
        self.bar.set_message(format!("round {round}: {}, {what}", title(case)));
        if !self.terminal && what.starts_with("requests") {
            say(&format!("round {round}: {}", title(case)));
        }
    }

    fn remark(&self, text: &str) {
        if self.terminal { self.bar.println(text) } else { say(text) }
    }
}

/// Microseconds as people read them.
pub fn us(delay: f64) -> String {
    match delay {
        us if us < 1e3 => format!("{us:.0} µs"),
        us if us < 1e5 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.0} ms", us / 1e3),
    }
}

pub fn gbps(rate: f64) -> String {
    format!("{rate:.3} Gbit/s")
}

/// How the story ends, in one line for each claim that it makes.
pub fn conclusions(story: &Story) -> Vec<String> {
    let (corrupting, protected) = (&story.corrupting.median, &story.protected.median);
    let mut lines = vec![format!(
        "p99.9 of requests: {} without protection, {} with it: {:.0} times lower",
        us(corrupting.pingpong_p999_us),
        us(protected.pingpong_p999_us),
        corrupting.pingpong_p999_us / protected.pingpong_p999_us
    )];
    if let (Some(plain), Some(guarded)) = (corrupting.throughput_at_1e2_gbps, protected.throughput_at_1e2_gbps)
        && plain > 0.0
    {
        lines.push(format!(
            "bulk at a loss of 1e-2: {} without protection, {} with it: {:.1} times as much",
            gbps(plain),
            gbps(guarded),
            guarded / plain
        ));
    }
    if let Some(recovery) = &story.protected.recovery {
        lines.push(format!(
            "recovered {}, given up {}; a recovery took {} (p50), {} (p99)",
            chart::table::thousands(recovery.recovered),
            recovery.given_up,
            recovery.recovery_p50_us.map_or("–".to_owned(), us),
            recovery.recovery_p99_us.map_or("–".to_owned(), us),
        ));
    }
    lines
}
