//! Remedies beside each other, as people read them.

use chart::table::{Align, Table, thousands};
use collective::model::Remedy;

use super::compare::{RemedyComparison, RemedyRun};
use super::model::{percent, round, time};

/// Legend of the columns; its lines fit into a terminal of 100 columns.
const NOTES: &str = "\
late, by: iterations later than the same without losses, and by how much on average over all
stalls: iterations for each timeout, simulated and by the model (-: none)
mean: over that without losses, simulated and by the model";

/// The answer in one sentence.
pub(super) fn sentence(comparison: &RemedyComparison) -> String {
    let RemedyComparison { loss, link, remedies, .. } = comparison;
    let first = remedies.iter().find(|run| run.remedy == Remedy::Nothing).or(remedies.first());
    let Some(first) = first else { return "Interrupted before the first iteration ended.".into() };
    let with = if first.remedy == Remedy::Nothing { String::new() } else { format!(" with {}", first.remedy) };
    let it = &first.collective;
    if let Some(failed) = &it.failed {
        let (at, iterations) = (time(failed.at_us), thousands(it.complete));
        return format!(
            "A loss of {loss} on {link} ends the job{with} at {at}, after {iterations} iterations: {}.",
            failed.cause
        );
    }
    let late = percent(it.late_share.unwrap_or_default());
    let stall = match (it.timeouts, first.model.as_ref().and_then(|model| model.one_stall_in)) {
        (0, Some(expected)) => format!("none waits for a timeout (the model expects one in {})", round(expected)),
        (0, None) => "none waits for a timeout".into(),
        (timeouts, _) => format!("one in {} waits for a timeout", round(it.complete as f64 / timeouts as f64)),
    };
    let best = remedies.iter().filter(|run| run.remedy != first.remedy && later(run) < later(first));
    let best = best.min_by(|a, b| later(a).total_cmp(&later(b)));
    let best = best.map(|best| format!(", with {} {}", best.remedy, percent(later(best))));
    format!(
        "A loss of {loss} on {link} makes {late} of {} iterations late{with}, {stall}, and an iteration takes {} longer on \
         average{}.",
        thousands(it.complete),
        percent(later(first)),
        best.unwrap_or_default()
    )
}

/// Share by which the mean iteration takes longer than without losses.
fn later(run: &RemedyRun) -> f64 {
    let it = &run.collective;
    let ratio = it.time_us.mean.zip(it.without_loss_us).map(|(mean, without)| mean / without - 1.0);
    ratio.unwrap_or_default().max(0.0)
}

/// The answer, the premises, and a row for each remedy, and the links that are blamed.
pub fn describe(comparison: &RemedyComparison) -> String {
    let Some(first) = comparison.remedies.first() else { return comparison.answer.clone() };
    let it = &first.collective;
    let (size, without) = (thousands(it.size), it.without_loss_us.map_or("-".into(), time));
    let busbw = it.busbw_gbytes.zip(it.time_us.mean).zip(it.without_loss_us);
    let busbw = busbw.map_or(0.0, |((busbw, mean), without)| busbw * mean / without);
    let algorithm = it.algorithm.as_deref().unwrap_or("graph");
    let mut out = format!(
        "{}\n\n{}, {algorithm}, {} ranks, {size} B: {without} without losses, {busbw:.1} GB/s on the bus\n\n{}",
        comparison.answer,
        it.pattern,
        it.ranks,
        table(&comparison.remedies)
    );
    for run in &comparison.remedies {
        if let Some(failed) = &run.collective.failed {
            out += &format!("{}: failed at {}: {}\n", run.remedy, time(failed.at_us), failed.transfer);
        } else if run.collective.complete < run.collective.iterations {
            let (complete, all) = (thousands(run.collective.complete), thousands(run.collective.iterations));
            out += &format!("{}: interrupted after {complete} of {all} iterations\n", run.remedy);
        }
    }
    format!("{out}{NOTES}\n--json has more, --scenario prints a file to change, --html draws it")
}

pub(super) fn table(runs: &[RemedyRun]) -> Table {
    let mut table = Table::new(&[
        ("remedy", Align::Left),
        ("late", Align::Right),
        ("by", Align::Right),
        ("p99.9", Align::Right),
        ("max", Align::Right),
        ("losses", Align::Right),
        ("one stall in", Align::Right),
        ("model", Align::Right),
        ("mean", Align::Right),
        ("model", Align::Right),
        ("blamed", Align::Left),
    ]);
    for run in runs {
        let it = &run.collective;
        let us = |us: Option<f64>| us.map_or("-".into(), time);
        let stalls = (it.timeouts > 0).then(|| round(it.complete as f64 / it.timeouts as f64));
        let model = run.model.as_ref();
        let blamed = it.blamed.first().map_or("-".into(), |blamed| {
            let link = blamed.link.as_deref().unwrap_or("no link");
            format!("{link}, {} ({})", blamed.cause, percent(blamed.share))
        });
        table.row(vec![
            run.remedy.to_string(),
            it.late_share.map_or("-".into(), percent),
            us(it.lateness_us.mean),
            us(it.lateness_us.p999),
            us(it.lateness_us.max),
            thousands(it.losses),
            stalls.unwrap_or("-".into()),
            model.and_then(|model| model.one_stall_in).map_or("-".into(), round),
            format!("+{}", percent(later(run))),
            model.map_or("-".into(), |model| format!("+{}", percent(model.mean_later_share.max(0.0)))),
            blamed,
        ]);
    }
    table
}
