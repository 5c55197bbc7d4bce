//! Iterations as a page: over time, their tail, the accused links, the scenario and the command.

use chart::page::{PageFrame, command};
use chart::svg::escape;
use chart::table::thousands;
use chart::{Axis, Chart, Data, Line, LinesChart, Palette, Shares, TailChart, percent, tail_points, time_us};
use collective::JobOutcome;

use crate::flows::{BlamedLink, CollectiveSummary};

/// Points of a line; more cannot be seen.
const MOST_POINTS: usize = 2_000;
/// Iterations whose times are kept for a tail.
const MOST_TIMES: u64 = 4_000_000;

/// Contents of a page about a job.
#[derive(Clone, Debug, Default)]
pub struct IterationTrace {
    pub name: String,
    /// Iterations that have a row, with their time in microseconds.
    over_time: Vec<(f64, f64)>,
    tail: Vec<(f64, f64)>,
}

impl IterationTrace {
    pub fn of(name: String, job: &JobOutcome) -> Self {
        let rows = &job.rows;
        let step = rows.len().div_ceil(MOST_POINTS).max(1);
        // Of neighbours that cannot be told apart the slowest is drawn.
        let slowest = rows.chunks(step).filter_map(|rows| rows.iter().max_by_key(|row| row.time));
        let over_time = slowest.map(|row| (f64::from(row.iteration), row.time.as_us())).collect();
        let each = job.times.len().div_ceil(MOST_TIMES).max(1);
        let times = job.times.iter();
        let repeated = times.flat_map(|(time, count)| std::iter::repeat_n(time.as_us(), count.div_ceil(each) as usize));
        let mut times: Vec<f64> = repeated.collect();
        times.sort_unstable_by(f64::total_cmp);
        Self { name, over_time, tail: tail_points(&times, 0.5) }
    }
}

/// A job beside others.
#[derive(Debug)]
pub struct PageJob<'a> {
    pub trace: &'a IterationTrace,
    pub summary: &'a CollectiveSummary,
}

/// Other contents of a page.
#[derive(Clone, Copy, Debug)]
pub struct IterationOrigin<'a> {
    /// The answer in one sentence.
    pub answer: &'a str,
    pub command: &'a str,
    pub scenario: &'a str,
}

pub fn iterations_page(jobs: &[PageJob<'_>], origin: IterationOrigin<'_>) -> String {
    let mut palette = Palette::default();
    let main = [
        section("iterations", "Iterations", &over_time(jobs).figure("over-time", &mut palette)),
        section("tail", "The slowest", &tail(jobs).figure("slowest", &mut palette)),
        section("numbers", "Numbers", &numbers(jobs).html()),
        section("links", "Accused links", &accused(jobs)),
        section("again", "Run it again", &again(origin)),
    ]
    .concat();
    PageFrame {
        title: "Iterations of a collective",
        css: "",
        header: &format!("<p class=\"lead\">{}</p>\n", escape(origin.answer)),
        main: &main,
        footer: "<p>An iteration is late if it takes longer than the same one in a run without losses.</p>\n",
    }
    .html()
}

fn section(id: &str, title: &str, body: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{title}</h2>\n{body}</section>\n")
}

fn again(origin: IterationOrigin<'_>) -> String {
    let scenario = escape(origin.scenario);
    format!(
        "{}<details>\n<summary>The scenario</summary>\n<pre><code>{scenario}</code></pre>\n</details>\n",
        command(origin.command)
    )
}

fn over_time(jobs: &[PageJob<'_>]) -> Chart {
    let line = |job: &PageJob<'_>| Line::new(job.trace.name.clone(), job.trace.over_time.clone());
    Chart::Lines(LinesChart {
        title: "Time of iterations".into(),
        caption: "Late iterations and each hundredth other.".into(),
        x: Axis::linear("iteration"),
        y: Axis::log("time").written(time_us),
        lines: jobs.iter().map(line).collect(),
    })
}

fn tail(jobs: &[PageJob<'_>]) -> Chart {
    let line = |job: &PageJob<'_>| Line::new(job.trace.name.clone(), job.trace.tail.clone());
    Chart::Tail(TailChart {
        title: "Tail of the times".into(),
        caption: "Share of iterations that take at most as long.".into(),
        x: Axis::log("time").written(time_us),
        of: "iterations".into(),
        from: 0.5,
        shares: Shares::Rarity,
        guide: Some(0.999),
        lines: jobs.iter().map(line).collect(),
    })
}

fn numbers(jobs: &[PageJob<'_>]) -> Data {
    let us = |us: Option<f64>| us.map_or("–".into(), time_us);
    let row = |job: &PageJob<'_>| {
        let it = job.summary;
        let values = vec![
            thousands(it.complete),
            it.late_share.map_or("–".into(), percent),
            us(it.without_loss_us),
            us(it.time_us.mean),
            us(it.time_us.p50),
            us(it.time_us.p99),
            us(it.time_us.p999),
            us(it.time_us.max),
            thousands(it.losses),
            thousands(it.timeouts),
        ];
        (vec![job.trace.name.clone()], values)
    };
    Data {
        caption: "Iterations".into(),
        names: vec!["job".into()],
        values: ["complete", "late", "without losses", "mean", "p50", "p99", "p99.9", "max", "losses", "timeouts"]
            .map(String::from)
            .to_vec(),
        rows: jobs.iter().map(row).collect(),
    }
}

fn accused(jobs: &[PageJob<'_>]) -> String {
    let rows = jobs.iter().flat_map(|job| job.summary.blamed.iter().take(10).map(move |blamed| (job, blamed)));
    let row = |(job, blamed): (&PageJob<'_>, &BlamedLink)| {
        let names = vec![job.trace.name.clone(), blamed.link.clone().unwrap_or_default(), blamed.cause.clone()];
        (names, vec![thousands(blamed.iterations), percent(blamed.share), time_us(blamed.lateness_us)])
    };
    let data = Data {
        caption: "Late iterations by what held them up".into(),
        names: ["job", "link", "cause"].map(String::from).to_vec(),
        values: ["iterations", "share", "mean lateness"].map(String::from).to_vec(),
        rows: rows.map(row).collect(),
    };
    if data.rows.is_empty() { "<p>No iteration was late.</p>\n".into() } else { data.html() }
}
