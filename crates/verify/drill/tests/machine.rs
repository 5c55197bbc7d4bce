//! The scripts of this crate on our TCP, and what a script that is wrong says.

mod scripts;

use drill::batch::{DrillReport, DrillVerdict, ScriptText, against_machine};
use tcp::LinuxVersion;

fn run(scripts: &[ScriptText]) -> DrillReport {
    DrillReport::new(against_machine(scripts, LinuxVersion::Current))
}

fn of(text: &str) -> drill::batch::ScriptRow {
    run(&[ScriptText { file: "x.pkt".to_owned(), text: text.to_owned() }]).scripts.remove(0)
}

#[test]
fn our_tcp_passes_all_scripts() {
    let report = run(&scripts::all());
    assert_eq!(report.passed, report.scripts.len(), "{:#?}", report.scripts);
}

/// Each expected segment, with one number changed: none may pass.
#[test]
fn a_script_with_one_wrong_number_fails_in_its_line() {
    let mut changed = 0;
    for script in scripts::all() {
        let lines: Vec<&str> = script.text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(" > ") && line.contains(" ack 1")) {
            let mut wrong: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            wrong[at] = line.replacen(" ack 1", " ack 9991", 1);
            let row = of(&wrong.join("\n"));
            assert_eq!((row.result, row.line), (DrillVerdict::Failed, Some(at + 1)), "{}: {line}", script.file);
            changed += 1;
        }
    }
    assert!(changed > 20, "{changed}");
}

#[test]
fn a_statement_that_is_false_fails_and_an_unknown_name_is_not_applicable() {
    let script = |check: &str| {
        let text = scripts::all().into_iter().find(|script| script.file.contains("sack_repairs")).unwrap().text;
        text + &format!("+0 %{{ assert {check} }}%\n")
    };
    let row = of(&script("tcpi_unacked == 3"));
    assert_eq!(row.result, DrillVerdict::Failed);
    assert!(row.why.unwrap().contains("tcpi_unacked = 0"));
    let row = of(&script("tcpi_no_such_field == 3"));
    assert_eq!(row.result, DrillVerdict::NotApplicable);
}

#[test]
fn a_segment_at_the_wrong_time_fails() {
    let text = scripts::all().into_iter().find(|script| script.file.contains("probe_repairs")).unwrap().text;
    let row = of(&text.replace("+.2~+.42 >", "+.01 >"));
    assert_eq!(row.result, DrillVerdict::Failed);
    assert!(row.why.unwrap().contains("left at"));
}

#[test]
fn what_our_tcp_does_not_model_is_not_applicable_with_its_line() {
    for (text, line) in [
        ("`sysctl -q net.ipv4.tcp_mtu_probing=2`\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3", 1),
        ("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 `tc qdisc replace dev tun0 root fq`", 2),
        ("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\n+0 epoll_create(1) = 4", 3),
    ] {
        let row = of(text);
        assert_eq!((row.result, row.line), (DrillVerdict::NotApplicable, Some(line)), "{text}");
    }
}

#[test]
fn a_peer_that_offers_less_than_its_timestamps_take_is_sent_single_bytes() {
    let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
                +0 bind(3, ..., ...) = 0\n\
                +0 listen(3, 1) = 0\n\
                +0 < S 0:0(0) win 1000 <mss 5,sackOK,TS val 100 ecr 0>\n\
                * > S. 0:0(0) ack 1 <...>\n\
                +.1 < . 1:1(0) ack 1 win 1000 <nop,nop,TS val 200 ecr 0>\n\
                +0 accept(3, ..., ...) = 4\n\
                +0 write(4, ..., 2) = 2\n\
                * > . 1:2(1) ack 1 <...>\n";
    let row = of(text);
    assert_eq!((row.result, row.why), (DrillVerdict::Passed, None));
}
