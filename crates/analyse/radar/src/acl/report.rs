//! Rules of an access list of which one flipped bit would explain what was lost, as users see them: li-thesis §5.5.2.

use std::net::IpAddr;

use chart::table::{Align, Table, thousands};
use serde::{Deserialize, Serialize};

use crate::acl::{CandidateCase, RuleTable as AccessList};
use crate::loss::LossCause;
use crate::packet::Flow;

/// Lost packets as `radar losses --json` and `radar collect --json` print them.
#[derive(Debug, Default)]
pub struct LostFlows {
    flows: Vec<Flow>,
    /// Packets lost for another cause than a blackhole.
    other_causes: u64,
    /// Lost packets whose addresses or ports were rewritten.
    unknown: u64,
}

#[derive(PartialEq, Deserialize)]
struct AclLoss {
    src: Option<IpAddr>,
    dst: Option<IpAddr>,
    proto: u8,
    src_port: Option<u16>,
    dst_port: Option<u16>,
    cause: Option<String>,
}

/// One document.
#[derive(Deserialize)]
struct AclComparison {
    lost: Vec<AclLoss>,
}

/// One of many lines; those that are no loss have none of its fields.
#[derive(Deserialize)]
struct AclLine {
    kind: String,
}

impl LostFlows {
    /// Reads the losses by blackholes, or by every cause. A collector's lines name no cause, so all of them count.
    pub fn parse(text: &str, every_cause: bool) -> Result<Self, String> {
        let mut flows = Self::default();
        let document = match serde_json::from_str::<AclComparison>(text) {
            Ok(AclComparison { lost }) => lost,
            Err(_) => lines(text)?,
        };
        document.into_iter().for_each(|lost| flows.add(lost, every_cause));
        flows.flows.sort_unstable();
        flows.flows.dedup();
        Ok(flows)
    }

    fn add(&mut self, lost: AclLoss, every_cause: bool) {
        let AclLoss { src, dst, proto, src_port, dst_port, cause } = lost;
        let is_other = cause.is_some_and(|cause| cause != LossCause::Blackhole.to_string());
        match (src, dst, src_port, dst_port) {
            _ if is_other && !every_cause => self.other_causes += 1,
            (Some(src), Some(dst), Some(src_port), Some(dst_port)) => {
                self.flows.push(Flow { src, dst, protocol: proto, src_port, dst_port });
            }
            _ => self.unknown += 1,
        }
    }
}

fn lines(text: &str) -> Result<Vec<AclLoss>, String> {
    let wrong = |line: usize, error: serde_json::Error| format!("line {line}: {error}");
    let mut lost = Vec::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let AclLine { kind } = serde_json::from_str(line).map_err(|error| wrong(number, error))?;
        let packet = || serde_json::from_str::<AclLoss>(line).map_err(|error| wrong(number, error));
        match kind.as_str() {
            "loss" => lost.push(packet()?),
            "late" => take_back(&mut lost, &packet()?),
            _ => {}
        }
    }
    Ok(lost)
}

/// A packet came after all: the latest loss of its flow was none.
fn take_back(lost: &mut Vec<AclLoss>, late: &AclLoss) {
    if let Some(at) = lost.iter().rposition(|loss| loss == late) {
        lost.remove(at);
    }
}

#[derive(Debug, Serialize)]
pub struct AclAnswer {
    rules: usize,
    /// Different flows that lost packets; of these, those that the rules deny as they were meant.
    flows: usize,
    denied_as_meant: usize,
    /// Lost packets that were left out.
    other_causes: u64,
    unknown: u64,
    candidates: Vec<SuspectRule>,
}

/// A rule that may be corrupted; the first has number 1.
#[derive(Debug, Serialize)]
struct SuspectRule {
    number: usize,
    rule: String,
    suspicion: &'static str,
}

impl AclAnswer {
    pub fn new(list: &AccessList, lost: &LostFlows) -> Self {
        let suspect = |number: usize, case| SuspectRule {
            number: number + 1,
            rule: list.rules()[number].to_string().replace('\t', " "),
            suspicion: match case {
                CandidateCase::Denies => "may deny more than it says",
                CandidateCase::Accepts => "may no longer accept what it says",
            },
        };
        let candidates = list.candidates(&lost.flows);
        Self {
            rules: list.rules().len(),
            flows: lost.flows.len(),
            denied_as_meant: lost.flows.iter().filter(|flow| list.denies(flow)).count(),
            other_causes: lost.other_causes,
            unknown: lost.unknown,
            candidates: candidates.iter().map(|candidate| suspect(candidate.rule, candidate.case)).collect(),
        }
    }

    pub fn text(&self) -> String {
        let mut text = format!(
            "{} rules; {} flows lost packets, of which the rules deny {} as they are\n",
            thousands(self.rules as u64),
            thousands(self.flows as u64),
            thousands(self.denied_as_meant as u64)
        );
        for (count, what) in [
            (self.other_causes, "lost packets are no blackhole's and left out (--all takes them)"),
            (self.unknown, "lost packets left out: their addresses were rewritten"),
        ] {
            if count > 0 {
                text += &format!("{} {what}\n", thousands(count));
            }
        }
        if self.candidates.is_empty() {
            return text + "no single bit of a rule explains the losses\n";
        }
        let mut table = Table::new(&[("rule", Align::Right), ("", Align::Left), ("", Align::Left)]);
        for SuspectRule { number, rule, suspicion } in &self.candidates {
            table.row(vec![number.to_string(), rule.clone(), (*suspicion).to_owned()]);
        }
        format!("{text}\none flipped bit of one of these explains all the other losses:\n{table}")
    }
}

#[cfg(test)]
mod tests {
    use crate::acl::AclAction;

    use super::*;

    const RULES: &str = "@10.9.0.0/16 10.2.0.0/16 0 : 65535 0 : 65535 0x06/0xFF deny
        @10.0.0.0/8 10.2.0.0/16 0 : 65535 443 : 443 0x06/0xFF accept";

    fn packet(src: &str, cause: &str) -> String {
        format!(
            r#"{{"kind": "loss", "src": "{src}", "dst": "10.2.0.1", "proto": 6, "src_port": 999, "dst_port": 443{cause}}}"#
        )
    }

    #[test]
    fn a_packet_that_came_after_all_suspects_no_rule() {
        let [loss, other] = ["10.1.0.1", "10.9.0.1"].map(|src| packet(src, ""));
        let late = loss.replace("\"loss\"", "\"late\"");
        let lost = LostFlows::parse(&[loss, other, late].join("\n"), false).unwrap();
        let src: Vec<String> = lost.flows.iter().map(|flow| flow.src.to_string()).collect();
        assert_eq!(src, ["10.9.0.1"]);
    }

    #[test]
    fn the_rule_that_one_bit_separates_from_what_was_lost_is_suspected() {
        let list = AccessList::parse(RULES, AclAction::Deny).unwrap();
        let text = [packet("10.1.0.1", ""), "{\"kind\": \"trouble\"}".into(), packet("10.9.0.1", "")].join("\n");
        let answer = AclAnswer::new(&list, &LostFlows::parse(&text, false).unwrap());
        assert_eq!((answer.flows, answer.denied_as_meant), (2, 1));
        let suspects: Vec<usize> = answer.candidates.iter().map(|suspect| suspect.number).collect();
        assert_eq!(suspects, [1, 2]);
        assert!(answer.text().contains("may deny more than it says"), "{}", answer.text());
    }

    #[test]
    fn only_blackholes_count_unless_all_are_asked_for() {
        let lost = [packet("10.1.0.1", r#", "cause": "random""#), packet("10.1.0.2", r#", "cause": "blackhole""#)];
        let text = format!(r#"{{"lost": [{}]}}"#, lost.join(", "));
        let of = |every| LostFlows::parse(&text, every).unwrap();
        assert_eq!((of(false).flows.len(), of(false).other_causes), (1, 1));
        assert_eq!((of(true).flows.len(), of(true).other_causes), (2, 0));
        assert!(LostFlows::parse("{}\nno", false).unwrap_err().starts_with("line 1"));
    }
}
