//! Orders of a planner: ports switched off for repair and on again, by a monitor that is configured to obey.
//!
//! Any process that can write to the bus can give orders. The harm that they can do is bounded here: by a key, if there
//! is one, and always by how many ports may be off at a time.

use units::Moment;

use super::admission::MOST_ORDERS;
use super::{Executor, ObeyedOrder, PortActor};
use crate::journal::{ActionKind, ActionOutcome};
use bus::message::{Message, Order, OrderKind};

impl<E: Executor> PortActor<E> {
    pub(super) fn look_at_orders(&mut self, now: Moment) {
        for (port, order) in std::mem::take(&mut self.orders) {
            if !self.settle(now, &port, &order) {
                self.orders.entry(port).or_insert(order);
            }
        }
    }

    /// False if it is to be tried again.
    fn settle(&mut self, now: Moment, port: &str, order: &Order) -> bool {
        let (deed, on) = match order.kind {
            OrderKind::Disable => (ActionKind::Disable, false),
            OrderKind::Enable => (ActionKind::Enable, true),
        };
        let obeyed = self.obeyed(now, port);
        // The bus keeps the latest order; a restarted monitor hears again what it did before.
        if obeyed.is_some_and(|obeyed| (obeyed.life, obeyed.number) >= (order.life, order.number)) {
            return true;
        }
        if let Some(why) = self.order_refused(port, on, obeyed) {
            if !self.rules.obey && self.has_room_for(port) {
                // Should orders be obeyed one day, then those given from then on.
                let refused =
                    ObeyedOrder { life: order.life, number: order.number, off: obeyed.is_some_and(|was| was.off) };
                self.kept.memory.orders.insert(port.to_owned(), refused);
                self.kept.save();
            }
            self.say(now, port, deed, ActionOutcome::Refused, &format!("{why} (ordered because {})", order.why), None);
            return true;
        }
        if !on && !self.rules.ports.contains_key(port) && !self.states.contains_key(&self.id(port)) {
            // At the start it may not have been read yet.
            let why = format!("nothing was ever read of it here (ordered because {})", order.why);
            self.say(now, port, deed, ActionOutcome::Refused, &why, None);
            return false;
        }
        if let Some(why) = self.too_many_off(port).filter(|_| !on) {
            self.say(now, port, deed, ActionOutcome::Refused, &format!("{why} (ordered because {})", order.why), None);
            // The order may succeed once another port is on again.
            return false;
        }
        if !self.acts() {
            self.say(now, port, deed, ActionOutcome::Would, &order.why, None);
            return true;
        }
        if let Err(why) = self.executor.switch(port, on) {
            self.say(now, port, deed, ActionOutcome::Failed, &why, None);
            return false;
        }
        let obeyed = ObeyedOrder { life: order.life, number: order.number, off: !on };
        self.kept.memory.orders.insert(port.to_owned(), obeyed);
        self.kept.save();
        self.say(now, port, deed, ActionOutcome::Done, &order.why, None);
        true
    }

    /// Last order that was obeyed. One with an incarnation from the future, which earlier versions accepted, must not block
    /// later orders; the port that it switched off still counts as off.
    fn obeyed(&self, now: Moment, port: &str) -> Option<ObeyedOrder> {
        let obeyed = self.kept.memory.orders.get(port).copied()?;
        let is_possible = obeyed.life <= Message::latest_life(now);
        Some(if is_possible { obeyed } else { ObeyedOrder { life: 0, number: 0, ..obeyed } })
    }

    fn has_room_for(&self, port: &str) -> bool {
        self.kept.memory.orders.contains_key(port) || self.kept.memory.orders.len() < MOST_ORDERS
    }

    fn too_many_off(&self, port: &str) -> Option<String> {
        let orders = &self.kept.memory.orders;
        let off = orders.iter().filter(|(other, obeyed)| obeyed.off && *other != port).count();
        let ports = if off == 1 { "1 port is" } else { &format!("{off} ports are") };
        (off >= self.rules.most_off as usize)
            .then(|| format!("{ports} off by order already, and most-off = {} allows no more", self.rules.most_off))
    }

    fn order_refused(&mut self, port: &str, on: bool, obeyed: Option<ObeyedOrder>) -> Option<String> {
        if !self.rules.obey {
            return Some("orders are not obeyed here; `obey = true` in the configuration changes that".to_owned());
        }
        let was_ordered_off = obeyed.is_some_and(|obeyed| obeyed.off);
        if on && was_ordered_off {
            return None;
        }
        if on && self.acts() {
            return Some("it was not switched off by an order".to_owned());
        }
        self.objection(port)
    }
}
