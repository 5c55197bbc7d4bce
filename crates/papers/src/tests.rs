use report::claim::{MeasuredValue, RunScale, Verdict};
use report::runner::{Compute, ComputedValues};
use units::{Progress, Unwatched};

use super::*;

const FILE: EmbeddedFile = (
    "sums/b.toml",
    r#"
        id = "x.sum"
        runner = "computed"
        part = "plus"
        order = 1
        title = "A sum"
        paper = "§1"
        claim = "One and one is two."
        notes = ["by hand"]
        [[point]]
        id = "two"
        paper = 2.0
        band = [2.0, 2.0]
        [[point]]
        id = "again"
        measure = "two"
        paper = 3.0
        band = [3.0, 4.0]
        [[point]]
        id = "told"
        measure = "two"
        paper = "about two"
        [[point]]
        id = "rare"
        paper = 0.0
        band = [0.0, 1.0]
    "#,
);

const OTHER: EmbeddedFile = (
    "sums/a.toml",
    r#"
        id = "x.seed"
        runner = "computed"
        part = "seeds"
        order = 2
        title = "A seed"
        paper = "§2"
        claim = "The seed is one."
        [[point]]
        id = "one"
        paper = 1.0
        band = [1.0, 1.0]
    "#,
);

const PAPER: Paper = Paper {
    name: "sums",
    title: "Sums, reproduced",
    lead: "Sums.",
    computations: &[(&["x.sum"], Compute::One(sum)), (&["x.seed"], Compute::One(seed))],
};

fn claims() -> Claims {
    Claims::read(PAPER, &[OTHER, FILE]).unwrap()
}

fn sum(_effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    let mut computed = ComputedValues { notes: vec!["by machine".into()], ..ComputedValues::default() };
    computed.value("two", MeasuredValue::exact(1.0 + 1.0, 1));
    computed.values.push(("rare".into(), None));
    Ok(Some(computed))
}

fn seed(effort: &Effort<'_>) -> Result<Option<ComputedValues>, ClaimError> {
    if !effort.progress.go_on(0) {
        return Ok(None);
    }
    let mut computed = ComputedValues::default();
    computed.value("one", MeasuredValue::exact(effort.seed as f64, 1));
    Ok(Some(computed))
}

fn reproduce(claims: &Claims, progress: &(dyn Progress + Sync)) -> Reproduction {
    claims.reproduce(&Effort { scale: RunScale::Quick, jobs: 1, seed: 1, progress }).unwrap()
}

fn ids(claims: &Claims) -> Vec<&str> {
    claims.ids().collect()
}

#[test]
fn the_file_judges_what_code_computed() {
    let reproduced = reproduce(&claims(), &Unwatched);
    let points: Vec<(&str, Verdict)> = reproduced.points().map(|point| (point.id.as_str(), point.verdict)).collect();
    let expected = [
        ("x.sum.two", Verdict::Match),
        ("x.sum.again", Verdict::Differs),
        ("x.sum.told", Verdict::Noted),
        ("x.sum.rare", Verdict::Unmeasured),
        ("x.seed.one", Verdict::Match),
    ];
    assert_eq!(points, expected);
    assert_eq!(reproduced.results[0].notes, ["by hand", "by machine"]);
}

#[test]
fn a_value_that_no_code_computes_is_an_error_that_names_it() {
    let effort = Effort { scale: RunScale::Quick, jobs: 1, seed: 1, progress: &Unwatched };
    let mistaken = Paper { computations: &[(&["x.sum"], Compute::One(seed))], ..PAPER };
    let error = Claims::read(mistaken, &[FILE]).unwrap().reproduce(&effort).unwrap_err().to_string();
    assert!(error.contains("x.sum") && error.contains("no measure two: expected one of one"), "{error}");
    let error = Claims::read(mistaken, &[OTHER]).unwrap_err().to_string();
    assert_eq!(error, "x.seed: no function computes it");
}

#[test]
fn claims_are_chosen_by_part_or_by_the_beginning_of_their_ids() {
    let chosen = |what: &str| claims().select(what);
    assert_eq!(ids(&chosen("plus").unwrap()), ["x.sum"]);
    assert_eq!(ids(&chosen("x.s").unwrap()), ["x.sum", "x.seed"]);
    assert!(chosen("y").is_none());
    let known = lossradar::PAPER.known().unwrap();
    assert_eq!(known[..4], ["lossradar", "lossradar/computed", "lossradar/net", "lossradar/lr.size"]);
}

#[test]
fn what_was_interrupted_is_missing_and_the_page_says_so() {
    #[derive(Debug)]
    struct Impatient;
    impl Progress for Impatient {
        fn go_on(&self, _done: u64) -> bool {
            false
        }
    }
    let reproduced = reproduce(&claims(), &Impatient);
    assert_eq!(reproduced.results.iter().map(|result| result.id.as_str()).collect::<Vec<_>>(), ["x.sum"]);
    let about = PageInfo {
        command: "hitless reproduce sums".into(),
        scale: "quick".into(),
        seed: 1,
        version: "0".into(),
        seconds: 1.0,
        interrupted: true,
    };
    let page = reproduced.page(&about);
    assert_eq!((page.title.as_str(), page.claims.len()), ("Sums, reproduced", 1));
    assert!(page.lead.starts_with("Sums. It was interrupted"), "{}", page.lead);
    assert_eq!(page.claims[0].command, "hitless reproduce sums/x.sum --scale quick --seed 1");
}

#[test]
fn every_paper_can_be_read_and_no_two_claims_share_an_id() {
    let mut all = Vec::new();
    for paper in PAPERS {
        assert_eq!(Paper::named(paper.name).map(|named| named.title), Some(paper.title));
        all.extend(paper.claims().unwrap().ids().map(str::to_owned));
    }
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn linkguardian_has_its_three_parts_in_order() {
    let all = Claims::meant("linkguardian").unwrap().unwrap();
    let of = |part: &str| Claims::meant(&format!("linkguardian/{part}")).unwrap().unwrap();
    let parts = ["link", "net", "fleet"].map(of);
    let parts: Vec<&str> = parts.iter().flat_map(|claims| claims.ids()).collect();
    assert_eq!(parts, ids(&all));
    assert_eq!((ids(&all)[0], ids(&all).len()), ("lg.copies", 27));
    assert_eq!(ids(&of("lg.fig11")), ["lg.fig11.dctcp", "lg.fig11.bbr", "lg.fig11.rdma"]);
    for nonsense in ["linkguardian/", "linkguardian/lg.fig99", "moby-dick", "moby-dick/link", ""] {
        assert!(Claims::meant(nonsense).unwrap().is_none(), "{nonsense}");
    }
}

#[test]
fn every_run_of_every_paper_can_be_set_up() {
    for claim in PAPERS.into_iter().flat_map(|paper| paper.claims().unwrap().claims) {
        for scale in [RunScale::Quick, RunScale::Full] {
            for run in &claim.run {
                let point = runner::network::point(&claim, run, scale).map(|point| point.number);
                assert!(point.is_ok(), "{}: {point:?}", claim.id);
            }
        }
    }
}

#[test]
fn a_claim_gives_the_same_on_any_number_of_jobs() {
    let mut claims = Claims::meant("linkguardian/lg.fig10.rdma").unwrap().unwrap();
    claims.claims[0].quick.set = vec!["traffic.size=143".into(), "traffic.count=12000".into()];
    let points = [1, 2].map(|jobs| {
        let effort = Effort { scale: RunScale::Quick, jobs, seed: 1, progress: &Unwatched };
        claims.reproduce(&effort).unwrap().results.remove(0).points
    });
    assert_eq!(points[0], points[1]);
    let gain = points[0].iter().find(|point| point.id.ends_with("gain.p99.95")).unwrap();
    assert_eq!(gain.verdict, Verdict::Match, "{gain:?}");
}

#[test]
fn the_claims_that_take_no_time_match() {
    for name in ["lg.copies", "lg.overhead"] {
        let claims = Claims::meant(&format!("linkguardian/{name}")).unwrap().unwrap();
        let reproduction = reproduce(&claims, &Unwatched);
        let verdicts: Vec<Verdict> = reproduction.points().map(|point| point.verdict).collect();
        assert!(verdicts.len() >= 2 && verdicts.iter().all(|verdict| *verdict == Verdict::Match), "{verdicts:?}");
    }
}
