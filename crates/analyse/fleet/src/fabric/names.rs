//! From names to numbers: switches (`pod3/tor7`), links (`pod3/tor7--pod3/fabric1`, `a--b#2`) and ports
//! (`leaf3/eth1`).
//!
//! Kept apart from the fabric, because simulations need no names.

use std::fmt;

use bus::PortId;
use units::nearest;

use super::{Fabric, FabricLink, LinkId, SwitchId};

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkEnd {
    Lower,
    Upper,
}

impl LinkEnd {
    pub const BOTH: [Self; 2] = [Self::Lower, Self::Upper];
}

impl Fabric {
    pub(crate) fn switch_at(&self, link: LinkId, end: LinkEnd) -> SwitchId {
        let FabricLink { lower, upper, .. } = *self.link(link);
        match end {
            LinkEnd::Lower => lower,
            LinkEnd::Upper => upper,
        }
    }

    /// The port at one end of a link, if it is known.
    pub fn port_at(&self, link: LinkId, end: LinkEnd) -> Option<PortId> {
        let port = self.interface_at(link, end)?;
        Some(PortId::new(self.switch(self.switch_at(link, end)).name.clone(), port))
    }

    fn interface_at(&self, link: LinkId, end: LinkEnd) -> Option<&str> {
        self.link(link).ports.as_ref().map(|[lower, upper]| match end {
            LinkEnd::Lower => &**lower,
            LinkEnd::Upper => &**upper,
        })
    }
}

/// The switches of a fabric, sorted by name. All else is found from there: a switch has few links.
#[derive(Clone, Debug)]
pub struct SwitchNames<'a> {
    fabric: &'a Fabric,
    sorted: Vec<SwitchId>,
}

/// A name that nothing in the fabric has, and one that it may have meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// A switch, a link, a port.
    what: &'static str,
    name: String,
    nearest: Option<String>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {} is called '{}'", self.what, self.name)?;
        match &self.nearest {
            Some(nearest) => write!(f, ": did you mean '{nearest}'?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownName {}

impl<'a> SwitchNames<'a> {
    pub fn of(fabric: &'a Fabric) -> Self {
        let mut sorted: Vec<SwitchId> = (0..fabric.switches().len() as u32).map(SwitchId).collect();
        sorted.sort_unstable_by_key(|switch| fabric.switch(*switch).name.as_str());
        Self { fabric, sorted }
    }

    pub fn fabric(&self) -> &'a Fabric {
        self.fabric
    }

    pub fn switch(&self, name: &str) -> Result<SwitchId, UnknownName> {
        self.find(name).ok_or_else(|| UnknownName {
            what: "switch",
            name: name.to_owned(),
            nearest: self.nearest(name).map(|switch| self.fabric.switch(switch).name.clone()),
        })
    }

    fn find(&self, name: &str) -> Option<SwitchId> {
        let name_of = |switch: &SwitchId| self.fabric.switch(*switch).name.as_str();
        self.sorted.binary_search_by_key(&name, name_of).ok().map(|place| self.sorted[place])
    }

    fn nearest(&self, name: &str) -> Option<SwitchId> {
        self.find(nearest(name, self.fabric.switches().iter().map(|switch| switch.name.as_str()))?)
    }

    /// Finds a link by its name, with either end first, or by a port at one of its ends.
    pub fn link(&self, name: &str) -> Result<LinkId, UnknownName> {
        // Names of switches may have dashes themselves, so each place is tried.
        let parts = || name.match_indices("--").map(|(at, dashes)| (&name[..at], &name[at + dashes.len()..]));
        if let Some(link) = parts().find_map(|(one, other)| self.link_of(one, other)) {
            return Ok(link);
        }
        let nearest_port = match name.parse().map(|port| self.port(&port)) {
            Ok(Ok((link, _))) => return Ok(link),
            Ok(Err(UnknownName { what: "port", nearest, .. })) => nearest,
            Ok(Err(_)) | Err(_) => None,
        };
        let nearest_link = parts().find_map(|(one, other)| self.nearest_link(one, other));
        let nearest = nearest_link.map(|link| self.fabric.name(link).to_string()).or(nearest_port);
        Err(UnknownName { what: "link", name: name.to_owned(), nearest })
    }

    /// `other` may have the number of a parallel link behind it.
    fn link_of(&self, one: &str, other: &str) -> Option<LinkId> {
        let one = self.find(one)?;
        if let Some(other) = self.find(other) {
            return self.between(one, other).next();
        }
        let (other, number) = other.rsplit_once('#')?;
        let earlier = number.parse::<usize>().ok()?.checked_sub(1)?;
        self.between(one, self.find(other)?).nth(earlier)
    }

    fn nearest_link(&self, one: &str, other: &str) -> Option<LinkId> {
        let [one, other] = [one, other].map(|name| self.find(name).or_else(|| self.nearest(name)));
        let one = one?;
        self.between(one, other?).next().or_else(|| self.fabric.up(one).first().copied())
    }

    /// All links between two switches.
    pub fn between(&self, one: SwitchId, other: SwitchId) -> impl Iterator<Item = LinkId> {
        let fabric = self.fabric;
        let up = move |low, high| fabric.up(low).iter().copied().filter(move |link| fabric.link(*link).upper == high);
        up(one, other).chain(up(other, one))
    }

    /// The link at a port, and which end of it the port is.
    pub fn port(&self, id: &PortId) -> Result<(LinkId, LinkEnd), UnknownName> {
        let switch = self.switch(&id.host)?;
        self.ports_of(switch).find(|(_, _, port)| *port == id.port).map(|(link, end, _)| (link, end)).ok_or_else(|| {
            let nearest = nearest(&id.port, self.ports_of(switch).map(|(_, _, port)| port));
            UnknownName {
                what: "port",
                name: id.to_string(),
                nearest: nearest.map(|port| format!("{}/{port}", id.host)),
            }
        })
    }

    fn ports_of(&self, switch: SwitchId) -> impl Iterator<Item = (LinkId, LinkEnd, &'a str)> {
        let fabric = self.fabric;
        let at = move |end| move |link: &LinkId| fabric.interface_at(*link, end).map(|port| (*link, end, port));
        fabric
            .up(switch)
            .iter()
            .filter_map(at(LinkEnd::Lower))
            .chain(fabric.down(switch).iter().filter_map(at(LinkEnd::Upper)))
    }
}
