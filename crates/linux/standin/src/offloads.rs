//! Offloads that the two interfaces of a link must not have.
//!
//! The host's frames come with a vnet header, which can say "segment this TCP" and "finish this checksum", and no more:
//! nothing in it speaks of tunnels, of SCTP or of lists of frames. A veth offers the host all of these, and what the host then
//! leaves undone cannot be done here. So they are switched off on the stand-in, and the kernel segments such
//! frames itself, right before it hands them over.
//!
//! A veth has another limit: it receives nothing that is longer than its own MTU ([`StandIn::take_long_frames`]).
//!
//! On the wire it is the other way around: a card that joins frames on arrival (LRO, GRO in hardware) hands over what
//! never was on the wire. Where that cannot be switched off, the backend cuts such frames.

use super::attach::LARGEST_RECEIVED;
use super::notes::InterfaceChange;
use super::{LinkEnds, StandIn, SystemError, far_end};
use crate::backend::queues::has_several;
use crate::longest_on;
use linux::net::{self, Netlink, Offload};
use wire::ethernet::{ETHERNET, TAG};

/// Segmentation and checksums that a vnet header cannot describe. UDP segmentation is among them because packet
/// sockets of kernels before 6.2 drop such frames.
const BEYOND_VNET: [&str; 15] = [
    "tx-udp_tnl-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-gre-segmentation",
    "tx-gre-csum-segmentation",
    "tx-ipxip4-segmentation",
    "tx-ipxip6-segmentation",
    "tx-tunnel-remcsum-segmentation",
    "tx-gso-partial",
    "tx-gso-list",
    "tx-esp-segmentation",
    "tx-sctp-segmentation",
    "tx-udp-segmentation",
    "tx-fcoe-segmentation",
    "tx-checksum-sctp",
    "tx-checksum-fcoe-crc",
];

/// Frames joined by the card.
const JOINED_BY_CARD: [&str; 2] = ["rx-lro", "rx-gro-hw"];
/// A veth that has these cuts nothing: a super-frame would cross it whole, which no cable carries.
const UNCUT: [&str; 4] =
    ["tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation", "tx-tcp6-segmentation"];

/// The stand-in is taken down with its link, so nothing need be put back.
pub(crate) fn leave_tunnels_to_kernel(netlink: &Netlink, stand_in: &str) -> Result<(), SystemError> {
    let still_on = netlink.set_features(stand_in, &BEYOND_VNET, false)?;
    match still_on.as_slice() {
        [] => Ok(()),
        fixed => Err(SystemError(format!(
            "{stand_in} cannot switch off {}: tunnels over it would lose frames; use --backend tap",
            fixed.join(", ")
        ))),
    }
}

impl StandIn {
    /// Lets the card hand over frames as they were on the wire, as far as it can.
    pub(super) fn no_joining_by_card(&mut self) -> Result<(), SystemError> {
        let interface = &self.netlink.existing(self.wire_index)?.name;
        let is_veth = self.netlink.driver(interface).is_ok_and(|driver| driver == "veth");
        let unwanted =
            [&JOINED_BY_CARD[..], if self.no_super_frames.is_none() && is_veth { &UNCUT } else { &[] }].concat();
        let mut features = self.netlink.features_on(interface, &unwanted).unwrap_or_default();
        // Features that an earlier daemon switched off must be restored as well.
        let noted: Vec<String> =
            self.notes.switched_off().into_iter().filter(|noted| !features.contains(noted)).collect();
        features.extend(noted);
        if features.is_empty() {
            return Ok(());
        }
        self.note(InterfaceChange::SwitchedOffFeatures {
            interface: interface.to_owned(),
            features: features.clone(),
        })?;
        self.netlink.set_features(interface, &features, false)?;
        Ok(())
    }

    /// Reason why a card may hand over super-frames in another order than they had on the wire: it distributes them by flow.
    pub(super) fn unordered_queues(&self) -> Option<&'static str> {
        let link = self.netlink.existing(self.wire_index);
        let has_several = link.is_ok_and(|link| has_several(&link).unwrap_or(true));
        has_several.then_some("the interface has several receive queues; `ethtool -L IFACE combined 1` first")
    }

    /// Lets the kernel join segments on arrival. Where it cannot, they come one by one.
    pub(super) fn join_on_arrival(&mut self) -> Result<(), SystemError> {
        let interface = &self.netlink.existing(self.wire_index)?.name;
        if self.netlink.offload(interface, Offload::Gro).unwrap_or(true) {
            return Ok(());
        }
        self.note(InterfaceChange::SwitchedOnGro { interface: interface.to_owned() })?;
        if let Err(error) = self.netlink.set_offload(interface, Offload::Gro, true) {
            self.remarks.push(format!("frames are not joined on arrival: {error}"));
        }
        Ok(())
    }

    /// A veth receives nothing that exceeds its own MTU, but unprotected frames may be as long as the wire's. A TAP does
    /// not mind.
    pub(super) fn take_long_frames(&mut self, index: u32) -> Result<(), SystemError> {
        let far = self.netlink.existing_link(&far_end(&self.name))?.index;
        let longest = longest_on(self.wire_mtu.min(LARGEST_RECEIVED)) as u32;
        self.netlink.set_mtu(far, longest - ETHERNET as u32)?;
        let fits = self.mtu + (ETHERNET + TAG) as u32;
        if let Err(error) = self.netlink.hand_over_long_frames(far, index, fits + 1..longest + 1) {
            let name = &self.name;
            self.remarks.push(format!("unprotected frames of more than {fits} bytes do not reach {name}: {error}"));
        }
        Ok(())
    }
}

/// Switches features of the wire on again. Features that are fixed stay as they are; nothing can be done about them.
pub(crate) fn switch_on(netlink: &Netlink, ends: &LinkEnds, features: &[String]) -> net::Result<()> {
    match ends.wire(netlink)? {
        Some(wire) => netlink.set_features(&wire.name, features, true).map(drop),
        None => Ok(()),
    }
}
