use testkit::page::{assert_finite, assert_on_canvas, assert_well_formed, attribute};

use super::*;

/// Area that a text covers where letters are largest: 12 units high, [`plot::width_of`] wide.
fn cover(tag: &str, text: &str) -> Option<[f64; 4]> {
    let number = |name| attribute(tag, name).and_then(|value| value.parse::<f64>().ok());
    let (x, y, width) = (number("x")?, number("y")?, plot::width_of(text));
    let left = match attribute(tag, "text-anchor") {
        Some("middle") => x - width / 2.0,
        Some("end") => x - width,
        _ => x,
    };
    let is_centred = attribute(tag, "class").is_some_and(|class| class.split(' ').any(|word| word == "mid"));
    let top = if is_centred { y - 6.0 } else { y - 9.5 };
    Some([left, left + width, top, top + 12.0])
}

/// Checks that no two texts of a drawing overlap.
fn assert_apart(page: &str) {
    // The keys of a legend are drawings without any; a chart without data is no drawing.
    assert!(page.contains("<text") || !page.contains("<svg "));
    for drawing in page.split("<svg ").skip(1) {
        let drawing = drawing.split("</svg>").next().unwrap_or_default();
        let mut texts: Vec<(&str, [f64; 4])> = Vec::new();
        for part in drawing.split("<text").skip(1) {
            let (tag, rest) = part.split_once('>').unwrap();
            let text = rest.split('<').next().unwrap_or_default();
            let Some(cover) = cover(tag, text) else { panic!("no place: {tag}") };
            for (other, covered) in &texts {
                let [left, right, top, bottom] = *covered;
                let touches = cover[0] < right && left < cover[1] && cover[2] < bottom && top < cover[3];
                assert!(!touches, "'{text}' {cover:?} over '{other}' {covered:?}");
            }
            texts.push((text, cover));
        }
    }
}

fn tail(lines: Vec<Line>) -> Chart {
    Chart::Tail(TailChart {
        title: "FCT".into(),
        caption: String::new(),
        x: Axis::log("flow completion time").written(time_us),
        of: "flows".into(),
        from: 0.99,
        shares: Shares::Even,
        guide: Some(0.999),
        lines,
    })
}

fn lines(lines: Vec<Line>) -> Chart {
    let (title, caption) = ("slowdown".into(), "by size".into());
    Chart::Lines(LinesChart { title, caption, x: Axis::log("size (B)"), y: Axis::linear("slowdown"), lines })
}

fn series(lines: Vec<Line>, events: Vec<(f64, String)>) -> Chart {
    let panels = vec![Panel { y: Axis::linear("rate (Gb/s)"), lines }];
    Chart::Series(SeriesChart { title: "time".into(), caption: String::new(), time: Axis::linear("s"), panels, events })
}

fn bars(values: &[Option<f64>], axis: Axis) -> Chart {
    let bar = |ours: &Option<f64>| Bar { name: "ordered".into(), ours: *ours, paper: ours.map(|ours| ours * 1.1) };
    let groups = vec![BarGroup { name: "1e-3".into(), bars: values.iter().map(bar).collect() }];
    Chart::Bars(BarsChart { title: "goodput".into(), caption: String::new(), axis, groups })
}

fn points(dots: &[(&str, f64, f64)]) -> Chart {
    let dot = |(name, x, y): &(&str, f64, f64)| Dot { name: (*name).into(), x: Some(*x), y: Some(*y) };
    Chart::Points(PointsChart {
        title: "gain by cost".into(),
        caption: String::new(),
        x: Axis::linear("cost, %"),
        y: Axis::log("p99.9 FCT").written(time_us),
        dots: dots.iter().map(dot).collect(),
    })
}

fn figure(chart: &Chart) -> String {
    let html = chart.figure("c", &mut Palette::default());
    assert_well_formed(&html);
    assert_finite(&html);
    assert_on_canvas(&html);
    assert_apart(&html);
    html
}

#[test]
fn labels_of_charts_never_overlap() {
    // Like the page of a fleet's year: values at the upper ends of three axes, right below the panels' names.
    let year = |value: fn(f64) -> f64| {
        vec![Line::new("CorrOpt", (0..=80).map(|at| (f64::from(at) / 10.0, value(f64::from(at)))).collect())]
    };
    let panels = vec![
        Panel { y: Axis::log("total penalty"), lines: year(|at| if at < 40.0 { 0.5 } else { 1e-9 }) },
        Panel { y: Axis::linear("least paths per ToR, %").within(50.0, 100.0), lines: year(|at| 50.0 + at / 2.0) },
        Panel { y: Axis::linear("least capacity per pod, %").within(96.0, 100.0), lines: year(|_| 100.0) },
    ];
    let events = vec![(0.5, "loss starts".to_owned()), (0.6, "protection on".to_owned())];
    for events in [Vec::new(), events] {
        let (title, caption) = ("50 %: a week of the year".into(), String::new());
        let panels = panels.clone();
        figure(&Chart::Series(SeriesChart { title, caption, time: Axis::linear("days"), panels, events }));
    }
    // Wide values where both axes meet.
    let wide = vec![Line::new("a", vec![(1e-12, 1e-12), (1e-11, 1.0), (2e-11, 1e9)])];
    let (title, caption) = ("wide".into(), String::new());
    let (x, y) = (Axis::log("loss"), Axis::log("gain"));
    figure(&Chart::Lines(LinesChart { title, caption, x, y, lines: wide }));
    figure(&bars(&[Some(1e-9), Some(3e12), None, Some(0.5)], Axis::log("loss after protection")));
}

#[test]
fn a_chart_without_data_says_so() {
    let nothing = || vec![Line::new("a", vec![]), Line::new("b", vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)])];
    let charts = [
        tail(nothing()),
        tail(vec![]),
        lines(nothing()),
        series(nothing(), vec![(1.0, "on".into())]),
        series(vec![], vec![]),
        bars(&[], Axis::linear("x")),
        bars(&[None, Some(f64::NAN)], Axis::log("x")),
        points(&[]),
        points(&[("a", f64::NAN, 1.0), ("b", 1.0, f64::INFINITY)]),
    ];
    for chart in charts {
        let html = figure(&chart);
        assert!(html.contains("No data") && !html.contains("<svg"), "{html}");
    }
}

#[test]
fn unusual_numbers_stay_on_the_canvas() {
    let points = [(0.0, -1e300), (1e-300, 0.0), (5.0, 1e300), (f64::INFINITY, 1.0), (7.0, f64::NAN), (1e12, 3.0)];
    let line = || vec![Line::new("a", points.to_vec()).with_paper(points.to_vec())];
    let values = [Some(-1.0), Some(0.0), Some(1e-12), Some(3e12), None, Some(f64::NEG_INFINITY)];
    let dots = points.map(|(x, y)| ("a name that takes much of the room", x, y));
    let events = vec![(f64::NAN, "never".into()), (1e12, "late".into()), (-5.0, "early, with much to say".into())];
    for chart in [
        tail(line()),
        lines(line()),
        series(line(), events),
        bars(&values, Axis::linear("x")),
        bars(&values, Axis::log("x")),
        self::points(&dots),
    ] {
        assert!(figure(&chart).contains("<svg"));
    }
}

#[test]
fn a_chart_has_a_name_a_legend_and_its_numbers() {
    let html = figure(&lines(vec![
        Line::new("ordered", vec![(143.0, 1.1), (24_387.0, 1.3)]).with_paper(vec![(143.0, 1.0)]),
        Line::reference("ideal", vec![(143.0, 1.0), (24_387.0, 1.0)]),
        Line::new("Wharf", vec![]),
    ]));
    for part in [
        "<title id=\"c-title\">slowdown</title>",
        "<desc id=\"c-desc\">slowdown by size (B).",
        "<strong>slowdown</strong><p>by size</p>",
        "ideal</li>",
        "Wharf (no data)</li>",
        "hollow marks: the paper</li>",
        "class=\"mark hollow s0\"",
        "<th scope=\"col\">ordered, paper</th>",
        "<th scope=\"row\" class=\"left\">24,387</th><td>1.3</td><td>–</td><td>1</td>",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
}

#[test]
fn the_legend_of_a_tail_gives_the_values_at_the_guide() {
    let sorted: Vec<f64> = (1..=10_000).map(f64::from).collect();
    let html = figure(&tail(vec![Line::new("loss", tail_points(&sorted, 0.99))]));
    assert!(html.contains("loss: p99.9\u{a0}9.99\u{a0}ms</li>"), "{html}");
    assert!(html.contains("99 % within 9.9\u{a0}ms, 99.9 % within 9.99\u{a0}ms"), "{html}");
}

#[test]
fn what_is_inserted_is_escaped() {
    let evil = "<script>\"x\" & 'y'";
    let line = || vec![Line::new(evil, vec![(1.0, 0.995), (2.0, 1.0)]), Line::new("b", vec![(1.0, 1.0)])];
    let charts = [
        tail(line()),
        lines(line()),
        series(line(), vec![(1.0, evil.into())]),
        points(&[(evil, 1.0, 2.0), (evil, f64::NAN, 2.0)]),
    ];
    for chart in charts {
        let html = figure(&chart);
        assert!(!html.contains("<script") && html.contains("&lt;script&gt;&quot;x&quot; &amp; &#39;y&#39;"), "{html}");
    }
}

#[test]
fn a_dot_carries_its_name_and_its_numbers() {
    let html = figure(&points(&[("None", 0.0, 66_000.0), ("All", 2.4, 310.0), ("failed", 0.1, f64::INFINITY)]));
    for part in [
        "<desc id=\"c-desc\">p99.9 FCT by cost, %. None: 66\u{a0}ms at 0. All: 310\u{a0}µs at 2.4. failed: no data.</desc>",
        ">None</text>",
        ">All</text>",
        "failed (no data)</li>",
        "<th scope=\"row\" class=\"left\">All</th><td>2.4</td><td>310\u{a0}µs</td>",
        "<th scope=\"row\" class=\"left\">failed</th><td>0.1</td><td>–</td>",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(!html.contains("None</li>"), "a name beside its dot needs no legend: {html}");
}
