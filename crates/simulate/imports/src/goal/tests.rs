use super::*;

use collective::GraphInput;

use crate::graph::{acknowledgement, arrival};

const SCHEDULE: &str = "num_ranks 3
rank 0 { /* a comment
over lines */
  l1: calc 500 cpu 1;   // ns
  l2: send 1024b to 1 tag 7 cpu 0 nic 0
  l2 requires l1; }
rank 1 {
  r: recv 1024b from 0 tag 7
  c: calc 2000
  s: send 8b to 2
  t: send 9b to 2 tag 1
  c requires r
  s requires c
  t irequires s
}
rank 2 { a: recv 8b from 1
 b: recv 9b from -1 tag -1
}
";

fn read(text: &str) -> Result<ImportGraph, String> {
    import(&mut text.as_bytes()).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(from: &str, to: &str, said: &str) {
    assert!(SCHEDULE.contains(from), "{from}");
    assert_eq!(read(&SCHEDULE.replacen(from, to, 1)).unwrap_err(), said);
}

#[test]
fn computation_becomes_delay_and_receives_the_arrival_of_their_sends() {
    let graph = read(SCHEDULE).unwrap();
    let [first, second, third] = &graph.transfers[..] else { panic!("{graph:?}") };
    assert_eq!((first.src, first.dst, first.bytes, first.not_before), (0, 1, 1_024, Span::from_ns(500)));
    let later = GraphInput { delay: Span::from_ns(2_000), ..arrival(0) };
    assert_eq!((second.dst, second.after.as_slice()), (2, &[later][..]));
    assert_eq!(third.after, [later], "irequires: started with it");
    assert_eq!(graph.left_out.len(), 2, "{:?}", graph.left_out);
    assert_eq!(first.name.to_string(), "0.5", "rank and line");
}

#[test]
fn what_requires_a_send_waits_for_its_acknowledgement() {
    let graph = read(&SCHEDULE.replace("irequires s", "requires s")).unwrap();
    assert_eq!(graph.transfers[2].after, [acknowledgement(1)]);
}

#[test]
fn messages_match_by_source_and_tag_in_their_order() {
    let text = "num_ranks 2\nrank 0 { a: send 1b to 1\n b: send 2b to 1\n c: send 3b to 1 tag 4 }\n\
                rank 1 { x: recv 3b from 0 tag 4\n y: recv 1b from 0\n z: recv 2b from 0\n s: send 7b to 0\n s requires z }\n";
    let said = read(text).unwrap_err();
    assert_eq!(said, "line 8: a send that nobody receives");
    let graph = read(&text.replace("tag 4 }", "tag 4\n d: recv 7b from 1 }")).unwrap();
    assert_eq!(graph.transfers[3].after, [arrival(1)]);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    refused("r: recv 1024b from 0 tag 7", "r: calc 1", "line 5: a send that nobody receives");
    refused(
        "l2: send 1024b to 1 tag 7",
        "l2: calc 3",
        "line 8: a receive from rank 0 with tag 7, and no send for it is left",
    );
    refused("recv 1024b", "recv 512b", "line 8: receives 512 bytes, and rank 0 sends 1024");
    refused("requires c\n", "requires nothing\n", "line 13: no operation has the label 'nothing'");
    refused("c requires r", "c requires s", "line 9: waits for itself, by way of others: it never starts");
    refused("s: send", "r: send", "line 10: the label 'r' is there twice");
    refused("to 1 tag 7", "to 3 tag 7", "line 5: rank 3: expected 0 to 2");
    refused("to 1 tag 7", "to 0 tag 7", "line 5: rank 0 sends to itself");
    refused("1024b to", "1024kb to", "line 5: '1024k': expected a size such as 1024b");
    refused("calc 2000", "calc 2e3", "line 9: '2e3': expected nanoseconds");
    refused("rank 2 {", "rank 1 {", "line 16: rank 1 is there twice");
    refused("over lines */", "over lines", "line 18: a comment has no end: expected */");
    refused("num_ranks 3", "num_ranks 4", "rank 3 has no block: is the file cut short?");
    refused("num_ranks 3", "ranks 3", "line 1: 'ranks': expected num_ranks");
    refused(
        "c: calc",
        "c calc",
        "line 9: 'c calc': expected an operation, or a label before ':', requires or irequires",
    );
    refused(
        "\n}\nrank 2",
        "\nrank 2",
        "line 15: 'rank 2': expected an operation, or a label before ':', requires or irequires",
    );
    assert_eq!(read("").unwrap_err(), "line 1: the file ends here: expected num_ranks");
    assert_eq!(read("num_ranks 1 rank 0 { }").unwrap_err(), "nothing is sent: expected at least one transfer");
    let circle = "num_ranks 2\nrank 0 { s: send 1b to 1\n r: recv 1b from 1\n s requires r }\n\
                  rank 1 { s: send 1b to 0\n r: recv 1b from 0\n s requires r }\n";
    assert!(read(circle).unwrap_err().starts_with("can never finish, each waits for the one before: "));
}
