//! Processing of what reaches the sender: acknowledgements, blocks, windows.

use super::{AckArrival, LossPhase, TrackedSender};
use crate::shadow::ShadowAck;

/// Acknowledgements closer together than this count as one: the state before the first of them is what held the sender.
const BATCH: u64 = 1_000_000;
/// Acknowledgements that wait for their sender to show that it has them.
const MOST_ON_WAY: usize = 1 << 14;

impl TrackedSender {
    /// The capture saw an acknowledgement; it reaches the sender at `news.at`.
    pub(crate) fn expect_ack(&mut self, news: AckArrival) {
        self.seen_una = self.seen_una.max(news.ack.min(self.nxt));
        self.on_way.push_back(news);
        if self.on_way.len() > MOST_ON_WAY {
            self.hear_until(u64::MAX, 0);
        }
    }

    /// Takes what has reached the sender by then, or would have a little later.
    pub(crate) fn hear_until(&mut self, at: u64, slack: u64) {
        self.hear_echoed(at, slack, None);
    }

    /// Takes what has reached the sender by then. `echo`, the timestamp of the last packet that reached it, decides that if the
    /// sender echoes timestamps.
    pub(crate) fn hear_echoed(&mut self, at: u64, slack: u64, echo: Option<u32>) {
        let has_come = |news: &AckArrival| match (news.stamp, echo) {
            (Some(stamp), Some(echo)) => (stamp.wrapping_sub(echo) as i32) <= 0,
            _ => news.at <= at.saturating_add(slack),
        };
        while self.on_way.front().is_some_and(has_come) {
            if let Some(news) = self.on_way.pop_front() {
                self.hear(&AckArrival { at: news.at.min(at), ..news });
            }
        }
    }

    fn hear(&mut self, news: &AckArrival) {
        if let Some((segments, _)) = self.known.as_ref().and_then(|known| known.windows_at(news.at)) {
            self.known_window = Some(segments);
        }
        let batch = BATCH.max(self.srtt().unwrap_or(0) / 16);
        if news.at > self.before_at + batch || self.last_sent > self.before_at {
            self.before = self.held_now();
            self.before_at = news.at;
        }
        // An acknowledgement of what the capture has not seen yet comes from a capture with gaps.
        let ack = news.ack.min(self.nxt);
        let is_dsack = is_duplicate_report(news);
        // A segment that arrived twice has been counted where the capture saw it arrive.
        if is_dsack
            && !self.arrivals_seen
            && let Some((from, to)) = news.blocks().first()
        {
            self.losses.on_dsack(*from, *to);
        }
        let newly_sacked = self.take_blocks(news, is_dsack);
        self.count_duplicates(news, ack, newly_sacked, is_dsack);
        let echo_of = self.advance(ack, news);
        self.last_window = news.window;
        self.set_edge(news);
        if let Some(shadow) = &mut self.shadow {
            let room = self.edge.saturating_sub(ack);
            shadow.on_ack(&ShadowAck { at: news.at, ack, room, blocks: news.blocks(), echo_of });
        }
        self.last_heard = news.at;
        match self.phase {
            LossPhase::Recovery(until) | LossPhase::Loss(until) if self.una >= until => self.leave_phase(),
            _ => {}
        }
    }

    fn leave_phase(&mut self) {
        self.phase = LossPhase::Open;
        self.last_trigger = None;
    }

    fn set_edge(&mut self, news: &AckArrival) {
        let scale = self.scale.unwrap_or_else(|| {
            // Nobody sends beyond the window: what is in flight shows how much it must have been scaled.
            while self.guessed_scale < 14
                && news.window > 0
                && u64::from(news.window) << self.guessed_scale < self.nxt.saturating_sub(news.ack)
            {
                self.guessed_scale += 1;
            }
            self.guessed_scale
        });
        self.edge = news.ack + (u64::from(news.window) << scale);
    }

    /// Bytes that the blocks newly report.
    fn take_blocks(&mut self, news: &AckArrival, is_dsack: bool) -> u64 {
        let mut newly = 0;
        for (from, to) in news.blocks().iter().skip(usize::from(is_dsack)) {
            let mut place = self.segments.partition_point(|segment| segment.start < *from);
            while let Some(segment) = self.segments.get_mut(place).filter(|segment| segment.end() <= *to) {
                if !segment.is_sacked {
                    segment.is_sacked = true;
                    newly += u64::from(segment.len);
                    self.sacked_segments += 1;
                }
                place += 1;
            }
        }
        self.sacked += newly;
        newly
    }

    fn count_duplicates(&mut self, news: &AckArrival, ack: u64, newly_sacked: u64, is_dsack: bool) {
        if newly_sacked > 0 {
            self.first_dup_at.get_or_insert(news.at);
        }
        if ack != self.una || !news.is_pure || self.nxt == self.una || is_dsack {
            return;
        }
        if newly_sacked > 0 || news.window == self.last_window {
            self.dup_acks += 1;
            self.first_dup_at.get_or_insert(news.at);
        } else if news.block_count == 0 {
            self.hidden_dup_acks += 1;
        }
    }

    /// Drops what is acknowledged; returns when the segment left whose timestamp came back, as far as that is known.
    fn advance(&mut self, ack: u64, news: &AckArrival) -> u64 {
        let mut echo_of = news.at;
        if ack <= self.una {
            return echo_of;
        }
        while let Some(segment) = self.segments.front().filter(|segment| segment.end() <= ack) {
            let segment = *segment;
            self.segments.pop_front();
            if segment.is_sacked {
                self.sacked -= u64::from(segment.len);
                self.sacked_segments -= 1;
            }
            // A timestamp that comes back is that of the first segment that is acknowledged with it (RFC 7323 §4.3).
            if segment.copies > 0 && segment.start <= self.una {
                echo_of = segment.last_at;
            }
            // Those behind it had arrived, it was not sent again, and came all the same.
            self.reordering_seen |= self.sacked > 0 && !segment.is_sacked && segment.copies == 0;
            let is_original = |echo: u32| segment.start <= self.una && (echo.wrapping_sub(segment.stamp) as i32) < 0;
            if segment.copies > 0 && !segment.is_sacked && !self.arrivals_seen && news.echo.is_some_and(is_original) {
                // Acknowledgements asked for this segment, which was not lost: it was overtaken.
                self.reordering_seen |= matches!(self.phase, LossPhase::Recovery(_));
                self.losses.on_original_arrived(segment.start);
                echo_of = segment.first_at;
            }
        }
        if let Some(head) = self.segments.front_mut().filter(|head| head.start < ack) {
            let cut = (ack - head.start) as u32;
            head.start = ack;
            head.len -= cut;
            if head.is_sacked {
                self.sacked -= u64::from(cut);
            }
        }
        self.una = ack;
        self.last_progress = news.at;
        (self.dup_acks, self.hidden_dup_acks) = (0, 0);
        if self.sacked == 0 {
            self.first_dup_at = None;
        }
        self.is_probing = false;
        echo_of
    }
}

/// RFC 2883: the first block lies below the acknowledgement, or within the second.
fn is_duplicate_report(news: &AckArrival) -> bool {
    let blocks = news.blocks();
    let Some((from, to)) = blocks.first() else { return false };
    *to <= news.ack || blocks.get(1).is_some_and(|(low, high)| low <= from && to <= high)
}
