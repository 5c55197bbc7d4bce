//! Forward error correction on a link, as `guard::fec` has it.

use guard::pool::PoolShare;
use guard::{Counters, fec};
use machine::{FrameBody, Out, QueueId};
use units::{Bytes, Prob, Time};
use wire::ethernet::{MIN_FRAME, on_wire};

use super::{LinkMachine, LinkProtocol, LinkSite, OnWire, its_own};
use crate::link::LinkSimConfig;
use crate::net::{EndpointPair, LinkSetup, PacketHandle};
use settings::KeyShape::One;
use settings::{Keys, ReadResult, SettingsReader};

impl<B: FrameBody> OnWire for fec::FecPacket<B> {
    type Body = B;

    fn wire_bytes(&self) -> u32 {
        on_wire(self.frame_len())
    }

    fn frame_bytes(&self) -> u32 {
        self.frame_len().max(MIN_FRAME)
    }

    fn body(&self) -> Option<&B> {
        self.body()
    }

    fn handles(&self) -> &[B] {
        self.handles()
    }

    /// Parity is sent whether or not the wire is idle.
    fn is_filler(&self) -> bool {
        false
    }
}

impl<B: FrameBody> LinkMachine for fec::FecEndpoint<B> {
    its_own!(is_calm -> bool, is_drained -> bool, tx_peak -> Bytes, rx_peak -> Bytes, tx_buffered -> Bytes, rx_held -> Bytes);

    fn fingerprint(&self, _now: Time) -> u64 {
        self.fingerprint()
    }

    fn limit_reorder<O: Out<Self>>(&mut self, _share: PoolShare, _out: &mut O) {}
}

impl LinkProtocol for fec::FecConfig {
    type Machine = fec::FecEndpoint<PacketHandle>;

    const NAMES: &'static [&'static str] = &["fec"];
    const KEYS: Keys = &[("k", One), ("h", One), ("ordered", One)];

    /// Frames and parity frames of a block: what is best for the link's worst loss, if not given.
    fn read(table: &SettingsReader<'_>, _name: &str, path: LinkSimConfig, _link: &mut LinkSetup) -> ReadResult<Self> {
        let longest = path.sizes.longest();
        let losses = path.forward.steps().iter().map(|(_, model)| model.mean_loss(longest));
        let (k, h) = fec::best_parameters(Prob::new(losses.fold(0.0, f64::max)).unwrap_or_default());
        let k = table.small("k", 1..=1_000)?.map_or(k, |k| k as u16);
        let h = table.small("h", 1..=u32::from(Self::MAX_PARITY))?.map_or(h, |h| h as u16);
        let ordered = table.flag("ordered")?.unwrap_or(true);
        Ok(Self { ordered, ..Self::for_path(&path.path(), k, h) })
    }

    fn pair(&self, site: LinkSite) -> EndpointPair<Self::Machine> {
        let ends = [0, 1].map(|_| fec::FecEndpoint::<PacketHandle>::new(*self));
        EndpointPair::new(ends, None, site.random, QueueId(0))
    }
}
