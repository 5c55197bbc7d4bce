//! `hitless sim import` as a person meets it.

use std::path::PathBuf;
use std::process::{Command, Output};

fn import(args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hitless")).args(["sim", "import"]).args(args.split_whitespace()).output().unwrap()
}

fn rows(args: &str) -> String {
    let output = import(args);
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The one line that wrong input is answered with.
#[track_caller]
fn refused(args: &str) -> String {
    let output = import(args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args}: {said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{args}: {said}");
    assert!(output.stdout.is_empty(), "{args}");
    said.trim_end().to_owned()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hitless-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const MATRIX: &str = "Nodes 3\nConnections 2\nTriggers 1\n0->1 id 1 start 2 size 1000 send_done_trigger 1\n\
                      1->2 id 2 trigger 1 size 500 prio 3\ntrigger id 1 oneshot\n";

#[test]
fn a_matrix_becomes_rows_and_asks_for_the_unit_of_its_starts() {
    let folder = Folder::new("import-matrix");
    let file = folder.file("ring.cm", MATRIX);
    let said = refused(&format!("{file} --from htsim"));
    assert!(said.contains("ring.cm: line 4: start 2: ") && said.ends_with("expected --start-unit us or ps"), "{said}");
    let rows = rows(&format!("{file} --from htsim --start-unit us --hosts h4..h5,x"));
    let expected = "# left out: prio and msg\nid,after,src,dst,bytes,start,lane\n1,,h4,h5,1000,2000000ps,0\n\
                    2,acked:1,h5,x,500,,0\n";
    assert_eq!(rows, expected);
    let output = import(&format!("{file} --from htsim --start-unit ps --json"));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "left out: prio and msg\n");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["transfers"][1]["after"][0]["acknowledged"], true);
    assert_eq!((&answer["ranks"], &answer["transfers"][0]["start_us"]), (&3.into(), &2e-6.into()));
    let said = refused(&format!("{file} --from htsim --start-unit us --hosts h0,h1"));
    assert!(said.contains("--hosts names 2 hosts: expected at least 3"), "{said}");
    assert!(refused(&format!("{file} --from goal --start-unit us")).contains("only htsim needs it"));
}

#[test]
fn traces_of_all_ranks_are_found_by_one_name() {
    let folder = Folder::new("import-traces");
    let trace = |kind: u32| {
        format!("{{\"workload_graph\":[{{\"Id\":1,\"NodeType\":7,\"comm_size\":64,\"comm_type\":{kind}}}]}}")
    };
    let paths: Vec<String> = (0..3).map(|rank| folder.file(&format!("job.{rank}.json"), trace(2))).collect();
    let all = folder.0.join("job.%d.json").display().to_string();
    let gathered = rows(&format!("{all} --from chakra"));
    assert_eq!(gathered.lines().count(), 1 + 3 * 2, "{gathered}");
    assert_eq!(rows(&format!("{} --from chakra", paths[1])), gathered, "one of the files names all");
    std::fs::remove_file(&paths[1]).unwrap();
    let said = refused(&format!("{all} --from chakra"));
    assert!(said.ends_with("there is a file of rank 2 and none of rank 1"), "{said}");
    folder.file("job.1.json", trace(0));
    let said = refused(&format!("{all} --from chakra"));
    assert!(said.ends_with("rank 1, node 1: another collective than node 1 of rank 0 has at this place"), "{said}");
    let nothing = folder.0.join("other.%d.et").display().to_string();
    assert!(refused(&format!("{nothing} --from chakra")).contains("expected a file for each rank"));
}

#[test]
fn folders_and_noise_are_refused_in_one_line() {
    let folder = Folder::new("import-noise");
    let noise: Vec<u8> = (0..100_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let file = folder.file("noise.0.et", &noise);
    folder.file("noise.1.et", &noise);
    for format in ["htsim", "goal", "simccl", "hpcc", "chakra"] {
        let said = refused(&format!("{file} --from {format}"));
        assert!(said.contains("noise.0.et: "), "{said}");
        if format != "chakra" {
            assert!(
                refused(&format!("{} --from {format}", folder.0.display())).ends_with("is a folder; expected a file")
            );
        }
    }
    assert!(refused(&format!("{file} --from htsin")).contains("did you mean 'htsim'?"));
}

/// A sparse file of 10 GB is read until its first line is too long, and no further.
#[test]
fn ten_gigabytes_are_refused_at_once() {
    let folder = Folder::new("import-large");
    let path = folder.0.join("large.0.json");
    std::fs::File::create(&path).unwrap().set_len(10_000_000_000).unwrap();
    std::fs::hard_link(&path, folder.0.join("large.1.json")).unwrap();
    for format in ["htsim", "goal", "simccl", "hpcc"] {
        let said = refused(&format!("{} --from {format}", path.display()));
        assert!(said.ends_with("line 1: expected lines of at most 1048576 bytes"), "{said}");
    }
    assert!(refused(&format!("{} --from chakra", path.display())).contains("rank 0: "));
}
