//! Sources of counters as they are met outside: drivers' texts, files that grow, FIFOs, interfaces of the kernel, links.

use std::env;
use std::fs::{self, File};
use std::io::{self, PipeReader, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use daemon::{ControlSocket, RunDirectory};
use emulator::DirectionCounters;
use lab::stage::{self, Stage};
use link::config::LinkConfig;
use link::run::LinkHandle;
use linux::net::{Namespace, Netlink};
use monitor::source::{self, DriverError, Drivers, SampleTiming, Selection, Source};
use monitor::{CarrierState, Phy, Reading, ReceivedFrames};
use proptest::collection;
use proptest::prelude::*;
use standin::StandInConfig;
use units::{Moment, Prob};

const NOW: Moment = Moment::from_ms(60_000);

/// A directory of a test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("hitless-sources-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(source: &mut dyn Source) -> (Vec<Reading>, Vec<String>) {
    let (mut readings, mut troubles) = (Vec::new(), Vec::new());
    source.read(NOW, &mut readings, &mut troubles).unwrap();
    (readings, troubles)
}

/// Samples that came: time, port, bad frames.
fn samples(source: &mut dyn Source) -> Vec<(u64, String, u64)> {
    let (readings, troubles) = read(source);
    assert_eq!(troubles, Vec::<String>::new());
    readings.into_iter().map(|reading| (reading.at.as_ms(), reading.port, reading.frames.unwrap().bad)).collect()
}

fn sample(ms: u64, port: &str, bad: u64) -> (u64, String, u64) {
    (ms, port.to_owned(), bad)
}

fn append(path: &Path, text: &str) {
    File::options().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

const HEADER: &str = "time_ms,port,all,bad\n";

fn counted(all: u64, bad: u64) -> ReceivedFrames {
    ReceivedFrames { all, bad, bits: 64 }
}

fn in_32_bits(all: u64, bad: u64) -> ReceivedFrames {
    ReceivedFrames { all, bad, bits: 32 }
}

fn phy(symbol_errors: Option<u64>, corrected: Option<u64>, uncorrectable: Option<u64>) -> Phy {
    Phy { symbol_errors, corrected, uncorrectable }
}

/// Counters that each fixture maps to: a driver's `ethtool -S`, named after the driver and, behind a dot, its version.
fn expected() -> Vec<(&'static str, ReceivedFrames, Phy)> {
    let none = Phy::default();
    vec![
        ("mlx5_core", counted(81_245_523_625, 3_518), phy(Some(17), Some(918_233_411), None)),
        ("mlx4_en", in_32_bits(530_116_726, 208), none),
        ("mlx4_en.before-4.17", in_32_bits(77_120_056, 12), none),
        ("ice", counted(40_118_447_433, 4_120), phy(Some(311), None, None)),
        ("ice.unified", counted(1_266, 6), phy(Some(2), None, None)),
        ("i40e", in_32_bits(805_252_838, 19), phy(Some(5), None, None)),
        ("ixgbe", counted(710_022_446, 44), none),
        ("igb", counted(25_926_543, 7), none),
        ("e1000e", counted(597_028_089, 2), none),
        ("bnxt_en", counted(3_410_013_389, 811), phy(Some(9), Some(70_112), Some(31))),
        ("cxgb4", counted(81_220_201, 91), phy(Some(4), None, None)),
        ("nfp", counted(10_022_118, 5), none),
        ("qede", counted(88_120_048, 23), none),
        ("atlantic", counted(23_849_978, 11), none),
        ("sfc", counted(165_300_113, 13), phy(None, Some(812), Some(6))),
    ]
}

/// Virtual cards: what they show has nothing to do with cables.
const COUNT_NOTHING: [&str; 3] = ["ena", "virtio_net", "veth"];

fn fixture(name: &str) -> Vec<(String, u64)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{name}.txt"));
    source::parse_ethtool(&fs::read_to_string(path).unwrap()).unwrap()
}

fn driver_of(fixture: &str) -> &str {
    fixture.split('.').next().unwrap()
}

#[test]
fn the_counters_of_every_driver_come_to_the_same_terms() {
    let drivers = Drivers::built_in();
    for (name, frames, phy) in expected() {
        let counters = drivers.normalise(driver_of(name), &fixture(name)).unwrap();
        assert_eq!((counters.frames, counters.phy), (frames, phy), "{name}");
    }
    for name in COUNT_NOTHING {
        assert!(matches!(drivers.normalise(name, &fixture(name)), Err(DriverError::CountsNothing(_))), "{name}");
    }
}

#[test]
fn every_driver_in_the_table_has_a_fixture() {
    let expected = expected();
    let tried: Vec<&str> = expected.iter().map(|(name, ..)| driver_of(name)).chain(COUNT_NOTHING).collect();
    for driver in Drivers::built_in().names() {
        assert!(tried.contains(&driver), "{driver}");
    }
}

#[test]
fn a_replay_gives_one_time_step_a_read_and_then_is_over() {
    let folder = Folder::new("replay");
    let path = folder.0.join("incident.csv");
    let lines = "1000,eth0,10,0\n1000,eth1,20,1\n\n2000,eth0,11,1\n# a remark\n2000,eth1,21,2\n3000,eth0,12,2";
    fs::write(&path, format!("\u{feff}{HEADER}{}", lines.replace('\n', "\r\n"))).unwrap();
    let mut source = source::samples(&path, SampleTiming::Replay).unwrap();
    assert_eq!(source.name(), path.display().to_string());
    assert_eq!(samples(&mut source), [sample(1_000, "eth0", 0), sample(1_000, "eth1", 1)]);
    assert_eq!(samples(&mut source), [sample(2_000, "eth0", 1), sample(2_000, "eth1", 2)]);
    assert!(!source.is_over());
    assert_eq!(samples(&mut source), [sample(3_000, "eth0", 2)], "the last line has no end");
    assert!(source.is_over());
    assert_eq!(samples(&mut source), []);
}

#[test]
fn a_replay_longer_than_any_buffer_loses_nothing() {
    let folder = Folder::new("long");
    let path = folder.0.join("long.csv");
    const STEPS: u64 = 30_000;
    let lines: String = (0..STEPS).map(|step| format!("{step},eth0,{},{step}\n", 2 * step)).collect();
    fs::write(&path, format!("{HEADER}{lines}")).unwrap();
    let mut source = source::samples(&path, SampleTiming::Replay).unwrap();
    for step in 0..STEPS {
        assert_eq!(samples(&mut source), [sample(step, "eth0", step)]);
    }
    assert!(source.is_over());
    assert_eq!(samples(&mut source::samples(&path, SampleTiming::Follow).unwrap()).len() as u64, STEPS);
}

#[test]
fn samples_that_go_backwards_are_refused_and_told() {
    let folder = Folder::new("backwards");
    let path = folder.0.join("samples.csv");
    fs::write(&path, format!("{HEADER}2000,eth0,10,0\n1000,eth0,9,0\n1000,eth1,5,0\n2000,eth0,10,0\n")).unwrap();
    let (readings, troubles) = read(&mut source::samples(&path, SampleTiming::Follow).unwrap());
    assert_eq!(troubles, ["line 3: time goes backwards for eth0: 1000 ms after 2000 ms; skipped"]);
    let kept: Vec<_> = readings.iter().map(|reading| (reading.at.as_ms(), reading.port.as_str())).collect();
    assert_eq!(kept, [(2_000, "eth0"), (1_000, "eth1"), (2_000, "eth0")]);
}

#[test]
fn a_file_of_nonsense_is_told_in_a_few_lines_and_the_rest_is_read() {
    let folder = Folder::new("nonsense");
    let path = folder.0.join("samples.csv");
    let mut bytes = format!("{HEADER}{}", "what is this\n".repeat(1_000)).into_bytes();
    bytes.extend([0xff, 0xfe, b'\n']);
    bytes.extend(vec![b'7'; 500_000]);
    bytes.extend(b"\n5000,eth0,10,1\n");
    fs::write(&path, bytes).unwrap();
    let (readings, troubles) = read(&mut source::samples(&path, SampleTiming::Follow).unwrap());
    assert_eq!(readings.len(), 1);
    assert_eq!(troubles[0], "line 2: 1 fields, but the header has 4; skipped");
    assert_eq!((troubles.len(), troubles.last().unwrap().as_str()), (17, "986 more lines skipped"));
}

#[test]
fn samples_of_which_nothing_makes_sense_say_so_with_every_read_and_what_was_expected() {
    let folder = Folder::new("no-sense");
    let path = folder.0.join("samples.csv");
    fs::write(&path, "eth0 is fine\neth1 too\n").unwrap();
    let mut source = source::samples(&path, SampleTiming::Follow).unwrap();
    let first = "line 1: `eth0 is fine`: expected a header such as time_ms,port";
    assert!(read(&mut source).1[0].starts_with(first));
    for _ in 0..3 {
        let (_, troubles) = read(&mut source);
        assert!(troubles[0].starts_with(&format!("no line has made sense so far; {first}")), "{troubles:?}");
    }
    let why = source.nonsense().unwrap();
    assert!(why.starts_with(&format!("{}: nothing in it makes sense; {first}", path.display())), "{why}");
    append(&path, &format!("{HEADER}1000,eth0,10,0\n"));
    assert_eq!(samples(&mut source), [sample(1_000, "eth0", 0)]);
    assert_eq!((read(&mut source).1, source.nonsense()), (vec![], None));
}

#[test]
fn a_port_of_another_host_has_it_in_its_name_or_in_a_column() {
    let folder = Folder::new("hosts");
    let path = folder.0.join("samples.csv");
    let json = r#"{"time_ms": 1000, "host": "leaf4", "port": "eth7", "all": 10, "bad": 3}"#;
    let table = "host,time_ms,port,all,bad\nleaf3,1000,eth7,10,1\n,1000,eth1,10,0\n,1000,leaf5/eth7,10,2\n";
    fs::write(&path, format!("{table}{json}\n")).unwrap();
    let expected = [("leaf3/eth7", 1), ("eth1", 0), ("leaf5/eth7", 2), ("leaf4/eth7", 3)];
    let expected = expected.map(|(port, bad)| sample(1_000, port, bad));
    assert_eq!(samples(&mut source::samples(&path, SampleTiming::Follow).unwrap()), expected);
    fs::write(&path, "time_ms,host,port,all,bad\n1,leaf3,leaf4/eth1,1,0\n1,le af,eth1,1,0\n1,,/eth1,1,0\n").unwrap();
    let (readings, troubles) = read(&mut source::samples(&path, SampleTiming::Follow).unwrap());
    assert!(readings.is_empty() && troubles[0].contains("expected no host in it beside `host`"), "{troubles:?}");
    assert!(troubles[1..].iter().all(|line| line.contains("without spaces")), "{troubles:?}");
}

#[test]
fn a_growing_file_gives_what_was_appended_and_keeps_half_a_line_for_later() {
    let folder = Folder::new("grows");
    let path = folder.0.join("samples.csv");
    fs::write(&path, format!("{HEADER}1000,eth0,10,0\n1500,eth0,11,0\n")).unwrap();
    let mut source = source::samples(&path, SampleTiming::Follow).unwrap();
    assert_eq!(samples(&mut source), [sample(1_000, "eth0", 0), sample(1_500, "eth0", 0)]);
    assert_eq!(samples(&mut source), []);
    append(&path, "2000,eth0,2");
    assert_eq!(samples(&mut source), []);
    append(&path, "0,7\n{\"time_ms\": 3000, \"port\": \"eth0\", \"all\": 30, \"bad\": 8}\n");
    assert_eq!(samples(&mut source), [sample(2_000, "eth0", 7), sample(3_000, "eth0", 8)]);
    assert!(!source.is_over());
}

#[test]
fn a_file_that_is_replaced_or_cut_short_is_read_from_its_beginning() {
    let folder = Folder::new("replaced");
    let path = folder.0.join("samples.csv");
    fs::write(&path, format!("{HEADER}1000,eth0,10,0\n")).unwrap();
    let mut source = source::samples(&path, SampleTiming::Follow).unwrap();
    assert_eq!(samples(&mut source).len(), 1);
    append(&path, "2000,eth0,11,1\n");
    fs::rename(&path, folder.0.join("samples.csv.1")).unwrap();
    assert_eq!(samples(&mut source), [sample(2_000, "eth0", 1)], "what was written before it was moved");
    fs::write(&path, "port,bad,all,time_ms\neth0,2,12,3000\n").unwrap();
    let (readings, troubles) = read(&mut source);
    assert_eq!((readings.len(), readings[0].frames), (1, Some(counted(12, 2))));
    assert_eq!(troubles, ["replaced; read from its beginning"]);
    fs::write(&path, format!("{HEADER}4000,eth0,9,3\n")).unwrap();
    let (readings, troubles) = read(&mut source);
    assert_eq!((readings.len(), readings[0].frames), (1, Some(counted(9, 3))));
    assert_eq!(troubles, ["cut short; read from its beginning"]);
}

/// A line that makes sense, one that nearly does, or anything at all.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        3 => (0..9_u64, 0..3_u32, 5..9_u64, 0..5_u64).prop_map(|(ms, port, all, bad)| format!("{ms},e{port},{all},{bad}")),
        1 => (0..9_u64, 0..3_u32).prop_map(|(ms, p)| format!("{{\"time_ms\":{ms},\"port\":\"e{p}\",\"all\":3,\"bad\":1}}")),
        1 => Just("all,bad,port,time_ms".to_owned()),
        1 => "[0-9a-z,\"{}: ]{0,20}",
    ];
    prop_oneof![6 => text.prop_map(String::into_bytes), 1 => collection::vec(any::<u8>(), 0..20)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_makes_no_difference_in_which_pieces_a_file_grows(
        lines in collection::vec(line(), 0..40),
        cuts in collection::vec(1..60_usize, 1..20),
    ) {
        let folder = Folder::new("pieces");
        let bytes = [HEADER.as_bytes(), &lines.join(&b'\n'), b"\n"].concat();
        let (whole, grown) = (folder.0.join("whole"), folder.0.join("grown"));
        fs::write(&whole, &bytes).unwrap();
        let (at_once, mut all_troubles) = read(&mut source::samples(&whole, SampleTiming::Follow).unwrap());
        // A long list of troubles is reported in short.
        all_troubles.truncate(16);
        // While no line has made sense, every read says so.
        let lasts = |line: &String| line.starts_with("no line has made sense so far");

        fs::write(&grown, []).unwrap();
        let mut source = source::samples(&grown, SampleTiming::Follow).unwrap();
        let (mut came, mut troubles, mut rest) = (Vec::new(), Vec::new(), &bytes[..]);
        for cut in cuts.iter().cycle() {
            let (piece, tail) = rest.split_at(rest.len().min(*cut));
            File::options().append(true).open(&grown).unwrap().write_all(piece).unwrap();
            let (readings, told) = read(&mut source);
            came.extend(readings);
            troubles.extend(told.into_iter().filter(|line| !lasts(line)));
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }
        troubles.truncate(16);
        prop_assert_eq!(came, at_once);
        prop_assert_eq!(troubles, all_troubles);
    }

    #[test]
    fn a_replay_gives_the_same_samples_as_following(lines in collection::vec(line(), 0..40)) {
        let folder = Folder::new("same");
        let path = folder.0.join("samples");
        fs::write(&path, [HEADER.as_bytes(), &lines.join(&b'\n')].concat()).unwrap();
        let mut replay = source::samples(&path, SampleTiming::Replay).unwrap();
        let mut replayed = Vec::new();
        while !replay.is_over() {
            let step = read(&mut replay).0;
            prop_assert!(step.windows(2).all(|pair| pair[0].at == pair[1].at));
            replayed.extend(step);
        }
        append(&path, "\n");
        prop_assert_eq!(replayed, read(&mut source::samples(&path, SampleTiming::Follow).unwrap()).0);
    }

    #[test]
    fn any_text_is_a_table_or_the_output_of_ethtool_or_refused(text in "\\PC{0,200}") {
        let _ = Drivers::parse(&text);
        let _ = source::parse_ethtool(&text);
    }
}

#[test]
fn what_cannot_be_read_is_named_at_once() {
    let missing = source::samples("/nonexistent/samples.csv", SampleTiming::Follow).unwrap_err();
    assert!(missing.to_string().starts_with("/nonexistent/samples.csv: No such file"), "{missing}");
    let folder = source::samples(env::temp_dir(), SampleTiming::Replay).unwrap_err();
    assert_eq!(folder.kind(), io::ErrorKind::IsADirectory);
}

/// `None`, and the test is skipped, where there is no `mkfifo`.
fn fifo(folder: &Folder) -> Option<PathBuf> {
    if !testkit::installed("mkfifo") {
        return None;
    }
    let path = folder.0.join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    Some(path)
}

#[test]
fn a_fifo_never_keeps_the_monitor_waiting() {
    let folder = Folder::new("fifo");
    let Some(path) = fifo(&folder) else { return };
    let mut source = source::samples(&path, SampleTiming::Follow).unwrap();
    assert_eq!(samples(&mut source), [], "nobody writes");
    let mut writer = File::options().write(true).open(&path).unwrap();
    assert_eq!(samples(&mut source), [], "somebody has opened it and says nothing");
    write!(writer, "{HEADER}1000,eth0,10").unwrap();
    assert_eq!(samples(&mut source), [], "half a line");
    writeln!(writer, ",1").unwrap();
    assert_eq!(samples(&mut source), [sample(1_000, "eth0", 1)]);
    drop(writer);
    assert_eq!(samples(&mut source), [], "nobody writes any more");
    let mut writer = File::options().write(true).open(&path).unwrap();
    writeln!(writer, "2000,eth0,20,2").unwrap();
    assert_eq!(samples(&mut source), [sample(2_000, "eth0", 2)], "another one goes on");
    assert!(!source.is_over());
}

#[test]
fn a_replay_through_a_fifo_waits_for_the_whole_step_and_ends_with_the_writer() {
    let folder = Folder::new("fifo-replay");
    let Some(path) = fifo(&folder) else { return };
    let mut source = source::samples(&path, SampleTiming::Replay).unwrap();
    assert_eq!((samples(&mut source), source.is_over()), (vec![], false));
    let mut writer = File::options().write(true).open(&path).unwrap();
    writeln!(writer, "{HEADER}1000,eth0,10,1").unwrap();
    assert_eq!(samples(&mut source), [], "more of the same time may follow");
    write!(writer, "1000,eth1,10,2\n2000,eth0,11,3\n").unwrap();
    assert_eq!(samples(&mut source), [sample(1_000, "eth0", 1), sample(1_000, "eth1", 2)]);
    drop(writer);
    assert_eq!(samples(&mut source), [sample(2_000, "eth0", 3)]);
    assert!(source.is_over());
}

const CHILD: &str = "HITLESS_TEST_SOURCES_CHILD";

/// This test again, in a process of its own.
fn again(test: &str, command: &mut Command) -> std::process::Child {
    let child = command.env(CHILD, "1").args(["--exact", test]).stdout(Stdio::piped()).stderr(Stdio::piped());
    child.spawn().unwrap()
}

fn assert_passed(child: std::process::Child) {
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn standard_input_is_a_source_too() {
    if env::var_os(CHILD).is_some() {
        let mut source = source::samples("-", SampleTiming::Replay).unwrap();
        assert_eq!(source.name(), "standard input");
        let mut came = Vec::new();
        // The loop ends when the process that started this one closes the input.
        while !source.is_over() {
            came.extend(samples(&mut source));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(came, [sample(1_000, "eth0", 1), sample(2_000, "eth0", 2)]);
        return;
    }
    let mut child = Command::new(env::current_exe().unwrap());
    let mut child = again("standard_input_is_a_source_too", child.stdin(Stdio::piped()));
    let mut input = child.stdin.take().unwrap();
    write!(input, "{HEADER}1000,eth0,10,1\n2000,et").unwrap();
    writeln!(input, "h0,20,2").unwrap();
    drop(input);
    assert_passed(child);
}

#[test]
fn what_a_wire_counts_is_read_as_it_wrote_it() {
    let folder = Folder::new("wire");
    let lane = |passed, dropped| DirectionCounters {
        passed,
        dropped,
        offered: passed + dropped,
        ..DirectionCounters::default()
    };
    emulator::keep_counters(&folder.0, &["a1", "b1"], &[lane(900, 100), lane(50, 0)]).unwrap();
    let (readings, troubles) = read(&mut source::sysfs(&folder.0, Selection::physical()));
    let port = |port: &str, frames| Reading {
        port: port.to_owned(),
        identity: 0,
        at: NOW,
        carrier: CarrierState::Up,
        frames: Some(frames),
        phy: Phy::default(),
    };
    assert_eq!(readings, [port("a1", counted(50, 0)), port("b1", counted(1_000, 100))]);
    assert_eq!(troubles, Vec::<String>::new());
}

/// Two hosts and a cable; `None`, and the test is skipped, where no namespaces may be made.
fn cable() -> Option<[Namespace; 2]> {
    testkit::permitted(Namespace::new())?;
    Some(stage::cable(1_500).unwrap())
}

/// Frames from the left to the right.
fn send(ends: &[Namespace; 2], frames: u64) {
    for (end, namespace) in ends.iter().enumerate() {
        stage::give_address(namespace, end, stage::plug(end)).unwrap();
    }
    let socket = ends[0].with(|| UdpSocket::bind((stage::address(0), 0))).unwrap().unwrap();
    for _ in 0..frames {
        socket.send_to(b"a frame", (stage::address(1), 9)).unwrap();
    }
}

#[test]
fn the_kernel_counts_no_bad_frames_on_a_veth_and_is_asked_about_neither_that_nor_the_loopback_unless_told_to() {
    let Some(ends) = cable() else { return };
    send(&ends, 10);
    let open = |selection| ends[1].with(|| source::kernel(selection)).unwrap().unwrap();
    assert_eq!(read(&mut open(Selection::physical())), (vec![], vec![]));

    let mut named = open(Selection::named(["w1", "w7"]));
    let (readings, troubles) = read(&mut named);
    let index = ends[1].with(|| Netlink::open().unwrap().existing_link("w1").unwrap().index).unwrap();
    assert_eq!((readings.len(), readings[0].port.as_str(), readings[0].carrier), (1, "w1", CarrierState::Up));
    assert_eq!(readings[0].identity & 0xffff_ffff, u64::from(index));
    assert_eq!((readings[0].frames, readings[0].phy), (None, Phy::default()), "nothing counted is not zero");
    let why = "w1: driver veth counts no bad frames: no cable that could corrupt anything";
    assert_eq!(troubles, ["w7: there is no such interface; did you mean w1?", why]);
    let (_, troubles) = read(&mut named);
    assert_eq!(troubles, ["w7: there is no such interface; did you mean w1?", why], "for as long as it lasts");

    let drivers = env::temp_dir().join(format!("hitless-sources-drivers-{}.toml", std::process::id()));
    fs::write(&drivers, "[[driver]]\nname = \"veth\"\ngood = [\"peer_ifindex\"]\nbad = [\"rx_queue_0_drops\"]\n")
        .unwrap();
    let own = Drivers::built_in().overlay(&drivers).unwrap();
    fs::remove_file(&drivers).unwrap();
    let mut told_otherwise = open(Selection::named(["w1"])).with_drivers(own);
    let counters = read(&mut told_otherwise).0[0].frames.unwrap();
    assert!(counters.all > 0 && counters.bad == 0, "{counters:?}");
}

#[test]
fn a_port_that_is_switched_off_and_one_whose_far_end_is_are_told_apart() {
    let Some(ends) = cable() else { return };
    let mut source = ends[1].with(|| source::kernel(Selection::named(["w1"]))).unwrap().unwrap();
    let switch = |end: usize, up: bool| {
        let switched = ends[end].with(|| {
            let netlink = Netlink::open()?;
            netlink.set_up(netlink.existing_link(stage::plug(end))?.index, up)
        });
        switched.unwrap().unwrap();
    };
    let mut carrier = || read(&mut source).0[0].carrier;
    assert_eq!(carrier(), CarrierState::Up);
    switch(0, false);
    assert_eq!(carrier(), CarrierState::Lost);
    switch(1, false);
    assert_eq!(carrier(), CarrierState::Off);
}

/// The files of a namespace are seen only where they are mounted from inside it, so that is done in a process that has
/// its mounts to itself.
#[test]
fn the_files_of_a_veth_are_read_where_asked_for() {
    const MOUNTED: &str = "HITLESS_TEST_SOURCES_SYSFS";
    if let Some(mounted) = env::var_os(MOUNTED) {
        let root = Path::new(&mounted).join("class/net");
        assert_eq!(read(&mut source::sysfs(&root, Selection::physical())), (vec![], vec![]));
        let (readings, _) = read(&mut source::sysfs(&root, Selection::named(["w1"])));
        let frames = readings[0].frames.unwrap();
        assert!(frames.all >= 100 && frames.bad == 0, "{frames:?}");
        assert_eq!(readings[0].carrier, CarrierState::Up);
        assert!(readings[0].identity > 1);
        return;
    }
    let Some(ends) = cable() else { return };
    if !["unshare", "mount"].into_iter().all(testkit::installed) {
        return;
    }
    send(&ends, 100);
    let folder = Folder::new("mounted");
    let mounted = folder.0.display().to_string();
    let inside = |command: &mut Command, script: &str| {
        command.args(["--mount", "sh", "-c", script, "sh", &mounted]);
        ends[1].prepare(command).unwrap();
    };
    let mut attempt = Command::new("unshare");
    inside(&mut attempt, "mount -t sysfs sysfs \"$1\"");
    let attempt = attempt.env("LC_ALL", "C").output().unwrap();
    if !attempt.status.success() {
        let said = String::from_utf8_lossy(&attempt.stderr).replace(&mounted, "there");
        let said = said.lines().next().unwrap_or_default();
        let is_denied = ["permission denied", "Operation not permitted"].iter().any(|denial| said.contains(denial));
        assert!(is_denied, "{said}");
        return testkit::skip(format!("no mounts of its own: {said}"));
    }
    let mut command = Command::new("unshare");
    inside(&mut command, "mount -t sysfs sysfs \"$1\" && shift && exec \"$@\"");
    command.arg(env::current_exe().unwrap()).env(MOUNTED, &mounted);
    assert_passed(again("the_files_of_a_veth_are_read_where_asked_for", &mut command));
}

/// Serves a link's control socket as its daemon would, until `stop` is closed.
fn serve(directory: &RunDirectory, link: &LinkHandle, stop: &PipeReader) {
    link::control::serve(&ControlSocket::bind(directory, "hit0").unwrap(), link, stop).unwrap();
}

#[test]
fn a_protected_link_tells_what_its_wire_lost() {
    let Some(_) = testkit::permitted(Namespace::new()) else { return };
    let stage = Stage::new(1_600).unwrap();
    let folder = Folder::new("links");
    let directory = RunDirectory::at(&folder.0);
    let mut source = source::links(directory.clone());
    assert_eq!(read(&mut source), (vec![], vec![]), "there are none");
    std::thread::scope(|scope| {
        let start =
            |end| stage.protect(scope, end, LinkConfig::new(StandInConfig::new(stage::plug(end))), |_| ()).unwrap();
        let links = [start(0), start(1)];
        let (stop, stopper) = io::pipe().unwrap();
        let handle = links[1].handle.another().unwrap();
        let directory = &directory;
        scope.spawn(move || serve(directory, &handle, &stop));
        let wire = |source: &mut source::LinkSource| read(source).0.into_iter().find(|reading| reading.port == "w1");
        wait_for("protection", || wire(&mut source).is_some_and(|reading| reading.frames.is_some()));

        stage.set_loss(Prob::literal(0.05)).unwrap();
        (0..2).for_each(|end| stage.address(end, "hit0").unwrap());
        let socket = stage.ends[0].with(|| UdpSocket::bind((stage::address(0), 0))).unwrap().unwrap();
        wait_for("lost frames", || {
            (0..500).for_each(|_| drop(socket.send_to(b"a frame", (stage::address(1), 9))));
            wire(&mut source).and_then(|reading| reading.frames).is_some_and(|frames| frames.bad >= 20)
        });
        let reading = wire(&mut source).unwrap();
        let frames = reading.frames.unwrap();
        let lost = frames.bad as f64 / frames.all as f64;
        assert!((0.005..0.2).contains(&lost), "{frames:?}");
        assert_eq!(
            (reading.identity, reading.carrier, frames.bits),
            (u64::from(std::process::id()), CarrierState::Up, 64)
        );
        drop((stopper, links));
    });
    assert_eq!(read(&mut source), (vec![], vec![]), "the link is down");
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if is_there() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited half a minute for {what}");
}
