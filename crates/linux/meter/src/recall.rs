//! A meter's trail, which the thread that reads frames writes and the one that sends reports asks.
//!
//! Both hold a lock: one while it empties the ring of frames, the other for one pass over some batches. Questions have a budget
//! of a hundredth of a core, so a stranger's collector costs a meter no more.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linux::clock::Clock;
use radar::packet::{Flow, Packet};
use radar::trail::{ExpiredFlows, Trail, TrailQuestion};

use crate::digests::question::QuestionResponder;

/// Share of a core that questions may take.
const SHARE: f64 = 0.01;
/// Time that may be taken ahead.
const AHEAD: Duration = Duration::from_millis(20);
/// Interval after which the oldest flow of which a packet expired is forgotten.
const FORGOTTEN_AFTER: u64 = 1_000_000_000;

/// The latest packets that passed a meter, both ways.
#[derive(Clone)]
pub struct MeterTrail(Arc<Mutex<TrailState>>);

struct TrailState {
    ways: [Trail; 2],
    expired: ExpiredFlows,
    /// Time of the frame at which the oldest of these was last forgotten.
    aged: u64,
    /// Nanoseconds of a batch.
    length: u64,
    clock: Clock,
    /// Time that answers have taken.
    spent: Duration,
}

impl fmt::Debug for MeterTrail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeterTrail").finish_non_exhaustive()
    }
}

impl MeterTrail {
    /// A trail that takes so many bytes, half for each way, with batches of `length` nanoseconds.
    pub fn new(bytes: usize, length: u64) -> Self {
        let ways = [0; 2].map(|_| Trail::new(bytes / 2));
        let (expired, clock) = (ExpiredFlows::default(), Clock::start());
        Self(Arc::new(Mutex::new(TrailState { ways, expired, aged: 0, length, clock, spent: Duration::ZERO })))
    }

    fn lock(&self) -> MutexGuard<'_, TrailState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn writer(&self) -> TrailWriter<'_> {
        TrailWriter { state: self.lock(), at: 0 }
    }
}

impl QuestionResponder for MeterTrail {
    /// Answer to a question about packets; `None` for bytes that are none, and beyond the budget.
    fn reply(&self, question: &[u8]) -> Option<Vec<u8>> {
        let question = TrailQuestion::from_bytes(question)?;
        let state = &mut *self.lock();
        let began = state.clock.elapsed();
        if state.spent > began.mul_f64(SHARE) + AHEAD {
            return None;
        }
        let way = usize::from(matches!(question, TrailQuestion::Arrivals { .. }));
        let answer = state.ways[way].answer(&question, state.length, |flow| state.expired.has(flow));
        state.spent += state.clock.elapsed().saturating_sub(began);
        Some(answer.to_bytes())
    }
}

/// Records packets while the trail is locked.
pub(crate) struct TrailWriter<'a> {
    state: MutexGuard<'a, TrailState>,
    /// Time of the frame whose packets are recorded.
    pub at: u64,
}

impl TrailWriter<'_> {
    #[inline]
    pub(crate) fn record(&mut self, way: usize, batch: u64, hash: u64, packet: &Packet) {
        self.state.ways[way].record(batch, self.at, hash, &packet.flow, packet.ttl);
    }

    pub(crate) fn tell_expired(&mut self, flow: &Flow) {
        if self.at.saturating_sub(self.state.aged) >= FORGOTTEN_AFTER {
            self.state.aged = self.at;
            self.state.expired.age();
        }
        self.state.expired.tell(flow);
    }

    pub(crate) fn forget(&mut self) {
        self.state.ways.iter_mut().for_each(Trail::forget);
    }
}

#[cfg(test)]
mod tests {
    use radar::trail::{TrailAnswer, TrailHash, trail_hash};

    use super::*;

    fn packet() -> Packet {
        let [src, dst] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
        let flow = Flow { src, dst, protocol: 17, src_port: 1, dst_port: 2 };
        Packet { flow, ip_id: Some(7), fragment: 0, tcp: None, ttl: 63, content: 9 }
    }

    fn ask(trail: &MeterTrail, is_arrival: bool, hash: u64) -> Option<TrailAnswer> {
        let (batch, batches, hashes) = (100, 2, vec![TrailHash::new(hash)]);
        let question = match is_arrival {
            true => TrailQuestion::Arrivals { batch, batches, hashes },
            false => TrailQuestion::Lost { batch, batches, hashes },
        };
        TrailAnswer::from_bytes(&question, &trail.reply(&question.to_bytes())?)
    }

    #[test]
    fn each_way_answers_for_itself_and_what_a_router_said_goes_with_its_flow() {
        let trail = MeterTrail::new(1 << 16, 10_000_000);
        let hash = 0x1234_5678_9abc;
        let mut writer = trail.writer();
        (writer.at, writer.state.aged) = (1_000_000_000, 1_000_000_000);
        writer.record(0, 100, hash, &packet());
        writer.tell_expired(&packet().flow);
        drop(writer);
        let Some(TrailAnswer::Lost(lost)) = ask(&trail, false, hash) else { panic!("no answer") };
        assert_eq!(lost[0].map(|lost| (lost.ttl, lost.is_told)), Some((63, true)));
        assert_eq!(ask(&trail, true, hash), Some(TrailAnswer::Arrivals(vec![radar::trail::ArrivalAnswer(None)])));
        assert_eq!((trail.reply(b"nonsense"), trail.reply(&[]), trail.reply(&[2])), (None, None, None));
        trail.writer().forget();
        assert_eq!(ask(&trail, false, hash), Some(TrailAnswer::Lost(vec![None])));
    }

    #[test]
    fn questions_take_a_hundredth_of_a_core_and_no_more() {
        let trail = MeterTrail::new(32 << 20, 10_000_000_000);
        let mut writer = trail.writer();
        let signature = radar::signature::Signature::new(&packet(), radar::signature::Fields::ALL);
        (0..1_000_000).for_each(|nth| writer.record(0, 100, trail_hash(&signature) ^ nth, &packet()));
        drop(writer);
        let clock = Clock::start();
        let answered = (0..2_000).filter(|_| ask(&trail, false, 7).is_some()).count();
        let (spent, limit) = (trail.lock().spent, clock.elapsed().mul_f64(SHARE) + AHEAD);
        assert!((1..2_000).contains(&answered), "{answered} of 2,000 answered");
        assert!(spent < limit * 20, "{spent:?} spent, {limit:?} allowed, and one more pass");
    }
}
