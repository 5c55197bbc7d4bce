//! The story as a page: one file that needs nothing else, for a screen of any width and for paper.

mod chart;

use live::config::{HostBackend, Mode, WireBackend};
use live::demo::{Case, Plan, Recovery, Round, Story};
use report::svg::{Svg, escape};
use report::table::thousands;

use super::{conclusions, gbps, title, us};

const CSS: &str = include_str!("page/page.css");

pub fn page(story: &Story, plan: &Plan) -> String {
    let title = "A corrupting wire, with and without hitless";
    let conclusions: String = conclusions(story)
        .iter()
        .filter(|line| is_told(line))
        .map(|line| format!("<li>{}</li>\n", escape(line)))
        .collect();
    let charts = [
        figure(
            "The tail of round trips",
            "All requests of all rounds; each line ends at its slowest request. Both axes are logarithmic.",
            &chart::tail(story),
        ),
        figure("Bulk throughput", "One TCP flow (CUBIC); medians over rounds.", &chart::throughput(story, plan)),
        figure(
            "Round by round",
            "A dot is one round's 99.9th percentile; the stroke is their median. The axis is logarithmic.",
            &chart::rounds(story),
        ),
    ]
    .concat();
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="hitless {version}">
<title>{title}</title>
<style>
{CSS}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{summary}</p>
</header>
<main>
<ul class="conclusions">
{conclusions}</ul>
{charts}<section>
<h2>All figures</h2>
{medians}</section>
<section>
<h2>Each round</h2>
{rounds}</section>
<section>
<h2>Run it again</h2>
<pre><code><span>{command}</span></code></pre>
</section>
</main>
<footer>
<h2>How to read this</h2>
{notes}</footer>
</body>
</html>
"#,
        version = env!("CARGO_PKG_VERSION"),
        summary = escape(&summary(story, plan)),
        medians = medians(story),
        rounds = rounds(story),
        // An option stays with its value where lines break.
        command = escape(&command(story, plan)).replace(" --", "</span> <span>--"),
        notes = notes(story),
    )
}

/// A ratio with nothing below the line says nothing.
fn is_told(line: &str) -> bool {
    line.split_whitespace().all(|word| word.parse::<f64>().map_or(true, f64::is_finite))
}

fn summary(story: &Story, plan: &Plan) -> String {
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

/// What to type for the same again.
fn command(story: &Story, plan: &Plan) -> String {
    let rate = plan.rate.map_or("none".to_owned(), |rate| rate.to_string());
    let mut command = format!(
        "hitless demo --loss {} --rate {rate} --rounds {} --requests {} --seconds {}",
        plan.loss,
        plan.rounds,
        plan.round_trips,
        plan.bulk.as_secs_f64()
    );
    if plan.mode != Mode::Ordered {
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

fn figure(heading: &str, caption: &str, chart: &Svg) -> String {
    format!(
        "<section>\n<h2>{heading}</h2>\n<figure>\n<figcaption>{caption}</figcaption>\n{chart}</figure>\n</section>\n"
    )
}

const NOTHING: &str = "–";

/// A line of the table of medians, a column of the table of rounds.
type Row<Of> = (&'static str, fn(&Of) -> String);

fn rows(story: &Story) -> Vec<Row<Round>> {
    let mut rows: Vec<Row<Round>> = vec![
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

fn medians(story: &Story) -> String {
    let recoveries: [Row<Recovery>; 4] = [
        ("frames recovered", |recovery| thousands(recovery.recovered)),
        ("frames given up", |recovery| thousands(recovery.given_up)),
        ("p50 of a recovery", |recovery| optional(recovery.recovery_p50_us, us)),
        ("p99 of a recovery", |recovery| optional(recovery.recovery_p99_us, us)),
    ];
    let all = Case::ALL.map(|case| story.figures(case));
    let rows = rows(story).into_iter().map(|(name, of)| (name, all.map(|figures| of(&figures.median))));
    let recoveries = recoveries
        .into_iter()
        .map(|(name, of)| (name, all.map(|figures| figures.recovery.as_ref().map_or(NOTHING.to_owned(), of))));
    let body = rows.chain(recoveries).map(|(name, cells)| line(&[name], &cells)).collect();
    table("medians", "Medians over rounds, sums of counts", &[""], &Case::ALL.map(title), body)
}

fn rounds(story: &Story) -> String {
    let rows = rows(story);
    let mut body = String::new();
    for number in 0..story.completed as usize {
        for case in Case::ALL {
            let Some(round) = story.figures(case).rounds.get(number) else { continue };
            let cells: Vec<String> = rows.iter().map(|(_, of)| of(round)).collect();
            body += &line(&[&(number + 1).to_string(), title(case)], &cells);
        }
    }
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    table("rounds", "Figures of each round", &["round", "case"], &names, body)
}

fn line(heads: &[&str], cells: &[String]) -> String {
    let heads: String =
        heads.iter().map(|head| format!(r#"<th scope="row" class="left">{}</th>"#, escape(head))).collect();
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
    format!("<tr>{heads}{cells}</tr>\n")
}

/// Wider than a small screen, so it scrolls within a box of its own, which a keyboard can reach.
fn table(class: &str, label: &str, left: &[&str], right: &[&str], body: String) -> String {
    let head = |class: &str, name: &&str| match *name {
        "" => "<td></td>".to_owned(),
        name => format!(r#"<th scope="col"{class}>{}</th>"#, escape(name)),
    };
    let left: String = left.iter().map(|name| head(r#" class="left""#, name)).collect();
    let right: String = right.iter().map(|name| head("", name)).collect();
    format!(
        r#"<div class="box {class}" role="region" aria-label="{label}" tabindex="0">
<table class="{class}">
<thead><tr>{left}{right}</tr></thead>
<tbody>
{body}</tbody>
</table>
</div>
"#
    )
}

fn notes(story: &Story) -> String {
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
        (title(Case::Clean), "The same wire without loss: the best that there is to reach."),
        (title(Case::Corrupting), unprotected),
        (title(Case::Protected), "The same losses; hitless recovers frames before TCP notices."),
        (
            title(Case::CleanChain),
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
