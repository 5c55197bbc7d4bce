//! Arbitrary bytes as frames: Ethernet, tags, IP, fragments. `fuzz/` has this target, too.

use wire::layers::Layers;

/// Finds the layers of a frame. Offsets rise, and nothing that is taken out of the frame lies behind its end.
pub(crate) fn frame(bytes: &[u8]) {
    let Some(layers) = Layers::of(bytes) else { return };
    assert!(layers.network <= bytes.len());
    let Some(ip) = layers.ip else { return };
    assert!(ip.at >= layers.network && ip.transport >= ip.at + ip.version.header_len());
    assert!(ip.addresses(bytes).len() <= 32 && ip.inside(bytes).len() <= bytes.len());
    assert!(ip.is_plain() || ip.fragment.is_some() || ip.transport > ip.at);
    if ip.is_whole(bytes) {
        assert!(ip.end() <= bytes.len());
    }
    // The transport's header may claim more than is there.
    let _ = (ip.payload(bytes), ip.is_later_fragment());
}
