//! Seals of reports between meters and collector that share a key: tags that nobody else can make, for bytes that cannot be
//! replayed.
//!
//! Each side draws a number for this connection, and both prove that they have the key. Every tag covers both
//! numbers and the count of tags before it, so recorded bytes fit no other connection and no other place in this one.

use bus::key::OrderKey;

pub(crate) const NONCE: usize = 16;
pub(crate) const TAG: usize = 8;

/// One connection, as each of its ends knows it.
#[derive(Debug)]
pub(crate) struct ReportSession {
    key: OrderKey,
    nonces: [u8; 2 * NONCE],
    count: u64,
    answers: u64,
}

impl ReportSession {
    pub(crate) fn new(key: &OrderKey, collector: [u8; NONCE], meter: [u8; NONCE]) -> Self {
        let mut nonces = [0; 2 * NONCE];
        nonces[..NONCE].copy_from_slice(&collector);
        nonces[NONCE..].copy_from_slice(&meter);
        Self { key: key.clone(), nonces, count: 0, answers: 0 }
    }

    /// Proof that the meter has the key; `collector_proof` is that of the collector.
    pub(crate) fn meter_proof(&self) -> [u8; TAG] {
        self.key.tag("radar meter", &[&self.nonces]).to_le_bytes()
    }

    pub(crate) fn collector_proof(&self) -> [u8; TAG] {
        self.key.tag("radar collector", &[&self.nonces]).to_le_bytes()
    }

    /// Tag of the next answer on this connection, which goes the other way.
    pub(crate) fn answer_tag(&mut self, answer: &[u8]) -> [u8; TAG] {
        self.answers += 1;
        self.key.tag("radar answer", &[&self.nonces, &self.answers.to_le_bytes(), answer]).to_le_bytes()
    }

    /// Tag of the next frame on this connection.
    pub(crate) fn tag(&mut self, frame: &[u8]) -> [u8; TAG] {
        self.count += 1;
        self.key.tag("radar report", &[&self.nonces, &self.count.to_le_bytes(), frame]).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_fits_no_other_connection_and_no_other_place() {
        let key = OrderKey::new([7; 16]);
        let session = || ReportSession::new(&key, [1; NONCE], [2; NONCE]);
        let (mut ours, mut theirs) = (session(), session());
        let tags = [ours.tag(b"report"), ours.tag(b"report")];
        assert_eq!([theirs.tag(b"report"), theirs.tag(b"report")], tags);
        assert_ne!(tags[0], tags[1]);
        assert_ne!(ReportSession::new(&key, [3; NONCE], [2; NONCE]).tag(b"report"), tags[0]);
        assert_ne!(ReportSession::new(&key, [1; NONCE], [3; NONCE]).tag(b"report"), tags[0]);
        assert_ne!(ours.meter_proof(), ours.collector_proof(), "a proof cannot be handed back");
    }
}
