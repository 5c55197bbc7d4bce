//! Counters of protected links on their wires, by asking their daemons.
//!
//! A link that is active numbers every frame, so it knows how many were sent and which did not come, independent of
//! what the card below it counts. Frames that found the daemon's ring full were lost too, but not on the wire. While a
//! link is dormant nobody counts.

use std::collections::BTreeMap;
use std::io;

use daemon::RunDirectory;
use link::control::{LinkReply, LinkRequest};
use link::status::LinkStatus;
use units::Moment;

use super::{OpenSources, Source, SourceSite};
use crate::reading::{CarrierState, Phy, Reading, ReceivedFrames};

#[derive(Debug)]
pub struct LinkSource {
    directory: RunDirectory,
    name: String,
    /// Bad frames by link: the daemon's incarnation, and the most bad frames that it has reported.
    bad: BTreeMap<String, (u64, u64)>,
}

/// All links of the run directory.
pub(super) fn open(site: &SourceSite<'_>) -> io::Result<OpenSources> {
    Ok(vec![Box::new(LinkSource::new(site.run_directory.clone()))])
}

impl LinkSource {
    pub fn new(directory: RunDirectory) -> Self {
        let name = format!("links in {}", directory.path().display());
        Self { directory, name, bad: BTreeMap::new() }
    }

    fn reading(&mut self, status: &LinkStatus, at: Moment) -> Reading {
        let identity = u64::from(status.pid);
        let frames = frames(status).map(|frames| {
            let (daemon, most) = self.bad.entry(status.name.clone()).or_insert((identity, 0));
            if *daemon != identity {
                (*daemon, *most) = (identity, 0);
            }
            // Overflow is known at once, the gap that it left only with the next frame: their difference may shrink, a
            // number of lost frames cannot.
            *most = frames.bad.max(*most);
            ReceivedFrames { bad: *most, ..frames }
        });
        Reading { port: status.interface.clone(), identity, at, carrier: CarrierState::Up, frames, phy: Phy::default() }
    }
}

impl Source for LinkSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&mut self, now: Moment, readings: &mut Vec<Reading>, troubles: &mut Vec<String>) -> io::Result<()> {
        let names = self.directory.names()?;
        self.bad.retain(|link, _| names.contains(link));
        for link in names {
            match self.directory.ask(&link, LinkRequest::Status) {
                // A link that waits for its interface has no counters.
                Ok(LinkReply::Status(status)) if status.is_waiting() => {}
                Ok(LinkReply::Status(status)) => readings.push(self.reading(&status, now)),
                Ok(LinkReply::Refused(why)) => troubles.push(format!("{link}: {why}")),
                Ok(LinkReply::Done) => troubles.push(format!("{link}: expected a status, was told that it is done")),
                // The socket of a daemon that is gone.
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {}
                Err(error) => troubles.push(format!("{link}: {error}")),
            }
        }
        Ok(())
    }
}

/// Received frames of a link; `None` unless the link is active, because only then frames are numbered.
fn frames(status: &LinkStatus) -> Option<ReceivedFrames> {
    if !status.is_active() {
        return None;
    }
    let counter = |name| status.counters.get(name).copied();
    let (good, missing) = (counter("rx_expected_seq_good")?, counter("rx_missing_seq")?);
    let bad = missing.saturating_sub(counter("ring_overflow")?);
    Some(ReceivedFrames { all: good + missing, bad, bits: 64 })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::source::testing::Folder;

    fn status(state: &str, counters: [u64; 3]) -> LinkStatus {
        let names = ["rx_expected_seq_good", "rx_missing_seq", "ring_overflow"].map(str::to_owned);
        LinkStatus {
            name: "hit0".into(),
            interface: "eth1".into(),
            pid: 41,
            state: state.into(),
            counters: names.into_iter().zip(counters).collect(),
            ..LinkStatus::default()
        }
    }

    /// A daemon that gives these answers, one to each who asks.
    fn told(folder: &Folder, answers: &[LinkReply]) -> Vec<(Vec<Reading>, Vec<String>)> {
        let listener = UnixListener::bind(folder.path().join("hit0.sock")).unwrap();
        let mut source = LinkSource::new(RunDirectory::at(folder.path()));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for answer in answers {
                    let (mut stream, _) = listener.accept().unwrap();
                    let mut line = String::new();
                    BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
                    writeln!(stream, "{}", serde_json::to_string(answer).unwrap()).unwrap();
                }
            });
            answers.iter().map(|_| read(&mut source)).collect()
        })
    }

    fn read(source: &mut LinkSource) -> (Vec<Reading>, Vec<String>) {
        let (mut readings, mut troubles) = (Vec::new(), Vec::new());
        source.read(Moment::ZERO, &mut readings, &mut troubles).unwrap();
        (readings, troubles)
    }

    fn answer(state: &str, counters: [u64; 3]) -> LinkReply {
        LinkReply::Status(Box::new(status(state, counters)))
    }

    #[test]
    fn an_active_link_tells_what_its_wire_lost_and_not_what_its_ring_dropped() {
        let folder = Folder::new("links-active");
        let told = told(&folder, &[answer("active", [970, 30, 10]), answer("active", [990, 32, 25])]);
        let frames = |at: usize| told[at].0[0].frames.unwrap();
        assert_eq!((told[0].0[0].port.as_str(), told[0].0[0].identity), ("eth1", 41));
        assert_eq!(frames(0), ReceivedFrames { all: 1_000, bad: 20, bits: 64 });
        assert_eq!(frames(1), ReceivedFrames { all: 1_022, bad: 20, bits: 64 }, "lost frames never become fewer");
    }

    #[test]
    fn a_dormant_link_counts_nothing() {
        let folder = Folder::new("links-dormant");
        let told = told(&folder, &[answer("dormant", [970, 30, 0])]);
        assert_eq!((told[0].0[0].frames, told[0].0[0].carrier), (None, CarrierState::Up));
    }

    #[test]
    fn a_refusal_is_told_and_a_leftover_socket_is_not() {
        let folder = Folder::new("links-refused");
        let told = told(&folder, &[LinkReply::Refused("the link has ended".into())]);
        assert_eq!(told[0], (vec![], vec!["hit0: the link has ended".to_owned()]));
        let mut source = LinkSource::new(RunDirectory::at(folder.path()));
        assert_eq!(read(&mut source), (vec![], vec![]), "nobody listens on it any more");
    }
}
