//! Plan for links that corrupt now.

use chart::table::{Align, Table, thousands};

use crate::plan::{DisableTime, FabricFigures, Plan, ToKeep};

/// Repairs that are listed where nobody asked for explanations.
const FIRST: usize = 20;
/// ToRs that are named one by one.
const NAMED: usize = 5;

/// A loss as people write it.
pub fn loss(loss: f64) -> String {
    format!("{loss:.2e}")
}

/// Text of a plan; with the reason of every choice if `explain` is true.
pub fn plan_text(plan: &Plan, explain: bool) -> String {
    let mut text = String::new();
    if plan.disable.is_empty() && plan.protect.is_empty() && plan.exposed.is_empty() && plan.repair.is_empty() {
        text += "nothing to do: no link is corrupting\n\n";
    }
    let mut part = |title: &str, table: Table| text += &format!("{title}\n{table}\n");
    if !plan.disable.is_empty() {
        part("disable now", disable(plan, explain));
    }
    if !plan.protect.is_empty() {
        part("keep, protected", keep(&plan.protect, explain));
    }
    if !plan.exposed.is_empty() {
        part("keep as they are: a switch cannot protect them", keep(&plan.exposed, explain));
    }
    if !plan.repair.is_empty() {
        part("repair, in this order", repair(plan, explain));
    }
    if !explain && plan.repair.len() > FIRST {
        text += &format!("and {} more; --explain and --json list all\n\n", plan.repair.len() - FIRST);
    }
    text += &figures(&plan.before, &plan.after).to_string();
    if plan.missed > 0.0 {
        text +=
            &format!("\nthe search ended early: no other choice removes more than {} beyond this\n", loss(plan.missed));
    }
    text + &lacking(plan)
}

fn disable(plan: &Plan, explain: bool) -> Table {
    let mut table = Table::new(&columns(&[("link", Align::Left), ("loss", Align::Right)], explain));
    for link in &plan.disable {
        table.row(cells([link.link.clone(), loss(link.loss)], &link.why, explain));
    }
    table
}

fn keep(links: &[ToKeep], explain: bool) -> Table {
    let mut table = Table::new(&columns(
        &[
            ("link", Align::Left),
            ("loss", Align::Right),
            ("copies", Align::Right),
            ("loss then", Align::Right),
            ("speed", Align::Right),
        ],
        explain,
    ));
    for link in links {
        let [copies, left, speed] = match &link.protection {
            Some(protection) => {
                [protection.copies.to_string(), loss(protection.loss), format!("{:.1} %", protection.speed * 100.0)]
            }
            None => ["-", "-", "-"].map(str::to_owned),
        };
        table.row(cells([link.link.clone(), loss(link.loss), copies, left, speed], &link.why, explain));
    }
    table
}

fn repair(plan: &Plan, explain: bool) -> Table {
    let mut table = Table::new(&columns(
        &[
            ("", Align::Right),
            ("link", Align::Left),
            ("loss", Align::Right),
            ("state", Align::Left),
            ("makes room for", Align::Right),
            ("loss removed", Align::Right),
        ],
        explain,
    ));
    let shown = if explain { plan.repair.len() } else { FIRST };
    for (number, repair) in plan.repair.iter().take(shown).enumerate() {
        let state = match repair.when {
            DisableTime::Disabled => "out for repair",
            DisableTime::GoesNow => "goes now",
            DisableTime::Later => "goes later",
            DisableTime::NeedsWindow => "needs a window",
        };
        let (room, removed) = match repair.unlocks.len() {
            0 => ("-".to_owned(), "-".to_owned()),
            links => (links.to_string(), loss(repair.unlocked_penalty)),
        };
        let lost = repair.loss.map_or("-".to_owned(), loss);
        let row = [(number + 1).to_string(), repair.link.clone(), lost, state.to_owned(), room, removed];
        table.row(cells(row, &repair.why, explain));
    }
    table
}

fn columns(columns: &[(&'static str, Align)], explain: bool) -> Vec<(&'static str, Align)> {
    columns.iter().copied().chain(explain.then_some(("why", Align::Left))).collect()
}

fn cells<const N: usize>(cells: [String; N], why: &str, explain: bool) -> Vec<String> {
    cells.into_iter().chain(explain.then(|| why.to_owned())).collect()
}

fn figures(before: &FabricFigures, after: &FabricFigures) -> Table {
    let mut table = Table::new(&[("", Align::Left), ("now", Align::Right), ("then", Align::Right)]);
    let mut row = |name: &str, value: fn(&FabricFigures) -> String| {
        table.row(vec![name.to_owned(), value(before), value(after)]);
    };
    row("penalty", |figures| loss(figures.penalty));
    row("links corrupting", |figures| thousands(figures.corrupting.into()));
    row("  of these protected", |figures| thousands(figures.protected.into()));
    row("links disabled", |figures| thousands(figures.disabled.into()));
    row("least paths of a ToR", |figures| figures.least_paths_per_tor.to_string());
    row("  of all its paths", |figures| format!("{:.2} %", figures.least_share * 100.0));
    row("least capacity of a pod", |figures| format!("{:.2} %", figures.least_pod_capacity * 100.0));
    table
}

fn lacking(plan: &Plan) -> String {
    if plan.lacking.is_empty() {
        return String::new();
    }
    let named = plan.lacking.iter().take(NAMED).map(|room| {
        format!("  {} has {} of {} paths, {} are required\n", room.tor, room.paths, room.of, room.required)
    });
    let more = plan.lacking.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
    format!("\nToRs below the constraint already:\n{}{more}", named.collect::<String>())
}
