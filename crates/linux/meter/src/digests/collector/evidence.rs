//! Lines and causes of one segment's losses, from what its meters recall.

use radar::loss::LossCause;
use radar::rounds::SeenRound;
use radar::rule::IntervalAccount;
use radar::segment::{LostSignature, SegmentFinding};
use units::Timestamp;

use super::events::{JudgedCause, UnlistedEvents};
use super::recall::RecalledLoss;
use super::watched::CollectedSegment;
use super::{CollectorEvent, LostPacket};

/// Flows whose losses are kept apart.
const MOST_FLOWS: usize = 1 << 16;

impl CollectedSegment {
    /// Counts what was lost and what came after all; returns the lines that are due.
    pub(super) fn on_losses(
        &mut self,
        now: Timestamp,
        finding: &SegmentFinding,
        unlisted: &mut UnlistedEvents,
    ) -> Vec<CollectorEvent> {
        finding.losses.iter().for_each(|lost| self.count(lost));
        let due = self.recall.on_losses(now, self.length, &finding.losses);
        let mut news = self.lines(&due, unlisted);
        for late in &finding.late {
            let (due, taken_back, cause) = self.recall.take_back(late);
            news.extend(self.lines(&Vec::from_iter(due), unlisted));
            self.take_back(late, cause);
            if unlisted.may_list() {
                let of = RecalledLoss { lost: *late, found: now, at: None, ttl: None };
                let of = RecalledLoss { found: now, ..taken_back.unwrap_or(of) };
                news.push(CollectorEvent::Late(Box::new(self.lost_packet(&of))));
            }
        }
        news.extend(self.judge(now, unlisted));
        news
    }

    /// A meter has answered a question about its trail.
    pub(crate) fn on_recalled(
        &mut self,
        now: Timestamp,
        token: u32,
        body: &[u8],
        unlisted: &mut UnlistedEvents,
    ) -> Vec<CollectorEvent> {
        let due = self.recall.on_answer(now, (self.length, self.patience), token, body);
        self.lines(&due, unlisted)
    }

    /// Packets came round at the meter of an end, in a batch.
    pub(super) fn on_rounds(&mut self, end: usize, batch: u64, rounds: &[SeenRound]) {
        for round in rounds {
            // A packet that arrives by one end of a link has entered by the other.
            let from = self.is_link().then_some(if round.way == 0 { end } else { 1 - end.min(1) });
            self.recall.on_round(from, Timestamp(batch.saturating_mul(self.length)), *round);
        }
    }

    /// Lines that have waited long enough, and causes of intervals that are over.
    pub(super) fn judge(&mut self, now: Timestamp, unlisted: &mut UnlistedEvents) -> Vec<CollectorEvent> {
        if self.length == 0 {
            return Vec::new();
        }
        let due = self.recall.overdue(now, self.length);
        let mut news = self.lines(&due, unlisted);
        let judged = self.recall.judge(self.until, now, self.length);
        news.extend(judged.into_iter().flat_map(|(from, interval)| self.on_judged(from, &interval)));
        news
    }

    /// The last lines and causes.
    pub(super) fn end(&mut self, unlisted: &mut UnlistedEvents) -> Vec<CollectorEvent> {
        let (due, judged) = self.recall.end(self.length);
        let mut news = self.lines(&due, unlisted);
        news.extend(judged.into_iter().flat_map(|(from, interval)| self.on_judged(from, &interval)));
        news
    }

    fn lines(&self, due: &[RecalledLoss], unlisted: &mut UnlistedEvents) -> Vec<CollectorEvent> {
        let listed = due.iter().take_while(|_| unlisted.may_list());
        listed.map(|lost| CollectorEvent::Lost(Box::new(self.lost_packet(lost)))).collect()
    }

    fn on_judged(&mut self, from: Option<usize>, interval: &IntervalAccount) -> Vec<CollectorEvent> {
        let mut news = Vec::new();
        for group in &interval.groups {
            let mut lost = 0;
            for number in group.losses.iter().filter_map(|nth| interval.losses.get(*nth)) {
                let Some(of) = self.recall.on_judged(*number, group.cause) else { continue };
                lost += u64::from(of.times);
                self.recount(&of, group.cause);
            }
            let (from, to) = self.end_names(from);
            let line = interval.line(group, lost);
            let segment = self.name.clone();
            news.push(CollectorEvent::Cause(Box::new(JudgedCause { segment, from, to, line })));
        }
        news
    }

    /// Counts a loss, of which no cause is known yet.
    fn count(&mut self, lost: &LostSignature) {
        let (flow, times) = (lost.signature.flow(), u64::from(lost.times));
        self.lost += times;
        self.causes.add_times(LossCause::Unknown, times);
        if self.flows.len() < MOST_FLOWS || self.flows.contains_key(&flow) {
            self.flows.entry(flow).or_default().add_times(LossCause::Unknown, times);
        } else {
            self.other_flows += times;
        }
    }

    /// A loss that was counted as unknown has a cause.
    fn recount(&mut self, lost: &LostSignature, cause: LossCause) {
        let (flow, times) = (lost.signature.flow(), u64::from(lost.times));
        let counts = [Some(&mut self.causes), self.flows.get_mut(&flow)];
        for counts in counts.into_iter().flatten() {
            counts.take_back(LossCause::Unknown, times);
            counts.add_times(cause, times);
        }
    }

    /// Counts a packet no longer that was called lost and came after all.
    fn take_back(&mut self, late: &LostSignature, cause: LossCause) {
        let (flow, times) = (late.signature.flow(), u64::from(late.times));
        self.lost = self.lost.saturating_sub(times);
        self.late = self.late.saturating_add(times);
        self.causes.take_back(cause, times);
        let Some(causes) = self.flows.get_mut(&flow) else {
            self.other_flows = self.other_flows.saturating_sub(times);
            return;
        };
        causes.take_back(cause, times);
        if causes.losses() == 0 {
            self.flows.remove(&flow);
        }
    }

    /// Names of the end by which packets entered, and of that where they should have come out; `None` in a black box.
    fn end_names(&self, from: Option<usize>) -> (Option<String>, Option<String>) {
        let name = |at: usize| self.segment.ends().nth(at).map(|(end, _)| end.to_owned());
        (from.and_then(name), from.and_then(|from| name(1 - from.min(1))))
    }

    fn lost_packet(&self, RecalledLoss { lost, found, at, ttl }: &RecalledLoss) -> LostPacket {
        let (from, to) = self.end_names(lost.from);
        let of_end = |end: &String| self.ends.get(end);
        let fields = from.as_ref().and_then(of_end).or_else(|| self.ends.values().next()).map(|end| end.fields);
        let fields = fields.unwrap_or_default();
        let batch = Timestamp(lost.batch * self.length);
        LostPacket {
            segment: self.name.clone(),
            from,
            to,
            times: lost.times,
            batch,
            at: *at,
            ttl: *ttl,
            delay: found.since(batch),
            flow: lost.signature.flow(),
            tcp_seq: lost.signature.tcp().map(|tcp| tcp.seq),
            ip_id: lost.signature.ip_id().filter(|_| fields.ip_id),
            fields,
        }
    }
}
