use report::claim::{Band, MeasuredValue, PointKind, RunScale, Verdict};
use report::runner::{Compute, ComputedValues};
use units::{Progress, Unwatched};

use super::*;

const FILE: EmbeddedFile = (
    "sums/b.toml",
    r#"
        id = "x.sum"
        runner = "computed"
        kind = "claim"
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
        kind = "noted"
        measure = "two"
        paper = "about two"
        [[point]]
        id = "rare"
        paper = 0.0
        band = [0.0, 0.0]
    "#,
);

const OTHER: EmbeddedFile = (
    "sums/a.toml",
    r#"
        id = "x.seed"
        runner = "computed"
        kind = "arithmetic"
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
        ("x.sum.rare", Verdict::TooFew),
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
    assert!(error.contains("sums/b.toml:11: two: no measure two: expected one of one"), "{error}");
    let error = Claims::read(mistaken, &[OTHER]).unwrap_err().to_string();
    assert_eq!(error, "sums/a.toml: x.seed: no function computes it");
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
fn linkguardian_has_its_four_parts_in_order() {
    let all = Claims::meant("linkguardian").unwrap().unwrap();
    let of = |part: &str| Claims::meant(&format!("linkguardian/{part}")).unwrap().unwrap();
    let parts = ["link", "net", "fleet", "computed"].map(of);
    let parts: Vec<&str> = parts.iter().flat_map(|claims| claims.ids()).collect();
    assert_eq!(parts, ids(&all));
    assert_eq!((ids(&all)[0], ids(&all).len()), ("lg.copies", 41));
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
    claims.claims[0].quick.set =
        ["link.forward.loss=2e-3", "traffic.size=143", "traffic.count=12000"].map(String::from).to_vec();
    let points = [1, 2].map(|jobs| {
        let effort = Effort { scale: RunScale::Quick, jobs, seed: 1, progress: &Unwatched };
        claims.reproduce(&effort).unwrap().results.remove(0).points
    });
    assert_eq!(points[0], points[1]);
    let gain = points[0].iter().find(|point| point.id.ends_with("gain.p99.9")).unwrap();
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

/// Covers every file: reading one checks what its points may say.
#[test]
fn no_band_of_a_claim_excludes_the_paper_and_each_can_be_left() {
    let mut judged = 0;
    for claim in PAPERS.into_iter().flat_map(|paper| paper.claims().unwrap().claims) {
        for point in claim.point.iter().filter(|point| point.kind() == PointKind::Claim) {
            let Some(band) = point.band else { continue };
            judged += 1;
            assert!(band.low.is_finite() || band.high.is_finite(), "{}.{}: {band}", claim.id, point.id);
            let inside = point.paper.number().is_none_or(|paper| band.contains(paper));
            assert!(inside, "{}.{}: {band} excludes {}", claim.id, point.id, point.paper);
        }
    }
    assert!(judged > 300, "{judged}");
}

fn results_folder() -> std::path::PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/results").into()
}

fn kept_results() -> Vec<SavedResults> {
    SavedResults::read_all(&results_folder()).unwrap()
}

#[test]
fn no_kept_match_rests_on_less_than_could_have_refuted_it() {
    for results in kept_results() {
        for point in results.results().flat_map(|(_, points)| points) {
            if point.verdict != Verdict::Match {
                continue;
            }
            let (Some(band), Some(ours)) = (point.band, point.ours) else { panic!("{point:?}") };
            assert!(point.n > 0 && band.contains(ours), "{point:?}");
            // A statement about every trial is refuted by one; anything else only by an interval that lies elsewhere.
            let within = |interval: Band| band.contains(interval.low) && band.contains(interval.high);
            assert!(band.low == band.high || point.interval.is_none_or(within), "{point:?}");
            let claims_the_paper = point.kind == PointKind::Claim;
            let paper = point.paper.number().filter(|_| claims_the_paper);
            assert!(paper.is_none_or(|paper| band.contains(paper)), "{point:?}");
        }
    }
}

/// `HITLESS_RELABEL=1 cargo test -p hitless-papers what_was_kept` writes kinds and bands of today into what can be judged
/// without a new run; what cannot stays as it is and fails.
#[test]
fn what_was_kept_is_of_the_kinds_and_bands_of_today() {
    let relabel = std::env::var_os("HITLESS_RELABEL").is_some();
    for mut results in kept_results() {
        let claims = results.paper().unwrap().claims().unwrap();
        for saved in &mut results.claims {
            let today = claims.saved(saved).map(|result| result.points);
            if let (true, Some(points)) = (relabel, &today) {
                saved.points.clone_from(points);
            }
            assert_eq!(today.as_ref(), Some(&saved.points), "{}: run it again with --save", saved.id);
        }
        if relabel {
            results.write(&results_folder()).unwrap();
        }
    }
}

#[test]
fn what_was_kept_has_its_reasons_and_they_quote_what_rows_have() {
    let (mut wrong, mut quoted) = (Vec::new(), 0);
    for kept in kept_results() {
        let claims = kept.paper().unwrap().claims().unwrap();
        quoted +=
            claims.claims.iter().flat_map(|claim| &claim.point).map(|point| point.citations().len()).sum::<usize>();
        wrong.extend(claims.check_reasons(&kept).err().map(|error| error.to_string()));
    }
    assert!(quoted > 100, "{quoted}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_documentation_counts_what_was_kept() {
    let overview = Overview::new(&kept_results()).unwrap();
    let docs = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reproduce.md"));
    let table = overview.markdown();
    let wanted = "cargo run --release -- reproduce list --results docs/results --markdown";
    assert!(docs.contains(table.trim_end()), "docs/reproduce.md should have what `{wanted}` prints:\n{table}");
    let readme = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../README.md"));
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in overview.sentences() {
        assert!(readme.contains(&said), "README.md should say: {said}");
    }
}

#[test]
fn a_run_is_taken_up_again_from_what_was_saved() {
    let folder = std::env::temp_dir().join(format!("hitless-saved-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let run = SavedRun { paper: "melo".into(), scale: "quick".into(), seed: 1, commit: "c".into() };
    let mut saved = SavedResults::new(run.clone());
    let claims = claims();
    let effort = Effort { scale: RunScale::Quick, jobs: 1, seed: 1, progress: &Unwatched };
    let mut kept = Vec::new();
    let mut keep = |result: ClaimResult| {
        saved.add(&result, "2026-11-17");
        kept.push(result.id);
        saved.write(&folder).map_err(ClaimError::new)
    };
    claims.reproduce_each(&effort, &mut keep).unwrap();
    assert_eq!(kept, ["x.sum", "x.seed"]);
    let again = SavedResults::read(&run.path(&folder)).unwrap().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((&again.run, again.date.as_str()), (&run, "2026-11-17"));
    let results: Vec<ClaimResult> = again.claims.iter().filter_map(|claim| claims.saved(claim)).collect();
    let points: Vec<&PointResult> = results.iter().flat_map(|result| &result.points).collect();
    let fresh = reproduce(&claims, &Unwatched);
    assert_eq!(points, fresh.points().collect::<Vec<_>>());
    let newer = SavedRun { commit: "d".into(), ..run.clone() };
    let mut newer = again.clone().continued(&newer);
    newer.add(&results[0], "2026-11-18");
    assert_eq!(newer.claims.iter().map(|claim| claim.commit.as_deref()).collect::<Vec<_>>(), [None, Some("c")]);
    assert_eq!(newer.commits(), ["d", "c"]);
    assert_eq!(newer.continued(&run).commits(), ["c", "d"]);
    let other_seed = SavedRun { seed: 2, ..run.clone() };
    assert!(again.clone().continued(&other_seed).claims.is_empty());
    let mut other = again.claims[0].clone();
    other.points[0].kind = PointKind::Calibrated;
    assert_eq!(claims.saved(&other).unwrap().points, again.claims[0].points, "kinds are those of the file");
    other.points[0].band = Some(Band { low: 3.0, high: 4.0 });
    assert!(claims.saved(&other).is_none(), "a claim with a band that is no part of the old one is run again");
    let mut other = again.claims[0].clone();
    other.points.pop();
    assert!(claims.saved(&other).is_none(), "a claim with other points is run again");
}
