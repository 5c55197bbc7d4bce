//! The values of a claim about one link, as bars.

use crate::experiment::{Experiment, Row, Said};
use chart::{Axis, Bar, BarsChart, Group};

/// Every point beside the paper's; on a logarithmic axis where they are orders of magnitude apart.
pub fn bars(experiment: &Experiment, rows: &[Row]) -> BarsChart {
    let values = rows.iter().filter_map(|row| row.ours).filter(|value| *value > 0.0);
    let (least, most) = values.fold((f64::MAX, 0.0f64), |(least, most), value| (least.min(value), most.max(value)));
    let label = experiment.measure.replace('_', " ");
    let axis = if most > least * 100.0 { Axis::log(label) } else { Axis::linear(label) };
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let (group, bar) = bar(row, &experiment.id);
        match groups.last_mut() {
            Some(last) if last.name == group => last.bars.push(bar),
            _ => groups.push(Group { name: group, bars: vec![bar] }),
        }
    }
    BarsChart { title: format!("{}, ours and the paper's", experiment.title), caption: String::new(), axis, groups }
}

/// `25G.1e-3.ordered` is the bar `ordered` of the group `25G, 1e-3`.
fn bar(row: &Row, claim: &str) -> (String, Bar) {
    let point = row.id.strip_prefix(claim).unwrap_or(&row.id).trim_start_matches('.');
    let (group, name) = point.rsplit_once('.').unwrap_or((point, "ours"));
    let paper = if let Said::Number(value) = row.paper { Some(value) } else { None };
    (group.replace('.', ", "), Bar { name: name.to_owned(), ours: row.ours, paper })
}
