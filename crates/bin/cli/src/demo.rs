//! `hitless demo`: the whole story in about a minute.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lab::demo::{DemoCase, DemoObserver, DemoPlan};
use linux::net::become_root_of_own_namespaces;
use units::{Prob, Rate};

use crate::args::DemoArgs;
use crate::output::{CommandResult, Failure, print, say};
use crate::results::{check_file, write_file};
use crate::terminal::stop_on_ctrl_c;

pub(crate) fn run(args: &DemoArgs, json: bool) -> CommandResult {
    let plan = plan(args)?;
    // Before a minute is spent on what could then not be written.
    if let Some(path) = &args.html {
        check_file("--html", path)?;
    }
    // Before anything starts a thread: afterwards the kernel refuses it.
    let standing = if args.simulated { None } else { Some(become_root_of_own_namespaces(args.rootless)) };
    let stop = stop_on_ctrl_c();
    let story = match standing {
        Some(Ok(standing)) => {
            let progress = DemoProgress::new();
            let story = lab::demo::run(&plan, standing, &stop, &progress);
            progress.bar.finish_and_clear();
            story.map_err(|trouble| Failure::Outside(trouble.0))?
        }
        Some(Err(error)) => {
            say(&format!(
                "this machine does not let us have network namespaces ({error}); here is the story simulated"
            ));
            lab::demo::simulate(&plan, &stop)
        }
        None => lab::demo::simulate(&plan, &stop),
    };
    let Some(story) = story else { return Err(Failure::Interrupted) };
    print(json, &story, || lab::demo::text(&story, &plan))?;
    write_page(args.html.as_deref(), || lab::demo::page(&story, &plan))?;
    if stop.is_stopped() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn plan(args: &DemoArgs) -> Result<DemoPlan, Failure> {
    let usage = |key: &str, text: &str, error: units::ParseError| Failure::Usage(format!("--{key} {text}: {error}"));
    let rate = parse_rate(&args.rate)?;
    if !(100..=100_000_000).contains(&args.requests.0) {
        return Err(Failure::Usage(format!("--requests {}: expected 100 to 100M", args.requests.0)));
    }
    if args.loss.get() > 0.1 {
        return Err(Failure::Usage(format!("--loss {}: expected at most 0.1, or nothing gets through", args.loss)));
    }
    Ok(DemoPlan {
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
pub(crate) fn parse_rate(text: &str) -> Result<Option<Rate>, Failure> {
    if text == "none" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error| Failure::Usage(format!("--rate {text}: {error}, or none")))
}

/// Checks the duration of bulk transfers.
pub(crate) fn check_seconds(seconds: f64) -> Result<Duration, Failure> {
    match seconds {
        0.2..=3_600.0 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(Failure::Usage(format!("--seconds {seconds}: expected 0.2 to 3600"))),
    }
}

/// Writes the page of a demonstration if there is to be one, after its result was printed: that stays, whatever becomes of the page.
pub(crate) fn write_page(path: Option<&Path>, page: impl FnOnce() -> String) -> CommandResult {
    let Some(path) = path else { return Ok(()) };
    write_file("--html", path, |out| out.write_all(page().as_bytes()))?;
    say(&format!("charts are in {}", path.display()));
    Ok(())
}

/// Progress of a demonstration, step by step.
pub(crate) struct DemoProgress {
    pub bar: ProgressBar,
    terminal: bool,
}

impl DemoProgress {
    pub(crate) fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal { ProgressBar::new(1) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{elapsed} {wide_bar} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, terminal }
    }

    /// Announces a step; without a terminal, prints `line`.
    pub(crate) fn show(&self, step: u32, steps: u32, text: &str, line: Option<&str>) {
        self.bar.set_length(u64::from(steps));
        self.bar.set_position(u64::from(step));
        self.bar.set_message(text.to_owned());
        if let Some(line) = line.filter(|_| !self.terminal) {
            say(line);
        }
    }

    pub(crate) fn remark(&self, text: &str) {
        if self.terminal { self.bar.println(text) } else { say(text) }
    }
}

impl DemoObserver for DemoProgress {
    fn begin(&self, round: u32, case: DemoCase, what: &str, step: u32, steps: u32) {
        let line = format!("round {round}: {}", case.title());
        let text = format!("{line}, {what}");
        self.show(step, steps, &text, what.starts_with("requests").then_some(&line));
    }

    fn remark(&self, text: &str) {
        self.remark(text);
    }
}
