use report::claim::{Band, Claim};
use roce::RETH;
use roce::model::{
    CorruptionSeverity, FlowLengths, FlowPath, FrameLengths, TailProtection, TimeoutModel, TimeoutSetting,
};
use units::{Bytes, Prob};

use crate::files;

/// Expected timeouts in 100,000 rounds of two one-packet WRITEs each.
fn expected(setting: &TimeoutSetting, by_bits: bool) -> f64 {
    let beta = Prob::literal(1.0 / 128.0);
    let reth = Bytes::new(u64::from(RETH));
    let paper = FrameLengths::default();
    let bits = CorruptionSeverity::Packets(beta).bit_errors(&paper).unwrap();
    let model = TimeoutModel {
        lengths: FrameLengths {
            header: paper.header + reth,
            packet: paper.packet + reth,
            tail: paper.packet + reth,
            ..paper
        },
        corruption: if by_bits { CorruptionSeverity::Bits(bits) } else { CorruptionSeverity::Drops(beta) },
        path: FlowPath { links: 1, corrupting: Prob::literal(1.0) },
        flows: FlowLengths::fixed(1),
    };
    // The answer carries the information that a lost acknowledgement would have carried.
    let causes = model.estimate(setting).per_flow.map(|forms| forms.exact);
    200_000.0 * (causes.nak + causes.twice + causes.tail)
}

#[test]
fn the_bands_of_the_ping_pong_are_what_the_model_says() {
    let (file, text) = files::named("rdma-corruption/fig15.toml").unwrap();
    let claim = Claim::parse(file, text).unwrap();
    let all = TimeoutSetting { naks: 1, naked: 1, tail: TailProtection::Dummies(2), obeys_copies: true };
    let settings = [
        ("no-dummy", TimeoutSetting { tail: TailProtection::Dummies(0), ..all }),
        ("one-dummy", TimeoutSetting { tail: TailProtection::Dummies(1), ..all }),
        ("no-naked", TimeoutSetting { naked: 0, obeys_copies: false, ..all }),
        ("no-nak", TimeoutSetting { naks: 0, ..all }),
        ("no-naked-every", TimeoutSetting { naked: 0, ..all }),
        ("all", all),
    ];
    let mut outside = Vec::new();
    for (name, setting) in settings {
        for (corruption, by_bits) in [("bits", true), ("drops", false)] {
            let id = format!("{name}.{corruption}");
            let point = claim.point.iter().find(|point| point.id == id).unwrap();
            let band: Band = point.band.unwrap();
            let expected = expected(&setting, by_bits);
            if !band.contains(expected) {
                outside.push(format!("{id}: {expected:.4}, not {band}"));
            }
        }
    }
    assert!(outside.is_empty(), "{outside:#?}");
}
