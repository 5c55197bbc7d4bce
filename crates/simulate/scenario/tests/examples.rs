//! The example of this crate, and what it prints.

#[path = "../examples/run-scenario.rs"]
mod run_scenario;

#[test]
fn each_transport_has_its_slowest_answer() {
    let rows = run_scenario::slowest().unwrap();
    let labels: Vec<&str> = rows.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels, ["transport=cubic", "transport=dctcp"]);
    // Eight answers of 100 KB take 64 µs on the link to h0.
    assert!(rows.iter().all(|(_, time)| time.as_us() > 64.0), "{rows:?}");
    assert!(rows[1].1 < rows[0].1, "DCTCP keeps the queue below its limit: {rows:?}");
    run_scenario::main().unwrap();
}
