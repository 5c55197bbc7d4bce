use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use units::{Moment, Prob};

use super::*;
use bus::message::{Evidence, Message, OrderKind};

/// A host whose links obey every request, and which writes down the requests.
#[derive(Debug, Default)]
struct Hands {
    /// By port.
    daemons: BTreeMap<String, DaemonInfo>,
    routes: BTreeSet<String>,
    broken: Option<String>,
    /// Does what it is asked to and answers too late.
    late: bool,
    done: Vec<String>,
}

impl Hands {
    fn with(port: &str, link: &str) -> Self {
        let daemon = DaemonInfo { link: link.to_owned(), pid: 7, wanted: false, copies: 2 };
        Self { daemons: [(port.to_owned(), daemon)].into(), ..Self::default() }
    }

    fn named(&mut self, link: &str) -> Option<&mut DaemonInfo> {
        self.daemons.values_mut().find(|daemon| daemon.link == link)
    }

    fn ask(&mut self, link: &str, wanted: bool, what: String) -> Result<(), String> {
        if let Some(why) = &self.broken {
            return Err(why.clone());
        }
        self.named(link).ok_or("no such link")?.wanted = wanted;
        self.done.push(what);
        if self.late { Err("no answer".to_owned()) } else { Ok(()) }
    }
}

impl Executor for Hands {
    fn daemon(&mut self, port: &str, link: Option<&str>) -> Result<Option<DaemonInfo>, String> {
        Ok(match link {
            Some(link) => self.named(link).cloned(),
            None => self.daemons.get(port).cloned(),
        })
    }

    fn protect(&mut self, link: &str, loss: Prob) -> Result<(), String> {
        self.ask(link, true, format!("protect {link} {loss}"))
    }

    fn unprotect(&mut self, link: &str) -> Result<(), String> {
        self.ask(link, false, format!("unprotect {link}"))
    }

    fn switch(&mut self, port: &str, on: bool) -> Result<(), String> {
        self.done.push(format!("{port} {}", if on { "on" } else { "off" }));
        Ok(())
    }

    fn default_routes(&mut self) -> Result<BTreeSet<String>, String> {
        Ok(self.routes.clone())
    }
}

fn rules(action: PortAction) -> ActionRules {
    ActionRules {
        host: "leaf1".to_owned(),
        action,
        obey: false,
        most_off: 1,
        order_key: None,
        sender_acts: true,
        ports: BTreeMap::new(),
        watched: Vec::new(),
        excluded: Vec::new(),
    }
}

/// A monitor and the messages that reach it, numbered.
struct Story {
    actor: PortActor<Hands>,
    number: u64,
    now: Moment,
}

impl Story {
    fn new(rules: ActionRules, hands: Hands) -> Self {
        Self { actor: PortActor::new(rules, hands, StoredMemory::nowhere()), number: 0, now: Moment::from_ms(1_000) }
    }

    /// The sender's monitor, with a dormant link at eth1; the other end of its cable is leaf3/eth7.
    fn sender(action: PortAction) -> Self {
        Self::new(rules(action), Hands::with("eth1", "hit0"))
    }

    fn hear(&mut self, id: &str, peer: Option<&str>, condition: Condition) {
        self.number += 1;
        let evidence = Evidence { frames: 1_000_000, bad: 100, loss: 1e-4, low: 8e-5, high: 1.2e-4, seconds: 9.0 };
        let state = PortState {
            id: id.parse().unwrap(),
            peer: peer.map(|peer| peer.parse().unwrap()),
            at: self.now,
            life: 1,
            number: self.number,
            condition,
            sticky: false,
            evidence,
            why: "a test says so".to_owned(),
        };
        self.actor.hear(self.now, &Message::Port(state));
    }

    fn far_end(&mut self, condition: Condition) {
        self.hear("leaf3/eth7", Some("leaf1/eth1"), condition);
    }

    fn near_end(&mut self, condition: Condition) {
        self.hear("leaf1/eth1", Some("leaf3/eth7"), condition);
    }

    fn order(&mut self, id: &str, kind: OrderKind) {
        self.number += 1;
        let order = Order {
            id: id.parse().unwrap(),
            at: self.now,
            life: 1,
            number: self.number,
            kind,
            why: "repair".to_owned(),
            tag: None,
        };
        self.actor.hear(self.now, &Message::Order(order));
    }

    /// Advances by a second and returns what was done and reported.
    fn tick(&mut self) -> Vec<String> {
        self.now = self.now.after(Duration::from_secs(1));
        self.actor.tick(self.now).iter().map(|entry| format!("{} {}", entry.deed, entry.outcome)).collect()
    }

    fn done(&self) -> &[String] {
        &self.actor.executor.done
    }

    /// The monitor is started again, and knows what it wrote down; links live on.
    fn restart(&mut self) {
        let mut kept = StoredMemory::nowhere();
        kept.memory.clone_from(&self.actor.kept.memory);
        let hands = std::mem::take(&mut self.actor.executor);
        self.actor = PortActor::new(self.actor.rules.clone(), hands, kept);
    }
}

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
