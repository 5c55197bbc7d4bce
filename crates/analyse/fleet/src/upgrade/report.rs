//! Order in which to upgrade switches.

use std::io::Write;

use chart::table::{Align, Table, thousands};
use serde::Serialize;

use crate::upgrade::UpgradeCurve;

/// Steps from no upgraded switch to all of them.
pub const UPGRADE_STEPS: usize = 10;

#[derive(Debug, Serialize)]
pub struct UpgradeAnswer {
    pub links: usize,
    pub switches: usize,
    pub constraint: f64,
    pub days: f64,
    pub seeds: Vec<u64>,
    /// The order that pays most first.
    pub orders: Vec<UpgradeCurve>,
}

impl UpgradeAnswer {
    /// A row for every point of every order.
    pub fn csv(&self, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "order,share,switches,links,mean_penalty,area")?;
        for UpgradeCurve { order, points, area } in &self.orders {
            for point in points {
                let (share, switches, links) = (point.share, point.switches, point.links);
                writeln!(out, "{order},{share},{switches},{links},{:e},{area}", point.mean_penalty)?;
            }
        }
        Ok(())
    }

    pub fn text(&self) -> String {
        const SHARES: [&str; UPGRADE_STEPS + 1] =
            ["0 %", "10 %", "20 %", "30 %", "40 %", "50 %", "60 %", "70 %", "80 %", "90 %", "100 %"];
        let mut columns = vec![("order", Align::Left), ("area", Align::Right)];
        columns.extend(SHARES.map(|share| (share, Align::Right)));
        let mut table = Table::new(&columns);
        for UpgradeCurve { order, points, area } in &self.orders {
            let mut cells = vec![order.clone(), format!("{area:.3}")];
            cells.extend(points.iter().map(|point| format!("{:.1e}", point.mean_penalty)));
            table.row(cells);
        }
        let (links, switches) = (thousands(self.links as u64), thousands(self.switches as u64));
        let seeds: Vec<String> = self.seeds.iter().map(u64::to_string).collect();
        format!(
            "{links} links, {switches} switches, {} % of paths to be kept, {:.0} days, seeds {}\n\
             mean penalty by share of switches upgraded; area: mean over all shares, relative to no upgrade\n\n{table}",
            self.constraint * 100.0,
            self.days,
            seeds.join(", "),
        )
    }
}
