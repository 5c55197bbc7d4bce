//! Captures byte for byte as pcap-file writes them, and as it reads them.

use std::borrow::Cow;
use std::time::Duration;

use capture::pcapng::{EnhancedPacket, PcapngWriter};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{PcapNgReader, PcapNgWriter};
use pcap_file::{DataLink, Endianness};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Packet {
    interface: prop::sample::Index,
    at: u64,
    len: u32,
    bytes: Vec<u8>,
    comment: Option<String>,
    flags: Option<u32>,
}

fn any_packet() -> impl Strategy<Value = Packet> {
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    let options = (prop::option::of("[a-z ]{0,12}"), prop::option::of(any::<u32>()));
    (any::<prop::sample::Index>(), any::<u64>(), any::<u32>(), bytes, options)
        .prop_map(|(interface, at, len, bytes, (comment, flags))| Packet { interface, at, len, bytes, comment, flags })
}

fn ours(interfaces: &[(u16, u32, Option<String>)], packets: &[Packet]) -> Vec<u8> {
    let mut writer = PcapngWriter::new(Vec::new()).unwrap();
    for (number, (link_type, snap, name)) in (0..).zip(interfaces) {
        assert_eq!(writer.interface(*link_type, *snap, name.as_deref()).unwrap(), number);
    }
    for Packet { interface, at, len, bytes, comment, flags } in packets {
        let interface = interface.index(interfaces.len()) as u32;
        let comment = comment.as_deref();
        writer.packet(&EnhancedPacket { interface, at: *at, len: *len, bytes, comment, flags: *flags }).unwrap();
    }
    writer.into_inner()
}

fn theirs(interfaces: &[(u16, u32, Option<String>)], packets: &[Packet]) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little).unwrap();
    for (link_type, snaplen, name) in interfaces {
        let mut options: Vec<_> =
            name.iter().map(|name| InterfaceDescriptionOption::IfName(Cow::Borrowed(name))).collect();
        options.push(InterfaceDescriptionOption::IfTsResol(9));
        let linktype = DataLink::from(u32::from(*link_type));
        writer.write_pcapng_block(InterfaceDescriptionBlock { linktype, snaplen: *snaplen, options }).unwrap();
    }
    for packet in packets {
        let comment = packet.comment.iter().map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text)));
        let block = EnhancedPacketBlock {
            interface_id: packet.interface.index(interfaces.len()) as u32,
            timestamp: Duration::from_nanos(packet.at),
            original_len: packet.len,
            data: Cow::Borrowed(&packet.bytes),
            options: comment.chain(packet.flags.map(EnhancedPacketOption::Flags)).collect(),
        };
        writer.write_pcapng_block(block).unwrap();
    }
    writer.into_inner()
}

proptest! {
    #[test]
    fn every_byte_is_as_pcap_file_writes_it(
        interfaces in prop::collection::vec((0..300_u16, any::<u32>(), prop::option::of("[a-z0-9-]{0,9}")), 1..4),
        packets in prop::collection::vec(any_packet(), 0..8),
    ) {
        let file = ours(&interfaces, &packets);
        prop_assert_eq!(&file, &theirs(&interfaces, &packets));
        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let mut blocks = 0;
        while let Some(block) = reader.next_block() {
            block.unwrap();
            blocks += 1;
        }
        prop_assert_eq!(blocks, interfaces.len() + packets.len());
    }
}
