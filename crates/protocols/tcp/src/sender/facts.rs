//! The sending half of [`TcpInfo`].

use units::{Span, Time};

use super::super::info::{CaState, NO_THRESHOLD, TcpInfo};
use super::super::record::SegmentState;
use super::super::socket::TcpState;
use super::{MAX_WINDOW, Phase, TcpSender};

impl TcpSender {
    /// Fields of `TCP_INFO` other than those of the receiving half.
    pub(crate) fn info(&self, now: Time) -> TcpInfo {
        let (copies, lost) = self.count_copies();
        let socket = self.socket.as_deref();
        let counters = socket.map_or_else(Default::default, |socket| socket.counters);
        let (busy_time, rwnd_limited, sndbuf_limited) =
            socket.map_or((Span::ZERO, Span::ZERO, Span::ZERO), |socket| socket.clocks.read(now));
        let min_rtt = self.rtt.min();
        TcpInfo {
            state: TcpState::Established,
            ca_state: self.ca_state(),
            retransmits: counters.timeouts,
            probes: socket.map_or(0, |socket| socket.probes),
            backoff: self.rtt.backoff().max(socket.map_or(0, |socket| socket.backoff)),
            rto: self.rtt.rto(),
            snd_mss: self.mss as u32,
            rcv_mss: 0,
            unacked: self.board.segments() as u32,
            sacked: self.board.sacked_segments() + self.counting.as_ref().map_or(0, |count| count.arrived() as u32),
            lost,
            retrans: copies,
            last_data_sent: self.last_sent.map(|sent| now.since(sent)),
            last_data_recv: Span::ZERO,
            rtt: self.rtt.srtt().unwrap_or_default(),
            rttvar: self.rtt.deviation(),
            min_rtt: if self.rtt.srtt().is_some() { min_rtt } else { Span::ZERO },
            snd_ssthresh: self.threshold_segments(),
            snd_cwnd: (self.window() / self.mss) as u32,
            reordering: self.rack.degree().segments,
            reord_seen: self.rack.degree().events,
            total_retrans: counters.copies,
            dsack_dups: counters.dsacks,
            bytes_acked: self.payload_below(self.una),
            bytes_received: 0,
            notsent_bytes: self.payload_end() - self.payload_below(self.nxt),
            delivered: 1 + counters.delivered,
            delivered_ce: counters.delivered_marked,
            busy_time,
            rwnd_limited,
            sndbuf_limited,
            snd_wnd: socket.map_or(self.edge.saturating_sub(self.una), |socket| socket.window),
            rcv_wnd: 0,
        }
    }

    fn threshold_segments(&self) -> u32 {
        match self.threshold() {
            MAX_WINDOW.. => NO_THRESHOLD,
            threshold => (threshold / self.mss) as u32,
        }
    }

    fn ca_state(&self) -> CaState {
        let arrived = self.counting.as_ref().map_or(0, |count| count.arrived());
        match self.phase {
            Phase::Recovery { .. } => CaState::Recovery,
            Phase::Loss { .. } => CaState::Loss,
            Phase::Open if self.gliding.is_some() => CaState::Cwr,
            Phase::Open if self.board.sacked() > 0 || arrived > 0 => CaState::Disorder,
            Phase::Open => CaState::Open,
        }
    }

    /// Copies in flight, and segments taken for lost, whether sent again or not: only a probe is sent again without.
    fn count_copies(&self) -> (u32, u32) {
        let mut copies = 0;
        let mut lost = 0;
        for record in self.board.records() {
            copies += u32::from(record.state == SegmentState::Flight && record.is_resent());
            lost += u32::from(record.state == SegmentState::Lost);
        }
        let probes = u32::from(self.probed.is_some_and(|probe| probe.again)).min(copies);
        (copies, lost + copies - probes)
    }
}
