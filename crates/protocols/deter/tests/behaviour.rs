//! Our TCP has a version, because logs are replayed only by the TCP that wrote them.

use deter::{ConnectionLog, LogLevel, ReplayObserver, ReplayedFrame, record_trial, replay};

/// FNV-1a over all that left.
struct Fingerprint(u64);

impl ReplayObserver for Fingerprint {
    fn sent(&mut self, frame: ReplayedFrame) {
        for byte in format!("{:?}", frame.sent).bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[test]
fn what_tcp_does_has_a_version() {
    let mut fingerprint = Fingerprint(0xcbf2_9ce4_8422_2325);
    for seed in 0..300 {
        let log = record_trial(seed, LogLevel::Times).unwrap();
        replay(&ConnectionLog::read(&log).unwrap(), &mut fingerprint).unwrap();
    }
    assert_eq!(
        (tcp::BEHAVIOUR, format!("{:016x}", fingerprint.0)),
        (5, "5ee4a83d301451af".to_owned()),
        "TCP, or what trials draw, has changed: if it is TCP, count tcp::BEHAVIOUR up; then write both here"
    );
}
