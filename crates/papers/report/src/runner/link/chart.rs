//! The values of a claim about one link, as bars.

use crate::claim::{Claim, PointResult};
use chart::{Axis, Bar, BarGroup, BarsChart};

/// Every point beside the paper's; on a logarithmic axis where they are orders of magnitude apart.
pub(super) fn bars(claim: &Claim, points: &[PointResult]) -> BarsChart {
    let values = points.iter().filter_map(|point| point.ours).filter(|value| *value > 0.0);
    let (least, most) = values.fold((f64::MAX, 0.0f64), |(least, most), value| (least.min(value), most.max(value)));
    let label = claim.measure.as_deref().unwrap_or_default().replace('_', " ");
    let axis = if most > least * 100.0 { Axis::log(label) } else { Axis::linear(label) };
    let mut groups: Vec<BarGroup> = Vec::new();
    for point in points {
        let (group, bar) = bar(point, &claim.id);
        match groups.last_mut() {
            Some(last) if last.name == group => last.bars.push(bar),
            _ => groups.push(BarGroup { name: group, bars: vec![bar] }),
        }
    }
    BarsChart { title: format!("{}, ours and the paper's", claim.title), caption: String::new(), axis, groups }
}

/// `25G.1e-3.ordered` is the bar `ordered` of the group `25G, 1e-3`.
fn bar(result: &PointResult, claim: &str) -> (String, Bar) {
    let point = result.id.strip_prefix(claim).unwrap_or(&result.id).trim_start_matches('.');
    let (group, name) = point.rsplit_once('.').unwrap_or((point, "ours"));
    (group.replace('.', ", "), Bar { name: name.to_owned(), ours: result.ours, paper: result.paper.number() })
}
