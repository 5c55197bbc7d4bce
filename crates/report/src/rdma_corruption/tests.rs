use transport::roce::RETH;
use transport::roce::model::{Corruption, Flows, Lengths, Model, Path, Setting, Tail};
use units::{Bytes, Prob};

use super::{SCENARIOS, STUDIES};
use crate::experiment::Scale;
use crate::study::Study;

fn study(file: &str) -> Study {
    let (name, text) = STUDIES.iter().find(|(name, _)| *name == file).unwrap();
    Study::parse(name, text).unwrap()
}

#[test]
fn every_study_and_every_run_of_it_can_be_read() {
    for (name, text) in STUDIES {
        let study = Study::parse(name, text).unwrap();
        let (_, scenario) = SCENARIOS.iter().find(|(scenario, _)| *scenario == study.scenario).unwrap();
        for scale in [Scale::Quick, Scale::Full] {
            assert!(study.check(scenario, scale).is_ok(), "{name}: {:?}", study.check(scenario, scale));
        }
        let ordered = |band: [f64; 2]| band[0] <= band[1];
        assert!(study.point.iter().filter_map(|point| point.band).all(ordered), "{name}");
    }
}

/// What 100,000 rounds of two one-packet WRITEs each should time out.
fn expected(setting: &Setting, by_bits: bool) -> f64 {
    let beta = Prob::literal(1.0 / 128.0);
    let reth = Bytes::new(u64::from(RETH));
    let paper = Lengths::default();
    let bits = Corruption::Packets(beta).bit_errors(&paper).unwrap();
    let model = Model {
        lengths: Lengths {
            header: paper.header + reth,
            packet: paper.packet + reth,
            tail: paper.packet + reth,
            ..paper
        },
        corruption: if by_bits { Corruption::Bits(bits) } else { Corruption::Drops(beta) },
        path: Path { links: 1, corrupting: Prob::literal(1.0) },
        flows: Flows::fixed(1),
    };
    // The answer tells what a lost acknowledgement would have.
    let causes = model.estimate(setting).per_flow.map(|forms| forms.exact);
    200_000.0 * (causes.nak + causes.twice + causes.tail)
}

#[test]
fn the_bands_of_the_ping_pong_are_what_the_model_says() {
    let study = study("fig15.toml");
    let all = Setting { naks: 1, naked: 1, tail: Tail::Dummies(2), obeys_copies: true };
    let settings = [
        ("no-dummy", Setting { tail: Tail::Dummies(0), ..all }),
        ("one-dummy", Setting { tail: Tail::Dummies(1), ..all }),
        ("no-naked", Setting { naked: 0, obeys_copies: false, ..all }),
        ("no-nak", Setting { naks: 0, ..all }),
        ("no-naked-every", Setting { naked: 0, ..all }),
        ("all", all),
    ];
    let mut outside = Vec::new();
    for (name, setting) in settings {
        for (corruption, by_bits) in [("bits", true), ("drops", false)] {
            let id = format!("{name}.{corruption}");
            let point = study.point.iter().find(|point| point.id == id).unwrap();
            let [low, high] = point.band.unwrap();
            let expected = expected(&setting, by_bits);
            if !(low..=high).contains(&expected) {
                outside.push(format!("{id}: {expected:.4}, not {low} to {high}"));
            }
        }
    }
    assert!(outside.is_empty(), "{outside:#?}");
}
