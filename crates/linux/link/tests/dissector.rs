//! Wireshark sees what we put on the wire: `contrib/wireshark/hitless.lua` reads frames that
//! [`Framing::emit`] wrote, and every field says what was put in. What [`Framing::parse`] refuses as
//! malformed the script marks, nothing else, and no bytes make it fail.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;
use std::{env, fs, io, process};

use link::frame::{ETHERNET, FrameRejection, Framing, Mac, OWN, SEALED_BARE, WHOLE, introduce};
use link::seal::Seal;
use linux::capture::Capture;
use wire::Seq;
use wire::link::{
    AddressStamp, Class, Epoch, Feedback, FlowControl, FrameKind, GREETING, Gap, LinkAgreement, LinkHeader, ProbeKind,
    ProbePaths, SegmentSpan, SessionKind, SessionMessage, SessionRefusal, StampProbe, StampTag, StampableFrame,
    StampedData, VERSION,
};

const HERE: Mac = Mac([2, 0, 0, 0, 0, 1]);
const THERE: Mac = Mac([2, 0, 0, 0, 0, 2]);
/// Beyond the link, so its frames are bridged.
const ELSEWHERE: Mac = Mac([2, 0, 0, 0, 0, 3]);

const KEY: [u8; 16] = [7; 16];
const LIVES: [u128; 2] = [0x0123_4567_89ab_cdef_0011_2233_4455_6677, 0xfeed_0000_0000_0000_0000_0000_0000_0001];
/// Length that Ethernet pads to, without its check.
const SHORTEST: usize = 60;
const MUTATIONS: usize = 2_000;

const FIELDS: &str = "eth.type eth.src hitless.kind hitless.class hitless.seq hitless.era hitless.epoch \
    hitless.ack.latest hitless.ack.era hitless.ack.hold hitless.ack.class hitless.ack.gaps \
    hitless.gap.first hitless.gap.era hitless.gap.frames hitless.gap.round \
    hitless.session.kind hitless.session.version hitless.session.classes hitless.session.protects \
    hitless.session.seal hitless.session.window hitless.session.mtu hitless.session.instance \
    hitless.session.heard hitless.session.epoch hitless.seal.crc hitless.seal.counter hitless.seal.tag \
    hitless.type ip.src ip.dst tcp.srcport tcp.dstport tcp.len arp.opcode arp.src.proto_ipv4";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sealed {
    None,
    Crc,
    Key,
}

impl Sealed {
    const ALL: [Self; 3] = [Self::None, Self::Crc, Self::Key];

    fn preference(self) -> &'static str {
        match self {
            Self::None => "hitless.seal:none",
            Self::Crc => "hitless.seal:crc",
            Self::Key => "hitless.seal:key",
        }
    }

    fn seal(self, life: u128) -> Seal {
        match self {
            Self::None => Seal::None,
            Self::Crc => Seal::Crc,
            Self::Key => Seal::keyed(KEY, life),
        }
    }

    fn size(self) -> usize {
        self.seal(1).size()
    }

    /// Two ends that have greeted each other.
    fn ends(self) -> [Framing; 2] {
        let [mut here, mut there] = [(HERE, THERE, LIVES[0]), (THERE, HERE, LIVES[1])]
            .map(|(own, peer, life)| Framing::new(own, Some(peer), self.seal(life)));
        introduce([&mut here, &mut there]);
        [here, there]
    }
}

/// Contents of a protected frame, and their sender.
#[derive(Clone, Copy, Debug)]
enum Inside {
    Nothing,
    Tcp(Mac),
    Arp(Mac),
}

impl Inside {
    const TCP_PAYLOAD: &'static [u8] = b"what a host has to say to another";

    fn bytes(self) -> Vec<u8> {
        let (from, kind, rest) = match self {
            Self::Nothing => return Vec::new(),
            Self::Tcp(from) => (from, [0x08, 0x00], tcp_in_ipv4(Self::TCP_PAYLOAD)),
            Self::Arp(from) => (from, [0x08, 0x06], arp_request(from)),
        };
        [&THERE.0[..], &from.0, &kind, &rest].concat()
    }

    /// True if it keeps its addresses: it is not the sending end's own.
    fn is_bridged(self) -> bool {
        matches!(self, Self::Tcp(ELSEWHERE) | Self::Arp(ELSEWHERE))
    }
}

fn tcp_in_ipv4(payload: &[u8]) -> Vec<u8> {
    let len = (40 + payload.len()) as u16;
    let ip = [&[0x45, 0][..], &len.to_be_bytes(), &[0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]].concat();
    let ports = [40_000_u16.to_be_bytes(), 50_001_u16.to_be_bytes()].concat();
    [&ip, &ports, &[0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0x20, 0, 0, 0, 0, 0][..], payload].concat()
}

fn arp_request(from: Mac) -> Vec<u8> {
    [&[0, 1, 8, 0, 6, 4, 0, 1][..], &from.0, &[10, 0, 0, 1], &[0; 6], &[10, 0, 0, 2]].concat()
}

#[derive(Debug)]
struct Example {
    header: LinkHeader,
    inside: Inside,
}

fn feedback(class: Class, wish: FlowControl, gaps: &[Gap]) -> Option<Feedback> {
    let mut feedback = Feedback::new(class, Seq::new(513, true), wish);
    gaps.iter().for_each(|gap| feedback.push(*gap));
    Some(feedback)
}

fn session(kind: SessionKind) -> LinkHeader {
    let agreement = LinkAgreement { version: VERSION, classes: 3, protects: true, seal: 2, window: 1_024, mtu: 1_522 };
    LinkHeader::session(Epoch::new(6), SessionMessage { kind, instance: 0xdead_beef, heard: 7, epoch: 6, agreement })
}

/// Frames of every kind, and of every variant that can be distinguished within a kind.
fn examples() -> Vec<Example> {
    let (ours, theirs) = (Inside::Tcp(HERE), Inside::Tcp(ELSEWHERE));
    let (seq, late) = (Seq::new(17, false), Seq::new(65_535, true));
    let few = [Gap::new(Seq::new(7, false), 3, 1), Gap::new(Seq::new(65_530, true), 255, 127)];
    let full: Vec<Gap> = (0..8).map(|n| Gap::new(seq.plus(40 * n), n + 1, n as u8)).collect();
    let no_gaps = |class| feedback(class, FlowControl::Flow, &[]);

    let framed = [
        (FrameKind::Plain, no_gaps(Class::Ordered), ours),
        (FrameKind::Plain, feedback(Class::NonBlocking, FlowControl::Hold, &few), Inside::Arp(HERE)),
        (FrameKind::Plain, no_gaps(Class::Ordered), theirs),
        (FrameKind::Data(Class::Ordered, seq), None, ours),
        (FrameKind::Data(Class::NonBlocking, late), None, Inside::Arp(HERE)),
        (FrameKind::Data(Class::Ordered, seq), no_gaps(Class::NonBlocking), ours),
        (FrameKind::Data(Class::Ordered, late), feedback(Class::Ordered, FlowControl::Hold, &few), ours),
        (FrameKind::Data(Class::NonBlocking, seq), feedback(Class::Ordered, FlowControl::Flow, &full), theirs),
        (FrameKind::Data(Class::Ordered, seq), None, Inside::Arp(ELSEWHERE)),
        (FrameKind::Retransmission(Class::Ordered, late), None, ours),
        (FrameKind::Retransmission(Class::NonBlocking, seq), feedback(Class::Ordered, FlowControl::Flow, &few), theirs),
        (FrameKind::Dummy(Class::Ordered, seq), None, Inside::Nothing),
        (
            FrameKind::Dummy(Class::NonBlocking, late),
            feedback(Class::NonBlocking, FlowControl::Hold, &few),
            Inside::Nothing,
        ),
        (FrameKind::Ack, no_gaps(Class::Ordered), Inside::Nothing),
        (FrameKind::Ack, feedback(Class::NonBlocking, FlowControl::Hold, &full), Inside::Nothing),
        (FrameKind::Notice, no_gaps(Class::NonBlocking), Inside::Nothing),
        (FrameKind::Notice, feedback(Class::Ordered, FlowControl::Hold, &few), Inside::Nothing),
    ];
    let framed = (0..).zip(framed).map(|(epoch, (kind, feedback, inside))| {
        let header = LinkHeader::new(Epoch::new(epoch), kind, feedback);
        Example { header, inside }
    });

    use SessionRefusal::{Classes, Deactivated, Mtu, Seal, Version, Window};
    let refusals = [Version, Classes, Window, Mtu, Seal, Deactivated];
    let messages = [
        SessionKind::Hello { asked: false },
        SessionKind::Hello { asked: true },
        SessionKind::Welcome,
        SessionKind::Confirm,
        SessionKind::Unknown,
        SessionKind::Bye { rx_empty: false },
        SessionKind::Bye { rx_empty: true },
        SessionKind::Gone,
    ];
    let messages = messages.into_iter().chain(refusals.map(SessionKind::Refuse));
    framed.chain(messages.map(|kind| Example { header: session(kind), inside: Inside::Nothing })).collect()
}

/// A frame as it is on the wire: the network card pads what was not padded already.
fn on_wire(framing: &mut Framing, header: &LinkHeader, body: &[u8]) -> Vec<u8> {
    let emitted = framing.emit(header, Some(body));
    let mut bytes = [&emitted.head[..emitted.head_len], &body[emitted.skip..]].concat();
    bytes.resize((bytes.len() + emitted.padding).max(SHORTEST), 0);
    bytes
}

fn frames(sealed: Sealed) -> Vec<Vec<u8>> {
    let [mut framing, _] = sealed.ends();
    examples().iter().map(|example| on_wire(&mut framing, &example.header, &example.inside.bytes())).collect()
}

fn code(kind: FrameKind) -> u8 {
    match kind {
        FrameKind::Plain => 0,
        FrameKind::Data(..) => 1,
        FrameKind::Retransmission(..) => 2,
        FrameKind::Dummy(..) => 3,
        FrameKind::Ack => 4,
        FrameKind::Notice => 5,
        FrameKind::Session => 6,
        FrameKind::Bare => panic!("has no header"),
    }
}

fn session_code(kind: SessionKind) -> u8 {
    match kind {
        SessionKind::Hello { asked: false } => 0,
        SessionKind::Welcome => 1,
        SessionKind::Confirm => 2,
        SessionKind::Unknown => 3,
        SessionKind::Bye { rx_empty: false } => 4,
        SessionKind::Bye { rx_empty: true } => 5,
        SessionKind::Gone => 6,
        SessionKind::Hello { asked: true } => 7,
        SessionKind::Refuse(SessionRefusal::Version) => 8,
        SessionKind::Refuse(SessionRefusal::Classes) => 9,
        SessionKind::Refuse(SessionRefusal::Window) => 10,
        SessionKind::Refuse(SessionRefusal::Mtu) => 11,
        SessionKind::Refuse(SessionRefusal::Seal) => 12,
        SessionKind::Refuse(SessionRefusal::Deactivated) => 13,
    }
}

/// Output expected from tshark for one frame: a value, or a list of them, for each of [`FIELDS`].
struct Expected(Vec<(&'static str, String)>);

impl Expected {
    fn of(example: &Example, sealed: Sealed, place: usize, frame: &[u8]) -> Self {
        let Example { header, inside } = example;
        let mut out = Self(FIELDS.split_whitespace().map(|name| (name, String::new())).collect());
        out.put("eth.type", format!("{:#06x}", if inside.is_bridged() { WHOLE } else { OWN }));
        out.put("eth.src", HERE);
        out.put("hitless.kind", code(header.kind()));
        out.put("hitless.epoch", header.epoch().number());
        if let FrameKind::Data(class, seq) | FrameKind::Retransmission(class, seq) | FrameKind::Dummy(class, seq) =
            header.kind()
        {
            out.put("hitless.class", class as u8);
            out.put_seq("hitless.seq", "hitless.era", seq);
        }
        if let Some(feedback) = header.feedback() {
            out.put_feedback(&feedback);
        }
        if let Some(message) = header.message() {
            out.put_session(message);
        }
        out.put_seal(sealed, place, header.wire_len(), frame);
        out.put_inside(*inside);
        out
    }

    /// Sets a field, or adds to its list.
    fn put(&mut self, name: &str, value: impl ToString) {
        let (_, text) = self.0.iter_mut().find(|(field, _)| *field == name).expect("a field that is asked for");
        *text += if text.is_empty() { "" } else { "," };
        *text += &value.to_string();
    }

    fn put_seq(&mut self, number: &str, era: &str, seq: Seq) {
        self.put(number, seq.number());
        self.put(era, u8::from(seq.era()));
    }

    fn put_feedback(&mut self, feedback: &Feedback) {
        self.put_seq("hitless.ack.latest", "hitless.ack.era", feedback.latest);
        self.put("hitless.ack.hold", u8::from(feedback.wish == FlowControl::Hold));
        self.put("hitless.ack.class", feedback.class as u8);
        self.put("hitless.ack.gaps", feedback.gaps().len());
        for gap in feedback.gaps() {
            self.put_seq("hitless.gap.first", "hitless.gap.era", gap.first());
            self.put("hitless.gap.frames", gap.frames());
            self.put("hitless.gap.round", gap.round());
        }
    }

    fn put_session(&mut self, session: &SessionMessage) {
        let LinkAgreement { version, classes, protects, seal, window, mtu } = session.agreement;
        self.put("hitless.session.kind", session_code(session.kind));
        self.put("hitless.session.version", version);
        self.put("hitless.session.classes", format!("{classes:#04x}"));
        self.put("hitless.session.protects", u8::from(protects));
        self.put("hitless.session.seal", seal);
        self.put("hitless.session.window", window);
        self.put("hitless.session.mtu", mtu);
        self.put("hitless.session.instance", format!("{:#010x}", session.instance));
        self.put("hitless.session.heard", format!("{:#010x}", session.heard));
        self.put("hitless.session.epoch", session.epoch);
    }

    /// The CRC is worked out once more here; the tag is only looked up where it should lie.
    fn put_seal(&mut self, sealed: Sealed, place: usize, header_len: usize, frame: &[u8]) {
        let (head, rest) = frame.split_at(ETHERNET + header_len);
        match sealed {
            Sealed::None => {}
            Sealed::Crc => {
                let crc = crc32fast::hash(&[head, &rest[4..]].concat());
                self.put("hitless.seal.crc", format!("{crc:#010x}"));
            }
            Sealed::Key => {
                let tag = u64::from_be_bytes(rest[8..16].try_into().unwrap());
                self.put("hitless.seal.counter", 1 + place as u64);
                self.put("hitless.seal.tag", format!("{tag:#018x}"));
            }
        }
    }

    fn put_inside(&mut self, inside: Inside) {
        let kind = match inside {
            Inside::Nothing => return,
            Inside::Tcp(_) => {
                self.put("ip.src", "10.0.0.1");
                self.put("ip.dst", "10.0.0.2");
                self.put("tcp.srcport", 40_000);
                self.put("tcp.dstport", 50_001);
                self.put("tcp.len", Inside::TCP_PAYLOAD.len());
                "0x0800"
            }
            Inside::Arp(_) => {
                self.put("arp.opcode", 1);
                self.put("arp.src.proto_ipv4", "10.0.0.1");
                "0x0806"
            }
        };
        if inside.is_bridged() {
            self.put("eth.type", kind);
            self.put("eth.src", ELSEWHERE);
        } else {
            self.put("hitless.type", kind);
        }
    }
}

/// A folder of the test's own, which is also home to tshark: the user who runs the test may have preferences
/// and plugins, even this one.
struct Folder(PathBuf);

impl Folder {
    fn create(name: &str) -> io::Result<Self> {
        let path = env::temp_dir().join(format!("hitless-dissector-{name}-{}", process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn capture(&self, frames: &[Vec<u8>]) -> io::Result<PathBuf> {
        let path = self.0.join("frames.pcapng");
        let mut capture = Capture::create(&path, &["wire"])?;
        for (at, frame) in (0..).map(Duration::from_millis).zip(frames) {
            capture.write(0, at, frame)?;
        }
        capture.flush()?;
        Ok(path)
    }

    /// Returns the output of tshark, provided that neither it nor the script complains.
    fn tshark(&self, file: &Path, sealed: Sealed, args: &[&str]) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../contrib/wireshark/hitless.lua");
        let output = Command::new("tshark")
            .env("HOME", &self.0)
            .env("XDG_CONFIG_HOME", &self.0)
            .args(["-n", "-X", &format!("lua_script:{}", script.display()), "-o", sealed.preference(), "-r"])
            .arg(file)
            .args(args)
            .output();
        let Output { status, stdout, stderr } = output.expect("tshark starts");
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        let complaints: Vec<&str> = stderr.lines().filter(|line| !line.starts_with("Running as user")).collect();
        assert!(status.success() && complaints.is_empty(), "{sealed:?}: {status}: {complaints:#?}");
        if let Some(at) = stdout.find("Lua Error") {
            panic!("{sealed:?}: {}", stdout[at..].lines().next().unwrap_or_default());
        }
        stdout.into_owned()
    }

    /// The frames, counted from 0, that match a display filter.
    fn matching(&self, file: &Path, sealed: Sealed, filter: &str) -> Vec<usize> {
        let printed = self.tshark(file, sealed, &["-Y", filter, "-T", "fields", "-e", "frame.number"]);
        printed.lines().map(|number| number.parse::<usize>().expect("a frame's number") - 1).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing depends on its being gone.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn is_skipped() -> bool {
    !testkit::installed("tshark")
}

#[test]
fn every_field_says_what_was_put_in() {
    if is_skipped() {
        return;
    }
    let folder = Folder::create("fields").unwrap();
    let names: Vec<&str> = FIELDS.split_whitespace().collect();
    let mut args = vec!["-T", "fields", "-E", "separator=|"];
    args.extend(names.iter().flat_map(|name| ["-e", name]));
    for sealed in Sealed::ALL {
        let frames = frames(sealed);
        let file = folder.capture(&frames).unwrap();
        let printed = folder.tshark(&file, sealed, &args);
        assert_eq!(printed.lines().count(), frames.len());
        for (place, (example, line)) in examples().iter().zip(printed.lines()).enumerate() {
            // Newer versions spell booleans out.
            let values = line.split('|').map(|value| value.replace("True", "1").replace("False", "0"));
            let seen: Vec<(&str, String)> = names.iter().copied().zip(values).collect();
            assert_eq!(seen, Expected::of(example, sealed, place, &frames[place]).0, "{sealed:?}, {example:?}");
        }
        let troubled = folder.matching(&file, sealed, "hitless.malformed || hitless.cut || _ws.malformed");
        assert!(troubled.is_empty(), "{sealed:?}: {troubled:?}");
    }
}

#[test]
fn the_info_column_tells_of_the_link_and_of_what_it_carries() {
    if is_skipped() {
        return;
    }
    let folder = Folder::create("info").unwrap();
    let file = folder.capture(&frames(Sealed::None)).unwrap();
    let columns = r#"gui.column.format:"Protocol","%p","Info","%i""#;
    let printed = folder.tshark(&file, Sealed::None, &["-o", columns]);
    let (link, inside): (Vec<&str>, Vec<&str>) =
        printed.lines().map(|line| line.split_once(" | ").unwrap_or((line, ""))).map(|(a, b)| (a.trim(), b)).unzip();
    assert_eq!(link, INFO);
    for (example, text) in examples().iter().zip(inside) {
        let wanted = match example.inside {
            Inside::Nothing => "",
            Inside::Tcp(_) => "40000 → 50001 [ACK]",
            Inside::Arp(_) => "Who has 10.0.0.2? Tell 10.0.0.1",
        };
        assert!(text.contains(wanted), "{example:?}: {text}");
    }
}

const INFO: [&str; 31] = [
    "TCP Plain epoch 0 [ack 513']",
    "ARP Plain epoch 1 [ack 513' non-blocking hold missing 7+3 65530'+255]",
    "TCP Plain epoch 2 [ack 513']",
    "TCP Data seq 17 epoch 3",
    "ARP Data seq 65535' non-blocking epoch 0",
    "TCP Data seq 17 epoch 1 [ack 513' non-blocking]",
    "TCP Data seq 65535' epoch 2 [ack 513' hold missing 7+3 65530'+255]",
    "TCP Data seq 17 non-blocking epoch 3 [ack 513' missing 17+1 57+2 97+3 137+4 177+5 217+6 257+7 297+8]",
    "ARP Data seq 17 epoch 0",
    "TCP Retransmission seq 65535' epoch 1",
    "TCP Retransmission seq 17 non-blocking epoch 2 [ack 513' missing 7+3 65530'+255]",
    "hitless Dummy seq 17 epoch 3",
    "hitless Dummy seq 65535' non-blocking epoch 0 [ack 513' non-blocking hold missing 7+3 65530'+255]",
    "hitless Ack epoch 1 [ack 513']",
    "hitless Ack epoch 2 [ack 513' non-blocking hold missing 17+1 57+2 97+3 137+4 177+5 217+6 257+7 297+8]",
    "hitless Notice epoch 3 [ack 513' non-blocking]",
    "hitless Notice epoch 0 [ack 513' hold missing 7+3 65530'+255]",
    "hitless Session epoch 2: Hello",
    "hitless Session epoch 2: Hello, asked for",
    "hitless Session epoch 2: Welcome",
    "hitless Session epoch 2: Confirm",
    "hitless Session epoch 2: Unknown",
    "hitless Session epoch 2: Bye",
    "hitless Session epoch 2: Bye, all delivered",
    "hitless Session epoch 2: Gone",
    "hitless Session epoch 2: Refuse: version",
    "hitless Session epoch 2: Refuse: classes",
    "hitless Session epoch 2: Refuse: window",
    "hitless Session epoch 2: Refuse: MTU",
    "hitless Session epoch 2: Refuse: seal",
    "hitless Session epoch 2: Refuse: deactivated",
];

/// splitmix64: the same frames on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }
}

/// A few bytes changed, mostly where the headers are, and at times cut short as well.
fn mutated(frame: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    for _ in 0..=random.below(4) {
        let reach = if random.below(4) == 0 { bytes.len() } else { ETHERNET + 12 };
        bytes[random.below(reach)] = random.below(256) as u8;
    }
    if random.below(4) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    bytes
}

/// The first byte of a greeting, and how long one is.
const GREETING_KINDS: std::ops::RangeInclusive<u8> = GREETING + 1..=GREETING + 4;
const GREETING_LEN: usize = ETHERNET + 49;

/// All that two ends with a key say to each other before anything else, the second of them restarted once.
fn greetings() -> Vec<Vec<u8>> {
    let [mut here, mut there] = [(HERE, THERE, LIVES[0]), (THERE, HERE, LIVES[1])]
        .map(|(own, peer, life)| Framing::new(own, Some(peer), Sealed::Key.seal(life)));
    let mut sent = Vec::new();
    let mut pass = |from: &mut Framing, to: &mut Framing| {
        while let Some(emitted) = from.greet() {
            sent.push(emitted.head[..emitted.head_len].to_vec());
            assert_eq!(to.parse(&emitted.head[..emitted.head_len]), Err(FrameRejection::Greeting));
        }
    };
    // The first Hello is lost, so that the second end alone asks.
    assert!(here.greet().is_some());
    for _ in 0..2 {
        pass(&mut there, &mut here);
        pass(&mut here, &mut there);
    }
    sent
}

#[test]
fn greetings_of_the_seal_are_shown_whatever_seal_is_expected() {
    if is_skipped() {
        return;
    }
    let folder = Folder::create("greetings").unwrap();
    let frames = greetings();
    let file = folder.capture(&frames).unwrap();
    let [here, there] = LIVES.map(|life| format!("{life:032x}"));
    let none = "0".repeat(32);
    let wanted = [
        ("1", &there, &none, "Greeting: Hello"),
        ("2", &here, &there, "Greeting: Challenge"),
        ("3", &there, &here, "Greeting: Proof"),
        ("4", &here, &there, "Greeting: Done"),
    ];
    assert_eq!(frames.len(), wanted.len());
    for sealed in Sealed::ALL {
        let fields = ["kind", "own", "echo", "latest", "tag"].map(|name| format!("hitless.greeting.{name}"));
        let mut args = vec!["-T", "fields", "-E", "separator=|"];
        args.extend(fields.iter().flat_map(|name| ["-e", name]));
        args.extend(["-e", "_ws.col.Info", "-e", "hitless.malformed"]);
        let printed = folder.tshark(&file, sealed, &args);
        for ((line, frame), (kind, own, echo, info)) in printed.lines().zip(&frames).zip(wanted) {
            let tag = u64::from_be_bytes(frame[frame.len() - 8..].try_into().unwrap());
            assert_eq!(line.trim_end_matches('|'), format!("{kind}|{own}|{echo}|0|{tag:#018x}|{info}"), "{sealed:?}");
        }
    }
}

/// True if a frame of ours is refused as malformed, be its seal right or wrong.
fn is_malformed(frame: &[u8], sealed: Sealed) -> bool {
    let Some((ethernet, rest)) = frame.split_at_checked(ETHERNET) else { return false };
    if ![OWN, WHOLE].contains(&u16::from_be_bytes([ethernet[12], ethernet[13]])) {
        return false;
    }
    if ethernet[12..] == OWN.to_be_bytes() && rest.first().is_some_and(|first| GREETING_KINDS.contains(first)) {
        return frame.len() < GREETING_LEN;
    }
    let is_own = ethernet[12..] == OWN.to_be_bytes();
    if sealed == Sealed::None && is_own && rest.first().is_some_and(|first| StampProbe::marks(*first)) {
        return StampProbe::parse(rest).is_err();
    }
    if sealed == Sealed::Key && rest.first() == Some(&SEALED_BARE) {
        let shortest = if ethernet[12..] == WHOLE.to_be_bytes() { ETHERNET } else { 2 };
        return rest.len() < 1 + sealed.size() + shortest;
    }
    let Ok((_, len)) = LinkHeader::parse(rest) else { return true };
    let Some(unsealed) = rest.get(len + sealed.size()..) else { return true };
    let unsealed = [ethernet, &rest[..len], unsealed].concat();
    let stranger = Mac([2, 9, 9, 9, 9, 9]);
    Framing::new(stranger, None, Seal::None).parse(&unsealed) == Err(FrameRejection::Malformed)
}

#[test]
fn what_the_daemon_refuses_is_marked_and_no_bytes_are_too_strange() {
    if is_skipped() {
        return;
    }
    let folder = Folder::create("strange").unwrap();
    for sealed in Sealed::ALL {
        let mut good = frames(sealed);
        good.extend(greetings());
        good.extend(probes());
        let mut random = Random(1);
        let mut strange: Vec<Vec<u8>> =
            good.iter().flat_map(|frame| (0..frame.len()).map(|len| frame[..len].to_vec())).collect();
        strange.extend((0..MUTATIONS).map(|n| mutated(&good[n % good.len()], &mut random)));

        let file = folder.capture(&strange).unwrap();
        folder.tshark(&file, sealed, &["-V"]);
        let marked = folder.matching(&file, sealed, "hitless.malformed");
        let refused: Vec<usize> = (0..strange.len()).filter(|n| is_malformed(&strange[*n], sealed)).collect();
        if let Some(n) = (0..strange.len()).find(|n| marked.contains(n) != refused.contains(n)) {
            panic!("{sealed:?}: refused is {}, and not so marked: {:02x?}", refused.contains(&n), strange[n]);
        }
        assert!(refused.len() > MUTATIONS / 4, "{} of {}", refused.len(), strange.len());
    }
}

#[test]
fn a_link_over_a_link_is_followed_but_not_without_end() {
    if is_skipped() {
        return;
    }
    let folder = Folder::create("nested").unwrap();
    let nested = |levels: u16, from| {
        let mut framing = Framing::new(from, Some(THERE), Seal::None);
        (0..levels).rev().fold(Inside::Tcp(HERE).bytes(), |body, level| {
            let kind = FrameKind::Data(Class::Ordered, Seq::new(level, false));
            on_wire(&mut framing, &LinkHeader::new(Epoch::default(), kind, None), &body)
        })
    };
    let frames = [nested(2, HERE), nested(3, ELSEWHERE), nested(10_000, HERE), nested(3_000, ELSEWHERE)];
    let file = folder.capture(&frames).unwrap();
    let printed = folder.tshark(&file, Sealed::None, &["-T", "fields", "-e", "hitless.seq", "-e", "tcp.dstport"]);
    let printed: Vec<&str> = printed.lines().collect();
    assert_eq!(printed[..2], ["0,1\t50001", "0,1,2\t50001"]);
    assert_eq!(folder.matching(&file, Sealed::None, "hitless.deep"), [2, 3]);
    folder.tshark(&file, Sealed::None, &["-V"]);
}

/// Stamps of both kinds before a TCP segment, and what tshark should print of them.
fn stamped_examples() -> Vec<(AddressStamp, String)> {
    // The segment's TCP sequence number is 1.
    let run = |first: u16, size| SegmentSpan { first, size };
    let frame = StampableFrame { class: Class::Ordered, number: Seq::new(17, false), acknowledges: None };
    let data = StampedData { tag: StampTag::from_bits(0xa5c3), frame, run: run(1, 1_448), pushed: false };
    let acknowledges = Some((Class::NonBlocking, Seq::new(65_535, true)));
    let acknowledging = StampableFrame { acknowledges, class: Class::NonBlocking, ..frame };
    let wrapping = StampableFrame { number: Seq::new(65_534, true), ..frame };
    vec![
        (AddressStamp::Data(data), "0||0xa5c3|0|17|0||||1|1448|0|0".to_owned()),
        (
            AddressStamp::Data(StampedData { frame: acknowledging, ..data }),
            "0||0xa5c3|1|17|0|1|65535|1|1|1448|0|0".to_owned(),
        ),
        (
            AddressStamp::Data(StampedData { frame: wrapping, run: run(65_534, 1), ..data }),
            "0||0xa5c3|0|1|0||||65534|1|3|0".to_owned(),
        ),
        (AddressStamp::Data(StampedData { pushed: true, ..data }), "0||0xa5c3|0|17|0||||1|1448|0|1".to_owned()),
        (AddressStamp::Probe { lower: false }, "1|0|||||||||||".to_owned()),
        (AddressStamp::Probe { lower: true }, "1|1|||||||||||".to_owned()),
    ]
}

fn behind(addresses: [u8; AddressStamp::LEN]) -> Vec<u8> {
    [&addresses[..], &[8, 0], &tcp_in_ipv4(Inside::TCP_PAYLOAD)].concat()
}

#[test]
fn stamps_say_what_was_put_in_and_what_we_refuse_is_marked() {
    if is_skipped() {
        return;
    }
    let folder = Folder::create("stamps").unwrap();
    let examples = stamped_examples();
    let mut frames: Vec<Vec<u8>> = examples.iter().map(|(stamp, _)| behind(stamp.emit())).collect();
    let file = folder.capture(&frames).unwrap();
    let names = "kind lower tag class seq era ack.class ack.latest ack.era first size index pushed";
    let names: Vec<String> = names.split(' ').map(|name| format!("hitless.stamp.{name}")).collect();
    let mut args = vec!["-T", "fields", "-E", "separator=|"];
    args.extend(names.iter().flat_map(|name| ["-e", name.as_str()]));
    let printed = folder.tshark(&file, Sealed::None, &args).replace("True", "1").replace("False", "0");
    for ((stamp, expected), line) in examples.iter().zip(printed.lines()) {
        assert_eq!(line, expected, "{stamp:?}");
    }
    let mut random = faults::Random::new(5, 1);
    for _ in 0..MUTATIONS {
        let mut addresses = examples[random.below(examples.len() as u64) as usize].0.emit();
        for _ in 0..=random.below(2) {
            addresses[random.below(12) as usize] ^= 1 << random.below(8);
        }
        frames.push(behind(addresses));
    }
    let read = |frame: &Vec<u8>| match AddressStamp::parse(frame) {
        Ok(Some(AddressStamp::Data(data))) => (true, data.index(1).is_none()),
        Ok(Some(AddressStamp::Probe { .. })) => (true, false),
        Ok(None) | Err(_) => (false, false),
    };
    let all = |wanted: &dyn Fn((bool, bool)) -> bool| -> Vec<usize> {
        (0..frames.len()).filter(|at| wanted(read(&frames[*at]))).collect()
    };
    let (stamps, refused) = (all(&|(is_stamp, _)| is_stamp), all(&|(_, is_refused)| is_refused));
    assert!(refused.len() > 100 && stamps.len() < frames.len() - 100);
    let file = folder.capture(&frames).unwrap();
    assert_eq!(folder.matching(&file, Sealed::None, "hitless.stamp.malformed"), refused);
    assert_eq!(folder.matching(&file, Sealed::None, "hitless.stamp.kind"), stamps);
}

/// A question, and an answer.
fn probes() -> Vec<Vec<u8>> {
    let head = [&THERE.0[..], &HERE.0, &OWN.to_be_bytes()].concat();
    let question =
        StampProbe { kind: ProbeKind::Question, proved: true, token: 4_711, instance: 0xdead_beef, heard: 77 };
    let answer = StampProbe { kind: ProbeKind::Answer(ProbePaths::CABLE), proved: false, ..question };
    [question, answer].map(|probe| [&head[..], &probe.emit(), &[0; 34]].concat()).into()
}

#[test]
fn probes_say_what_was_put_in_where_nothing_is_sealed() {
    if is_skipped() {
        return;
    }
    let folder = Folder::create("probes").unwrap();
    let file = folder.capture(&probes()).unwrap();
    let names = ["kind", "proved", "reserved", "return", "stamped", "token", "instance", "heard"];
    let names = names.map(|name| format!("hitless.probe.{name}"));
    let mut args = vec!["-T", "fields", "-E", "separator=|"];
    args.extend(names.iter().flat_map(|name| ["-e", name.as_str()]));
    args.extend(["-e", "_ws.col.Info", "-e", "hitless.malformed"]);
    let printed = folder.tshark(&file, Sealed::None, &args).replace("True", "1").replace("False", "0");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(
        lines,
        [
            "8|1||||4711|0xdeadbeef|0x0000004d|Probe: Question 4711|",
            "9|0|1|1|0|4711|0xdeadbeef|0x0000004d|Probe: Answer 4711|"
        ]
    );
    assert_eq!(folder.matching(&file, Sealed::Crc, "hitless.malformed"), [0, 1]);
}
