//! The link protocols of the simulator, one file each.
//!
//! A link protocol is a machine of the `guard` crate with an `impl` of `LinkMachine` (what an event loop must know of it)
//! and a setup with an `impl` of `LinkProtocol`: what a scenario may say about it, and how both ends of a link begin. The
//! list at the end of this file is the only other place that names it.

mod fec;
mod guard;
mod llr;
#[cfg(test)]
mod send_twice;

use ::guard::pool::PoolShare;
use ::guard::{Counters, EndpointNote};
use faults::Random;
use machine::{FrameBody, Machine, Out};
use units::{Bytes, Span, Time};
use wire::link::FlowControl;

use crate::link::{LinkSimConfig, LinkSimMode};
use crate::net::{EndpointPair, LinkSetup, PacketHandle};
use crate::topology::{TopologyLink, TopologyLinkId};
use settings::{Keys, ReadResult, SettingsReader};

pub use guard::GuardSetup;
pub use llr::LlrSetup;

/// A frame on the wire.
pub(crate) trait OnWire {
    /// A frame of the layer above.
    type Body: FrameBody;
    /// Wire time it takes, in bytes.
    fn wire_bytes(&self) -> u32;
    /// Bytes that an error can hit.
    fn frame_bytes(&self) -> u32;
    /// The number of the frame that this is a copy of, if a recirculating sender has to find it first.
    fn copy_of(&self) -> Option<(u8, u16)> {
        None
    }

    fn wish(&self) -> Option<FlowControl> {
        None
    }

    /// The frame of the layer above that this carries, if any.
    fn body(&self) -> Option<&Self::Body>;

    /// Frames of the layer above that are lost with this one.
    fn handles(&self) -> &[Self::Body];

    /// True if it carries nothing and is sent only while the wire has nothing else to do.
    fn is_filler(&self) -> bool {
        self.body().is_none()
    }

    /// Length of the body; 0 without one.
    #[inline]
    fn body_bytes(&self) -> u32 {
        self.body().map_or(0, FrameBody::len)
    }
}

/// Interface of a link protocol's machine to an event loop.
pub(crate) trait LinkMachine: Machine<Note = EndpointNote, Frame: OnWire<Body = Self::Inner>> {
    fn is_calm(&self) -> bool;
    /// Digest of the state. Two calm states with one digest treat the next frame alike.
    fn fingerprint(&self, now: Time) -> u64;
    fn is_drained(&self) -> bool;
    fn counters(&self) -> Counters;
    fn tx_peak(&self) -> Bytes;
    fn rx_peak(&self) -> Bytes;
    fn tx_buffered(&self) -> Bytes;
    fn rx_held(&self) -> Bytes;
    fn limit_reorder<O: Out<Self>>(&mut self, share: PoolShare, out: &mut O);
}

/// Methods that a machine has under the same name.
macro_rules! its_own {
    ($($method:ident -> $type:ty),*) => {
        $(fn $method(&self) -> $type {
            self.$method()
        })*

        fn counters(&self) -> Counters {
            *self.counters()
        }
    };
}
use its_own;

/// A link protocol as a setup has it.
pub(crate) trait LinkProtocol: Sized {
    /// Machine at each end.
    type Machine: LinkMachine<Inner = PacketHandle>;

    /// Names in a scenario: `protect = …`.
    const NAMES: &'static [&'static str];
    /// Keys of `[[link]]` that it reads.
    const KEYS: Keys;

    /// Reads the protocol's keys. `path` describes the link for any protocol; the time at which protection begins is stored
    /// in `link`.
    fn read(table: &SettingsReader<'_>, name: &str, path: LinkSimConfig, link: &mut LinkSetup) -> ReadResult<Self>;

    /// Makes both ends of a link.
    fn pair(&self, site: LinkSite) -> EndpointPair<Self::Machine>;

    /// Command that activates the protocol, if it starts inactive.
    fn activation() -> Option<<Self::Machine as Machine>::Command> {
        None
    }
}

/// A link that is to be protected.
#[derive(Debug)]
pub(crate) struct LinkSite {
    pub id: TopologyLinkId,
    pub link: TopologyLink,
    /// Time from the last bit of a frame until the node acts on it.
    pub pipeline: Span,
    /// True if protection begins later.
    pub dormant: bool,
    pub random: Random,
}

/// A name that a scenario knows, and how the rest is read.
struct ListedProtocol {
    names: &'static [&'static str],
    read: fn(&SettingsReader<'_>, &str, LinkSimConfig, &mut LinkSetup) -> ReadResult<Protection>,
}

macro_rules! link_protocols {
    (($d:tt) $($(#[$when:meta])* $name:ident($setup:ty),)*) => {
        /// Protection of a link.
        #[derive(Clone, Debug)]
        pub enum Protection {
            None,
            $($(#[$when])* $name($setup),)*
        }

        /// Link protocol of a link, with both its ends.
        #[derive(Debug)]
        #[expect(clippy::large_enum_variant, reason = "it is boxed as a whole")]
        pub(crate) enum Protected {
            $($(#[$when])* $name(EndpointPair<<$setup as LinkProtocol>::Machine>),)*
        }

        impl Protection {
            /// Makes both ends of a link, if anything protects it.
            pub(crate) fn protect(&self, site: LinkSite) -> Option<Protected> {
                match self {
                    Self::None => None,
                    $($(#[$when])* Self::$name(setup) => Some(Protected::$name(setup.pair(site))),)*
                }
            }
        }

        impl Protected {
            /// Switches the protocol on.
            pub(crate) fn activate(&mut self, side: usize, around: &mut crate::net::ProtectContext<'_>) {
                match self {
                    $($(#[$when])* Self::$name(pair) => {
                        if let Some(command) = <$setup>::activation() {
                            pair.command(side, around, command);
                        }
                    })*
                }
            }
        }

        const LISTED: &[ListedProtocol] = &[$($(#[$when])* ListedProtocol {
            names: <$setup>::NAMES,
            read: |table, name, path, link| <$setup>::read(table, name, path, link).map(Protection::$name),
        },)*];

        /// The keys of each.
        pub const KEYS: &[Keys] = &[$($(#[$when])* <$setup as LinkProtocol>::KEYS,)*];

        /// Does the same to the pair of each protocol.
        macro_rules! each_protocol {
            ($d protected:expr, $d pair:ident => $d what:expr) => {
                match $d protected {
                    $($(#[$when])* $crate::protocols::Protected::$name($d pair) => $d what,)*
                }
            };
        }
        pub(crate) use each_protocol;
    };
}

impl Protection {
    /// Takes mode, profile and parameters from a configuration of `sim link`, and the rest from the network.
    pub fn of(config: LinkSimConfig) -> Self {
        match config.mode {
            LinkSimMode::UecLlr => Self::Llr(LlrSetup(Box::new(config))),
            _ => Self::Guard(GuardSetup(Box::new(config))),
        }
    }
}

/// Reads the `protect` of a `[[link]]`, with all that can be set about it, into the link's setup.
pub fn read(table: &SettingsReader<'_>, path: LinkSimConfig, link: &mut LinkSetup) -> ReadResult<()> {
    let names = LISTED.iter().flat_map(|one| one.names.iter().map(move |name| (*name, Some((one, *name)))));
    let names: Vec<_> = std::iter::once(("none", None)).chain(names).collect();
    if let Some((listed, name)) = table.choice("protect", &names)?.flatten() {
        link.protection = (listed.read)(table, name, path, link)?;
    }
    Ok(())
}

link_protocols! { ($)
    Guard(GuardSetup),
    Llr(LlrSetup),
    Fec(::guard::fec::FecConfig),
    #[cfg(test)]
    SendTwice(send_twice::SendTwice),
}
