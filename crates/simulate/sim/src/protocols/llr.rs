//! Ultra Ethernet's link-level retry, as `guard::llr` has it.

use guard::pool::PoolShare;
use guard::{Counters, llr};
use machine::{FrameBody, Out, QueueId};
use units::{Bytes, Time};
use wire::ethernet::on_wire;

use super::{LinkMachine, LinkProtocol, LinkSite, OnWire, its_own};
use crate::link::{LinkSimConfig, LinkSimMode};
use crate::net::{EndpointPair, LinkSetup, PacketHandle};
use settings::{Keys, ReadResult, SettingsReader};

impl<B: FrameBody> OnWire for llr::LlrPacket<B> {
    type Body = B;

    fn wire_bytes(&self) -> u32 {
        self.frame_len().map_or(llr::CONTROL_LEN, on_wire)
    }

    fn frame_bytes(&self) -> u32 {
        self.frame_len().unwrap_or(llr::CONTROL_LEN)
    }

    fn body(&self) -> Option<&B> {
        self.body()
    }

    fn handles(&self) -> &[B] {
        self.body().map_or(&[], std::slice::from_ref)
    }
}

impl<B: FrameBody> LinkMachine for llr::LlrEndpoint<B> {
    its_own!(is_calm -> bool, is_drained -> bool, tx_peak -> Bytes, tx_buffered -> Bytes);

    fn fingerprint(&self, _now: Time) -> u64 {
        0
    }

    fn rx_peak(&self) -> Bytes {
        Bytes::ZERO
    }

    fn rx_held(&self) -> Bytes {
        Bytes::ZERO
    }

    fn limit_reorder<O: Out<Self>>(&mut self, _share: PoolShare, _out: &mut O) {}
}

/// Configuration as of `sim link`; rate and delay are taken from the network.
#[derive(Clone, Debug)]
pub struct LlrSetup(pub Box<LinkSimConfig>);

impl LinkProtocol for LlrSetup {
    type Machine = llr::LlrEndpoint<PacketHandle>;

    const NAMES: &'static [&'static str] = &["uec-llr"];
    const KEYS: Keys = &[];

    fn read(table: &SettingsReader<'_>, _name: &str, path: LinkSimConfig, _link: &mut LinkSetup) -> ReadResult<Self> {
        let config = LinkSimConfig { mode: LinkSimMode::UecLlr, ..path };
        config.check().map_err(|error| table.wrong("protect", error))?;
        Ok(Self(Box::new(config)))
    }

    fn pair(&self, site: LinkSite) -> EndpointPair<Self::Machine> {
        let (rate, delay, pipeline) = (site.link.rate, site.link.delay, site.pipeline);
        let path = LinkSimConfig { rate, delay, pipeline, ..(*self.0).clone() }.path();
        let profile = llr::LlrProfile::for_path(&path);
        let ends = [0, 1].map(|_| llr::LlrEndpoint::<PacketHandle>::new(profile));
        EndpointPair::new(ends, None, site.random, QueueId(0))
    }
}
