//! Orders to switch ports off and on.

use super::super::*;
use super::story::{Hands, Story, rules};
use bus::message::OrderKind;

#[test]
fn an_order_that_was_refused_is_not_obeyed_later() {
    let mut story = Story::sender(PortAction::Protect);
    story.near_end(Condition::Healthy);
    story.order("leaf1/eth1", OrderKind::Disable);
    assert_eq!(story.tick(), ["disable refused"]);
    story.actor.rules.obey = true;
    story.number -= 1;
    story.order("leaf1/eth1", OrderKind::Disable);
    assert!(story.tick().is_empty() && story.done().is_empty());
}

#[test]
fn orders_are_obeyed_only_where_that_was_asked_for() {
    let mut story = Story::sender(PortAction::Protect);
    story.order("leaf1/eth1", OrderKind::Disable);
    assert_eq!(story.tick(), ["disable refused"]);
    let mut story = Story::new(ActionRules { obey: true, ..rules(PortAction::Protect) }, Hands::with("eth1", "hit0"));
    story.actor.executor.routes.insert("eth0".to_owned());
    story.hear("leaf1/eth0", None, Condition::Healthy);
    story.near_end(Condition::Healthy);
    let refused = &["disable refused"][..];
    for (id, told) in [
        ("leaf1/eth0", refused),
        ("leaf2/eth1", &[]),
        // Nobody watches those.
        ("leaf1/lo", refused),
        ("leaf1/docker0", refused),
        ("leaf1/eth1", &["disable done"]),
    ] {
        story.order(id, OrderKind::Disable);
        assert_eq!(story.tick(), told, "{id}");
    }
    // The bus repeats the latest order to a monitor that starts.
    story.restart();
    let number = story.number;
    story.number -= 1;
    story.order("leaf1/eth1", OrderKind::Disable);
    assert!(story.tick().is_empty());
    story.number = number;
    story.order("leaf1/eth1", OrderKind::Enable);
    assert_eq!(story.tick(), ["enable done"]);
    assert_eq!(story.done(), ["eth1 off", "eth1 on"]);
}

#[test]
fn a_port_that_a_person_switched_off_is_not_switched_on_by_an_order() {
    let mut story = Story::new(ActionRules { obey: true, ..rules(PortAction::Protect) }, Hands::with("eth1", "hit0"));
    story.order("leaf1/eth1", OrderKind::Enable);
    assert_eq!(story.tick(), ["enable refused"]);
    assert!(story.done().is_empty());
}
