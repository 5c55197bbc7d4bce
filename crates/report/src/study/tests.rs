use sim::link::Unwatched;

use super::*;
use crate::experiment::Verdict;
use chart::Chart;

/// Short writes over a switch; `lossy` loses one frame in a hundred.
const SCENARIO: &str = r#"
[topology]
kind = "single-switch"
hosts = 2
rate = "25G"
delay = "1us"

[[link]]
between = ["h0", "sw0"]
forward = [{ loss = "0" }]

[[traffic]]
transport = "rdma"
work = "series"
from = "h0"
to = "h1"
size = 4000
count = 3000
"#;

const STUDY: &str = r#"
id = "x.y"
title = "It"
paper = "Fig. 1"
claim = "It works."
scenario = "s.toml"
quick = { seeds = 2 }
full = { seeds = 2 }

[[run]]
name = "clean"
[[run]]
name = "lossy"
set = ["link.forward.loss=1e-2"]
[[run]]
name = "dummies"
set = ["link.forward.loss=1e-2", "traffic.dummies=2"]
[[run]]
name = "melo"
set = ["link.forward.loss=1e-2", "traffic.recovery=melo"]

[[point]]
id = "more"
measure = "fct.p99"
of = "lossy"
minus = "clean"
over = "clean"
paper = "many times"
band = [1.0, 1e9]
[[point]]
id = "cost"
measure = "wire"
of = "lossy"
over = "clean"
paper = "a little"
band = [1.0, 1.2]
[[point]]
id = "clean.timeouts"
measure = "timeouts"
of = "clean"
paper = 0
band = [0, 0]
[[point]]
id = "lossy.timeouts"
measure = "timeouts"
of = "lossy"
paper = 1000
band = [800, 1200]
[[point]]
id = "slowdown"
measure = "slowdown.p50"
of = "clean"
paper = 1
band = [1.0, 1.5]
[[point]]
id = "goodput"
measure = "goodput.flows"
of = "clean"
paper = 25
band = [1.0, 25.0]
[[point]]
id = "added"
measure = "added"
of = "lossy"
paper = 0
band = [0, 0]
[[point]]
id = "again"
measure = "retransmitted"
of = "lossy"
paper = 0.04
band = [0.01, 0.4]
[[point]]
id = "pool"
measure = "pool.peak"
of = "clean"
paper = "no pool"
[[point]]
id = "dummies.added"
measure = "added"
of = "dummies"
paper = 0.0453
band = [0.044, 0.047]
[[point]]
id = "dummies.timeouts"
measure = "timeouts"
of = "dummies"
over = "lossy"
paper = "hardly any"
band = [0, 0.1]
[[point]]
id = "melo.pool"
measure = "pool.peak"
of = "melo"
paper = "little of it"
band = [1e-6, 0.2]
[[point]]
id = "melo.again"
measure = "retransmitted"
of = "melo"
over = "lossy"
paper = "less than half"
band = [0.1, 0.9]
[[point]]
id = "melo.out_of_order"
measure = "out_of_order"
of = "melo"
paper = 0.015
band = [0.01, 0.02]

[[chart]]
title = "By cost"
kind = "points"
base = "clean"
[[chart]]
title = "All flows"
kind = "cdf"
[[chart]]
title = "Times"
kind = "bars"
measure = "fct.max"
unit = "µs"
log = true
"#;

fn finding() -> Finding {
    let study = Study::parse("y.toml", STUDY).unwrap();
    let effort = Effort { scale: Scale::Quick, jobs: 1, seed: 1, watch: &Unwatched };
    conduct(&[(study, SCENARIO)], &effort).unwrap().remove(0)
}

#[test]
fn writes_over_a_lossy_link_are_measured() {
    let finding = finding();
    let [clean, lossy] = ["clean", "lossy"].map(|run| finding.run(run).unwrap());
    assert_eq!((clean.flows, clean.packets, clean.timeouts, clean.retransmitted), (6_000, 24_000, 0, 0));
    assert!(lossy.timeouts >= lossy.hit && lossy.hit > 0 && lossy.retransmitted > 0, "{lossy:?}");
    assert!(clean.traffic.data < clean.traffic.wire && clean.traffic.dummies == 0, "{:?}", clean.traffic);
    for row in &finding.rows {
        let expected = if row.id == "x.y.pool" { Verdict::Unmeasured } else { Verdict::Match };
        assert_eq!(row.verdict, expected, "{row:?}");
    }
    let more = &finding.rows[0];
    assert!(more.why.contains("over"), "{more:?}");
}

#[test]
fn runs_are_dots_by_what_they_cost_beyond_the_base() {
    let charts = finding().charts();
    let [Chart::Points(points), Chart::Tail(cdf), Chart::Bars(bars)] = &charts[..] else { panic!("{charts:?}") };
    let dot = |name: &str| points.dots.iter().find(|dot| dot.name == name).unwrap();
    assert_eq!(dot("clean").x, Some(0.0));
    assert!(dot("lossy").x.unwrap() > 0.0 && dot("lossy").y > dot("clean").y, "{points:?}");
    assert_eq!(
        (cdf.from, cdf.lines.len(), cdf.lines[0].points.first().map(|(_, share)| *share)),
        (0.0, 4, Some(1.0 / 6_000.0))
    );
    assert!(bars.axis.log);
}

#[test]
fn mistakes_in_a_study_are_named() {
    for (from, to, said) in [
        ("minus = \"clean\"", "minus = \"cleen\"", "no run is called cleen"),
        ("base = \"clean\"", "base = \"cleen\"", "no run is called cleen"),
        ("base = \"clean\"", "", "By cost: expected base"),
        ("measure = \"wire\"", "measure = \"wires\"", "wires: expected"),
        ("kind = \"points\"", "kind = \"dots\"", "dots"),
    ] {
        let error = Study::parse("y.toml", &STUDY.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains("y.toml") && error.contains(said), "{from}: {error}");
    }
}
