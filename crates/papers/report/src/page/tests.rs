use testkit::page::{assert_finite, assert_on_canvas, assert_well_formed};

use super::*;
use crate::claim::{PaperValue, PointKind, PointResult, StatementForm, Verdict};

mod sample;

use sample::sample;

fn row(id: &str, paper: f64, ours: f64, verdict: Verdict, why: &str) -> PointResult {
    PointResult {
        id: id.to_owned(),
        kind: PointKind::Claim,
        form: StatementForm::Number,
        paper: PaperValue::Number(paper),
        ours: Some(ours),
        interval: None,
        band: None,
        n: 1_000,
        verdict,
        why: why.to_owned(),
    }
}

fn section(points: Vec<PointResult>) -> ClaimResult {
    ClaimResult {
        id: "lg.x".into(),
        title: "A claim".into(),
        claim: "It works".into(),
        paper: "Fig. 1".into(),
        command: "hitless reproduce linkguardian/lg.x --seed 1".into(),
        charts: Vec::new(),
        points,
        notes: Vec::new(),
        seconds: 1.0,
    }
}

fn page(claims: Vec<ClaimResult>) -> Page {
    Page { title: "A report".into(), lead: "Lead".into(), command: "hitless".into(), facts: Vec::new(), claims }
}

fn checked(page: &Page) -> String {
    let html = page.html();
    assert_well_formed(&html);
    assert_finite(&html);
    assert_on_canvas(&html);
    html
}

#[test]
fn the_page_has_every_row_chart_and_fact() {
    let page = sample();
    let html = checked(&page);
    for section in &page.claims {
        for row in &section.points {
            assert!(html.contains(&format!("<tbody id=\"{}\">", row.id)), "{}", row.id);
            assert!(html.contains(&escape(&row.why)), "{}", row.why);
        }
        assert!(html.contains(&format!("<a href=\"#{0}\">", section.id)), "{}", section.id);
        assert!(html.contains(&format!("<section id=\"{0}\"", section.id)), "{}", section.id);
        assert!(section.charts.iter().all(|chart| html.contains(&escape(chart.title()))));
    }
    assert!(page.facts.iter().all(|(name, value)| html.contains(&format!("<dt>{name}</dt><dd>{value}</dd>"))));
    let charts = page.claims.iter().map(|section| section.charts.len()).sum::<usize>();
    assert_eq!(html.matches("<figure>").count(), charts);
    assert_eq!(html.matches("role=\"img\"").count(), html.matches("<desc ").count());
}

#[test]
fn the_page_needs_nothing_else() {
    let html = sample().html().replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for outside in ["http:", "https:", "url(", "@import", "<script", "<link", "src="] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn no_two_elements_share_an_id() {
    let html = sample().html();
    let mut ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    assert_eq!(sample().html(), sample().html());
}

#[test]
fn verdicts_are_counted_and_said_in_words() {
    let rows = vec![row("lg.x.a", 1.0, 1.0, Verdict::Match, ""), row("lg.x.b", 1.0, 2.0, Verdict::Differs, "because")];
    let html = checked(&page(vec![section(rows)]));
    for part in ["<strong>1</strong> claim matches", "<strong>1</strong> differs", "</span> 1 of 2 differ</span>"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(html.contains("<span aria-hidden=\"true\">✓</span> match</span>"));
    assert!(html.contains("n\u{a0}=\u{a0}1,000; because</td>"));
}

#[test]
fn a_value_that_is_no_number_is_a_dash() {
    let mut broken = section(vec![row("lg.x.a", f64::NAN, f64::INFINITY, Verdict::Differs, "")]);
    broken.seconds = f64::NAN;
    assert!(checked(&page(vec![broken])).contains("<td>–</td><td>–</td>"));
}

#[test]
fn what_a_paper_says_in_words_stays_words() {
    let words =
        PointResult { paper: PaperValue::Words("near 100 %".into()), ..row("lg.x.a", 0.0, 0.998, Verdict::Match, "") };
    assert!(checked(&page(vec![section(vec![words])])).contains("near 100 %</td><td>0.998</td>"));
}

#[test]
fn what_is_inserted_is_escaped() {
    let evil = "<script>\"x\" & 'y'";
    let words = PaperValue::Words(evil.to_owned());
    let mut hurt = section(vec![PointResult { paper: words, ..row(evil, 1.0, 1.0, Verdict::Match, evil) }]);
    for field in [&mut hurt.id, &mut hurt.title, &mut hurt.claim, &mut hurt.paper, &mut hurt.command] {
        *field = evil.to_owned();
    }
    hurt.notes = vec![evil.to_owned()];
    let facts = vec![(evil.to_owned(), evil.to_owned())];
    let html =
        checked(&Page { title: evil.into(), lead: evil.into(), command: evil.into(), facts, ..page(vec![hurt]) });
    assert!(!html.contains("<script"));
    assert!(html.contains("<title>&lt;script&gt;&quot;x&quot; &amp; &#39;y&#39;</title>"));
}

#[test]
fn a_report_of_nothing_is_still_a_page() {
    checked(&page(Vec::new()));
    assert!(checked(&page(vec![section(Vec::new())])).contains("No rows"));
}

/// `HITLESS_SAMPLE=/tmp/sample.html cargo test -p hitless-report sample` writes it for a browser.
#[test]
fn the_sample_can_be_looked_at() {
    if let Some(path) = std::env::var_os("HITLESS_SAMPLE") {
        std::fs::write(path, sample().html()).unwrap();
    }
}
