//! Exact forms per flow against go-back-N, drawn at random: PSNs, one NAK for each, copies, dummies.

use faults::Random;

use super::*;

struct Draw<'a> {
    model: &'a TimeoutModel,
    setting: TimeoutSetting,
    random: Random,
}

#[derive(Default)]
struct Count {
    causes: Causes<f64>,
    repaired: f64,
    flows_with_timeout: f64,
    /// Tails that arrived when they were sent first, and of which nothing was heard.
    unheard: f64,
}

/// Outcome of sending everything from one PSN on.
#[derive(Default)]
struct Round {
    nak_sent: bool,
    nak_arrived: bool,
}

impl Draw<'_> {
    fn links(&mut self) -> f64 {
        let path = self.model.path;
        f64::from((0..path.links).map(|_| u8::from(self.random.unit() < path.corrupting.get())).sum::<u8>())
    }

    fn is_lost(&mut self, links: f64, beta: Prob) -> bool {
        self.random.unit() < any_of(beta.get(), links)
    }

    /// One flow after another; each meets links of its own.
    fn flow(&mut self, packets: u64, count: &mut Count) {
        let (ahead, back) = (self.links(), self.links());
        let TailProtection::Dummies(dummies) = self.setting.tail else { panic!("drawn with dummies only") };
        let end = packets + u64::from(dummies);
        let (mut expected, mut naked, mut acknowledged, mut had_timeout) = (0, None, false, false);
        let (mut copies, mut rounds) = (0, 0);
        while expected < packets {
            let begin = expected;
            rounds += 1;
            let mut round = Round::default();
            for psn in begin..end {
                let beta = if psn < packets { self.model.packet_corruption() } else { self.model.header_corruption() };
                let sends = if psn == begin { 1 + copies } else { 1 };
                let arrived = (0..sends).filter(|_| !self.is_lost(ahead, beta)).count() > 0;
                if arrived && psn == expected {
                    expected += 1;
                    acknowledged |= psn + 1 >= packets && !self.is_lost(back, self.model.ack_corruption());
                } else if arrived && psn > expected && naked != Some(expected) {
                    naked = Some(expected);
                    round.nak_sent = true;
                    let naks = 1 + self.setting.naks;
                    round.nak_arrived =
                        (0..naks).filter(|_| !self.is_lost(back, self.model.ack_corruption())).count() > 0;
                    acknowledged |= expected >= packets && round.nak_arrived;
                }
            }
            if expected >= packets {
                break;
            }
            if round.nak_arrived {
                copies = self.setting.naked;
                count.repaired += 1.0;
                continue;
            }
            had_timeout = true;
            if naked == Some(expected) && !round.nak_sent {
                // It was repaired in vain.
                count.repaired -= 1.0;
                count.causes.twice += 1.0;
            } else if round.nak_sent {
                count.causes.nak += 1.0;
            } else {
                count.causes.tail += 1.0;
            }
            // The packet that the timeout sends is assumed to arrive.
            (expected, copies) = (expected + 1, 0);
            acknowledged |= expected >= packets;
        }
        if !acknowledged {
            count.causes.tail_ack += 1.0;
            count.unheard += f64::from(u8::from(rounds == 1));
            had_timeout = true;
        }
        count.flows_with_timeout += f64::from(u8::from(had_timeout));
    }
}

#[test]
fn go_back_n_drawn_at_random_times_out_as_often_as_expected() {
    let flows = 300_000;
    for (seed, packets, beta, setting) in [
        (1, 12, 0.02, TimeoutSetting::NONE),
        (2, 12, 0.02, TimeoutSetting { tail: TailProtection::Dummies(1), ..TimeoutSetting::NONE }),
        (3, 1, 0.05, TimeoutSetting { tail: TailProtection::Dummies(2), ..TimeoutSetting::NONE }),
        (4, 5, 0.05, TimeoutSetting { naks: 1, naked: 1, tail: TailProtection::Dummies(1), obeys_copies: false }),
    ] {
        // Drops, because corruption of headers is too rare to be counted.
        let model = TimeoutModel {
            corruption: CorruptionSeverity::Drops(prob(beta)),
            ..model(0.0, 2, 0.7, FlowLengths::fixed(packets))
        };
        let mut draw = Draw { model: &model, setting, random: Random::new(seed, 0) };
        let mut count = Count::default();
        for _ in 0..flows {
            draw.flow(packets, &mut count);
        }
        let expected = model.estimate(&setting);
        let agree = |what: &str, counted: f64, per_flow: f64| {
            let mean = per_flow * f64::from(flows);
            // Four standard deviations, and what two losses at the end of one flow are counted twice for.
            let room = 4.0 * mean.sqrt() + 2.0 * beta * mean + 1.0;
            assert!((counted - mean).abs() <= room, "{setting:?} {what}: {counted}, expected {mean:.1} ± {room:.1}");
        };
        for ((cause, counted), (_, forms)) in count.causes.named().into_iter().zip(expected.per_flow.named()) {
            agree(cause, counted, forms.exact);
        }
        agree("repaired", count.repaired, expected.retransmissions);
        agree("flows", count.flows_with_timeout, expected.flow_with_timeout);
    }
}

#[test]
fn dummies_behind_one_that_is_lost_are_naked_once() {
    let flows = 300_000;
    let setting =
        |naks, dummies| TimeoutSetting { naks, tail: TailProtection::Dummies(dummies), ..TimeoutSetting::NONE };
    for (seed, setting) in [(5, setting(0, 3)), (6, setting(1, 2))] {
        let model = TimeoutModel {
            corruption: CorruptionSeverity::Drops(prob(0.2)),
            ..model(0.0, 2, 0.7, FlowLengths::fixed(1))
        };
        let mut draw = Draw { model: &model, setting, random: Random::new(seed, 0) };
        let mut count = Count::default();
        for _ in 0..flows {
            draw.flow(1, &mut count);
        }
        let mean = model.estimate(&setting).per_flow.tail_ack.exact * f64::from(flows);
        let room = 4.0 * mean.sqrt();
        assert!((count.unheard - mean).abs() <= room, "{setting:?}: {}, expected {mean:.1} ± {room:.1}", count.unheard);
    }
}
