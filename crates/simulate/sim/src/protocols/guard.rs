//! LinkGuardian, as the `guard` crate has it: in order, out of order, or whichever the measured loss allows.

use guard::endpoint::EndpointCommand;
use guard::pool::PoolShare;
use guard::reorder::ReorderBuild;
use guard::{Counters, Endpoint, LinkPacket};
use machine::{FrameBody, Out, QueueId};
use units::{Bytes, Span, Time};
use wire::ethernet::{MIN_FRAME, on_wire};
use wire::link::{FlowControl, FrameKind};

use super::{LinkMachine, LinkProtocol, LinkSite, OnWire, its_own};
use crate::hardware::Hardware;
use crate::link::{HardwareProfile, LinkSimConfig, LinkSimMode};
use crate::net::{EndpointPair, LONGEST_SPAN, LinkSetup, PacketHandle};
use settings::KeyShape::One;
use settings::{Keys, ReadResult, SettingsReader};

impl<B: FrameBody> OnWire for LinkPacket<B> {
    type Body = B;

    #[inline]
    fn wire_bytes(&self) -> u32 {
        on_wire(self.frame_len())
    }

    #[inline]
    fn frame_bytes(&self) -> u32 {
        self.frame_len().max(MIN_FRAME)
    }

    fn copy_of(&self) -> Option<(u8, u16)> {
        match self.header.kind() {
            FrameKind::Retransmission(class, seq) => Some((class as u8, seq.number())),
            _ => None,
        }
    }

    fn wish(&self) -> Option<FlowControl> {
        self.header.wish()
    }

    #[inline]
    fn body(&self) -> Option<&B> {
        self.body.as_ref()
    }

    fn handles(&self) -> &[B] {
        self.body.as_slice()
    }
}

impl<B: FrameBody> LinkMachine for Endpoint<B> {
    its_own!(is_calm -> bool, is_drained -> bool, tx_peak -> Bytes, rx_peak -> Bytes, tx_buffered -> Bytes, rx_held -> Bytes);

    fn fingerprint(&self, now: Time) -> u64 {
        self.fingerprint(now)
    }

    fn limit_reorder<O: Out<Self>>(&mut self, share: PoolShare, out: &mut O) {
        self.limit_reorder(share, out);
    }
}

/// Configuration as of `sim link`: mode, profile and parameters are taken from it, the rest from the network.
#[derive(Clone, Debug)]
pub struct GuardSetup(pub Box<LinkSimConfig>);

impl LinkProtocol for GuardSetup {
    type Machine = Endpoint<PacketHandle>;

    const NAMES: &'static [&'static str] = &["ordered", "nonblocking", "auto"];
    const KEYS: Keys = &[
        ("profile", One),
        ("protect_reverse", One),
        ("target_loss", One),
        ("copies", One),
        ("control_copies", One),
        ("dummy_copies", One),
        ("asks", One),
        ("backpressure", One),
        ("reorder", One),
        ("paper_acks", One),
        ("endless_dummies", One),
        ("tail", One),
        ("max_consecutive", One),
        ("activate_at", One),
    ];

    fn read(table: &SettingsReader<'_>, name: &str, path: LinkSimConfig, link: &mut LinkSetup) -> ReadResult<Self> {
        link.activate_at = table.span("activate_at", Span::ZERO..=LONGEST_SPAN)?;
        let profile =
            table.choice("profile", &[("ideal", HardwareProfile::Ideal), ("tofino", HardwareProfile::Tofino)])?;
        let reorder =
            table.choice("reorder", &[("sorted", ReorderBuild::Sorted), ("rotating", ReorderBuild::TOFINO)])?;
        let config = LinkSimConfig {
            mode: mode(name),
            profile: profile.unwrap_or(path.profile),
            protect_reverse: table.flag("protect_reverse")?.unwrap_or(path.protect_reverse),
            target: table.parsed("target_loss")?.unwrap_or(path.target),
            copies: table.tiny("copies", 1..=100)?,
            control_copies: table.tiny("control_copies", 1..=16)?.unwrap_or(path.control_copies),
            dummy_copies: table.tiny("dummy_copies", 1..=16)?,
            asks: table.tiny("asks", 1..=100)?.unwrap_or(path.asks),
            backpressure: table.flag("backpressure")?.unwrap_or(path.backpressure),
            paper_acks: table.flag("paper_acks")?.unwrap_or(path.paper_acks),
            endless_dummies: table.flag("endless_dummies")?.unwrap_or(path.endless_dummies),
            tail: table.flag("tail")?.unwrap_or(path.tail),
            max_consecutive: table.small("max_consecutive", 1..=u32::MAX)?,
            reorder,
            ..path
        };
        config.check().map_err(|error| table.wrong("protect", error))?;
        Ok(Self(Box::new(config)))
    }

    fn pair(&self, site: LinkSite) -> EndpointPair<Self::Machine> {
        let (rate, delay, pipeline) = (site.link.rate, site.link.delay, site.pipeline);
        let config = LinkSimConfig { rate, delay, pipeline, ..(*self.0).clone() };
        let hardware =
            (config.profile == HardwareProfile::Tofino).then(|| Hardware::tofino(&config.path(), config.copies()));
        let lane = QueueId(u8::from(config.mode == LinkSimMode::NonBlocking));
        let ids = [site.id.0 * 2 + 1, site.id.0 * 2 + 2];
        let [a, b] = config.both_params();
        let ends = if site.dormant {
            [Endpoint::new(a, ids[0]), Endpoint::new(b, ids[1])]
        } else {
            [Endpoint::established(a, ids[0], ids[1]), Endpoint::established(b, ids[1], ids[0])]
        };
        EndpointPair::new(ends, hardware, site.random, lane)
    }

    fn activation() -> Option<EndpointCommand> {
        Some(EndpointCommand::Activate)
    }
}

fn mode(name: &str) -> LinkSimMode {
    LinkSimMode::ALL.into_iter().find(|mode| mode.name() == name).unwrap_or(LinkSimMode::Ordered)
}
