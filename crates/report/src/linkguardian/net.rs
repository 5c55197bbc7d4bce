//! The experiments within a network, with the scenarios that they run.

use crate::experiment::ExperimentError;
use crate::files::{File, files};
use crate::paper::Studies;

/// The claims, in the order of the report.
const STUDIES: &[File] = files!("linkguardian/net":
    "fig9a.toml",
    "fig9b.toml",
    "fig21.toml",
    "fig10-tcp.toml",
    "fig10-rdma.toml",
    "fig11-dctcp.toml",
    "fig11-bbr.toml",
    "fig11-rdma.toml",
    "fig12.toml",
    "fig13.toml",
    "tab2.toml",
    "tab3.toml",
    "artifact.toml",
    "artifact-rdma.toml",
    "linerate-net.toml",
    "chain-net.toml",
);

const SCENARIOS: &[File] = files!("linkguardian/net":
    "requests.toml",
    "writes.toml",
    "bulk.toml",
    "goodput.toml",
    "linerate.toml",
    "chain.toml",
);

pub fn studies() -> Result<Studies, ExperimentError> {
    Studies::read(STUDIES, SCENARIOS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Scale, Verdict};
    use crate::paper::Effort;
    use crate::study;
    use sim::link::Unwatched;

    #[test]
    fn every_study_and_every_run_of_it_can_be_read() {
        let studies = studies().unwrap();
        for scale in [Scale::Quick, Scale::Full] {
            for (study, text) in studies.pairs() {
                assert!(study.check(text, scale).is_ok(), "{}: {:?}", study.id, study.check(text, scale));
                let ordered = |band: [f64; 2]| band[0] <= band[1];
                assert!(study.point.iter().filter_map(|point| point.band).all(ordered), "{}", study.id);
            }
        }
    }

    #[test]
    fn a_study_gives_the_same_on_any_number_of_jobs() {
        let mut studies = studies().unwrap().pairs().to_vec();
        studies.retain(|(study, _)| study.id == "lg.fig10.rdma");
        studies[0].0.quick.set = vec!["traffic.size=143".into(), "traffic.count=12000".into()];
        let rows = [1, 2].map(|jobs| {
            let effort = Effort { scale: Scale::Quick, jobs, seed: 1, watch: &Unwatched };
            let mut findings = study::conduct(&studies, &effort).unwrap();
            findings.remove(0).rows
        });
        assert_eq!(rows[0], rows[1]);
        let gain = rows[0].iter().find(|row| row.id.ends_with("gain.p99.95")).unwrap();
        assert_eq!(gain.verdict, Verdict::Match, "{gain:?}");
    }
}
