//! Waves that nothing disturbs, in closed form.
//!
//! The effect of a wave on a node (its time, its bound, its deadlines) does not depend on the wave before. So when nothing
//! has happened for long enough that every timer that could expire has expired, the root and the other nodes that send by
//! themselves send their next waves later, by a whole number of intervals, and the nodes that heard the last wave hear that
//! one as if nothing was between. The last wave before a failure, a plan, a tick and the end is always simulated.
//! The time of a broken oscillator would leave its bound in between, so with one every wave is simulated.

use units::{Span, Time};

use super::ClockWorld;
use crate::machines::SimulatedClock;

impl<M: SimulatedClock> ClockWorld<'_, M> {
    /// Leaves out what can be, if `node` is the one whose timer may decide that.
    pub(super) fn skip_quiet_waves(&mut self, at: Time, node: usize) -> bool {
        let settled = self.disturbed + M::settles_within(&self.params) + M::settles_within(&self.params) / 16;
        // Whoever was left out of the last quiet waves has to hear one before the next are.
        let resumed = self.tally.steady_nodes() == 0;
        let is_told = at >= self.told_until;
        let is_in_full = self.setup.in_full || self.setup.loss > 0.0 || !self.oscillators.are_sound();
        if is_in_full || at < settled || !is_told || !resumed || !self.leads(node) {
            return false;
        }
        let next_failure = self.failures.iter().flat_map(|failure| [failure.at, failure.until]);
        let events = next_failure.chain(self.controls.iter().copied()).filter(|event| *event >= at);
        let horizon = events.chain([self.next_tick, self.end]).min().unwrap_or(at);
        let room = horizon.since(at).saturating_sub(self.interval * 5 / 2);
        // By any oscillator of the network, the last wave that is left out comes before the horizon.
        let waves = room.saturating_sub(room / 5_000).as_ps() / self.interval.as_ps();
        if waves < 2 {
            return false;
        }
        self.skip(at, waves);
        true
    }

    /// The root, or anybody who sends alone where there is none.
    fn leads(&self, node: usize) -> bool {
        let is_root = |place: usize| self.nodes[place].is_root() && !self.node_down[place];
        is_root(node) || M::SENDS_ALONE && !is_root(self.plan.root.index())
    }

    fn skip(&mut self, at: Time, waves: u64) {
        let recently = Time::from_ps(at.as_ps().saturating_sub((self.interval * 3 / 2).as_ps()));
        for node in 0..self.nodes.len() {
            if self.node_down[node] {
                continue;
            }
            if self.tally.has_heard_since(node, recently) && !self.nodes[node].is_root() {
                self.tally.set_steady(node);
                self.scheduled[node] = Time::NEVER;
            } else {
                self.nodes[node].skip_waves(&self.params, waves);
                self.scheduled[node] = Time::NEVER;
                self.rearm(node);
            }
        }
        self.tally.waves += waves;
    }
}

/// Three halves of an interval: who has heard nothing for so long has missed a wave.
pub(super) fn missed_after(interval: Span) -> Span {
    interval * 3 / 2
}
