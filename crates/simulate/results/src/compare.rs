//! Link protocols side by side: LinkGuardian in both modes and UEC-style go-back-N retry.
//!
//! All on the same simulated link with the same losses, on the `ideal` profile: nothing of a particular
//! switch in it but the 400 ns that a pipeline takes.

use chart::table::{Align, Table, thousands};
use faults::{FaultSchedule, LossModel};
use serde::Serialize;
use sim::link::{ConfigError, LinkSimConfig, LinkSimMode, run};
use units::{Prob, Progress, Rate};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonRow {
    pub rate: String,
    pub loss: f64,
    pub mode: &'static str,
    pub frames: u64,
    pub frames_lost: u64,
    pub effective_loss: f64,
    /// 95 % confidence interval of the effective loss.
    pub effective_loss_interval: (f64, f64),
    pub effective_speed: Option<f64>,
    /// Added to the transit of a frame that nothing happens to.
    pub added_delay_us_p999: f64,
    pub added_delay_us_max: f64,
    pub tx_buffer_peak_bytes: u64,
    pub rx_buffer_peak_bytes: u64,
    pub retransmissions_per_loss: f64,
}

const MODES: [LinkSimMode; 3] = [LinkSimMode::Ordered, LinkSimMode::NonBlocking, LinkSimMode::UecLlr];

/// Each rate with each loss and each protocol, about `events` losses at each. Fewer rows if `progress` ended a
/// run early.
///
/// ```
/// use results::compare::{link_protocols, table};
/// use units::Unwatched;
/// use units::{Prob, Rate};
///
/// let (jobs, seed) = (1, 1);
/// let rows = link_protocols(&[Rate::gbps(100)], &[Prob::literal(1e-3)], 100, jobs, seed, &Unwatched)?;
///
/// assert_eq!(rows.iter().map(|row| row.mode).collect::<Vec<_>>(), ["ordered", "nonblocking", "uec-llr"]);
/// assert!(rows.iter().all(|row| row.frames_lost == 0), "each of them masks the loss");
/// assert!(rows[1].rx_buffer_peak_bytes == 0, "what keeps no order needs no reorder buffer");
/// assert!(rows[2].retransmissions_per_loss > rows[0].retransmissions_per_loss, "go-back-N sends more again");
/// println!("{}", table(&rows));
/// # Ok::<(), sim::link::ConfigError>(())
/// ```
pub fn link_protocols(
    rates: &[Rate],
    losses: &[Prob],
    events: u64,
    jobs: usize,
    seed: u64,
    progress: &(dyn Progress + Sync),
) -> Result<Vec<ComparisonRow>, ConfigError> {
    let mut points = Vec::new();
    for rate in rates {
        for loss in losses {
            points.extend(MODES.map(|mode| (*rate, *loss, mode)));
        }
    }
    progress.expect_parts(points.len());
    let rows = parallel::map(&points, jobs, |(rate, loss, mode)| {
        let config = LinkSimConfig {
            rate: *rate,
            mode: *mode,
            forward: FaultSchedule::always(LossModel::PerFrame(*loss)),
            frames: (events as f64 / loss.get()) as u64,
            seed,
            ..LinkSimConfig::default()
        };
        let outcome = run(&config, progress);
        progress.part_done();
        let outcome = outcome?;
        let Some(transit) = outcome.transit_us.filter(|_| !outcome.interrupted) else { return Ok(None) };
        let (low, high) = units::poisson(outcome.frames_lost);
        let offered = outcome.frames_offered as f64;
        Ok(Some(ComparisonRow {
            rate: rate.to_string(),
            loss: loss.get(),
            mode: mode.name(),
            frames: outcome.frames_offered,
            frames_lost: outcome.frames_lost,
            effective_loss: outcome.effective_loss,
            effective_loss_interval: (low / offered, high / offered),
            effective_speed: outcome.effective_speed,
            added_delay_us_p999: transit.p999 - transit.min,
            added_delay_us_max: transit.max - transit.min,
            tx_buffer_peak_bytes: outcome.tx_buffer_peak_bytes,
            rx_buffer_peak_bytes: outcome.rx_buffer_peak_bytes,
            retransmissions_per_loss: outcome.retransmissions as f64 / outcome.receiver.rx_missing_seq.max(1) as f64,
        }))
    });
    rows.into_iter().filter_map(Result::transpose).collect()
}

pub fn table(rows: &[ComparisonRow]) -> Table {
    let mut table = Table::new(&[
        ("rate", Align::Right),
        ("loss", Align::Right),
        ("protocol", Align::Left),
        ("speed", Align::Right),
        ("effective loss (95 %)", Align::Right),
        ("added delay p99.9", Align::Right),
        ("max", Align::Right),
        ("Tx buffer", Align::Right),
        ("Rx buffer", Align::Right),
        ("sent again per loss", Align::Right),
    ]);
    for row in rows {
        let (low, high) = row.effective_loss_interval;
        let loss = if row.frames_lost == 0 { format!("< {high:.1e}") } else { format!("{low:.1e} .. {high:.1e}") };
        table.row(vec![
            row.rate.clone(),
            format!("{:e}", row.loss),
            row.mode.into(),
            row.effective_speed.map_or("-".into(), |speed| format!("{:.2} %", speed * 100.0)),
            loss,
            format!("{:.2} µs", row.added_delay_us_p999),
            format!("{:.2} µs", row.added_delay_us_max),
            format!("{} B", thousands(row.tx_buffer_peak_bytes)),
            format!("{} B", thousands(row.rx_buffer_peak_bytes)),
            format!("{:.2}", row.retransmissions_per_loss),
        ]);
    }
    table
}
