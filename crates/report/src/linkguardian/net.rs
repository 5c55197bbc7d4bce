//! The experiments within a network, with the scenarios that they run.

use crate::experiment::ExperimentError;
use crate::study::Study;

/// The text of a file of the experiment's folder.
macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../experiments/linkguardian/net/", $name)))
    };
}

/// The claims, in the order of the report.
const STUDIES: [(&str, &str); 16] = [
    file!("fig9a.toml"),
    file!("fig9b.toml"),
    file!("fig21.toml"),
    file!("fig10-tcp.toml"),
    file!("fig10-rdma.toml"),
    file!("fig11-dctcp.toml"),
    file!("fig11-bbr.toml"),
    file!("fig11-rdma.toml"),
    file!("fig12.toml"),
    file!("fig13.toml"),
    file!("tab2.toml"),
    file!("tab3.toml"),
    file!("artifact.toml"),
    file!("artifact-rdma.toml"),
    file!("linerate-net.toml"),
    file!("chain-net.toml"),
];

const SCENARIOS: [(&str, &str); 6] = [
    file!("requests.toml"),
    file!("writes.toml"),
    file!("bulk.toml"),
    file!("goodput.toml"),
    file!("linerate.toml"),
    file!("chain.toml"),
];

pub fn studies() -> Result<Vec<(Study, &'static str)>, ExperimentError> {
    let study = |(name, text): &(&str, &str)| {
        let study = Study::parse(name, text)?;
        let scenario = SCENARIOS.iter().find(|(scenario, _)| *scenario == study.scenario);
        let missing = || ExperimentError::new(format_args!("{name}: no scenario {}", study.scenario));
        let text = scenario.ok_or_else(missing)?.1;
        Ok((study, text))
    };
    STUDIES.iter().map(study).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Scale, Verdict};
    use crate::study;
    use sim::link::Unwatched;

    #[test]
    fn every_study_and_every_run_of_it_can_be_read() {
        let studies = studies().unwrap();
        for scale in [Scale::Quick, Scale::Full] {
            for (study, text) in &studies {
                assert!(study.check(text, scale).is_ok(), "{}: {:?}", study.id, study.check(text, scale));
                let ordered = |band: [f64; 2]| band[0] <= band[1];
                assert!(study.point.iter().filter_map(|point| point.band).all(ordered), "{}", study.id);
            }
        }
    }

    #[test]
    fn a_study_gives_the_same_on_any_number_of_jobs() {
        let mut studies = studies().unwrap();
        studies.retain(|(study, _)| study.id == "lg.fig10.rdma");
        studies[0].0.quick.set = vec!["traffic.size=143".into(), "traffic.count=12000".into()];
        let rows = [1, 2].map(|jobs| {
            let mut findings = study::conduct(&studies, Scale::Quick, jobs, 1, &Unwatched).unwrap();
            findings.remove(0).rows
        });
        assert_eq!(rows[0], rows[1]);
        let gain = rows[0].iter().find(|row| row.id.ends_with("gain.p99.95")).unwrap();
        assert_eq!(gain.verdict, Verdict::Match, "{gain:?}");
    }
}
