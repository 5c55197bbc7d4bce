//! Exact forms against every state of every link and every pattern of losses.

use super::*;

/// Sums the chances of all patterns of losses with which the story happens.
fn chance_of(chances: &[f64], story: impl Fn(&[bool]) -> bool) -> f64 {
    (0..1u32 << chances.len())
        .map(|pattern| {
            let lost: Vec<bool> = (0..chances.len()).map(|at| pattern >> at & 1 == 1).collect();
            let chance = |(lost, p): (&bool, &f64)| if *lost { *p } else { 1.0 - p };
            if story(&lost) { lost.iter().zip(chances).map(chance).product() } else { 0.0 }
        })
        .sum()
}

/// Means over every state of the links ahead and back; `of` is given what a packet, a dummy and an ACK suffer then.
fn over_links(model: &TimeoutModel, of: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let (links, omega) = (model.path.links, model.path.corrupting.get());
    let beta = [model.packet_corruption(), model.header_corruption(), model.ack_corruption()].map(Prob::get);
    let weight =
        |state: u32| (0..links).map(|link| if state >> link & 1 == 1 { omega } else { 1.0 - omega }).product::<f64>();
    let lost = |state: u32, beta: f64| 1.0 - (0..state.count_ones()).map(|_| 1.0 - beta).product::<f64>();
    let mut sum = 0.0;
    for ahead in 0..1u32 << links {
        for back in 0..1u32 << links {
            let chance = weight(ahead) * weight(back);
            sum += chance * of(lost(ahead, beta[0]), lost(ahead, beta[1]), lost(back, beta[2]));
        }
    }
    sum
}

fn models() -> Vec<TimeoutModel> {
    let mut models = Vec::new();
    for (links, omega) in [(1, 1.0), (2, 0.3), (3, 0.8)] {
        let model = model(0.2, links, omega, FlowLengths::fixed(7));
        models.push(TimeoutModel { corruption: CorruptionSeverity::Drops(prob(0.3)), ..model.clone() });
        models.push(model);
    }
    models
}

fn all(lost: &[bool]) -> bool {
    lost.iter().all(|lost| *lost)
}

#[test]
fn a_nak_and_its_copies() {
    for (model, naks) in models().iter().flat_map(|model| [0, 1, 2].map(|naks| (model, naks))) {
        let counted = over_links(model, |packet, _, ack| {
            let chances = [vec![packet], vec![ack; naks + 1]].concat();
            chance_of(&chances, all)
        });
        let setting = TimeoutSetting { naks: naks as u32, ..TimeoutSetting::NONE };
        assert_close(model.estimate(&setting).per_packet.nak.exact, counted, 1e-9);
    }
}

#[test]
fn a_packet_and_everything_that_is_sent_again() {
    for model in models() {
        for (naks, naked, obeys_copies) in [(0, 0, false), (0, 2, true), (1, 1, false), (1, 1, true), (2, 0, true)] {
            let counted = over_links(&model, |packet, _, ack| {
                let (naks, copies) = (naks as usize + 1, naked as usize);
                // The packet, its NAKs, the copies of its retransmission, and a retransmission for each NAK.
                let chances = [vec![packet], vec![ack; naks], vec![packet; copies + naks]].concat();
                chance_of(&chances, |lost| {
                    let (nak, rest) = lost[1..].split_at(naks);
                    let (copy, resent) = rest.split_at(copies);
                    let again: Vec<bool> = if obeys_copies {
                        nak.iter().zip(resent).filter(|(nak, _)| !**nak).map(|(_, resent)| *resent).collect()
                    } else {
                        vec![resent[0]]
                    };
                    lost[0] && !all(nak) && all(copy) && all(&again)
                })
            });
            let setting = TimeoutSetting { naks, naked, obeys_copies, ..TimeoutSetting::NONE };
            assert_close(model.estimate(&setting).per_packet.twice.exact, counted, 1e-9);
        }
    }
}

/// Flags of the packets that are lost of a tail, its ACK, the dummies behind it and their answers; and the further copies
/// of a NAK.
struct Behind<'a> {
    tail: bool,
    ack: bool,
    dummies: &'a [bool],
    answers: &'a [bool],
    copies: &'a [bool],
}

impl Behind<'_> {
    /// True if the tail arrives and its requester hears nothing, of a responder that NAKs each expected PSN once.
    fn is_silent(&self) -> bool {
        let (mut expected, mut naked, mut heard) = (0, false, !self.ack);
        for (psn, lost) in self.dummies.iter().enumerate() {
            if *lost {
                continue;
            }
            if psn == expected {
                expected += 1;
                heard |= !self.answers[psn];
            } else if !naked {
                naked = true;
                heard |= !self.answers[psn] || !all(self.copies);
            }
        }
        !self.tail && !heard
    }
}

#[test]
fn a_tail_and_its_ack_with_dummies_behind() {
    for (dummies, naks) in [(0, 0), (0, 2), (1, 0), (1, 1), (2, 1), (3, 0), (3, 2)] {
        for model in models() {
            let setting = TimeoutSetting {
                naks: naks as u32,
                tail: TailProtection::Dummies(dummies as u32),
                ..TimeoutSetting::NONE
            };
            let ours = model.estimate(&setting).per_flow;
            let tail =
                over_links(&model, |packet, header, _| chance_of(&[vec![packet], vec![header; dummies]].concat(), all));
            assert_close(ours.tail.exact, tail, 1e-9);
            let ack = over_links(&model, |packet, header, ack| {
                let chances = [vec![packet, ack], vec![header; dummies], vec![ack; dummies + naks]].concat();
                chance_of(&chances, |lost| {
                    let (behind, answers) = lost[2..].split_at(dummies);
                    let (answers, copies) = answers.split_at(dummies);
                    Behind { tail: lost[0], ack: lost[1], dummies: behind, answers, copies }.is_silent()
                })
            });
            assert_close(ours.tail_ack.exact, ack, 1e-9);
        }
    }
}

#[test]
fn a_tail_and_its_ack_with_copies_behind() {
    for (model, copies) in models().iter().flat_map(|model| [0usize, 1, 2].map(|copies| (model, copies))) {
        let setting = TimeoutSetting { tail: TailProtection::Repeat(copies as u32), ..TimeoutSetting::NONE };
        let ours = model.estimate(&setting).per_flow;
        let tail = over_links(model, |packet, _, _| chance_of(&vec![packet; copies + 1], all));
        assert_close(ours.tail.exact, tail, 1e-9);
        let ack = over_links(model, |packet, _, ack| {
            chance_of(&[vec![packet; copies + 1], vec![ack; copies + 1]].concat(), |lost| {
                let (tail, answer) = lost.split_at(copies + 1);
                !all(tail) && tail.iter().zip(answer).all(|(tail, answer)| *tail || *answer)
            })
        });
        assert_close(ours.tail_ack.exact, ack, 1e-9);
    }
}
