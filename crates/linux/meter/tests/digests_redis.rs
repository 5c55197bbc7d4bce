//! Reports of meters through a Redis server of the test's own.

#[path = "../../../base/bus/tests/redis_server/mod.rs"]
mod redis_server;

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use bus::key::OrderKey;
use meter::digests::{
    CollectorAddress, CollectorReports, LONGEST, ReceivedReport, ReportReceiver, queue, report_queue,
};
use redis_server::{Keeps, RedisServer};
use units::StopFlag;

const PATIENCE: Duration = Duration::from_secs(30);

fn inlet(server: &RedisServer) -> (CollectorAddress, ReportReceiver) {
    let place: CollectorAddress = format!("{}?prefix=lab", server.url()).parse().unwrap();
    let CollectorAddress::Redis(redis) = place.clone() else { panic!("{place} is no Redis") };
    (place, ReportReceiver::Redis(redis))
}

fn next(received: &CollectorReports) -> ReceivedReport {
    received.recv_timeout(PATIENCE).unwrap()
}

fn came(report: &[u8]) -> ReceivedReport {
    ReceivedReport { life: 7, missing: 0, flags: 1, question: None, report: report.to_vec() }
}

/// The stream has to be looked at once before reports are sent: what was there before is not read.
fn wait_until_read(server: &RedisServer) {
    for _ in 0..1_000 {
        if server.ask(&["CLIENT", "LIST"]).contains("cmd=eval") {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("nobody reads");
}

#[test]
fn reports_survive_a_redis_that_is_restarted_under_them() {
    let Some(mut server) = RedisServer::start(Keeps::Nothing) else { return };
    let (place, inlet) = inlet(&server);
    let (mut outlet, sender) = report_queue(place, 7, None);
    let (put, received) = queue(1 << 20);
    let (stop, said) = (StopFlag::new(), Mutex::new(String::new()));
    thread::scope(|scope| {
        let sending = scope.spawn(|| sender.run(&|line| said.lock().unwrap().push_str(line)));
        scope.spawn(|| inlet.run(None, &put, &stop, &|_| ()).unwrap());
        wait_until_read(&server);
        for nth in 0..5 {
            outlet.put(vec![nth; 100]);
            assert_eq!(next(&received), came(&[nth; 100]));
        }
        server.kill();
        outlet.put(vec![5; 100]);
        thread::sleep(Duration::from_millis(300));
        server.start_again();
        assert_eq!(next(&received), came(&[5; 100]));
        drop(outlet);
        let sent = sending.join().unwrap();
        assert_eq!((sent.reports, sent.dropped), (6, 0));
        stop.stop();
    });
    let said = said.into_inner().unwrap();
    assert!(said.contains("trying again") && said.contains("connected; 0 reports dropped"), "{said}");
}

#[test]
fn an_entry_of_somebody_else_is_told_and_passed_over() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let (place, inlet) = inlet(&server);
    let (mut outlet, sender) = report_queue(place, 7, None);
    let (put, received) = queue(1 << 20);
    let (stop, said) = (StopFlag::new(), Mutex::new(String::new()));
    thread::scope(|scope| {
        let sending = scope.spawn(|| sender.run(&|line| panic!("{line}")));
        scope.spawn(|| inlet.run(None, &put, &stop, &|line| said.lock().unwrap().push_str(line)).unwrap());
        wait_until_read(&server);
        server.ask(&["XADD", "lab:digests", "*", "message", "{}"]);
        outlet.put(b"ours".to_vec());
        assert_eq!(next(&received), came(b"ours"));
        drop(outlet);
        sending.join().unwrap();
        stop.stop();
    });
    let said = said.into_inner().unwrap();
    assert!(said.contains("`lab:digests` has an entry that is no report of ours"), "{said}");
}

/// Any process that can write to the stream can write entries of any length and any name.
#[test]
fn with_a_key_only_sealed_reports_are_heard_and_long_entries_stay_in_redis() {
    let Some(server) = RedisServer::start(Keeps::Nothing) else { return };
    let key = OrderKey::new([7; 16]);
    let (place, inlet) = inlet(&server);
    let (mut sealed, sealing) = report_queue(place.clone(), 7, Some(key.clone()));
    let (mut forged, forging) = report_queue(place, 8, None);
    let (put, received) = queue(1 << 20);
    let (stop, said) = (StopFlag::new(), Mutex::new(String::new()));
    thread::scope(|scope| {
        let sending = [scope.spawn(|| sealing.run(&|line| panic!("{line}"))), scope.spawn(|| forging.run(&|_| ()))];
        scope.spawn(|| inlet.run(Some(&key), &put, &stop, &|line| said.lock().unwrap().push_str(line)).unwrap());
        wait_until_read(&server);
        let long = "x".repeat(LONGEST + 1_000);
        server.ask(&["XADD", "lab:digests", "*", "life", "7", "number", "0", "report", &long]);
        forged.put(b"forged".to_vec());
        drop(forged);
        while !said.lock().unwrap().contains("refused") {
            thread::sleep(Duration::from_millis(20));
        }
        sealed.put(b"ours".to_vec());
        assert_eq!(next(&received), came(b"ours"));
        drop(sealed);
        sending.into_iter().for_each(|sending| assert_eq!(sending.join().unwrap().reports, 1));
        stop.stop();
    });
    let said = said.into_inner().unwrap();
    assert!(said.contains("is no report of ours") && said.contains("was not sealed with our key; refused"), "{said}");
}
