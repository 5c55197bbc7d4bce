//! The loop: headers of an interface's TCP, and what the kernel says of these connections, into one file.

use std::fs::File;
use std::io::{self, BufWriter, PipeReader};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use capture::pcapng::{ETHERNET, EnhancedPacket, PcapngWriter};
use explain::evidence::EVENT_LINK;
use linux::SystemError;
use linux::capture::new_private_file;
use linux::clock::{Clock, since_boot, thread_time, time_of_day};
use linux::net::Netlink;
use linux::packet::{PacketSocket, PacketSocketOptions};
use linux::poll::{self, Readiness};
use serde::Serialize;
use wire::ip;
use wire::layers::Layers;

use crate::pages::read_page;
use crate::sockets::{SocketTable, TRACEPOINTS};
use crate::tracefs::TraceInstance;

/// The longest headers that are kept of a frame.
const SNAP: usize = 128;
const RING: usize = 32_768;
const AT_A_TIME: usize = 4_096;
/// Time between two looks.
const NAP: Duration = Duration::from_millis(5);
const FRAMES: u32 = 0;
const EVENTS: u32 = 1;

#[derive(Clone, Debug)]
pub struct RecordConfig {
    pub interface: String,
    pub out: PathBuf,
    /// Duration of the recording; until stopped, if there is none.
    pub lasts: Option<Duration>,
}

/// Counts of a recording, and its cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RecordSummary {
    pub seconds: f64,
    /// Frames with TCP, and those that found the ring full.
    pub packets: u64,
    pub packets_missed: u64,
    pub events: u64,
    pub events_missed: u64,
    /// Size of the file.
    pub bytes: u64,
    /// Processor time of the recorder.
    pub cpu_seconds: f64,
    /// Tracepoints that this kernel does not have.
    pub lacking: Vec<String>,
}

/// Records until `stop` is closed at its other end, or for as long as configured.
pub fn record(config: &RecordConfig, stop: &PipeReader) -> Result<RecordSummary, SystemError> {
    let (index, addresses) = interface(&config.interface)?;
    let socket = PacketSocketOptions {
        vnet: false,
        longest: SNAP,
        frames: RING,
        send_buffer: 1 << 16,
        promiscuous: false,
        // On a loopback every outgoing packet also comes in.
        outgoing_too: !addresses.iter().any(IpAddr::is_loopback),
    };
    let socket = PacketSocket::open(index, &socket).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => SystemError(format!("{error}; recording needs root, or sudo")),
        _ => SystemError(format!("{}: {error}", config.interface)),
    })?;
    // The thread gets mounts of its own.
    thread::scope(|scope| {
        let recorder = scope.spawn(|| {
            let trace = TraceInstance::new()?;
            let mut recorder = EvidenceRecorder::new(config, socket.only_beginnings(), trace, addresses)?;
            let recorded = recorder.run(config.lasts, stop);
            recorded.map_err(|error| SystemError(format!("{}: {error}", config.out.display())))?;
            Ok(recorder.summary)
        });
        recorder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn interface(name: &str) -> Result<(u32, Vec<IpAddr>), SystemError> {
    let netlink = Netlink::open()?;
    let link = netlink.existing_link(name)?;
    let addresses = netlink.addresses(link.index)?.iter().map(|address| address.ip()).collect();
    Ok((link.index, addresses))
}

struct EvidenceRecorder {
    socket: PacketSocket,
    trace: TraceInstance,
    sockets: SocketTable,
    out: PcapngWriter<BufWriter<File>>,
    file: PathBuf,
    summary: RecordSummary,
}

impl EvidenceRecorder {
    fn new(
        config: &RecordConfig,
        socket: PacketSocket,
        trace: TraceInstance,
        addresses: Vec<IpAddr>,
    ) -> Result<Self, SystemError> {
        let mut sockets = SocketTable::new(addresses);
        let mut lacking = Vec::new();
        for (group, name, filter) in TRACEPOINTS {
            let layout = trace.enable(group, name, filter)?;
            if !layout.is_some_and(|layout| sockets.learn(name, &layout)) {
                lacking.push(format!("{group}:{name}"));
            }
        }
        if lacking.len() == TRACEPOINTS.len() {
            return Err(SystemError("this kernel has none of the tracepoints of TCP; Linux 6.3 or later does".into()));
        }
        let trouble = |error: io::Error| SystemError(format!("{}: {error}", config.out.display()));
        let file = BufWriter::new(new_private_file(&config.out).map_err(trouble)?);
        let mut out = PcapngWriter::new(file).map_err(trouble)?;
        out.interface(ETHERNET, SNAP as u32, Some(&config.interface)).map_err(trouble)?;
        out.interface(EVENT_LINK, 0, Some("kernel")).map_err(trouble)?;
        // Whoever reads the file sees by its first record that there are events.
        let begins = format!("recorded {}", config.interface);
        out.packet(&event_packet(time_of_day().as_nanos() as u64, &begins)).map_err(trouble)?;
        let summary = RecordSummary { lacking, ..RecordSummary::default() };
        Ok(Self { socket, trace, sockets, out, file: config.out.clone(), summary })
    }

    fn run(&mut self, lasts: Option<Duration>, stop: &PipeReader) -> io::Result<()> {
        let clock = Clock::start();
        let mut fds = vec![(stop.as_raw_fd(), false), (self.socket.fd(), false)];
        fds.extend(self.trace.fds().map(|fd| (fd, false)));
        loop {
            let left = lasts.map_or(Duration::from_secs(1), |lasts| lasts.saturating_sub(clock.elapsed()));
            let ready = poll::wait_for_any(&fds, left.min(Duration::from_secs(1)))?;
            let is_over = ready[0] != Readiness::Nothing || lasts.is_some_and(|lasts| clock.elapsed() >= lasts);
            self.take_frames()?;
            self.take_events()?;
            if is_over {
                break;
            }
            // Whoever is asked less often costs less.
            thread::sleep(NAP);
        }
        self.out.flush()?;
        self.summary.packets_missed = self.socket.overflowed();
        self.summary.seconds = clock.elapsed().as_secs_f64();
        self.summary.cpu_seconds = thread_time().as_secs_f64();
        self.summary.bytes = std::fs::metadata(&self.file)?.len();
        Ok(())
    }

    fn take_frames(&mut self) -> io::Result<()> {
        let (out, summary) = (&mut self.out, &mut self.summary);
        let mut written = Ok(());
        loop {
            let taken = self.socket.receive(AT_A_TIME, |frame| {
                if let Some(bytes) = tcp_headers(frame.bytes)
                    && written.is_ok()
                {
                    summary.packets += 1;
                    let (at, len) = (frame.at.as_nanos() as u64, frame.len as u32);
                    let packet = EnhancedPacket { interface: FRAMES, at, len, bytes, ..EnhancedPacket::default() };
                    written = out.packet(&packet);
                }
            });
            if taken < AT_A_TIME {
                return written;
            }
        }
    }

    fn take_events(&mut self) -> io::Result<()> {
        // Converts times since boot to times of day by the current clocks.
        let boot = time_of_day().saturating_sub(since_boot()).as_nanos() as u64;
        let (out, summary, sockets) = (&mut self.out, &mut self.summary, &mut self.sockets);
        let mut written = Ok(());
        let mut put = |at: u64, line: &str| {
            if written.is_ok() {
                written = out.packet(&event_packet(at, line));
            }
        };
        self.trace.pages(|page| {
            let mut last = 0;
            let missed = read_page(page, |at, record| {
                last = boot + at;
                if let Some(event) = sockets.event(record) {
                    summary.events += 1;
                    put(boot + at, &event.to_string());
                }
            });
            if missed > 0 {
                summary.events_missed += missed;
                put(last, &format!("missed {missed}"));
            }
        })?;
        written
    }
}

fn event_packet(at: u64, line: &str) -> EnhancedPacket<'_> {
    let (len, bytes) = (line.len() as u32, line.as_bytes());
    EnhancedPacket { interface: EVENTS, at, len, bytes, ..EnhancedPacket::default() }
}

/// The frame up to the end of its TCP header, without payload; `None` for other frames. Later fragments have no header.
fn tcp_headers(frame: &[u8]) -> Option<&[u8]> {
    let layer = Layers::of(frame)?.ip.filter(|layer| layer.protocol == ip::TCP)?;
    let offset = frame.get(layer.transport + 12).filter(|_| !layer.is_later_fragment());
    let end = layer.transport + offset.map_or(0, |offset| usize::from(offset >> 4) * 4);
    Some(&frame[..end.min(frame.len()).min(SNAP)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"password=hunter2";

    fn v4(more: [u8; 2], offset: u8) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 1, more[0], more[1], 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, offset << 4, 0x18, 1, 0, 0, 0, 0, 0]);
        packet.resize(20 + usize::from(offset).max(5) * 4, 1);
        packet
    }

    fn v6() -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 36, 0, 64];
        packet.extend([7; 32]);
        // Hop-by-hop options before the header of TCP.
        packet.extend([6, 0, 1, 4, 0, 0, 0, 0]);
        packet.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
        packet
    }

    fn frame(tags: &[u8], kind: [u8; 2], packet: &[u8]) -> (Vec<u8>, usize) {
        let headers = [&[2; 12][..], tags, &kind, packet].concat();
        let len = headers.len();
        ([&headers, SECRET].concat(), len)
    }

    #[test]
    fn no_payload_is_kept_whatever_is_before_it() {
        let tags = [0x88, 0xa8, 0, 5, 0x81, 0, 0, 7];
        for offset in [5, 8, 15] {
            for tags in [&tags[..0], &tags[..4], &tags[..]] {
                let (frame, headers) = frame(tags, [8, 0], &v4([0x40, 0], offset));
                assert_eq!(tcp_headers(&frame), Some(&frame[..headers]), "{tags:?}");
            }
        }
        let (six, headers) = frame(&[], [0x86, 0xdd], &v6());
        assert_eq!(tcp_headers(&six), Some(&six[..headers]));
    }

    #[test]
    fn of_a_later_fragment_nothing_is_kept_but_the_header_of_ip() {
        let (frame, _) = frame(&[], [8, 0], &v4([0x20, 7], 5));
        assert_eq!(tcp_headers(&frame), Some(&frame[..34]));
    }

    #[test]
    fn what_is_cut_off_or_no_tcp_is_no_trouble() {
        let (whole, headers) = frame(&[], [8, 0], &v4([0x40, 0], 8));
        for len in 0..whole.len() {
            let kept = tcp_headers(&whole[..len]).map_or(0, <[u8]>::len);
            assert!(kept <= headers.min(len) && !whole[..kept].ends_with(SECRET));
        }
        let mut udp = whole;
        udp[23] = 17;
        assert_eq!(tcp_headers(&udp), None);
    }
}
