//! The stage of these tests: a host that writes down what it is asked to do, and a monitor that hears messages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use units::{Moment, Prob};

use super::super::*;
use bus::message::{Evidence, Message, OrderKind};

/// A host whose links obey every request, and which writes down the requests.
#[derive(Debug, Default)]
pub(super) struct Hands {
    /// By port.
    pub daemons: BTreeMap<String, DaemonInfo>,
    pub routes: BTreeSet<String>,
    pub broken: Option<String>,
    /// Does what it is asked to and answers too late.
    pub late: bool,
    pub done: Vec<String>,
}

impl Hands {
    pub(super) fn with(port: &str, link: &str) -> Self {
        let daemon = DaemonInfo { link: link.to_owned(), pid: 7, wanted: false, copies: 2 };
        Self { daemons: [(port.to_owned(), daemon)].into(), ..Self::default() }
    }

    pub(super) fn named(&mut self, link: &str) -> Option<&mut DaemonInfo> {
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

pub(super) fn rules(action: PortAction) -> ActionRules {
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
pub(super) struct Story {
    pub actor: PortActor<Hands>,
    pub number: u64,
    pub now: Moment,
}

impl Story {
    pub(super) fn new(rules: ActionRules, hands: Hands) -> Self {
        Self { actor: PortActor::new(rules, hands, StoredMemory::nowhere()), number: 0, now: Moment::from_ms(1_000) }
    }

    /// The sender's monitor, with a dormant link at eth1; the other end of its cable is leaf3/eth7.
    pub(super) fn sender(action: PortAction) -> Self {
        Self::new(rules(action), Hands::with("eth1", "hit0"))
    }

    pub(super) fn hear(&mut self, id: &str, peer: Option<&str>, condition: Condition) {
        self.number += 1;
        let evidence = Evidence { frames: 1_000_000, bad: 100, loss: 1e-4, low: 8e-5, high: 1.2e-4, seconds: 9.0 };
        let state = PortState {
            earliest_ns: None,
            latest_ns: None,
            time_of: None,
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

    pub(super) fn far_end(&mut self, condition: Condition) {
        self.hear("leaf3/eth7", Some("leaf1/eth1"), condition);
    }

    pub(super) fn near_end(&mut self, condition: Condition) {
        self.hear("leaf1/eth1", Some("leaf3/eth7"), condition);
    }

    pub(super) fn order(&mut self, id: &str, kind: OrderKind) {
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
    pub(super) fn tick(&mut self) -> Vec<String> {
        self.now = self.now.after(Duration::from_secs(1));
        self.actor.tick(self.now).iter().map(|entry| format!("{} {}", entry.deed, entry.outcome)).collect()
    }

    pub(super) fn done(&self) -> &[String] {
        &self.actor.executor.done
    }

    /// The monitor is started again, and knows what it wrote down; links live on.
    pub(super) fn restart(&mut self) {
        let mut kept = StoredMemory::nowhere();
        kept.memory.clone_from(&self.actor.kept.memory);
        let hands = std::mem::take(&mut self.actor.executor);
        self.actor = PortActor::new(self.actor.rules.clone(), hands, kept);
    }
}
