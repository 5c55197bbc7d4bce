//! `hitless fleet repaired`: how a repair is reported.

use bus::Message;
use bus::{Bus, BusError, PublishResult};
use fleet::corrupting::{LinkFault, PortReports};
use fleet::fabric::LinkEnd;
use fleet::watch::repaired;
use linux::clock::time_of_day;
use serde::Serialize;
use units::Moment;

use crate::args::RepairedArgs;
use crate::output::{CommandResult, Failure, print};

/// Number of attempts; each fails if somebody else is faster.
const TRIES: usize = 5;

#[derive(Serialize)]
struct RepairedResult {
    link: String,
    /// The ports that were notified.
    ports: Vec<String>,
    was_disabled: bool,
}

pub(super) fn run(args: &RepairedArgs, json: bool) -> CommandResult {
    let fabric = super::load(&args.topology)?;
    let (mut bus, key) = super::order_bus(&args.orders)?;
    let mut reports = PortReports::new(&fabric).with_key(key);
    let link = reports.names().link(&args.link).map_err(|error| Failure::Usage(error.to_string()))?;
    let outside = |error: BusError| Failure::Outside(error.to_string());
    for _ in 0..TRIES {
        let now = Moment::from_ms(u64::try_from(time_of_day().as_millis()).unwrap_or(u64::MAX));
        let messages = known(&mut *bus, &reports, link).map_err(outside)?;
        reports.hear_all(&PortReports::possible(now, &messages).0);
        let was_disabled = matches!(reports.trouble(link), Some(LinkFault::Disabled { .. }));
        let orders = repaired(&reports, link, now, now.as_ms(), "repaired");
        if orders.is_empty() {
            return Err(Failure::Usage(format!(
                "{}: its ports are not known, neither from the topology nor from what monitors published",
                fabric.name(link)
            )));
        }
        let mut ports = Vec::new();
        for order in orders {
            let id = order.id.to_string();
            match bus.publish(&Message::Order(order)).map_err(outside)? {
                PublishResult::Now | PublishResult::Before => ports.push(id),
                PublishResult::Outdated => break,
            }
        }
        if ports.len() == reports.ports(link).iter().flatten().count() {
            let answer = RepairedResult { link: fabric.name(link).to_string(), ports, was_disabled };
            return print(json, &answer, || describe(&answer));
        }
    }
    Err(Failure::Outside(format!("{}: others give its ports orders all the time", fabric.name(link))))
}

/// Messages of the bus about the ports of a link; about all ports if the link's are not known.
fn known(bus: &mut dyn Bus, reports: &PortReports<'_>, link: fleet::LinkId) -> Result<Vec<Message>, BusError> {
    let ports = LinkEnd::BOTH.map(|end| reports.names().fabric().port_at(link, end));
    if ports.contains(&None) {
        return bus.catch_up();
    }
    let keys: Vec<String> =
        ports.iter().flatten().flat_map(|id| [format!("port:{id}"), format!("order:{id}")]).collect();
    Ok(bus.latest(&keys)?.into_iter().flatten().collect())
}

fn describe(answer: &RepairedResult) -> String {
    let ports = answer.ports.join(" and ");
    let note = if answer.was_disabled { "" } else { "; it had not been ordered out of it" };
    format!("{}: {ports} ordered back into service{note}", answer.link)
}
