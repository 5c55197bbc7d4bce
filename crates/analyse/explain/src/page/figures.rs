//! Charts of one connection: sequence over time with its stalls behind it, and windows.

use chart::svg::{Anchor, Svg, escape};
use chart::{Area, Axis, Chart, Line, LinesChart, Palette, Scale, Style, WIDTH};

use crate::connection::ConnectionSummary;
use crate::terms::{EndSide, TimeCause};
use crate::trace::{ConnectionTrace, StreamTrace, TraceLine};

/// Stalls lie behind the lines.
pub(super) const CSS: &str = "svg .stall { fill: var(--c); opacity: 0.28; }\n\
    ul.causes { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0 1rem; font-size: 0.9rem; }\n\
    ul.causes span { display: inline-block; width: 0.9em; height: 0.9em; margin-right: 0.3em; background: var(--c); opacity: 0.5; }\n";

const TOP: f64 = 22.0;
const BOTTOM: f64 = TOP + 200.0;
const LEFT: f64 = 48.0;

pub(super) fn figures(summary: &ConnectionSummary, id: &str, palette: &mut Palette) -> String {
    let Some(trace) = &summary.trace else { return String::new() };
    let mut html = String::new();
    // One point is no line.
    for side in [EndSide::Client, EndSide::Server] {
        if trace.stream(side).sent.points().len() > 1 {
            html += &sequence(summary, trace, side, &format!("{id}-{}-sequence", side.name()), palette);
            html += &windows(summary, trace.stream(side), side, &format!("{id}-{}-windows", side.name()), palette);
        }
    }
    html
}

/// Milliseconds since the beginning of the connection.
fn millis(summary: &ConnectionSummary, at: u64) -> f64 {
    at.saturating_sub(summary.start) as f64 / 1e6
}

fn points(summary: &ConnectionSummary, line: &TraceLine) -> Vec<(f64, f64)> {
    line.points().iter().map(|point| (millis(summary, point.at), point.bytes as f64 / 1e3)).collect()
}

/// Causes of its stalls, each with a style.
fn stall_styles(summary: &ConnectionSummary, palette: &mut Palette) -> Vec<(TimeCause, Style)> {
    let mut causes: Vec<TimeCause> = summary.stalls.iter().map(|stall| stall.cause).collect();
    causes.sort();
    causes.dedup();
    let styles = palette.styles(causes.iter().map(|cause| cause.name()));
    causes.into_iter().zip(styles).collect()
}

fn sequence(
    summary: &ConnectionSummary,
    trace: &ConnectionTrace,
    side: EndSide,
    id: &str,
    palette: &mut Palette,
) -> String {
    let stream = trace.stream(side);
    let (sent, acknowledged) = (points(summary, &stream.sent), points(summary, &stream.acknowledged));
    let again = points(summary, &stream.again);
    let area = Area { left: LEFT, right: WIDTH - 12.0, top: TOP, bottom: BOTTOM };
    let last = (summary.duration as f64 / 1e6).max(1e-3);
    let time = Axis::linear("ms since the beginning").within(0.0, last);
    let bytes = Axis::linear("KB");
    let x = time.scale([], area.left, area.right);
    let y = bytes.scale(sent.iter().map(|(_, value)| *value), area.bottom, area.top);
    let title = format!("Sequence of the {}", side.name());
    let description =
        format!("Bytes sent and acknowledged over {last:.1} ms; {} stalls behind them.", summary.stalls.len());
    let mut svg = Svg::new(id, WIDTH as u32, (BOTTOM + Area::FOOT) as u32, &title, &description);
    let styles = stall_styles(summary, palette);
    draw_stalls(&mut svg, summary, &styles, &x, area);
    let ticks = time.ticks(&x);
    area.columns(&mut svg, &ticks);
    svg.text("quiet", Anchor::Start, (0.0, 11.0), "KB");
    for (at, text) in bytes.ticks(&y) {
        svg.line("grid", (area.left, at), (area.right, at));
        svg.text("tick mid", Anchor::End, (area.left - 5.0, at), &text);
    }
    let place = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        points.iter().map(|(at, value)| (x.at(*at), y.at(*value))).collect()
    };
    svg.polyline("curve dense s7", &place(&acknowledged));
    svg.polyline("curve dense s0", &place(&sent));
    place(&again).into_iter().for_each(|point| svg.dot("mark s1", point, 2.2));
    area.foot(&mut svg, &ticks, &time.label);
    let caption =
        "Sent (line), acknowledged (line of long dashes), sent again (dots); stalls behind them are coloured by cause.";
    format!("{}{}", legend(&styles), chart::figure(&title, caption, &svg))
}

fn draw_stalls(svg: &mut Svg, summary: &ConnectionSummary, styles: &[(TimeCause, Style)], x: &Scale, area: Area) {
    for stall in &summary.stalls {
        let Some((_, style)) = styles.iter().find(|(cause, _)| *cause == stall.cause) else { continue };
        let (from, until) = (x.at(millis(summary, stall.from)), x.at(millis(summary, stall.until)));
        let class = format!("stall {}", style.class());
        svg.rectangle(&class, (from, area.top), (until - from).max(0.5), area.bottom - area.top);
    }
}

fn legend(styles: &[(TimeCause, Style)]) -> String {
    let item = |(cause, style): &(TimeCause, Style)| {
        format!("<li><span class=\"{}\"></span>{}</li>\n", style.class(), escape(cause.name()))
    };
    if styles.is_empty() {
        return String::new();
    }
    format!("<ul class=\"causes\">\n{}</ul>\n", styles.iter().map(item).collect::<String>())
}

fn windows(
    summary: &ConnectionSummary,
    stream: &StreamTrace,
    side: EndSide,
    id: &str,
    palette: &mut Palette,
) -> String {
    let lines = vec![
        Line::new("in flight", points(summary, &stream.flight)),
        Line::new("congestion window (shadow)", points(summary, &stream.congestion_window)),
        Line::new("receive window", points(summary, &stream.receive_window)),
    ];
    let chart = LinesChart {
        title: format!("Windows of the {}", side.name()),
        caption: "What was in flight, and what limits it.".into(),
        x: Axis::linear("ms since the beginning"),
        y: Axis::log("KB"),
        lines,
    };
    Chart::Lines(chart).figure(id, palette)
}
