//! Segments of scripts as IPv4 packets and back; sequence numbers of the kernel against those of scripts.

use wire::checksum::Sum;

use super::{LOCAL, PORT, REMOTE};
use crate::segment::{DrillSegment, EcnField, HeaderOption, TcpFlags};

const IP_HEADER: usize = 20;
const TCP_HEADER: usize = 20;
/// Port from which the other end connects to the kernel.
const CLIENT_PORT: u16 = 40_000;

/// Map between the kernel's numbers and the script's where they differ.
#[derive(Debug)]
pub(super) struct PacketMap {
    /// The kernel's first sequence number, when it has sent one.
    first: Option<u32>,
    local_port: u16,
    remote_port: u16,
}

impl Default for PacketMap {
    fn default() -> Self {
        Self { first: None, local_port: PORT, remote_port: CLIENT_PORT }
    }
}

impl PacketMap {
    /// The segment that the kernel sent, of which `packet` is the beginning and `whole` the length; `None` if it is
    /// something else.
    pub(super) fn parse(&mut self, packet: &[u8], whole: usize) -> Option<DrillSegment> {
        let is_tcp = packet.len() >= IP_HEADER && packet[0] >> 4 == 4 && packet[9] == wire::ip::TCP;
        let header = usize::from(packet.first()? & 15) * 4;
        let tcp = packet.get(header..).filter(|tcp| is_tcp && tcp.len() >= TCP_HEADER)?;
        let half = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let word = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
        let flags = TcpFlags::from_bits(tcp[13]);
        if flags.has(TcpFlags::SYN) && self.first.is_none() {
            (self.first, self.local_port, self.remote_port) = (Some(word(4)), half(0), half(2));
        }
        let data = usize::from(tcp[12] >> 4) * 4;
        Some(DrillSegment {
            flags,
            seq: word(4).wrapping_sub(self.first.unwrap_or_default()),
            len: u32::try_from(whole.checked_sub(header + data)?).ok()?,
            ack: if flags.has(TcpFlags::ACK) { word(8) } else { 0 },
            window: Some(half(14)),
            options: Some(parse_options(tcp.get(TCP_HEADER..data)?)),
            ecn: Some(EcnField::from_bits(packet[1])),
        })
    }

    /// The packet of a segment that comes in.
    pub(super) fn emit(&self, segment: &DrillSegment) -> Result<Vec<u8>, String> {
        let first = self.first.unwrap_or_default();
        let options = emit_options(segment.options.as_deref().unwrap_or_default(), first);
        if !options.len().is_multiple_of(4) || options.len() > 40 {
            return Err(format!("options of {} bytes do not fit into a header", options.len()));
        }
        let tcp_len = TCP_HEADER + options.len() + segment.len as usize;
        let total = u16::try_from(IP_HEADER + tcp_len).map_err(|_| "longer than an IP packet".to_owned())?;
        let mut packet = vec![0x45, segment.ecn.unwrap_or_default().bits()];
        packet.extend(total.to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, wire::ip::TCP, 0, 0]);
        packet.extend(REMOTE.octets());
        packet.extend(LOCAL.octets());
        let sum = Sum::of(&packet).checksum();
        packet[10..12].copy_from_slice(&sum);
        packet.extend(self.remote_port.to_be_bytes());
        packet.extend(self.local_port.to_be_bytes());
        packet.extend(segment.seq.to_be_bytes());
        let ack = if segment.is(TcpFlags::ACK) { segment.ack.wrapping_add(first) } else { 0 };
        packet.extend(ack.to_be_bytes());
        packet.extend([(((TCP_HEADER + options.len()) / 4) << 4) as u8, segment.flags.bits()]);
        packet.extend(segment.window.unwrap_or_default().to_be_bytes());
        packet.extend([0; 4]);
        packet.extend(options);
        packet.resize(usize::from(total), 0);
        let pseudo = Sum::pseudo_header(&packet[12..20], wire::ip::TCP, tcp_len);
        let sum = pseudo.and(Sum::of(&packet[IP_HEADER..])).checksum();
        packet[IP_HEADER + 16..IP_HEADER + 18].copy_from_slice(&sum);
        Ok(packet)
    }
}

fn parse_options(mut bytes: &[u8]) -> Vec<HeaderOption> {
    let mut options = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        match kind {
            0 | 1 => {
                options.push(if *kind == 0 { HeaderOption::EndOfList } else { HeaderOption::Nop });
                bytes = rest;
            }
            _ => {
                let Some(len) = rest.first().map(|len| usize::from(*len)).filter(|len| *len >= 2) else { break };
                let Some((option, rest)) = bytes.split_at_checked(len) else { break };
                options.push(parse_option(*kind, &option[2..]));
                bytes = rest;
            }
        }
    }
    options
}

fn parse_option(kind: u8, data: &[u8]) -> HeaderOption {
    let words: Vec<u32> =
        data.chunks_exact(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]])).collect();
    match (kind, data, words.as_slice()) {
        (2, [high, low], _) => HeaderOption::Mss(u16::from_be_bytes([*high, *low])),
        (3, [shift], _) => HeaderOption::WindowScale(*shift),
        (4, [], _) => HeaderOption::SackPermitted,
        (5, _, words) if !words.is_empty() => {
            HeaderOption::Sack(words.chunks_exact(2).map(|block| (block[0], block[1])).collect())
        }
        (8, _, [value, echo]) => HeaderOption::Timestamp { value: *value, echo: *echo },
        _ => HeaderOption::Other(kind),
    }
}

/// Blocks name bytes of the kernel's, which begin at `first`.
fn emit_options(options: &[HeaderOption], first: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in options {
        match option {
            HeaderOption::Nop => bytes.push(1),
            HeaderOption::EndOfList | HeaderOption::Other(_) => bytes.push(0),
            HeaderOption::Mss(mss) => {
                bytes.extend([2, 4]);
                bytes.extend(mss.to_be_bytes());
            }
            HeaderOption::WindowScale(shift) => bytes.extend([3, 3, *shift]),
            HeaderOption::SackPermitted => bytes.extend([4, 2]),
            HeaderOption::Sack(blocks) => {
                bytes.extend([5, (2 + 8 * blocks.len()) as u8]);
                for number in blocks.iter().flat_map(|(from, to)| [from, to]) {
                    bytes.extend(number.wrapping_add(first).to_be_bytes());
                }
            }
            HeaderOption::Timestamp { value, echo } => {
                bytes.extend([8, 10]);
                bytes.extend(value.to_be_bytes());
                bytes.extend(echo.to_be_bytes());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_becomes_a_packet_with_valid_checksums() {
        let options = vec![
            HeaderOption::Nop,
            HeaderOption::Nop,
            HeaderOption::Timestamp { value: 7, echo: 9 },
            HeaderOption::Nop,
            HeaderOption::Nop,
            HeaderOption::Sack(vec![(100, 200)]),
        ];
        let segment = DrillSegment {
            flags: TcpFlags::ACK.with(TcpFlags::PSH, true),
            seq: 1,
            len: 3,
            ack: 5,
            window: Some(257),
            options: Some(options),
            ecn: Some(EcnField::Experienced),
        };
        let packet = PacketMap::default().emit(&segment).unwrap();
        assert!(Sum::of(&packet[..20]).verifies());
        let pseudo = Sum::pseudo_header(&packet[12..20], 6, packet.len() - 20);
        assert!(pseudo.and(Sum::of(&packet[20..])).verifies());
        assert_eq!(PacketMap::default().parse(&packet, packet.len()), Some(segment));
    }

    #[test]
    fn the_kernels_numbers_become_those_of_scripts() {
        let mut map = PacketMap::default();
        let numbered = |flags, seq| DrillSegment { flags, seq, window: Some(0), ..DrillSegment::default() };
        let syn = PacketMap::default().emit(&numbered(TcpFlags::SYN, u32::MAX)).unwrap();
        assert_eq!(map.parse(&syn, syn.len()).unwrap().seq, 0);
        let next = PacketMap::default().emit(&numbered(TcpFlags::ACK, 9)).unwrap();
        assert_eq!(map.parse(&next, next.len()).unwrap().seq, 10);
    }

    #[test]
    fn a_packet_that_was_cut_or_changed_is_parsed_without_a_panic() {
        let options = vec![HeaderOption::Sack(vec![(1, 2)]), HeaderOption::Nop, HeaderOption::Nop];
        let segment = DrillSegment { window: Some(1), options: Some(options), ..DrillSegment::default() };
        let packet = PacketMap::default().emit(&segment).unwrap();
        for at in 0..packet.len() {
            PacketMap::default().parse(&packet[..at], packet.len());
            for byte in [0, 1, 2, 0x4f, 0xff] {
                let mut changed = packet.clone();
                changed[at] = byte;
                PacketMap::default().parse(&changed, packet.len());
            }
        }
    }
}
