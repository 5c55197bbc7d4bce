//! The kernel's own TCP between two namespaces, recorded and explained.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use evidence::{RecordConfig, RecordSummary, record};
use explain::answer::{ConnectionAnswer, ExplainAnswer};
use explain::evidence::KernelEvidence;
use explain::terms::{Certainty, TimeCause};
use explain::{ExplainOptions, explain, has_events};
use linux::net::testing::in_namespaces;
use linux::net::{InterfaceAddress, Namespace, Netlink};
use units::Unwatched;

/// A pair of interfaces with an address each, one in each namespace.
fn connect(here: &Namespace, there: &Namespace) {
    here.with(|| {
        let netlink = Netlink::open().unwrap();
        netlink.add_veth("ev0", "ev1").unwrap();
        let far = netlink.existing_link("ev1").unwrap().index;
        netlink.set_namespace(far, there).unwrap();
    })
    .unwrap();
    for (namespace, name, address) in [(here, "ev0", "10.77.0.1"), (there, "ev1", "10.77.0.2")] {
        namespace
            .with(|| {
                let netlink = Netlink::open().unwrap();
                let index = netlink.existing_link(name).unwrap().index;
                netlink.add_address(index, &InterfaceAddress::new(address.parse().unwrap(), 24)).unwrap();
                netlink.set_up(index, true).unwrap();
            })
            .unwrap();
    }
}

/// Hears of the connection, and reads all of it.
fn serve(there: &Namespace) -> u64 {
    there
        .with(|| {
            let listener = TcpListener::bind("10.77.0.2:7000").unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            io::copy(&mut stream, &mut io::sink()).unwrap()
        })
        .unwrap()
}

fn connected() -> TcpStream {
    for _ in 0..200 {
        if let Ok(stream) = TcpStream::connect("10.77.0.2:7000") {
            return stream;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("nobody answers");
}

/// Twice a few bytes, with a pause between.
fn talk() {
    let mut stream = connected();
    stream.write_all(&[1; 3_000]).unwrap();
    thread::sleep(Duration::from_millis(300));
    stream.write_all(&[2; 3_000]).unwrap();
}

fn read(file: &Path) -> (KernelEvidence, ExplainAnswer) {
    let open = || -> io::Result<Box<dyn Read>> { Ok(Box::new(File::open(file)?)) };
    assert!(has_events(&open).unwrap());
    let evidence = KernelEvidence::read(File::open(file).unwrap()).unwrap();
    let evidence_again = KernelEvidence::read(File::open(file).unwrap()).unwrap();
    let options = ExplainOptions { evidence: Some(Arc::new(evidence_again)), ..ExplainOptions::default() };
    (evidence, explain(&open, &options, &Unwatched).unwrap().answer())
}

fn application(connection: &ConnectionAnswer) -> (u64, Certainty) {
    let stall = connection.stalls.iter().find(|stall| stall.cause == TimeCause::Application);
    let stall = stall.unwrap_or_else(|| panic!("{connection:#?}"));
    (stall.until_ns - stall.from_ns, stall.sure)
}

fn recorded(out: &Path) -> Result<RecordSummary, linux::SystemError> {
    let config = RecordConfig { interface: "ev0".into(), out: out.into(), lasts: Some(Duration::from_millis(1_500)) };
    let (stop, _stopper) = io::pipe().unwrap();
    record(&config, &stop)
}

#[test]
fn an_application_that_pauses_is_seen_to_pause() {
    let folder = std::env::temp_dir().join(format!("hitless-evidence-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let out = folder.join("pause.pcapng");
    in_namespaces(|[here, there]| {
        connect(&here, &there);
        let recorded = thread::scope(|scope| {
            let server = scope.spawn(|| serve(&there));
            let recorder = scope.spawn(|| here.with(|| recorded(&out)).unwrap());
            thread::sleep(Duration::from_millis(300));
            here.with(talk).unwrap();
            assert_eq!(server.join().unwrap(), 6_000);
            recorder.join().unwrap()
        });
        let summary = match recorded {
            Err(error) if error.0.contains("needs root") => return testkit::skip(error),
            summary => summary.unwrap(),
        };
        assert_eq!((summary.packets_missed, summary.events_missed, summary.lacking.len()), (0, 0, 0), "{summary:?}");
        let (evidence, answer) = read(&out);
        assert_eq!((evidence.events(), evidence.missed()), (summary.events, 0));
        let connection = &answer.connections[0];
        let (pause, sure) = application(connection);
        assert!((250_000_000..1_000_000_000).contains(&pause), "{connection:#?}");
        assert_eq!(sure, Certainty::Seen);
    });
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_recording_costs_is_measured_beside_the_same_without() {
    match evidence::cost::measure(1, Duration::from_millis(200)) {
        Err(error) => testkit::skip(error),
        Ok(rows) => {
            assert_eq!(rows.len(), 2);
            for row in rows {
                let figures = [row.packets_per_second, row.bytes_per_second, row.ends_ns].concat();
                assert!(figures.iter().all(|figure| *figure > 0.0) && row.recorder_ns > 0.0, "{row:?}");
            }
        }
    }
}
