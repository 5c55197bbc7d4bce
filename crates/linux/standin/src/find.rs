//! The interface that is to be protected: whether it is there and ready, and what room and speed it has.

use units::Rate;

use super::StandInConfig;
use linux::SystemError;
use linux::net::{InterfaceInfo, Netlink, StandInMark};

/// State of an interface that is to be protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceState {
    Ready(InterfaceInfo),
    Absent(String),
    Down(String),
    /// It can never be protected.
    Unsuitable(String),
}

/// Looks for the interface that is to be protected.
pub fn find(interface: &str) -> Result<InterfaceState, SystemError> {
    look_for(&Netlink::open()?, interface)
}

fn look_for(netlink: &Netlink, interface: &str) -> Result<InterfaceState, SystemError> {
    let Some(link) = netlink.wire_of(interface)? else {
        return Ok(InterfaceState::Absent(format!(
            "there is no interface {interface}; `ip link` shows which there are"
        )));
    };
    Ok(if link.mac == [0; 6] {
        InterfaceState::Unsuitable(format!(
            "{interface} has no Ethernet address, so it is no link that can be protected"
        ))
    } else if !link.up {
        InterfaceState::Down(format!("{interface} is down; `ip link set dev {} up` first", link.name))
    } else {
        InterfaceState::Ready(link)
    })
}

/// The interface that a stand-in stands in for, by its alias.
pub fn stands_in_for(link: &InterfaceInfo) -> Option<String> {
    StandInMark::of(link).map(|mark| mark.interface)
}

/// The name by which a stand-in's daemon, its socket and its notes are found, whatever name of it is given.
pub fn own_name(stand_in: &str) -> Option<String> {
    let link = Netlink::open().and_then(|netlink| netlink.link(stand_in)).ok()??;
    StandInMark::of(&link)?.own_name
}

pub(super) fn existing(netlink: &Netlink, interface: &str) -> Result<InterfaceInfo, SystemError> {
    match look_for(netlink, interface)? {
        InterfaceState::Ready(link) => Ok(link),
        InterfaceState::Absent(why) | InterfaceState::Down(why) | InterfaceState::Unsuitable(why) => {
            Err(SystemError(why))
        }
    }
}

/// The MTU that the wire leaves for the stand-in.
pub(super) fn room(config: &StandInConfig, wire: u32, overhead: u32) -> Result<u32, SystemError> {
    const LEAST: u32 = StandInConfig::LEAST_MTU;
    let interface = &config.interface;
    let most = wire.saturating_sub(overhead);
    match config.mtu {
        Some(mtu) if mtu > most => Err(SystemError(format!(
            "an MTU of {mtu} needs {} on {interface}, which has {wire}: the header takes {overhead}; \
             `ip link set dev {interface} mtu {}` at both ends, or --mtu {most}",
            mtu + overhead,
            mtu + overhead,
        ))),
        None if most < LEAST => Err(SystemError(format!(
            "{interface} has an MTU of {wire}, too small: the header takes {overhead} and at least {LEAST} must be left; \
             `ip link set dev {interface} mtu 1500`"
        ))),
        mtu => Ok(mtu.unwrap_or(most).min(9_000)),
    }
}

/// The speed of an interface, if it has a wire and says so.
pub fn speed(netlink: &Netlink, interface: &str) -> Option<Rate> {
    // Interfaces without a wire have only a nominal speed.
    let driver = netlink.driver(interface).ok()?;
    if matches!(driver.as_str(), "veth" | "tun" | "bridge" | "dummy") {
        return None;
    }
    format!("{}M", netlink.speed(interface).ok()??).parse().ok()
}
