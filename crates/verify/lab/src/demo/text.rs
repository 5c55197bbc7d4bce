//! The story as text: a table and a small chart.

use chart::table::{Align, Table, micros as us, thousands};

use super::{DemoCase, DemoPlan, DemoResult};

pub fn text(story: &DemoResult, plan: &DemoPlan) -> String {
    let rate = plan.rate.map_or("no rate limit".to_owned(), |rate| format!("{rate}bit/s"));
    let where_ = match (story.simulated, story.rootless) {
        (true, _) => "simulated".to_owned(),
        (false, true) => format!("without root, backend {}", story.backend),
        (false, false) => format!("backend {}", story.backend),
    };
    let rounds = if story.completed == 1 { "1 round".to_owned() } else { format!("{} rounds", story.completed) };
    let mut text = format!("loss {} each way, {rate}, {rounds}, {where_}\n\n{}\n", plan.loss, table(story));
    text += "round trips of requests, on a logarithmic scale from 10 µs to 1 s:\n";
    for case in DemoCase::ALL {
        text += &bar(story, case);
    }
    text += "\n";
    for line in conclusions(story) {
        text += &format!("{line}\n");
    }
    text
}

fn table(story: &DemoResult) -> Table {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("bulk", Align::Right),
        ("at 1e-2", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("> 100 ms", Align::Right),
        ("p50 beside bulk", Align::Right),
        ("frames lost on the wire", Align::Right),
    ]);
    for case in DemoCase::ALL {
        let round = &story.figures(case).median;
        table.row(vec![
            case.title().to_owned(),
            gbps(round.throughput_gbps),
            round.throughput_at_1e2_gbps.map_or(String::new(), gbps),
            us(round.pingpong_p50_us),
            us(round.pingpong_p99_us),
            us(round.pingpong_p999_us),
            thousands(round.over_100ms),
            us(round.pingpong_beside_bulk_p50_us),
            format!("{} of {}", thousands(round.wire.dropped), thousands(round.wire.offered)),
        ]);
    }
    table
}

/// Bar with the median, the 99th and the 99.9th percentile: `o`, `+` and `#`.
fn bar(story: &DemoResult, case: DemoCase) -> String {
    const WIDTH: usize = 50;
    let round = &story.figures(case).median;
    let place = |us: f64| (((us / 10.0).log10() / 5.0).clamp(0.0, 1.0) * (WIDTH - 1) as f64) as usize;
    let mut line = vec!['·'; WIDTH];
    let last = place(round.pingpong_p999_us);
    line[..last].fill('─');
    line[last] = '#';
    line[place(round.pingpong_p99_us).min(last)] = if place(round.pingpong_p99_us) == last { '#' } else { '+' };
    let median = place(round.pingpong_p50_us);
    line[median] = if median == last { '#' } else { 'o' };
    let line: String = line.into_iter().collect();
    format!("  {:<27} {line} {}\n", case.title(), us(round.pingpong_p999_us))
}

pub(super) fn gbps(rate: f64) -> String {
    format!("{rate:.3} Gbit/s")
}

/// Conclusions of the demonstration, one line for each claim that it makes.
pub(super) fn conclusions(story: &DemoResult) -> Vec<String> {
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
            thousands(recovery.recovered),
            recovery.given_up,
            recovery.recovery_p50_us.map_or("–".to_owned(), us),
            recovery.recovery_p99_us.map_or("–".to_owned(), us),
        ));
    }
    lines
}
