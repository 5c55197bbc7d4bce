//! Ultra Ethernet's link-level retry, as `guard::llr` has it.

use guard::pool::Share;
use guard::{Body, Counters, llr};
use machine::{Lane, Out};
use units::{Bytes, Time};
use wire::ethernet::on_wire;

use super::{LinkMachine, LinkProtocol, LinkSite, OnWire, its_own};
use crate::link::{Config, Mode};
use crate::net::{Handle, LinkSetup, Pair};
use crate::scenario::{Keys, Read, Reader};

impl<B: Body> OnWire for llr::Packet<B> {
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

impl<B: Body> LinkMachine for llr::Endpoint<B> {
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

    fn limit_reorder<O: Out<Self>>(&mut self, _share: Share, _out: &mut O) {}
}

/// As `sim link` has it; rate and delay are taken from the network.
#[derive(Clone, Debug)]
pub struct LlrSetup(pub Box<Config>);

impl LinkProtocol for LlrSetup {
    type Machine = llr::Endpoint<Handle>;

    const NAMES: &'static [&'static str] = &["uec-llr"];
    const KEYS: Keys = &[];

    fn read(table: &Reader<'_>, _name: &str, path: Config, _link: &mut LinkSetup) -> Read<Self> {
        let config = Config { mode: Mode::UecLlr, ..path };
        config.check().map_err(|error| table.wrong("protect", error))?;
        Ok(Self(Box::new(config)))
    }

    fn pair(&self, site: LinkSite) -> Pair<Self::Machine> {
        let (rate, delay, pipeline) = (site.link.rate, site.link.delay, site.pipeline);
        let path = Config { rate, delay, pipeline, ..(*self.0).clone() }.path();
        let profile = llr::Profile::for_path(&path);
        let ends = [0, 1].map(|_| llr::Endpoint::<Handle>::new(profile));
        Pair::new(ends, None, site.random, Lane(0))
    }
}
