use std::time::Duration;

use testkit::page::{assert_finite, assert_well_formed};
use units::{Prob, Rate};

use super::*;
use crate::demo::DemoFigures;
use crate::stage::WireCount;
use load::RoundTrips;

fn plan(loss: f64) -> DemoPlan {
    DemoPlan {
        loss: Prob::literal(loss),
        heavy_loss: Prob::literal(1e-2),
        rate: Some(Rate::gbps(1)),
        rounds: 3,
        round_trips: 1_000,
        bulk: Duration::from_millis(1_500),
        mode: LinkMode::Ordered,
        host: HostBackend::Auto,
        wire: WireBackend::Auto,
    }
}

fn figures(slow: f64, gbps: f64, heavy: Option<f64>, count: u64) -> DemoFigures {
    let round = |number: u32| {
        let mut trips = RoundTrips::default();
        for at in 0..count {
            trips.record(Duration::from_micros(if at % 500 == 0 { slow as u64 } else { 20 + at % 10 }));
        }
        let round = DemoRound {
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
    DemoFigures::of((0..3).map(round).collect())
}

fn story() -> DemoResult {
    let recovery = DemoRecovery { recovered: 12_345, given_up: 0, recovery_p50_us: Some(15.0), recovery_p99_us: None };
    DemoResult {
        clean: figures(31.0, 0.941, None, 1_000),
        corrupting: figures(203_000.0, 0.512, Some(0.013), 1_000),
        protected: DemoFigures { recovery: Some(recovery), ..figures(171.0, 0.937, Some(0.921), 1_000) },
        clean_chain: figures(55.0, 0.939, None, 1_000),
        simulated: false,
        backend: "tap".to_owned(),
        rootless: true,
        loss: 1e-3,
        rate_gbps: Some(1.0),
        completed: 3,
    }
}

#[test]
fn the_page_has_every_case_with_its_figures() {
    let page = page(&story(), &plan(1e-3));
    for case in DemoCase::ALL {
        assert!(page.contains(case.title()), "{case:?}");
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
    let story = DemoResult { backend: "<script>\"tap\" & more".to_owned(), ..story() };
    let page = page(&story, &plan(1e-3));
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;&quot;tap&quot; &amp; more"));
    assert_well_formed(&page);
}

#[test]
fn a_story_in_which_nothing_happened_has_a_page() {
    let nothing = || figures(0.0, 0.0, None, 0);
    let story = DemoResult {
        clean: nothing(),
        corrupting: figures(0.0, 0.0, Some(0.0), 0),
        protected: figures(0.0, 0.0, Some(0.0), 0),
        clean_chain: DemoFigures { rounds: Vec::new(), ..nothing() },
        simulated: true,
        completed: 1,
        rate_gbps: None,
        ..story()
    };
    let page = page(&story, &DemoPlan { rate: None, ..plan(0.0) });
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
    let rooted = DemoResult { rootless: false, ..story() };
    assert_eq!(command(&rooted, &plan(1e-3)), plain);
    let unusual =
        DemoPlan { mode: LinkMode::NonBlocking, host: HostBackend::Veth, wire: WireBackend::Packet, ..plan(1e-3) };
    assert_eq!(
        command(&story(), &unusual),
        format!("{plain} --mode nonblocking --backend veth --wire packet --rootless")
    );
    let simulated = DemoResult { simulated: true, ..story() };
    let unlimited = DemoPlan { rate: None, ..plan(0.02) };
    assert!(command(&simulated, &unlimited).starts_with("hitless demo --loss 0.02 --rate none "));
    assert!(command(&simulated, &unlimited).ends_with(" --simulated"));
}

#[test]
fn an_interrupted_story_says_so() {
    assert!(summary(&DemoResult { completed: 2, ..story() }, &plan(1e-3)).contains("2 of 3 rounds (interrupted)"));
}
