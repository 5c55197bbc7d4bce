//! The example of this crate, and what it prints.

use sim::link::LinkSimMode;

#[path = "../examples/protect-link.rs"]
mod protect_link;

#[test]
fn protection_hides_what_the_wire_corrupts() {
    let [bare, protected] = [LinkSimMode::None, LinkSimMode::Ordered].map(|mode| protect_link::outcome(mode).unwrap());
    assert!(bare.frames_lost > 800 && bare.frames_lost == bare.frames_corrupted, "{bare:?}");
    assert!(protected.frames_corrupted > 800 && protected.frames_lost == 0, "{protected:?}");
    protect_link::main().unwrap();
}
