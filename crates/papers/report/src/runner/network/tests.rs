use super::*;
use crate::claim::{Verdict, files};
use chart::Chart;
use units::Unwatched;

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

const CLAIM: &str = r#"
id = "x.y"
runner = "network"
kind = "model-check"
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
measure = "fct.p99.5"
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
band = [500, 2000]
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
band = [0, 0.2]
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

fn claim(text: &'static str) -> Result<Claim, ClaimError> {
    let claim = files::claims(&[("x/y.toml", text), ("x/s.toml", SCENARIO)])?.remove(0);
    check(&claim).map(|()| claim)
}

fn effort(jobs: usize) -> Effort<'static> {
    Effort { scale: RunScale::Quick, jobs, seed: 1, progress: &Unwatched }
}

#[test]
fn writes_over_a_lossy_link_are_measured() {
    let claims = [claim(CLAIM).unwrap()];
    let runs = made(&claims, &effort(1)).unwrap().remove(0);
    let [clean, lossy] = ["clean", "lossy"].map(|run| runs.run(run).unwrap());
    let counts = clean.counts;
    assert_eq!((counts.flows, counts.packets, counts.timeouts, counts.retransmitted), (6_000, 24_000, 0, 0));
    let counts = lossy.counts;
    assert!(counts.timeouts >= counts.hit && counts.hit > 0 && counts.retransmitted > 0, "{counts:?}");
    assert!(clean.traffic.data < clean.traffic.wire && clean.traffic.dummies == 0, "{:?}", clean.traffic);
    let points = runs.judge().unwrap().points;
    for point in &points {
        let expected = if point.id == "x.y.pool" { Verdict::TooFew } else { Verdict::Match };
        assert_eq!(point.verdict, expected, "{point:?}");
    }
    assert!(points[0].why.contains("over"), "{:?}", points[0]);
}

#[test]
fn runs_are_dots_by_what_they_cost_beyond_the_base() {
    let charts = run(&[claim(CLAIM).unwrap()], &effort(1)).unwrap().remove(0).charts;
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
fn mistakes_in_a_claim_are_named() {
    for (from, to, expected) in [
        ("minus = \"clean\"", "minus = \"cleen\"", "no run is called cleen"),
        ("base = \"clean\"", "base = \"cleen\"", "no run is called cleen"),
        ("base = \"clean\"", "", "By cost: expected base"),
        ("of = \"lossy\"", "", "more: expected of"),
        ("quick = { seeds = 2 }", "", "expected quick.seeds"),
        ("scenario = \"s.toml\"", "scenario = \"t.toml\"", "y.toml: no file x/t.toml"),
        ("measure = \"wire\"", "measure = \"wires\"", "wires: expected"),
        ("kind = \"points\"", "kind = \"dots\"", "dots"),
    ] {
        let error = claim(CLAIM.replacen(from, to, 1).leak()).unwrap_err().to_string();
        assert!(error.contains(expected), "{from}: {error}");
    }
}
