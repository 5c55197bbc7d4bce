//! Report of a flow meter: what passed each port of a switch in one slot.
//!
//! ```text
//!   "HLFR"  version:8  life:64  slot:64  length:64  missed:64  switch  ports:16
//!   each port:      name, then its two ways, in and out
//!   each way:       packets:64  bytes:64  kind:8
//!     kind 0, list:     number:32, then  flow  packets:var  bytes:var  for each, in ascending order
//!     kind 1, flowset:  length:32, then its bytes
//!   ended here:     more:8  number:16, then flows
//!   CRC-32
//! ```
//!
//! Numbers are little-endian; `var` is a number in groups of seven bits, the lowest first. A name is its length in 8 bits, and its
//! letters. A flow is 13 bytes behind a byte that is zero, or with IPv6 37 behind a byte with bit 0 or 1 set. A list takes 16 bytes
//! for each flow that passed, a flowset 16 to 25 for each that it has room for: so a slot that decodes is sent as lists.
//!
//! Invariant: of a report that is read, flows are in order and there once, packets add up, and names have no control characters.

use std::fmt;

use crate::flowset::{FlowKey, Flowset};
use crate::packet::Flow;

const MAGIC: [u8; 4] = *b"HLFR";
const VERSION: u8 = 1;
/// Ports of a switch, and flows that a report says end at it.
pub const MOST_PORTS: usize = 512;
pub const MOST_ENDED: usize = 1_024;
/// Flows of a way, and its packets or bytes: sums over ports and slots stay far from the end of their type.
const MOST_FLOWS: u32 = 1 << 22;
const MOST_COUNT: u64 = 1 << 44;
/// Slots of another length are nobody's, in nanoseconds.
pub const SLOT_LENGTHS: std::ops::RangeInclusive<u64> = 1_000_000..=60_000_000_000;

/// A switch in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchSlot {
    pub switch: String,
    /// Incarnation of the meter.
    pub life: u64,
    /// Number of the slot since 1970, and its length in nanoseconds.
    pub slot: u64,
    pub length: u64,
    /// Frames that passed unseen.
    pub missed: u64,
    pub ports: Vec<PortSlot>,
    /// Flows with packets for the switch itself, or whose time to live ended there: they leave by no port, and rightly.
    pub ended: Vec<FlowKey>,
    /// There were more of those than are listed.
    pub ended_more: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSlot {
    pub name: String,
    /// Packets that came in, and that went out.
    pub ways: [WaySlot; 2],
}

/// One way of a port in one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaySlot {
    pub packets: u64,
    pub bytes: u64,
    pub flows: WayFlows,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WayFlows {
    /// All flows, sorted.
    List(Vec<SlotFlow>),
    /// A table that its switch cannot decode alone.
    Table(Box<Flowset>),
}

/// A flow with its packets and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotFlow {
    pub flow: FlowKey,
    pub packets: u32,
    pub bytes: u64,
}

/// Bytes that are no report of a flow meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotReportError {
    Foreign,
    Version(u8),
    /// What contradicts itself.
    Malformed(&'static str),
    Corrupted,
}

impl fmt::Display for SlotReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("not a report of `hitless radar flows meter`"),
            Self::Version(version) => write!(
                f,
                "a report of version {version}, and this program knows version {VERSION}: use the same hitless at both ends"
            ),
            Self::Malformed(what) => write!(f, "a report that contradicts itself: {what}"),
            Self::Corrupted => f.write_str("a report that was changed on its way: its checksum does not fit"),
        }
    }
}

impl std::error::Error for SlotReportError {}

/// True for a name of a switch or port that may be printed.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 255 && !name.contains(char::is_control)
}

impl SwitchSlot {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.push(VERSION);
        for number in [self.life, self.slot, self.length, self.missed] {
            out.extend(number.to_le_bytes());
        }
        put_name(&mut out, &self.switch);
        out.extend((self.ports.len() as u16).to_le_bytes());
        for port in &self.ports {
            put_name(&mut out, &port.name);
            port.ways.iter().for_each(|way| put_way(&mut out, way));
        }
        out.push(u8::from(self.ended_more));
        out.extend((self.ended.len() as u16).to_le_bytes());
        self.ended.iter().for_each(|flow| put_flow(&mut out, flow));
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SlotReportError> {
        let head = bytes.first_chunk::<5>().ok_or(SlotReportError::Foreign)?;
        if head[..4] != MAGIC {
            return Err(SlotReportError::Foreign);
        }
        if head[4] != VERSION {
            return Err(SlotReportError::Version(head[4]));
        }
        let (body, check) = bytes.split_last_chunk::<4>().ok_or(SlotReportError::Corrupted)?;
        if crc32fast::hash(body) != u32::from_le_bytes(*check) {
            return Err(SlotReportError::Corrupted);
        }
        let mut rest = SlotBytes(body.get(5..).unwrap_or_default());
        let [life, slot, length, missed] = [rest.number()?, rest.number()?, rest.number()?, rest.number()?];
        if !SLOT_LENGTHS.contains(&length) || slot.checked_mul(length).is_none() {
            return Err(SlotReportError::Malformed(
                "slots that last less than 1 ms, more than 60 s, or lie beyond time",
            ));
        }
        if missed > MOST_COUNT {
            return Err(SlotReportError::Malformed("more missed packets than pass a switch"));
        }
        let switch = rest.name()?;
        let number = usize::from(rest.short()?);
        if number > MOST_PORTS {
            return Err(SlotReportError::Malformed("too many ports"));
        }
        let mut ports: Vec<PortSlot> = Vec::new();
        for _ in 0..number {
            let name = rest.name()?;
            if ports.iter().any(|port| port.name == name) {
                return Err(SlotReportError::Malformed("a port that is there twice"));
            }
            ports.push(PortSlot { name, ways: [rest.way()?, rest.way()?] });
        }
        let ended_more = rest.byte()? != 0;
        let number = usize::from(rest.short()?);
        if number > MOST_ENDED {
            return Err(SlotReportError::Malformed("too many flows that end at the switch"));
        }
        let ended = (0..number).map(|_| rest.flow()).collect::<Result<_, _>>()?;
        if !rest.0.is_empty() {
            return Err(SlotReportError::Malformed("bytes behind its end"));
        }
        Ok(Self { switch, life, slot, length, missed, ports, ended, ended_more })
    }
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    out.push(name.len() as u8);
    out.extend(name.as_bytes());
}

fn put_way(out: &mut Vec<u8>, way: &WaySlot) {
    out.extend(way.packets.to_le_bytes());
    out.extend(way.bytes.to_le_bytes());
    match &way.flows {
        WayFlows::List(flows) => {
            out.push(0);
            out.extend((flows.len() as u32).to_le_bytes());
            for SlotFlow { flow, packets, bytes } in flows {
                put_flow(out, flow);
                put_var(out, (*packets).into());
                put_var(out, *bytes);
            }
        }
        WayFlows::Table(flowset) => {
            out.push(1);
            let bytes = flowset.to_bytes();
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend(bytes);
        }
    }
}

fn put_var(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_flow(out: &mut Vec<u8>, key: &FlowKey) {
    let Flow { src, dst, protocol, src_port, dst_port } = key.flow();
    out.push(u8::from(src.is_ipv6()) | u8::from(dst.is_ipv6()) << 1);
    for address in [src, dst] {
        match address {
            std::net::IpAddr::V4(address) => out.extend(address.octets()),
            std::net::IpAddr::V6(address) => out.extend(address.octets()),
        }
    }
    out.push(protocol);
    out.extend(src_port.to_le_bytes());
    out.extend(dst_port.to_le_bytes());
}

/// Bytes of a report that have not been read.
struct SlotBytes<'a>(&'a [u8]);

impl<'a> SlotBytes<'a> {
    fn take(&mut self, number: usize) -> Result<&'a [u8], SlotReportError> {
        let (taken, rest) = self.0.split_at_checked(number).ok_or(SlotReportError::Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SlotReportError> {
        let taken = self.take(N)?;
        Ok(std::array::from_fn(|at| taken[at]))
    }

    fn byte(&mut self) -> Result<u8, SlotReportError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn short(&mut self) -> Result<u16, SlotReportError> {
        self.array().map(u16::from_le_bytes)
    }

    fn word(&mut self) -> Result<u32, SlotReportError> {
        self.array().map(u32::from_le_bytes)
    }

    fn number(&mut self) -> Result<u64, SlotReportError> {
        self.array().map(u64::from_le_bytes)
    }

    fn var(&mut self) -> Result<u64, SlotReportError> {
        let mut number = 0;
        for at in 0..10 {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << (7 * at).min(63);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(SlotReportError::Malformed("a number without end"))
    }

    fn name(&mut self) -> Result<String, SlotReportError> {
        let length = self.byte()?;
        let name = std::str::from_utf8(self.take(length.into())?).ok().filter(|name| is_name(name));
        name.map(str::to_owned).ok_or(SlotReportError::Malformed("a name that cannot be printed"))
    }

    fn flow(&mut self) -> Result<FlowKey, SlotReportError> {
        let kind = self.byte()?;
        if kind > 3 {
            return Err(SlotReportError::Malformed("a flow of no known kind"));
        }
        let (src, dst) = (self.address(kind & 1 != 0)?, self.address(kind & 2 != 0)?);
        let protocol = self.byte()?;
        let (src_port, dst_port) = (self.short()?, self.short()?);
        Ok(FlowKey::from(&Flow { src, dst, protocol, src_port, dst_port }))
    }

    fn address(&mut self, is_v6: bool) -> Result<std::net::IpAddr, SlotReportError> {
        Ok(if is_v6 { self.array::<16>()?.into() } else { self.array::<4>()?.into() })
    }

    fn way(&mut self) -> Result<WaySlot, SlotReportError> {
        let (packets, bytes) = (self.number()?, self.number()?);
        if packets.max(bytes) > MOST_COUNT {
            return Err(SlotReportError::Malformed("more packets or bytes than pass a port"));
        }
        let flows = match self.byte()? {
            0 => WayFlows::List(self.list(packets, bytes)?),
            1 => {
                let length = self.word()? as usize;
                let flowset = Flowset::from_bytes(self.take(length)?);
                let flowset = flowset.map_err(|_| SlotReportError::Malformed("a flowset that cannot be read"))?;
                WayFlows::Table(Box::new(flowset))
            }
            _ => return Err(SlotReportError::Malformed("neither a list nor a flowset")),
        };
        Ok(WaySlot { packets, bytes, flows })
    }

    fn list(&mut self, packets: u64, bytes: u64) -> Result<Vec<SlotFlow>, SlotReportError> {
        let number = self.word()?;
        if number > MOST_FLOWS {
            return Err(SlotReportError::Malformed("too many flows"));
        }
        let mut flows: Vec<SlotFlow> = Vec::new();
        let mut sums = [0_u64; 2];
        for _ in 0..number {
            let (flow, of_flow, size) = (self.flow()?, self.var()?, self.var()?);
            if flows.last().is_some_and(|last| last.flow >= flow) {
                return Err(SlotReportError::Malformed("flows that are not in order"));
            }
            let of_flow = u32::try_from(of_flow).map_err(|_| SlotReportError::Malformed("more packets than fit"))?;
            sums = [sums[0] + u64::from(of_flow), sums[1].saturating_add(size)];
            flows.push(SlotFlow { flow, packets: of_flow, bytes: size });
        }
        if sums != [packets, bytes] {
            return Err(SlotReportError::Malformed("packets or bytes of flows that do not add up"));
        }
        Ok(flows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabricmap::stories::{flow, list};
    use crate::flowset::FlowsetShape;

    fn report() -> SwitchSlot {
        let mut table = Flowset::new(FlowsetShape::new(3, 30, 4, 256, 7));
        (0..20).for_each(|nth| table.insert(&flow(nth)));
        let table = WaySlot { packets: 20, bytes: 2_000, flows: WayFlows::Table(Box::new(table)) };
        let v6 = FlowKey::from(&Flow { src: "2001:db8::1".parse().unwrap(), ..flow(3).flow() });
        let ports = vec![
            PortSlot { name: "eth0".into(), ways: [list(&[(1, 3), (2, 70_000)]), list(&[])] },
            PortSlot { name: "eth1".into(), ways: [list(&[(9, 1)]), table] },
        ];
        SwitchSlot {
            switch: "leaf1".into(),
            life: 7,
            slot: 99,
            length: 10_000_000,
            missed: 3,
            ports,
            ended: vec![flow(8), v6],
            ended_more: false,
        }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let report = report();
        assert_eq!(SwitchSlot::from_bytes(&report.to_bytes()), Ok(report));
    }

    #[test]
    fn a_report_that_was_changed_or_cut_is_refused() {
        let bytes = report().to_bytes();
        for end in 0..bytes.len() {
            assert!(SwitchSlot::from_bytes(&bytes[..end]).is_err(), "{end} bytes");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 4;
            assert!(SwitchSlot::from_bytes(&changed).is_err(), "byte {at}");
        }
    }

    /// A report with a checksum that fits, as a stranger would make it.
    fn refusal(change: impl FnOnce(&mut SwitchSlot)) -> String {
        let mut report = report();
        change(&mut report);
        SwitchSlot::from_bytes(&report.to_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_report_that_contradicts_itself_is_refused_with_the_reason() {
        assert!(refusal(|report| report.switch = "leaf\n1".into()).contains("cannot be printed"));
        assert!(refusal(|report| report.ports[1].name = "eth0".into()).contains("twice"));
        assert!(refusal(|report| report.length = 1).contains("less than 1 ms"));
        assert!(refusal(|report| report.slot = u64::MAX).contains("beyond time"));
        assert!(refusal(|report| report.ports[0].ways[0].packets += 1).contains("add up"));
        let swap = |report: &mut SwitchSlot| {
            let WayFlows::List(flows) = &mut report.ports[0].ways[0].flows else { return };
            flows.swap(0, 1);
        };
        assert!(refusal(swap).contains("not in order"));
    }

    #[test]
    fn a_flow_of_ipv4_takes_sixteen_bytes() {
        let flows: Vec<(u64, u32)> = (0..1_000).map(|nth| (nth, 1)).collect();
        let ports = vec![PortSlot { name: "eth0".into(), ways: [list(&flows), list(&[])] }];
        let bytes = SwitchSlot { ports, ..report() }.to_bytes().len();
        assert!((16_000..17_300).contains(&bytes), "{bytes}");
    }
}
