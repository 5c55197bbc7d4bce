//! The example of this crate, and what it prints.

#[path = "../examples/compare-captures.rs"]
mod compare_captures;

#[test]
fn lost_packets_are_named() {
    let found = compare_captures::losses().unwrap();
    let frames: Vec<u64> = found.lost.iter().map(|packet| packet.frame).collect();
    assert_eq!(frames, (0..10).map(|hundred| 100 * hundred + 50).collect::<Vec<_>>());
    assert_eq!(found.judged(), 1_000);
    compare_captures::main().unwrap();
}
