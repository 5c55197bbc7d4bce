//! The model's answer, as text and JSON.

use chart::table::{Align, Table, thousands};
use collective::model::{CollectiveModel, Remedy, RemedyOutlook};
use serde::Serialize;

use super::compare::RemedyComparison;
use super::{RemedySettings, networks, text};

/// Output of `--json` for the model of a collective.
#[derive(Debug, Serialize)]
pub struct ModelAnswer {
    pattern: String,
    algorithm: String,
    ranks: u32,
    channels: u16,
    pieces: u32,
    size: u64,
    topology: String,
    rate_gbps: f64,
    loss: f64,
    link: String,
    without_loss_us: f64,
    algbw_gbytes: f64,
    busbw_gbytes: f64,
    /// Of an iteration, over the link.
    packets: u64,
    messages: u64,
    open_tails: u64,
    remedies: Vec<RemedyAnswer>,
    /// A simulation of the same, if one was asked for.
    simulated: Option<RemedyComparison>,
}

#[derive(Debug, Serialize)]
pub struct RemedyAnswer {
    remedy: String,
    timeout_us: f64,
    losses: f64,
    timeouts: f64,
    /// Iterations for each timeout; `None` if there are none.
    pub(super) one_stall_in: Option<f64>,
    late_share: f64,
    mean_us: f64,
    /// The mean over that without losses, less 1.
    pub(super) mean_later_share: f64,
    lateness_us: ModelLateness,
}

#[derive(Debug, Serialize)]
struct ModelLateness {
    mean: f64,
    p50: f64,
    p99: f64,
    #[serde(rename = "p99.9")]
    p999: f64,
}

impl ModelAnswer {
    pub fn new(settings: &RemedySettings) -> Result<Self, String> {
        let model = settings.model()?;
        let (shape, load, time) = (settings.shape, model.load(), model.time_us());
        let [algbw_gbytes, busbw_gbytes] = model.bandwidths(time);
        Ok(Self {
            pattern: shape.pattern.to_string(),
            algorithm: shape.algorithm.to_string(),
            ranks: shape.ranks,
            channels: shape.channels,
            pieces: shape.pieces,
            size: shape.size,
            topology: settings.network.to_string(),
            rate_gbps: settings.rate.bits_per_second() as f64 / 1e9,
            loss: settings.loss.get(),
            link: networks::link(settings),
            without_loss_us: time,
            algbw_gbytes,
            busbw_gbytes,
            packets: load.packets,
            messages: load.messages,
            open_tails: load.open_tails,
            remedies: settings.remedies.iter().map(|remedy| RemedyAnswer::new(settings, &model, *remedy)).collect(),
            simulated: None,
        })
    }

    /// Model beside a simulation.
    #[must_use]
    pub fn beside(self, simulated: RemedyComparison) -> Self {
        Self { simulated: Some(simulated), ..self }
    }

    fn of(&self, remedy: Remedy) -> Option<&RemedyAnswer> {
        self.remedies.iter().find(|answer| answer.remedy == remedy.to_string())
    }

    /// The answer in one sentence.
    pub fn sentence(&self) -> String {
        let Self { loss, link, without_loss_us, .. } = self;
        let Some(first) = self.of(Remedy::Nothing).or(self.remedies.first()) else { return String::new() };
        let name = if first.remedy == "none" { String::new() } else { format!("with {} ", first.remedy) };
        let stall = match first.one_stall_in {
            Some(one) => format!("one iteration in {} waits for a timeout of {}", round(one), time(first.timeout_us)),
            None => "no iteration waits for a timeout".into(),
        };
        let later = percent(first.mean_later_share);
        let best = self.remedies.iter().min_by(|a, b| a.mean_us.total_cmp(&b.mean_us));
        let best = best.filter(|best| best.remedy != first.remedy && best.mean_us < first.mean_us);
        let best = best.map(|best| format!("; with {} {}", best.remedy, percent(best.mean_later_share)));
        format!(
            "A loss of {loss} on {link}: {name}{stall}, and an iteration takes {later} longer on average than the {} without \
             losses{}.",
            time(*without_loss_us),
            best.unwrap_or_default()
        )
    }
}

impl RemedyAnswer {
    pub(super) fn new(settings: &RemedySettings, model: &CollectiveModel, remedy: Remedy) -> Self {
        let setting = settings.setting(remedy);
        let outlook = model.outlook(&setting);
        let RemedyOutlook { losses, timeouts, late_share, mean_us, .. } = outlook;
        let time = model.time_us();
        Self {
            remedy: remedy.to_string(),
            timeout_us: setting.timeout.as_us(),
            losses,
            timeouts,
            one_stall_in: (timeouts > 0.0).then(|| timeouts.recip()),
            late_share,
            mean_us,
            mean_later_share: mean_us / time - 1.0,
            lateness_us: ModelLateness {
                mean: mean_us - time,
                p50: outlook.p50_lateness_us,
                p99: outlook.p99_lateness_us,
                p999: outlook.p999_lateness_us,
            },
        }
    }
}

/// The answer for people: a sentence, the premises, a row for each remedy.
pub fn model_text(answer: &ModelAnswer) -> String {
    let ModelAnswer { pattern, algorithm, ranks, packets, messages, open_tails, .. } = answer;
    let mut table = Table::new(&[
        ("remedy", Align::Left),
        ("timeout", Align::Right),
        ("losses", Align::Right),
        ("timeouts", Align::Right),
        ("one stall in", Align::Right),
        ("late", Align::Right),
        ("mean later", Align::Right),
        ("p50 later", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
    ]);
    for row in &answer.remedies {
        table.row(vec![
            row.remedy.clone(),
            time(row.timeout_us),
            small(row.losses),
            small(row.timeouts),
            row.one_stall_in.map_or("-".into(), round),
            percent(row.late_share),
            percent(row.mean_later_share),
            time(row.lateness_us.p50),
            time(row.lateness_us.p99),
            time(row.lateness_us.p999),
        ]);
    }
    let simulated =
        answer.simulated.as_ref().map(|simulated| format!("\n\nsimulated\n{}", text::table(&simulated.remedies)));
    format!(
        "{}\n\n{pattern}, {algorithm}, {ranks} ranks, {} B: {} without losses, {:.1} GB/s on the bus\n\
         {} packets in {} messages cross the link in an iteration; nothing follows {}\n\n{table}\
         losses and timeouts are those that the transport has in an iteration{}",
        answer.sentence(),
        thousands(answer.size),
        time(answer.without_loss_us),
        answer.busbw_gbytes,
        thousands(*packets),
        thousands(*messages),
        if *open_tails == 1 { "the last of them".into() } else { format!("{open_tails} of them") },
        simulated.unwrap_or_default().trim_end(),
    )
}

/// Microseconds in the unit that people would choose.
pub(super) fn time(us: f64) -> String {
    match us {
        0.0 => "0".into(),
        ..1e3 => format!("{us:.1} µs"),
        ..1e6 => format!("{:.1} ms", us / 1e3),
        _ => format!("{:.2} s", us / 1e6),
    }
}

pub(super) fn round(value: f64) -> String {
    let digits = 10_f64.powf((value.log10().floor() - 2.0).max(0.0));
    if value < 1e15 { thousands(((value / digits).round() * digits) as u64) } else { format!("{value:.0e}") }
}

pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".into(),
        percent if percent >= 1_000.0 => format!("{} %", round(percent)),
        percent if percent >= 10.0 => format!("{percent:.0} %"),
        percent if percent >= 0.01 => format!("{percent:.2} %"),
        // Two digits that are not zero.
        percent if percent > 1e-9 => format!("{percent:.0$} %", (1.0 - percent.log10().floor()) as usize),
        _ => "0 %".into(),
    }
}

fn small(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        0.1.. => format!("{value:.2}"),
        _ => format!("{value:.2e}"),
    }
}
