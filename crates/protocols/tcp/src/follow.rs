//! A connection that follows another one, segment by segment: the shadow of a real sender.
//!
//! Acknowledgements come in through [`machine::Machine::on_frame`] as always. Instead of being pulled, the connection is
//! notified of each segment that the real sender sent, and answers whether it would have sent the same.

use machine::Out;
use units::Time;

use super::connection::TcpConnection;

impl TcpConnection {
    /// The real sender sent payload at `now`, at this position of the stream; whether this connection would have, too.
    pub fn follow<O: Out<Self>>(&mut self, now: Time, seq: u64, len: u16, out: &mut O) -> bool {
        self.sender.force(now, seq, len, out)
    }

    /// True if it would send again now what is at this position, and for new data, which is a question of its window.
    pub fn would_follow(&self, now: Time, seq: u64) -> bool {
        self.sender.would_force(now, seq)
    }
}
