//! Tests of the port that is meant, of the monitor that acts for it, and of refused ports.

use super::super::*;
use super::story::{Hands, Story, rules};

#[test]
fn on_a_bus_of_many_hosts_the_receiver_leaves_it_to_the_sender() {
    let mut story = Story::sender(PortAction::Protect);
    story.near_end(Condition::Corrupting);
    assert!(story.tick().is_empty());
    assert!(story.done().is_empty());
}

#[test]
fn without_such_a_bus_the_receiver_asks_its_own_link() {
    let mut story =
        Story::new(ActionRules { sender_acts: false, ..rules(PortAction::Protect) }, Hands::with("eth1", "hit0"));
    story.near_end(Condition::Corrupting);
    assert_eq!(story.tick(), ["protect done"]);
    story.near_end(Condition::Healthy);
    assert_eq!(story.tick(), ["unprotect done"]);
}

#[test]
fn a_port_without_a_link_is_told_of() {
    let mut story = Story::new(rules(PortAction::Protect), Hands::default());
    story.far_end(Condition::Corrupting);
    let entries = story.actor.tick(story.now);
    assert!(entries[0].why.contains("hitless link up eth1 --dormant"), "{}", entries[0].why);
}

#[test]
fn a_port_with_the_default_route_is_refused_unless_it_is_named() {
    let mut story = Story::sender(PortAction::Protect);
    story.actor.executor.routes.insert("eth1".to_owned());
    story.far_end(Condition::Corrupting);
    assert_eq!(story.tick(), ["protect refused"]);
    assert!(story.tick().is_empty());
    // Its stand-in has taken the route over.
    story.actor.executor.routes = ["hit0".to_owned()].into();
    assert_eq!(story.tick(), ["protect refused"]);
    story.actor.rules.ports.insert("eth1".to_owned(), PortRule::default());
    assert_eq!(story.tick(), ["protect done"]);
}

#[test]
fn a_port_that_is_excluded_or_not_watched_is_refused() {
    let excluded = ActionRules { excluded: vec!["eth?".parse().unwrap()], ..rules(PortAction::Protect) };
    let unwatched = ActionRules { watched: vec!["swp*".to_owned()], ..rules(PortAction::Protect) };
    for rules in [excluded, unwatched] {
        let mut story = Story::new(rules, Hands::with("eth1", "hit0"));
        story.far_end(Condition::Corrupting);
        assert_eq!(story.tick(), ["protect refused"]);
    }
}

#[test]
fn ends_that_do_not_agree_on_the_cable_are_refused() {
    let mut story = Story::sender(PortAction::Protect);
    let rule = PortRule { peer: Some("leaf9/eth9".parse().unwrap()), link: None };
    story.actor.rules.ports.insert("eth1".to_owned(), rule);
    story.far_end(Condition::Corrupting);
    assert_eq!(story.tick(), ["protect refused"]);
}

#[test]
fn it_is_enough_that_one_end_knows_the_cable() {
    let mut story = Story::sender(PortAction::Protect);
    let rule = PortRule { peer: Some("leaf3/eth7".parse().unwrap()), link: None };
    story.actor.rules.ports.insert("eth1".to_owned(), rule);
    story.hear("leaf3/eth7", None, Condition::Corrupting);
    assert_eq!(story.tick(), ["protect done"]);
}

#[test]
fn a_corrupting_port_whose_sender_nobody_knows_is_told_of() {
    let mut story = Story::sender(PortAction::Protect);
    story.hear("leaf1/eth1", None, Condition::Corrupting);
    assert_eq!(story.tick(), ["protect left"]);
    assert!(story.tick().is_empty());
}

#[test]
fn a_cable_that_was_plugged_in_elsewhere_is_no_reason_any_more() {
    let mut story = Story::sender(PortAction::Protect);
    story.far_end(Condition::Corrupting);
    assert_eq!(story.tick(), ["protect done"]);
    story.hear("leaf3/eth7", Some("leaf2/eth4"), Condition::Corrupting);
    assert_eq!(story.tick(), ["unprotect done"]);
}

#[test]
fn messages_that_are_old_or_about_others_change_nothing() {
    let mut story = Story::sender(PortAction::Protect);
    story.hear("leaf3/eth8", Some("leaf2/eth1"), Condition::Corrupting);
    story.far_end(Condition::Corrupting);
    let number = story.number;
    story.far_end(Condition::Healthy);
    story.number = number - 1;
    story.far_end(Condition::Corrupting);
    assert!(story.tick().is_empty());
    assert!(story.done().is_empty());
    assert_eq!(story.actor.states.len(), 1, "nor are they kept");
}
