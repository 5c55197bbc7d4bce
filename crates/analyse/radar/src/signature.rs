//! Signature that distinguishes a packet from all others: li-thesis §5.3.2.
//!
//! A [`Signature`] is what meters put into their digests, so it has to be the same at both ends of a segment. It is the
//! 5-tuple and IPv4's identification, as in the thesis, and beside them TCP's sequence number and a hash of the content:
//! Linux leaves the identification zero where fragmenting is forbidden, and then nothing else distinguishes two packets
//! of a flow. Packets that are alike to the last bit share one signature, and a digest counts them.
//!
//! ```text
//!   lane  0  source:32        source port:16       protocol:8
//!         1  destination:32   destination port:16  marks:8
//!         2  sequence:32      length:16            0:8
//!         3  content:40       identification:16
//!         4  time:56                                             only where packets carry it
//!         5  fragment:49
//!       6-9  the rest of IPv6 addresses, 48 bits each
//! ```
//!
//! A lane has 56 bits, so that sums of up to 127 equal ones can be distinguished from any other number: see
//! [`digest`](crate::digest).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use units::Timestamp;

use crate::loss::Loss;
use crate::packet::{Flow, Packet, TcpFields};

pub(crate) const LANES: usize = 10;
/// Lanes that IPv4 needs.
pub(crate) const LANES_V4: usize = 6;
pub(crate) const LANE_BITS: u32 = 56;
const LANE: u64 = (1 << LANE_BITS) - 1;

const IS_V6: u8 = 1;
const IS_TCP: u8 = 1 << 1;
const IS_SYN: u8 = 1 << 2;
const IS_EXPIRED: u8 = 1 << 3;

/// Fields of a packet that go into its signature: those that survive the way between two meters. Both meters must have the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Address and port of the sender; not behind NAT of sources.
    pub source: bool,
    /// Address and port of the receiver; not before NAT of destinations.
    pub destination: bool,
    pub ip_id: bool,
    /// TCP's sequence number and length, and whether it is a SYN.
    pub tcp: bool,
    /// The hash of the content.
    pub content: bool,
}

impl Fields {
    pub const ALL: Self = Self { source: true, destination: true, ip_id: true, tcp: true, content: true };

    pub(crate) fn to_bits(self) -> u8 {
        let Self { source, destination, ip_id, tcp, content } = self;
        [source, destination, ip_id, tcp, content].into_iter().rev().fold(0, |bits, set| bits << 1 | u8::from(set))
    }

    pub(crate) fn from_bits(bits: u8) -> Option<Self> {
        let set = |at: u32| bits >> at & 1 == 1;
        let fields = Self { source: set(0), destination: set(1), ip_id: set(2), tcp: set(3), content: set(4) };
        (fields.to_bits() == bits).then_some(fields)
    }
}

impl Default for Fields {
    fn default() -> Self {
        Self::ALL
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature(pub(crate) [u64; LANES]);

impl Signature {
    #[inline]
    pub fn new(packet: &Packet, fields: Fields) -> Self {
        let Flow { src, dst, protocol, src_port, dst_port } = packet.flow;
        let mut lanes = [0; LANES];
        let (mut marks, mut head) = (0, u64::from(protocol));
        if fields.source {
            let (low, high) = halves(src);
            head |= low << 24 | u64::from(src_port) << 8;
            [lanes[6], lanes[7]] = high;
        }
        let mut tail = 0;
        if fields.destination {
            let (low, high) = halves(dst);
            tail |= low << 24 | u64::from(dst_port) << 8;
            [lanes[8], lanes[9]] = high;
        }
        marks |= if src.is_ipv6() { IS_V6 } else { 0 };
        if fields.tcp
            && let Some(TcpFields { seq, len, syn }) = packet.tcp
        {
            marks |= IS_TCP | if syn { IS_SYN } else { 0 };
            lanes[2] = u64::from(seq) << 24 | u64::from(len) << 8;
        }
        lanes[0] = head;
        lanes[1] = tail | u64::from(marks);
        let content = if fields.content { packet.content & ((1 << 40) - 1) } else { 0 };
        let ip_id = if fields.ip_id { packet.ip_id.unwrap_or_default() } else { 0 };
        lanes[3] = content << 16 | u64::from(ip_id);
        lanes[5] = packet.fragment & LANE;
        Self(lanes)
    }

    /// Adds the data that the packet itself carries from the upstream meter: the time at which it passed there, and a mark
    /// if its time to live expired.
    #[must_use]
    #[inline]
    pub fn carrying(mut self, at: Timestamp, expired: bool) -> Self {
        self.0[4] = at.0 & LANE;
        self.0[1] |= if expired { u64::from(IS_EXPIRED) } else { 0 };
        self
    }

    /// Lanes that may be other than zero.
    #[inline]
    pub(crate) fn lanes(&self) -> &[u64] {
        if self.marks() & IS_V6 == 0 { &self.0[..LANES_V4] } else { &self.0 }
    }

    #[inline]
    fn marks(&self) -> u8 {
        self.0[1] as u8
    }

    /// A signature that could be a packet's; `None` for lanes that no packet has.
    pub(crate) fn from_lanes(lanes: [u64; LANES]) -> Option<Self> {
        let signature = Self(lanes);
        let is_v6 = signature.marks() & IS_V6 != 0;
        let fits = lanes.iter().all(|lane| *lane <= LANE);
        (fits && (is_v6 || lanes[LANES_V4..].iter().all(|lane| *lane == 0))).then_some(signature)
    }

    /// Hash that places it in a table, and that verifies it there.
    #[inline]
    pub fn hash(&self, seed: u64) -> u64 {
        let l = self.lanes();
        let mut hash = fold(l[0] ^ seed ^ SALT[0], l[1] ^ SALT[1])
            ^ fold(l[2] ^ seed ^ SALT[2], l[3] ^ SALT[3])
            ^ fold(l[4] ^ SALT[4], l[5] ^ seed ^ SALT[5]);
        if let [_, _, _, _, _, _, a, b, c, d] = *l {
            hash ^= fold(a ^ SALT[6], b ^ SALT[7] ^ seed) ^ fold(c ^ SALT[8], d ^ SALT[9] ^ seed);
        }
        fold(hash ^ SALT[1], SALT[2])
    }

    pub fn flow(&self) -> Flow {
        let l = &self.0;
        let is_v6 = self.marks() & IS_V6 != 0;
        let address = |low: u64, high: [u64; 2]| match (is_v6, low >> 24) {
            (false, low) => IpAddr::V4(Ipv4Addr::from(low as u32)),
            (true, low) => {
                IpAddr::V6(Ipv6Addr::from(u128::from(high[0]) << 80 | u128::from(high[1]) << 32 | u128::from(low)))
            }
        };
        Flow {
            src: address(l[0], [l[6], l[7]]),
            dst: address(l[1], [l[8], l[9]]),
            protocol: l[0] as u8,
            src_port: (l[0] >> 8) as u16,
            dst_port: (l[1] >> 8) as u16,
        }
    }

    pub fn ip_id(&self) -> Option<u16> {
        (self.marks() & IS_V6 == 0).then_some(self.0[3] as u16)
    }

    pub fn tcp(&self) -> Option<TcpFields> {
        let segment = || TcpFields {
            seq: (self.0[2] >> 24) as u32,
            len: (self.0[2] >> 8) as u16,
            syn: self.marks() & IS_SYN != 0,
        };
        (self.marks() & IS_TCP != 0).then(segment)
    }

    /// The loss of a packet that carried its time; of one that did not, `at` says.
    pub fn loss(&self, at: Option<Timestamp>) -> Loss {
        Loss {
            at: at.unwrap_or(Timestamp(self.0[4])),
            flow: self.flow(),
            ip_id: self.ip_id(),
            tcp: self.tcp(),
            expired: self.marks() & IS_EXPIRED != 0,
            place: None,
        }
    }
}

/// The last 32 bits of an address, and the 96 before them.
#[inline]
fn halves(address: IpAddr) -> (u64, [u64; 2]) {
    match address {
        IpAddr::V4(address) => (u64::from(u32::from(address)), [0; 2]),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            let part = |at: u32| (bits >> at) as u64 & ((1 << 48) - 1);
            (bits as u64 & 0xffff_ffff, [part(80), part(32)])
        }
    }
}

/// Digits of the square roots of the first ten primes: nothing up the sleeve.
const SALT: [u64; LANES] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
    0xcbbb_9d5d_c105_9ed8,
    0x629a_292a_367c_d507,
];

/// Product of two factors, its halves folded: every bit of either factor reaches every bit of the result.
#[inline]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(src: &str, dst: &str) -> Packet {
        let flow =
            Flow { src: src.parse().unwrap(), dst: dst.parse().unwrap(), protocol: 6, src_port: 40_000, dst_port: 443 };
        let ip_id = src.contains('.').then_some(0xabcd);
        let tcp = Some(TcpFields { seq: 0xdead_beef, len: 1_448, syn: true });
        Packet { flow, ip_id, fragment: 3, tcp, ttl: 64, content: 0xff_1234_5678_9abc }
    }

    #[test]
    fn what_goes_in_can_be_read_again() {
        for packet in [packet("10.0.0.1", "10.0.0.2"), packet("2001:db8::1:2:3", "fe80::ffff:ffff:ffff:ffff")] {
            let loss = Signature::new(&packet, Fields::ALL).carrying(Timestamp(77), true).loss(None);
            assert_eq!((loss.flow, loss.ip_id, loss.tcp), (packet.flow, packet.ip_id, packet.tcp));
            assert_eq!((loss.at, loss.expired), (Timestamp(77), true));
        }
    }

    #[test]
    fn what_nat_rewrites_can_be_left_out() {
        let fields = Fields { source: false, ..Fields::ALL };
        let [before, after] = ["10.0.0.1", "192.0.2.7"].map(|src| Signature::new(&packet(src, "10.9.9.9"), fields));
        assert_eq!(before, after);
        assert_ne!(before, Signature::new(&packet("10.0.0.1", "10.9.9.8"), fields));
    }

    #[test]
    fn a_change_of_any_field_changes_the_hash() {
        let whole = packet("2001:db8::1", "2001:db8::2");
        let changes: [fn(&mut Packet); 8] = [
            |packet| packet.flow.src = "2001:db9::1".parse().unwrap(),
            |packet| packet.flow.dst = "2001:db8::3".parse().unwrap(),
            |packet| packet.flow.protocol = 17,
            |packet| packet.flow.src_port += 1,
            |packet| packet.flow.dst_port += 1,
            |packet| packet.fragment += 1,
            |packet| packet.content += 1,
            |packet| packet.tcp = packet.tcp.map(|tcp| TcpFields { seq: tcp.seq + 1, ..tcp }),
        ];
        for change in changes {
            let mut other = whole;
            change(&mut other);
            let [one, two] = [whole, other].map(|packet| Signature::new(&packet, Fields::ALL).hash(7));
            assert_ne!(one, two, "{other:?}");
        }
    }

    #[test]
    fn fields_are_read_as_they_are_written() {
        for bits in 0..32 {
            assert_eq!(Fields::from_bits(bits).map(Fields::to_bits), Some(bits));
        }
        assert_eq!(Fields::from_bits(32), None);
    }
}
