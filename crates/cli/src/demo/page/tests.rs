use std::time::Duration;

use lab::demo::Figures;
use lab::load::RoundTrips;
use lab::stage::WireCount;
use units::{Prob, Rate};

use super::*;

fn plan(loss: f64) -> Plan {
    Plan {
        loss: Prob::literal(loss),
        heavy_loss: Prob::literal(1e-2),
        rate: Some(Rate::gbps(1)),
        rounds: 3,
        round_trips: 1_000,
        bulk: Duration::from_millis(1_500),
        mode: Mode::Ordered,
        host: HostBackend::Auto,
        wire: WireBackend::Auto,
    }
}

fn figures(slow: f64, gbps: f64, heavy: Option<f64>, count: u64) -> Figures {
    let round = |number: u32| {
        let mut trips = RoundTrips::default();
        for at in 0..count {
            trips.record(Duration::from_micros(if at % 500 == 0 { slow as u64 } else { 20 + at % 10 }));
        }
        let round = Round {
            throughput_gbps: gbps,
            throughput_at_1e2_gbps: heavy,
            pingpong_p50_us: 24.0,
            pingpong_p99_us: 29.0,
            pingpong_p999_us: slow + f64::from(number),
            pingpong_max_us: slow + 7.0,
            pingpong_beside_bulk_p50_us: 812.0,
            over_100ms: 2,
            wire: WireCount { offered: 400_000, dropped: 411 },
            tcp_retransmitted: 321,
        };
        (round, trips)
    };
    Figures::of((0..3).map(round).collect())
}

fn story() -> Story {
    let recovery = Recovery { recovered: 12_345, given_up: 0, recovery_p50_us: Some(15.0), recovery_p99_us: None };
    Story {
        clean: figures(31.0, 0.941, None, 1_000),
        corrupting: figures(203_000.0, 0.512, Some(0.013), 1_000),
        protected: Figures { recovery: Some(recovery), ..figures(171.0, 0.937, Some(0.921), 1_000) },
        clean_chain: figures(55.0, 0.939, None, 1_000),
        simulated: false,
        backend: "tap".to_owned(),
        rootless: true,
        loss: 1e-3,
        rate_gbps: Some(1.0),
        completed: 3,
    }
}

/// Every element that is opened is closed, in the right order.
fn assert_well_formed(page: &str) {
    const VOID: [&str; 1] = ["meta"];
    let mut open = Vec::new();
    for part in page.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends before the next one begins");
        assert!(!text.contains('>'), "a stray bracket after {tag}");
        let name = tag.trim_start_matches('/').split_whitespace().next().unwrap_or_default().trim_end_matches('/');
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closed by </{name}>");
        } else if !tag.starts_with('!') && !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in <{tag}>");
    }
    assert!(open.is_empty(), "still open: {open:?}");
}

fn assert_finite(page: &str) {
    let words = page.split(|letter: char| !letter.is_ascii_alphanumeric());
    for word in words {
        assert!(!["nan", "inf", "infinity"].contains(&word.to_lowercase().as_str()), "{word}");
    }
}

#[test]
fn the_page_has_every_case_with_its_figures() {
    let page = page(&story(), &plan(1e-3));
    for case in Case::ALL {
        assert!(page.contains(title(case)), "{case:?}");
    }
    let found = ["0.941 Gbit/s", "0.512 Gbit/s", "0.937 Gbit/s", "0.939 Gbit/s", "0.013 Gbit/s", "0.921 Gbit/s"];
    for figure in found.into_iter().chain(["32 µs", "203 ms", "172 µs", "56 µs", "812 µs", "12,345", "1,233", "963"])
    {
        assert!(page.contains(figure), "{figure}");
    }
    assert_well_formed(&page);
    assert_finite(&page);
    assert_eq!(page.matches("role=\"img\"").count(), 3);
    assert_eq!(page.matches("class=\"round ").count(), 12, "a dot for each case and round");
}

#[test]
fn what_is_inserted_is_escaped() {
    let story = Story { backend: "<script>\"tap\" & more".to_owned(), ..story() };
    let page = page(&story, &plan(1e-3));
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;&quot;tap&quot; &amp; more"));
    assert_well_formed(&page);
}

#[test]
fn a_story_in_which_nothing_happened_has_a_page() {
    let nothing = || figures(0.0, 0.0, None, 0);
    let story = Story {
        clean: nothing(),
        corrupting: figures(0.0, 0.0, Some(0.0), 0),
        protected: figures(0.0, 0.0, Some(0.0), 0),
        clean_chain: Figures { rounds: Vec::new(), ..nothing() },
        simulated: true,
        completed: 1,
        rate_gbps: None,
        ..story()
    };
    let page = page(&story, &Plan { rate: None, ..plan(0.0) });
    assert_well_formed(&page);
    assert_finite(&page);
}

#[test]
fn figures_that_are_no_numbers_are_not_shown_as_numbers() {
    let mut story = story();
    story.corrupting.median.throughput_at_1e2_gbps = Some(0.0);
    story.clean.median.pingpong_p999_us = f64::NAN;
    story.clean.rounds[0].throughput_gbps = f64::INFINITY;
    let tables = [medians(&story).html(), rounds(&story).html()].concat();
    assert_finite(&tables);
    assert_well_formed(&tables);
}

#[test]
fn the_command_says_what_was_not_default() {
    let plain = "hitless demo --loss 1e-3 --rate 1G --rounds 3 --requests 1000 --seconds 1.5";
    let rooted = Story { rootless: false, ..story() };
    assert_eq!(command(&rooted, &plan(1e-3)), plain);
    let unusual = Plan { mode: Mode::NonBlocking, host: HostBackend::Veth, wire: WireBackend::Packet, ..plan(1e-3) };
    assert_eq!(
        command(&story(), &unusual),
        format!("{plain} --mode nonblocking --backend veth --wire packet --rootless")
    );
    let simulated = Story { simulated: true, ..story() };
    let unlimited = Plan { rate: None, ..plan(0.02) };
    assert!(command(&simulated, &unlimited).starts_with("hitless demo --loss 0.02 --rate none "));
    assert!(command(&simulated, &unlimited).ends_with(" --simulated"));
}

#[test]
fn an_interrupted_story_says_so() {
    assert!(summary(&Story { completed: 2, ..story() }, &plan(1e-3)).contains("2 of 3 rounds (interrupted)"));
}
