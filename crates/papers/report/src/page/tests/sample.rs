//! A report with every kind of chart, of numbers as they come out of real runs.

use crate::claim::Verdict::{Differs, Match};
use crate::claim::{ClaimResult, PaperValue, PointKind, PointResult, StatementForm, Verdict};
use crate::page::Page;
use chart::{
    Axis, Bar, BarGroup, BarsChart, Chart, Dot, Line, LinesChart, Panel, PointsChart, SeriesChart, Shares, TailChart,
    percent, tail_points, time_us,
};

pub(super) fn sample() -> Page {
    Page {
        title: "LinkGuardian, reproduced".into(),
        lead: "The claims of “Masking Corruption Packet Losses in Datacenter Networks with Link-local Retransmission” \
               (SIGCOMM 2023), run again in simulation on the tofino profile. Every value stands beside the paper’s, \
               with the reason where it differs."
            .into(),
        command: "hitless reproduce linkguardian --scale full --seed 1 --out report.html".into(),
        facts: [
            ("seed", "1"),
            ("scale", "full"),
            ("version", "hitless 0.1.0"),
            ("time taken", "2 h 14 min on 2 cores"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        claims: vec![speed(), timeline(), tails(), goodput(), mechanisms(), endpoints(), loss(), copies()],
    }
}

fn section(id: &str, title: &str, paper: &str, claim: &str) -> ClaimResult {
    ClaimResult {
        id: id.into(),
        title: title.into(),
        claim: claim.into(),
        paper: paper.into(),
        command: format!("hitless reproduce linkguardian/{id} --scale full --seed 1"),
        charts: Vec::new(),
        points: Vec::new(),
        notes: Vec::new(),
        seconds: 94.2,
    }
}

fn row(id: &str, paper: f64, ours: f64, n: u64, verdict: Verdict, why: &str) -> PointResult {
    PointResult {
        id: id.into(),
        kind: PointKind::Claim,
        form: StatementForm::Number,
        paper: PaperValue::Number(paper),
        ours: Some(ours),
        interval: None,
        band: None,
        n,
        verdict,
        why: why.into(),
    }
}

/// Between 0 and 1, without a pattern that could be seen.
fn noise(at: u32) -> f64 {
    f64::from(at.wrapping_mul(2_654_435_761).rotate_left(13).wrapping_mul(2_246_822_519) >> 8) / f64::from(1 << 24)
}

fn speed() -> ClaimResult {
    let losses = [1e-5, 1e-4, 1e-3];
    let line = |name: &str, ours: [f64; 3]| Line::new(name, losses.into_iter().zip(ours).collect());
    let chart = |title: &str, lines| {
        Chart::Lines(LinesChart {
            title: title.into(),
            caption: String::new(),
            x: Axis::log("loss on the wire"),
            y: Axis::linear("effective link speed (% of nominal)").within(0.9, 1.0).written(percent),
            lines,
        })
    };
    let fast = vec![
        line("ordered", [0.9970, 0.9902, 0.9217]).with_paper(vec![(1e-5, 0.998), (1e-4, 0.99), (1e-3, 0.92)]),
        line("non-blocking", [0.9980, 0.9979, 0.9961]).with_paper(vec![(1e-3, 0.9874)]),
    ];
    let slow = vec![line("ordered", [0.998, 0.997, 0.990]), line("non-blocking", [0.998, 0.998, 0.9965])];
    ClaimResult {
        charts: vec![chart("100G", fast), chart("25G", slow)],
        points: vec![
            row("lg.fig8.speed.100G.1e-3.ordered", 0.92, 0.9217, 200_000_000, Match, ""),
            PointResult {
                paper: PaperValue::Words("near full speed".into()),
                ..row("lg.fig8.speed.100G.1e-3.nonblocking", 1.0, 0.9961, 200_000_000, Match, "")
            },
            row("lg.fig8.speed.25G.1e-3.ordered", 1.0, 0.99, 200_000_000, Match, ""),
            row(
                "lg.fig8.speed.25G.1e-4.ordered",
                1.0,
                0.968,
                2_000_000_000,
                Differs,
                "the paper’s figure cannot be read closer than a percent, and its reorder buffer drains at a speed \
                 that it does not state",
            ),
        ],
        ..section(
            "lg.fig8.speed",
            "Effective link speed",
            "Fig. 8, §4.1",
            "Non-blocking keeps nearly full speed; in order, 100G at a loss of 10⁻³ pays about 8 %.",
        )
    }
}

fn timeline() -> ClaimResult {
    const STEPS: u32 = 2_000;
    let time = |step: u32| f64::from(step) * 10.0 / f64::from(STEPS);
    let series = |value: fn(f64, f64) -> f64| -> Vec<(f64, f64)> {
        (0..=STEPS).map(|step| (time(step), value(time(step), noise(step)))).collect()
    };
    let goodput = series(|at, noise| match at {
        ..2.0 => 23.3 + noise * 0.3,
        2.0..5.1 => 4.0 + 5.0 * (at * 7.0).fract() + noise,
        _ => 22.9 + noise * 0.6,
    });
    let queue = series(|at, noise| if (2.0..5.1).contains(&at) { noise.powi(6) * 60.0 } else { 90.0 + noise * 30.0 });
    let buffer = series(|at, noise| if at < 5.1 { 0.0 } else { noise.sqrt() * 52.0 });
    let again = series(|at, noise| if (2.0..5.1).contains(&at) { (noise * 12.0).floor() } else { 0.0 });
    let speed = vec![(0.0, 23.6), (5.1, 23.6), (5.1, 23.35), (10.0, 23.35)];
    let panel = |label: &str, lines| Panel { y: Axis::linear(label), lines };
    let chart = Chart::Series(SeriesChart {
        title: "One DCTCP flow on a 25G link".into(),
        caption: "Loss of 10⁻³ begins at 2 s; protection is switched on three seconds later.".into(),
        time: Axis::linear("time (s)"),
        panels: vec![
            panel(
                "throughput (Gb/s)",
                vec![Line::new("DCTCP", goodput), Line::reference("effective link speed", speed)],
            ),
            panel("queue at the sender switch (KB)", vec![Line::new("queue", queue)]),
            panel("reorder buffer at the receiver switch (KB)", vec![Line::new("buffer", buffer)]),
            panel("end-to-end retransmissions per 5 ms", vec![Line::new("again", again)]),
        ],
        events: vec![(2.0, "loss starts".into()), (5.1, "protection on".into())],
    });
    ClaimResult {
        charts: vec![chart],
        points: vec![
            row("lg.fig9a.unprotected", 6.8, 7.1, 1, Match, ""),
            row("lg.fig9a.protected", 23.4, 23.2, 1, Match, ""),
            row("lg.fig9a.retransmissions", 0.0, 0.0, 1, Match, ""),
        ],
        notes: vec![
            "The time between loss and protection is ours; the paper’s operator switched it on by hand.".into(),
        ],
        ..section(
            "lg.fig9a",
            "A flow under loss, and protected",
            "Fig. 9a, §4.2",
            "Throughput collapses under loss and returns to the effective link speed when protection starts, without \
             end-to-end retransmissions.",
        )
    }
}

/// A sorted sample of flow completion times: `share` of flows wait for a timer.
fn times(base: f64, spread: f64, share: f64, timer: f64) -> Vec<f64> {
    const COUNT: u32 = 300_000;
    let mut times: Vec<f64> = (0..COUNT)
        .map(|at| {
            let late = if noise(at * 2 + 1) < share { timer * (0.9 + 0.3 * noise(at)) } else { 0.0 };
            base - spread * (1.0 - noise(at.wrapping_mul(7) + 3)).max(1e-9).ln() + late
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

fn tail(title: &str, caption: &str, from: f64, shares: Shares, all: &[(&str, Vec<f64>)]) -> TailChart {
    TailChart {
        title: title.into(),
        caption: caption.into(),
        x: Axis::log("flow completion time").written(time_us),
        of: "flows".into(),
        from,
        shares,
        guide: Some(0.999),
        lines: all.iter().map(|(name, sorted)| Line::new(*name, tail_points(sorted, from))).collect(),
    }
}

fn tails() -> ClaimResult {
    let all = [
        ("no loss", times(24.0, 0.9, 0.0, 0.0)),
        ("loss", times(24.0, 0.9, 1.3e-3, 1_200.0)),
        ("ordered", times(24.1, 0.95, 0.0, 0.0)),
        ("non-blocking", times(24.1, 0.95, 2e-5, 60.0)),
    ];
    ClaimResult {
        charts: vec![
            Chart::Tail(tail("The slowest percent", "As in the paper: evenly spaced.", 0.99, Shares::Even, &all)),
            Chart::Tail(tail("The same, by rarity", "", 0.9, Shares::Rarity, &all)),
        ],
        points: vec![
            row("lg.fig10.tcp.gain-p99.9", 51.0, 39.2, 300_000, Differs, "at exactly 10⁻³ the p99.9 is a coin flip"),
            row("lg.fig10.tcp.gain-p99.95", 51.0, 44.0, 300_000, Match, "95 %: 4.1e1 to 4.7e1"),
        ],
        ..section(
            "lg.fig10.tcp",
            "Flows of one packet",
            "Fig. 10, §4.3",
            "Protected flows of 143 B are indistinguishable from flows without loss; unprotected, their 99.9th \
             percentile is 51 times as high.",
        )
    }
}

fn goodput() -> ClaimResult {
    let table = [
        ("none", [9.49, 9.46, 7.2, 1.31].map(Some), [9.49, 9.48, 8.01, 1.46].map(Some)),
        ("Wharf", [None, Some(9.13), Some(9.13), Some(7.9)], [None, Some(9.13), Some(9.13), Some(7.91)]),
        ("LinkGuardian", [9.47, 9.47, 9.47, 9.31].map(Some), [9.47, 9.47, 9.47, 9.2].map(Some)),
    ];
    let group = |(at, name): (usize, &str)| BarGroup {
        name: format!("loss {name}"),
        bars: table
            .iter()
            .map(|(name, ours, paper)| Bar { name: (*name).into(), ours: ours[at], paper: paper[at] })
            .collect(),
    };
    let chart = Chart::Bars(BarsChart {
        title: "Goodput of one CUBIC flow".into(),
        caption: String::new(),
        axis: Axis::linear("goodput (Gb/s) on a 10G link"),
        groups: ["0", "10⁻⁵", "10⁻⁴", "10⁻²"].into_iter().enumerate().map(group).collect(),
    });
    ClaimResult {
        charts: vec![chart],
        points: vec![
            row("lg.tab3.none.1e-4", 8.01, 7.2, 20, Differs, "CUBIC in Linux recovers faster than its paper says"),
            row("lg.tab3.lg.1e-2", 9.2, 9.31, 20, Match, ""),
        ],
        ..section(
            "lg.tab3",
            "Goodput against Wharf",
            "Table 3, §4.5",
            "LinkGuardian costs less than Wharf at every loss.",
        )
    }
}

fn mechanisms() -> ClaimResult {
    let all = [
        ("no loss", times(110.0, 9.0, 0.0, 0.0)),
        ("loss", times(110.0, 9.0, 1.6e-2, 3_500.0)),
        ("ReTx", times(110.0, 9.0, 6e-4, 3_500.0)),
        ("ReTx + Order", times(110.0, 9.0, 4e-4, 3_500.0)),
        ("ReTx + Tail", times(110.0, 9.5, 8e-4, 60.0)),
        ("ReTx + Tail + Order", times(110.0, 9.2, 0.0, 0.0)),
    ];
    let mut chart = tail("Mechanisms added one at a time", "24,387 B flows of DCTCP.", 0.95, Shares::Rarity, &all);
    let percentiles = [0.99, 0.999, 0.9999, 0.99999];
    let paper = |values: [f64; 4]| values.into_iter().zip(percentiles).collect::<Vec<_>>();
    chart.lines[1].paper = paper([169.0, 3_400.0, 4_036.0, 4_160.0]);
    chart.lines[5].paper = paper([156.0, 168.0, 194.0, 236.0]);
    ClaimResult {
        charts: vec![Chart::Tail(chart)],
        points: vec![row("lg.tab2.loss.p99.9", 3_400.0, 3_610.0, 300_000, Match, "")],
        ..section("lg.tab2", "What each mechanism adds", "Table 2, §4.4", "Every mechanism lowers the tail further.")
    }
}

fn endpoints() -> ClaimResult {
    let dot = |(name, x, y): (&str, f64, f64)| Dot { name: name.into(), x: Some(x), y: Some(y) };
    let dots = [
        ("NoLoss", 0.0, 212.0),
        ("None", 0.21, 66_400.0),
        ("NAK", 0.22, 65_900.0),
        ("Twice", 0.25, 65_200.0),
        ("Dummy", 1.9, 64_800.0),
        ("Repeat", 0.3, 66_100.0),
        ("All", 2.1, 248.0),
        ("All Optimized", 2.9, 231.0),
        ("LinkGuardian, ordered", 0.12, 214.0),
        ("LinkGuardian, non-blocking", 0.11, 219.0),
        ("UEC-style retry", 0.31, 226.0),
        ("All over LinkGuardian", 2.0, 213.0),
    ];
    let all = [
        ("NoLoss", times(24.0, 40.0, 0.0, 0.0)),
        ("None", times(24.0, 40.0, 0.06, 66_000.0)),
        ("All", times(24.0, 41.0, 1e-3, 90.0)),
    ];
    let cdf = TailChart { guide: None, ..tail("All flows", "Evenly spaced shares.", 0.0, Shares::Even, &all) };
    let points = PointsChart {
        title: "Tail by cost".into(),
        caption: "Down and to the left is better.".into(),
        x: Axis::linear("bytes on the wire beyond “NoLoss”, %"),
        y: Axis::log("p99.9 of flow completion times").written(time_us),
        dots: dots.map(dot).to_vec(),
    };
    ClaimResult {
        charts: vec![Chart::Points(points), Chart::Tail(cdf)],
        points: vec![row("rc.fig12.all.p99.9", 1.0, 1.17, 300_000, Match, "248 over 212")],
        ..section("rc.fig12", "Recovery at the endpoints", "Fig. 12, §6.2", "All is near NoLoss for less than 3 %.")
    }
}

fn loss() -> ClaimResult {
    let bar = |name: &str, ours: f64, paper: f64| Bar { name: name.into(), ours: Some(ours), paper: Some(paper) };
    let group = |name: &str, bars| BarGroup { name: name.into(), bars };
    let chart = Chart::Bars(BarsChart {
        title: "Loss that remains".into(),
        caption: "No bar: nothing was lost for good in the frames that were run.".into(),
        axis: Axis::log("effective loss"),
        groups: vec![
            group("loss 10⁻⁵", vec![bar("100G ordered", 0.0, 1e-10), bar("100G non-blocking", 1.2e-10, 1e-10)]),
            group("loss 10⁻³", vec![bar("100G ordered", 1.03e-9, 1e-9), bar("100G non-blocking", 0.9e-9, 1e-9)]),
        ],
    });
    ClaimResult {
        charts: vec![chart],
        points: vec![row(
            "lg.fig8.loss.100G.1e-5.ordered",
            1e-10,
            0.0,
            20_000_000_000,
            Match,
            "95 %: 0.0e0 to 1.8e-10",
        )],
        ..section("lg.fig8.loss", "Effective loss", "Fig. 8, §4.1", "Loss falls to what Eq. 2 expects.")
    }
}

fn copies() -> ClaimResult {
    let chart = Chart::Lines(LinesChart {
        title: "Copies by loss".into(),
        caption: String::new(),
        x: Axis::log("loss on the wire"),
        y: Axis::linear("copies"),
        lines: Vec::new(),
    });
    let computed = |id: &str, paper: f64, ours: f64| PointResult { n: 1, ..row(id, paper, ours, 1, Match, "") };
    ClaimResult {
        charts: vec![chart],
        points: vec![computed("lg.copies.1e-5", 1.0, 1.0), computed("lg.copies.1e-3", 2.0, 2.0)],
        seconds: 0.0,
        ..section("lg.copies", "Copies of a retransmission", "Eq. 2", "Two copies at 10⁻³, one below.")
    }
}
