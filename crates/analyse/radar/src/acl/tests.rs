use super::*;

const LIST: &str = "
# web servers
@10.1.0.0/16\t10.2.0.9/32\t0 : 65535\t443 : 443\t0x06/0xFF\taccept
@10.1.0.0/16 10.2.0.0/24 0:65535 0:65535 0x00/0x00 0x0000/0x0000 deny
@0.0.0.0/0\t10.2.0.0/16\t0 : 65535\t0 : 65535\t0x00/0x00\taccept
";

fn table() -> RuleTable {
    RuleTable::parse(LIST, AclAction::Deny).unwrap()
}

fn flow(src: [u8; 4], dst: [u8; 4], dst_port: u16) -> Flow {
    Flow { src: src.into(), dst: dst.into(), protocol: 6, src_port: 40_000, dst_port }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let table = table();
    let decided = |flow| {
        let AclDecision { action, rule } = table.decide(&flow);
        (action, rule)
    };
    assert_eq!(decided(flow([10, 1, 7, 7], [10, 2, 0, 9], 443)), (AclAction::Accept, Some(0)));
    assert_eq!(decided(flow([10, 1, 7, 7], [10, 2, 0, 9], 80)), (AclAction::Deny, Some(1)));
    assert_eq!(decided(flow([10, 3, 7, 7], [10, 2, 0, 9], 80)), (AclAction::Accept, Some(2)));
    assert_eq!(decided(flow([10, 3, 7, 7], [10, 9, 0, 9], 80)), (AclAction::Deny, None));
    let v6 =
        Flow { src: "2001:db8::1".parse().unwrap(), dst: "2001:db8::2".parse().unwrap(), ..flow([0; 4], [0; 4], 1) };
    assert_eq!(decided(v6), (AclAction::Deny, None));
}

#[test]
fn a_list_is_read_as_it_is_written() {
    let rules = generate(500, 3, &Mix::default());
    let text: String = rules.iter().map(|rule| format!("{rule}\n")).collect();
    assert_eq!(RuleTable::parse(&text, AclAction::Accept).unwrap().rules(), rules);
}

#[test]
fn a_bad_line_is_named_with_what_was_expected_there() {
    let said = |line: &str| RuleTable::parse(&format!("# list\n\n{line}\n"), AclAction::Deny).unwrap_err().to_string();
    let rest = "0 : 65535\t0 : 65535\t0x00/0x00\tdeny";
    assert_eq!(
        said(&format!("10.0.0.0/8 10.0.0.0/8 {rest}")),
        "line 3: \"10.0.0.0/8\" where a rule that begins with @ is expected"
    );
    assert!(said(&format!("@10.0.0.0/33 10.0.0.0/8 {rest}")).contains("\"10.0.0.0/33\" where an address"));
    assert!(said("@10.0.0.0/8 10.0.0.0/8 0 : 65536").contains("\"65536\" where a port"));
    assert!(said("@10.0.0.0/8 10.0.0.0/8 9 : 8").contains("not below the first"));
    assert!(said("@10.0.0.0/8 10.0.0.0/8 0 : 1 0 : 1 6/0xFF deny").contains("\"6/0xFF\" where a protocol"));
    assert!(said("@10.0.0.0/8 10.0.0.0/8 0 : 1 0 : 1 0x06/0xFF").ends_with("it ends where accept or deny is expected"));
    assert!(said("@10.0.0.0/8 10.0.0.0/8 0 : 1 0 : 1 0x06/0xFF 0x10/0x10 deny").contains("no flags"));
    assert!(said(&format!("@10.0.0.0/8 10.0.0.0/8 {rest} deny")).contains("the end of the line"));
}

#[test]
fn the_index_finds_the_rule_that_looking_at_each_finds() {
    let rules = generate(2_000, 1, &Mix::default());
    let table = RuleTable::new(rules.clone(), AclAction::Accept);
    for flow in traffic(&rules, 2_000, 2).into_iter().chain(traffic(&generate(50, 9, &Mix::default()), 500, 3)) {
        assert_eq!(table.decide(&flow).rule, rules.iter().position(|rule| rule.matches(&flow)));
    }
}

#[test]
fn every_bit_has_a_number_and_flipping_it_twice_changes_nothing() {
    let rule = table().rules()[0];
    let flips: Vec<Flip> = (0..Flip::COUNT).map(|nth| Flip::nth(nth).unwrap()).collect();
    assert_eq!(Flip::nth(Flip::COUNT), None);
    for (nth, flip) in flips.iter().enumerate() {
        assert_ne!(flip.apply(rule), rule);
        assert_eq!(flip.apply(flip.apply(rule)), rule);
        assert!(!flips[..nth].contains(flip));
    }
}

#[test]
fn a_deny_rule_that_takes_in_its_neighbours_is_suspected() {
    let candidate = |rule, case| CandidateRule { rule, case };
    let neighbours: Vec<Flow> = (0..20).map(|host| flow([10, 1, 0, host], [10, 2, 1, host], 80)).collect();
    let candidates = table().candidates(&neighbours);
    assert_eq!(candidates, [candidate(1, CandidateCase::Denies), candidate(2, CandidateCase::Accepts)]);
    let far: Vec<Flow> = [1, 2].map(|net| flow([10, 1, 0, 1], [10, 2, net, 1], 80)).into();
    assert_eq!(table().candidates(&far), [candidate(2, CandidateCase::Accepts)], "no one bit would take in both");
}

#[test]
fn a_deny_rule_behind_the_one_that_accepts_is_suspected_only_by_the_letter_of_the_thesis() {
    let lost = [flow([10, 1, 7, 7], [10, 2, 0, 9], 443)];
    let accepts = CandidateRule { rule: 0, case: CandidateCase::Accepts };
    assert_eq!(table().candidates(&lost), [accepts]);
    assert_eq!(table().candidates_anywhere(&lost), [accepts, CandidateRule { rule: 1, case: CandidateCase::Denies }]);
}

#[test]
fn what_should_be_denied_makes_nobody_suspect() {
    assert_eq!(table().candidates(&[flow([10, 1, 7, 7], [10, 2, 0, 9], 80)]), []);
    assert_eq!(table().candidates(&[]), []);
    assert_eq!(table().candidates_anywhere(&[]), []);
}

/// Flows that hardware with one corrupted rule would lose, found by deciding on each flow anew.
fn lost(table: &RuleTable, flows: &[Flow], nth: usize, flip: Flip) -> Vec<Flow> {
    let mut rules = table.rules().to_vec();
    rules[nth] = flip.apply(rules[nth]);
    let corrupted = RuleTable::new(rules, AclAction::Deny);
    flows.iter().filter(|flow| corrupted.denies(flow)).copied().collect()
}

#[test]
fn the_corrupted_rule_is_always_among_the_candidates_and_those_by_looking_at_each_are_the_same() {
    let rules = generate(120, 5, &Mix::default());
    let table = RuleTable::new(rules.clone(), AclAction::Deny);
    let flows = traffic(&rules, 600, 6);
    let mut seen = 0;
    for nth in (0..rules.len()).step_by(7) {
        for at in (nth % 3..Flip::COUNT).step_by(3) {
            let flip = Flip::nth(at).unwrap();
            let lost = lost(&table, &flows, nth, flip);
            let unexpected: Vec<Flow> = lost.iter().filter(|flow| !table.denies(flow)).copied().collect();
            let candidates = table.candidates(&lost);
            if unexpected.is_empty() {
                assert_eq!(candidates, []);
                continue;
            }
            seen += 1;
            assert!(candidates.iter().any(|candidate| candidate.rule == nth), "rule {nth}, {flip:?}: {candidates:?}");
            let suspects: Vec<usize> = candidates.iter().map(|candidate| candidate.rule).collect();
            assert_eq!(suspects, by_looking_at_each(&table, &unexpected), "rule {nth}, {flip:?}");
        }
    }
    assert!(seen > 50, "only {seen} flips lost anything");
}

/// Rules of which some flip of a match of a deny rule, or of anything of an accept rule, loses all of it.
fn by_looking_at_each(table: &RuleTable, unexpected: &[Flow]) -> Vec<usize> {
    let meant: Vec<AclDecision> = unexpected.iter().map(|flow| table.decide(flow)).collect();
    let explains = |nth: usize| {
        (0..Flip::COUNT).filter_map(Flip::nth).any(|flip| {
            let corrupted = flip.apply(table.rules()[nth]);
            let mut lost = unexpected.iter().zip(&meant);
            lost.all(|(flow, meant)| table.decide_with(flow, *meant, nth, &corrupted).action == AclAction::Deny)
        })
    };
    (0..table.rules().len()).filter(|nth| explains(*nth)).collect()
}

#[test]
fn deciding_with_one_corrupted_rule_is_deciding_with_the_corrupted_list() {
    let rules = generate(300, 8, &Mix::default());
    let table = RuleTable::new(rules.clone(), AclAction::Accept);
    let flows = traffic(&rules, 200, 9);
    for nth in (0..300).step_by(17) {
        let flip = Flip::nth(nth * 31 % Flip::COUNT).unwrap();
        let mut changed = rules.clone();
        changed[nth] = flip.apply(changed[nth]);
        let corrupted = RuleTable::new(changed.clone(), AclAction::Accept);
        for flow in &flows {
            let with = table.decide_with(flow, table.decide(flow), nth, &changed[nth]);
            assert_eq!(with, corrupted.decide(flow), "rule {nth}, {flip:?}");
        }
    }
}

#[test]
fn a_generated_list_has_as_many_rules_as_asked_for_and_none_twice() {
    for count in [1, 2, 40, 5_000] {
        let rules = generate(count, 4, &Mix::default());
        assert_eq!((rules.len(), rules.last()), (count, Some(&AclRule::any(AclAction::Deny))));
        let mut texts: Vec<String> = rules.iter().map(|rule| rule.to_string()).collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), count);
    }
    assert_eq!(generate(300, 4, &Mix::default()), generate(300, 4, &Mix::default()));
    assert_ne!(generate(300, 4, &Mix::default()), generate(300, 5, &Mix::default()));
}
