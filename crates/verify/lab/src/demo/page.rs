//! The story as a page: one file that needs nothing else, for a screen of any width and for paper.

mod charts;

use chart::page::PageFrame;
use chart::svg::escape;
use chart::table::{micros as us, thousands};
use chart::{Data, NOTHING, Palette};
use link::config::LinkMode;
use standin::{HostBackend, WireBackend};

use super::text::{conclusions, gbps};
use super::{DemoCase, DemoPlan, DemoRecovery, DemoResult, DemoRound};

pub fn page(story: &DemoResult, plan: &DemoPlan) -> String {
    let header = format!("<p class=\"lead\">{}</p>\n{}", escape(&summary(story, plan)), conclusion(story));
    let main = [
        section("charts", "Charts", &charts(story, plan)),
        section("medians", "All figures", &medians(story).html()),
        section("rounds", "Each round", &rounds(story).html()),
        section("again", "Run it again", &chart::page::command(&command(story, plan))),
    ]
    .concat();
    PageFrame {
        title: "A corrupting wire, with and without hitless",
        css: include_str!("page/page.css"),
        header: &header,
        main: &main,
        footer: &format!("<h2>How to read this</h2>\n{}", notes(story)),
    }
    .html()
}

fn section(id: &str, heading: &str, body: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{heading}</h2>\n{body}</section>\n")
}

fn charts(story: &DemoResult, plan: &DemoPlan) -> String {
    let mut palette = Palette::default();
    let tail = charts::tail(story).figure("chart-tail", &mut palette);
    let throughput = charts::throughput(story, plan).figure("chart-throughput", &mut palette);
    [tail, throughput, charts::rounds(story, &mut palette)].concat()
}

fn conclusion(story: &DemoResult) -> String {
    let lines = conclusions(story).into_iter().filter(|line| is_told(line));
    let lines: String = lines.map(|line| format!("<li>{}</li>\n", escape(&line))).collect();
    format!("<ul class=\"conclusions\">\n{lines}</ul>\n")
}

/// A ratio with nothing below the line says nothing.
fn is_told(line: &str) -> bool {
    line.split_whitespace().all(|word| word.parse::<f64>().map_or(true, f64::is_finite))
}

fn summary(story: &DemoResult, plan: &DemoPlan) -> String {
    let what = if story.simulated { "Simulated TCP" } else { "This machine's kernel TCP" };
    let rate = story.rate_gbps.map_or("without a rate limit".to_owned(), |rate| format!("of {rate} Gbit/s"));
    let rounds = match (story.completed, plan.rounds) {
        (1, 1) => "1 round".to_owned(),
        (completed, planned) if completed == planned => format!("{completed} rounds"),
        (completed, planned) => format!("{completed} of {planned} rounds (interrupted)"),
    };
    let root = if story.rootless && !story.simulated { ", without root" } else { "" };
    format!(
        "{what} over a wire {rate} that loses {} of all frames each way, unprotected and protected in {} mode: {rounds} of {} \
         requests and {} s of bulk transfer in each case; backend {}{root}.",
        plan.loss,
        plan.mode,
        thousands(u64::from(plan.round_trips)),
        plan.bulk.as_secs_f64(),
        story.backend,
    )
}

/// Command line that repeats the demonstration.
fn command(story: &DemoResult, plan: &DemoPlan) -> String {
    let rate = plan.rate.map_or("none".to_owned(), |rate| rate.to_string());
    let mut command = format!(
        "hitless demo --loss {} --rate {rate} --rounds {} --requests {} --seconds {}",
        plan.loss,
        plan.rounds,
        plan.round_trips,
        plan.bulk.as_secs_f64()
    );
    if plan.mode != LinkMode::Ordered {
        command += &format!(" --mode {}", plan.mode);
    }
    if plan.host != HostBackend::Auto {
        command += &format!(" --backend {}", plan.host);
    }
    if plan.wire != WireBackend::Auto {
        command += &format!(" --wire {}", plan.wire);
    }
    match (story.simulated, story.rootless) {
        (true, _) => command += " --simulated",
        (false, true) => command += " --rootless",
        (false, false) => {}
    }
    command
}

/// A line of the table of medians, a column of the table of rounds.
type DemoTableRow<Of> = (&'static str, fn(&Of) -> String);

fn rows(story: &DemoResult) -> Vec<DemoTableRow<DemoRound>> {
    let mut rows: Vec<DemoTableRow<DemoRound>> = vec![
        ("bulk throughput", |round| told(round.throughput_gbps, gbps)),
        ("bulk throughput at a loss of 1e-2", |round| optional(round.throughput_at_1e2_gbps, gbps)),
        ("p50 of requests", |round| told(round.pingpong_p50_us, us)),
        ("p99 of requests", |round| told(round.pingpong_p99_us, us)),
        ("p99.9 of requests", |round| told(round.pingpong_p999_us, us)),
        ("slowest request", |round| told(round.pingpong_max_us, us)),
        ("requests over 100 ms", |round| thousands(round.over_100ms)),
        ("p50 of requests beside bulk", |round| told(round.pingpong_beside_bulk_p50_us, us)),
        ("frames lost on the wire", |round| thousands(round.wire.dropped)),
        ("frames offered to the wire", |round| thousands(round.wire.offered)),
    ];
    // The simulator has no segments to send again.
    if !story.simulated {
        rows.push(("segments of bulk that TCP sent again", |round| thousands(round.tcp_retransmitted)));
    }
    rows
}

fn told(value: f64, write: fn(f64) -> String) -> String {
    if value.is_finite() { write(value) } else { NOTHING.to_owned() }
}

fn optional(value: Option<f64>, write: fn(f64) -> String) -> String {
    value.map_or(NOTHING.to_owned(), |value| told(value, write))
}

fn medians(story: &DemoResult) -> Data {
    let recoveries: [DemoTableRow<DemoRecovery>; 4] = [
        ("frames recovered", |recovery| thousands(recovery.recovered)),
        ("frames given up", |recovery| thousands(recovery.given_up)),
        ("p50 of a recovery", |recovery| optional(recovery.recovery_p50_us, us)),
        ("p99 of a recovery", |recovery| optional(recovery.recovery_p99_us, us)),
    ];
    let all = DemoCase::ALL.map(|case| story.figures(case));
    let rows = rows(story).into_iter().map(|(name, of)| (name, all.map(|figures| of(&figures.median))));
    let recoveries = recoveries
        .into_iter()
        .map(|(name, of)| (name, all.map(|figures| figures.recovery.as_ref().map_or(NOTHING.to_owned(), of))));
    Data {
        caption: "Medians over rounds, sums of counts".into(),
        names: vec![String::new()],
        values: DemoCase::ALL.map(|case| case.title().to_owned()).to_vec(),
        rows: rows.chain(recoveries).map(|(name, cells)| (vec![name.to_owned()], cells.to_vec())).collect(),
    }
}

fn rounds(story: &DemoResult) -> Data {
    let columns = rows(story);
    let mut data = Data {
        caption: "Figures of each round".into(),
        names: vec!["round".into(), "case".into()],
        values: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        rows: Vec::new(),
    };
    for number in 0..story.completed as usize {
        for case in DemoCase::ALL {
            let Some(round) = story.figures(case).rounds.get(number) else { continue };
            let names = vec![(number + 1).to_string(), case.title().to_owned()];
            data.rows.push((names, columns.iter().map(|(_, of)| of(round)).collect()));
        }
    }
    data
}

fn notes(story: &DemoResult) -> String {
    let counters = if story.simulated {
        "The simulator's own count of the frames of requests and responses. TCP is simulated by its two rules that matter \
         here, its retransmission timer and CUBIC's window, and a bulk transfer comes out alike in every round."
    } else {
        "From the kernel that carries the wire (the statistics of its queueing discipline at both ends of it), not from \
         hitless. A frame that the wire corrupts is dropped there, as the receiving hardware would drop it. Both \
         directions count together, requests and bulk; not the bulk at a loss of 1e-2."
    };
    let unprotected = "TCP straight on the wire. Lost requests wait for its retransmission timer, 200 ms and more.";
    let notes = [
        (DemoCase::Clean.title(), "The same wire without loss: the best that there is to reach."),
        (DemoCase::Corrupting.title(), unprotected),
        (DemoCase::Protected.title(), "The same losses; hitless recovers frames before TCP notices."),
        (
            DemoCase::CleanChain.title(),
            "Called clean_chain in the JSON output: nothing is lost, and frames still go through hitless. What differs from \
             the clean wire with plain TCP is what protection itself costs on this machine.",
        ),
        (
            "medians over rounds",
            "Every round runs all four cases one after the other, so that whatever else the machine does meets all of \
             them alike. Times and throughputs are medians over the rounds, counts are sums, the slowest request is the \
             slowest of all.",
        ),
        ("the wire's counters", counters),
        ("a loss of 1e-2", "Bulk alone once more, at a loss where CUBIC suffers most."),
    ];
    let notes = notes.map(|(term, note)| format!("<dt>{}</dt>\n<dd>{}</dd>\n", escape(term), escape(note))).concat();
    format!("<dl>\n{notes}</dl>\n")
}

#[cfg(test)]
mod tests;
