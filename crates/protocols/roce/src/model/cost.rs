//! Cost of the mechanisms in bandwidth.
//!
//! "Packet corruption in RDMA" §4.1 (Eq. 1), §4.2 and §4.3. Copies of NAKs and of the packets that they ask for cost
//! something only where packets are lost; dummies and copies of tails cost something everywhere.

use super::{TailProtection, TimeoutModel, TimeoutSetting};

/// Bytes more, as a share of the bytes of data packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Share of NAKs, which travel on the way back.
    pub naks: f64,
    /// Copies of what NAKs ask for, and what the requester sends for copies of NAKs if it obeys them.
    pub naked: f64,
    /// Dummies, or copies of tails.
    pub tail: f64,
}

impl Cost {
    /// Cost of both directions together; 0.01 is one per cent more.
    pub fn total(&self) -> f64 {
        self.naks + self.naked + self.tail
    }
}

/// The cost of a setting, counted in two ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Cost as the paper counts it: on one corrupting link, with the share of tails averaged over flows, E(1/S).
    pub paper: Cost,
    /// Cost on a path of L links, of which the share ω corrupts, per byte sent.
    pub path: Cost,
}

impl TimeoutModel {
    /// Bytes that the setting adds, as a share of the bytes of data packets (Eq. 1).
    pub fn cost(&self, setting: &TimeoutSetting) -> Costs {
        let beta = self.packet_corruption().get();
        // Means over flows count a flow of one packet as much as one of thousands; links do not.
        let (flows, links) = (self.flows.mean_inverse, self.flows.mean.recip());
        Costs { paper: self.cost_with(setting, beta, flows), path: self.cost_with(setting, self.lost(), links) }
    }

    /// Cost if packets are lost with probability `lost`, and the share `tails` of packets are tails.
    fn cost_with(&self, setting: &TimeoutSetting, lost: f64, tails: f64) -> Cost {
        let naks = f64::from(setting.naks);
        let obeyed = if setting.obeys_copies { naks } else { 0.0 };
        Cost {
            naks: self.lengths.ratio(self.lengths.ack) * naks * lost,
            naked: (f64::from(setting.naked) + obeyed) * lost,
            tail: tails
                * match setting.tail {
                    TailProtection::Dummies(dummies) => self.lengths.ratio(self.lengths.header) * f64::from(dummies),
                    TailProtection::Repeat(copies) => self.lengths.ratio(self.lengths.tail) * f64::from(copies),
                },
        }
    }
}
