//! Protection: when it begins and ends, and what others did to it meanwhile.

use std::time::Duration;

use super::super::*;
use super::story::{Hands, Story, rules};
use bus::message::OrderKind;

#[test]
fn the_sending_host_protects_with_the_loss_that_was_measured_and_ends_it_when_that_is_over() {
    let mut story = Story::sender(PortAction::Protect);
    assert!(story.tick().is_empty());
    story.far_end(Condition::Corrupting);
    assert_eq!(story.tick(), ["protect done"]);
    story.far_end(Condition::Corrupting);
    assert!(story.tick().is_empty());
    story.far_end(Condition::Unknown);
    assert!(story.tick().is_empty());
    story.far_end(Condition::Healthy);
    assert_eq!(story.tick(), ["unprotect done"]);
    assert!(story.tick().is_empty());
    assert_eq!(story.done(), ["protect hit0 1e-4", "unprotect hit0"]);
}

#[test]
fn every_entry_has_its_evidence() {
    let mut story = Story::sender(PortAction::Protect);
    story.far_end(Condition::Corrupting);
    let entries = story.actor.tick(story.now);
    assert_eq!(entries[0].about, Some(PortId::new("leaf3", "eth7")));
    assert_eq!(entries[0].evidence.unwrap().bad, 100);
    assert_eq!(entries[0].link.as_deref(), Some("hit0"));
    assert_eq!(
        entries[0].to_string(),
        "protect eth1 (hit0): leaf3/eth7 is corrupting, 1.0e-4, 2 copies of a retransmission"
    );
}

#[test]
fn observe_only_tells_everything_and_does_nothing() {
    let mut story = Story::new(ActionRules { obey: true, ..rules(PortAction::None) }, Hands::with("eth1", "hit0"));
    story.far_end(Condition::Corrupting);
    assert_eq!(story.tick(), ["protect would"]);
    assert!(story.tick().is_empty());
    story.far_end(Condition::Healthy);
    assert_eq!(story.tick(), ["unprotect would"]);
    story.near_end(Condition::Healthy);
    story.order("leaf1/eth1", OrderKind::Disable);
    assert_eq!(story.tick(), ["disable would"]);
    story.order("leaf1/eth1", OrderKind::Enable);
    assert_eq!(story.tick(), ["enable would"]);
    story.far_end(Condition::Corrupting);
    assert_eq!(story.tick(), ["protect would"]);
    assert!(story.actor.end_all(story.now).len() == 1 && story.done().is_empty());
}

#[test]
fn while_the_other_direction_corrupts_protection_stays() {
    let mut story = Story::sender(PortAction::Protect);
    story.far_end(Condition::Corrupting);
    story.near_end(Condition::Corrupting);
    assert_eq!(story.tick(), ["protect done"]);
    story.far_end(Condition::Healthy);
    assert!(story.tick().is_empty());
    // Nor does a restarted monitor end it before it knows about both.
    story.restart();
    story.far_end(Condition::Healthy);
    assert!(story.tick().is_empty());
    story.near_end(Condition::Healthy);
    assert_eq!(story.tick(), ["unprotect done"]);
}

#[test]
fn a_restarted_monitor_ends_what_its_former_life_protected() {
    let mut story = Story::sender(PortAction::Protect);
    story.far_end(Condition::Corrupting);
    story.tick();
    story.restart();
    assert!(story.tick().is_empty(), "nothing is known yet");
    story.far_end(Condition::Healthy);
    assert_eq!(story.tick(), ["unprotect done"]);
}

#[test]
fn what_a_person_protected_is_left_alone() {
    let mut story = Story::sender(PortAction::Protect);
    story.actor.executor.named("hit0").unwrap().wanted = true;
    story.far_end(Condition::Corrupting);
    assert_eq!(story.tick(), ["protect left"]);
    assert!(story.tick().is_empty());
    story.far_end(Condition::Healthy);
    assert!(story.tick().is_empty());
    assert!(story.done().is_empty());
}

#[test]
fn what_a_person_ended_stays_so_until_the_next_alarm() {
    let mut story = Story::sender(PortAction::Protect);
    story.far_end(Condition::Corrupting);
    story.tick();
    story.tick();
    story.actor.executor.named("hit0").unwrap().wanted = false;
    assert_eq!(story.tick(), ["protect left"]);
    assert!(story.tick().is_empty());
    story.far_end(Condition::Healthy);
    assert!(story.tick().is_empty());
    story.far_end(Condition::Corrupting);
    assert_eq!(story.tick(), ["protect done"]);
}

#[test]
fn a_link_that_was_started_anew_is_protected_again() {
    let mut story = Story::sender(PortAction::Protect);
    story.far_end(Condition::Corrupting);
    story.tick();
    story.tick();
    let daemon = story.actor.executor.named("hit0").unwrap();
    (daemon.pid, daemon.wanted) = (8, false);
    assert_eq!(story.tick(), ["protect done"]);
    assert_eq!(story.done().len(), 2);
}

#[test]
fn what_fails_is_told_once_and_tried_again() {
    let mut story = Story::sender(PortAction::Protect);
    story.actor.executor.broken = Some("no answer".to_owned());
    story.far_end(Condition::Corrupting);
    assert_eq!(story.tick(), ["protect failed"]);
    assert!(story.tick().is_empty());
    story.actor.executor.broken = None;
    assert_eq!(story.tick(), ["protect done"]);
    let daemons = std::mem::take(&mut story.actor.executor.daemons);
    assert_eq!(story.tick(), ["protect failed"]);
    story.actor.executor.daemons = daemons;
    story.actor.executor.broken = Some("no answer".to_owned());
    story.far_end(Condition::Healthy);
    assert_eq!(story.tick(), ["unprotect failed"]);
    assert!(story.tick().is_empty());
    story.actor.executor.broken = None;
    assert_eq!(story.tick(), ["unprotect done"]);
}

#[test]
fn an_answer_that_is_lost_leaves_no_protection_behind() {
    let mut story = Story::sender(PortAction::Protect);
    story.actor.executor.late = true;
    story.far_end(Condition::Corrupting);
    assert_eq!(story.tick(), ["protect failed"]);
    story.actor.executor.late = false;
    story.tick();
    story.far_end(Condition::Healthy);
    assert_eq!(story.tick(), ["unprotect done"]);
    assert_eq!(story.done(), ["protect hit0 1e-4", "unprotect hit0"]);
}

#[test]
fn protection_that_nobody_watches_any_more_ends_after_an_hour() {
    let mut story = Story::sender(PortAction::Protect);
    story.far_end(Condition::Corrupting);
    story.tick();
    story.far_end(Condition::Unknown);
    story.now = story.now.after(Duration::from_secs(3_500));
    story.far_end(Condition::Unknown);
    assert!(story.tick().is_empty());
    story.now = story.now.after(Duration::from_secs(200));
    assert_eq!(story.tick(), ["unprotect done"]);
}

#[test]
fn asked_to_leave_nothing_behind_it_ends_what_it_protected_and_only_that() {
    let mut story = Story::sender(PortAction::Protect);
    let daemon = DaemonInfo { link: "hit1".to_owned(), pid: 9, wanted: true, copies: 2 };
    story.actor.executor.daemons.insert("eth2".to_owned(), daemon);
    story.far_end(Condition::Corrupting);
    story.hear("leaf4/eth7", Some("leaf1/eth2"), Condition::Corrupting);
    assert_eq!(story.tick(), ["protect done", "protect left"]);
    assert_eq!(story.actor.end_all(story.now).len(), 1);
    assert_eq!(story.done(), ["protect hit0 1e-4", "unprotect hit0"]);
    assert!(story.actor.protected().is_empty());
}
