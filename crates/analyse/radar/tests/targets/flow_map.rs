//! Arbitrary bytes as reports of flow meters and as recordings. `fuzz/` has these targets, too.

#![allow(dead_code, reason = "a fuzz target calls one of the two functions")]

use radar::fabricmap::parts::SlotAssembler;
use radar::fabricmap::ports::{FabricPorts, LinkPort, PortLink};
use radar::fabricmap::recording::RecordingReader;
use radar::fabricmap::slot_report::SwitchSlot;
use radar::fabricmap::{FabricMap, FabricMapOptions};

/// One link, whose lower end the corpus has.
fn map() -> FabricMap {
    let end = |switch, port: &str| LinkPort { switch, port: port.into() };
    let link = PortLink { name: "leaf1--spine1".into(), ends: [end(0, "lo"), end(1, "down1")], rate: 1_000_000_000 };
    let ports = FabricPorts::new(vec!["leaf1".into(), "spine1".into()], vec![link]).expect("a fabric");
    FabricMap::new(ports, None, FabricMapOptions { memory: 1 << 20, ..FabricMapOptions::default() })
}

/// Checks that a report that can be read is written the same again, and that a map of it comes to an end. The checksum is made
/// to fit, as a stranger would.
pub(crate) fn report(bytes: &[u8]) {
    let _ = SlotAssembler::new(1 << 20).on_piece(1, 0, bytes);
    let body = &bytes[..bytes.len().saturating_sub(4)];
    let sealed = [body, &crc32fast::hash(body).to_le_bytes()].concat();
    let Ok(report) = SwitchSlot::from_bytes(&sealed) else { return };
    assert_eq!(SwitchSlot::from_bytes(&report.to_bytes()).as_ref(), Ok(&report));
    let mut map = map();
    let _ = map.on_report(None, sealed.clone());
    // The same a few slots later, so that every rule has something to compare.
    for slot in 1..5 {
        let _ = map.on_report(None, SwitchSlot { slot: report.slot.saturating_add(slot), ..report.clone() }.to_bytes());
    }
    let (answer, _) = map.finish();
    assert!(!answer.json().contains('\n') && answer.html().ends_with("</html>\n"));
}

/// Checks that reading a recording ends, and that a map of what it has does.
pub(crate) fn recording(bytes: &[u8]) {
    let Ok(mut reader) = RecordingReader::new(bytes) else { return };
    let mut map = map();
    while let Ok(Some(report)) = reader.next_report() {
        let _ = map.on_report(None, report);
    }
    let _ = map.finish().0.text(3);
}
