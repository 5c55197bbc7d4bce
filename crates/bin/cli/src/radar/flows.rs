//! `hitless radar flows`: the packets of every flow, slot by slot, out of a capture or from an interface.

use capture::LinkType;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;
use units::Timestamp;

use capture::{CaptureError, CaptureReader};
use chart::table::{Align, Table, thousands};
use files::WholeFile;
use linux::clock::Clock;
use linux::net::Netlink;
use linux::packet::{PacketSocket, PacketSocketOptions};
use linux::poll;
use radar::flowset::FlowsetShape;
use radar::flowset::sizing::DecoderKind;
use radar::packet::{Flow, FlowFields};
use radar::read;
use radar::slots::{FlowsetSlot, FlowsetSlots};
use serde::Serialize;
use standin::wire_socket;
use units::Prob;

use crate::args::FlowsArgs;
use crate::output::{CommandResult, Failure, print, print_line, say};
use crate::results::{check_file, unwritten};

/// Enough of a frame for its 5-tuple behind any headers.
const SNAP: usize = 192;
/// Chance that a slot with the expected number of flows can be decoded in full.
const SUCCESS: Prob = Prob::literal(0.99);

pub(super) fn run(args: &FlowsArgs, json: bool) -> CommandResult {
    let shape = FlowsetShape::for_flows(args.flows.0, SUCCESS, 3, DecoderKind::Single, 1);
    let length = args.slot.as_ps() / 1_000;
    if length == 0 {
        return Err(Failure::Usage(format!("--slot {}: expected at least a nanosecond", args.slot)));
    }
    if let Some(path) = &args.csv {
        check_file("--csv", path)?;
    }
    let mut told = FlowsWriter::new(args, json);
    let mut slots = FlowsetSlots::new(length, shape);
    let ended = match (&args.capture, &args.interface) {
        (Some(path), None) => from_capture(path, &mut slots, &mut told),
        (None, Some(name)) => from_interface(name, super::seconds(args.seconds)?, &mut slots, &mut told),
        _ => Err(Failure::Usage("expected either a capture or --interface, one of both".to_owned())),
    };
    if let Some(slot) = slots.finish() {
        told.slot(&slot)?;
    }
    // Counts from before the error are right.
    if ended.is_ok() || told.slots > 0 {
        told.conclude(args)?;
    }
    ended
}

fn from_capture(path: &Path, slots: &mut FlowsetSlots, told: &mut FlowsWriter<'_>) -> CommandResult {
    let wrong = |error: CaptureError| Failure::Usage(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let stop = crate::terminal::stop_on_ctrl_c();
    let mut reader = CaptureReader::new(file).map_err(wrong)?;
    told.begin_csv()?;
    loop {
        let record = match reader.next() {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(()),
            Err(error @ CaptureError::Truncated { .. }) => {
                say(&format!("{}: {error}", path.display()));
                return Ok(());
            }
            Err(error) => return Err(wrong(error)),
        };
        let packet = record.link.and_then(|link| read::packet(record.bytes, link, read::DEPTH));
        told.frame(packet.is_some());
        if let Some(packet) = packet
            && let Some(slot) = slots.insert(record.at, packet.flow)
        {
            told.slot(&slot)?;
            if stop.is_stopped() {
                return Err(Failure::Interrupted);
            }
        }
    }
}

fn from_interface(
    name: &str,
    until: Option<Duration>,
    slots: &mut FlowsetSlots,
    told: &mut FlowsWriter<'_>,
) -> CommandResult {
    let outside = |error: std::io::Error| Failure::Outside(format!("{name}: {error}"));
    let link = Netlink::open().and_then(|netlink| netlink.existing_link(name));
    let link = link.map_err(|error| Failure::Usage(error.to_string()))?;
    let opened = PacketSocketOptions { outgoing_too: true, longest: SNAP, ..wire_socket(link.mtu, 16_384) };
    let socket = PacketSocket::open(link.index, &opened).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => Failure::Outside(format!("{error}; counting flows needs root, or sudo")),
        _ => outside(error),
    })?;
    let mut socket = socket.only_beginnings();
    let stop = super::stop_on_signal()?;
    told.begin_csv()?;
    say(&format!("counting flows on {name}, both ways; Ctrl-C ends it"));
    let clock = Clock::start();
    while until.is_none_or(|until| clock.elapsed() < until) {
        let mut over = Vec::new();
        socket.receive(4_096, |frame| {
            let packet = read::packet(frame.bytes, LinkType::Ethernet, read::DEPTH);
            told.frame(packet.is_some());
            if let Some(packet) = packet {
                over.extend(slots.insert(Timestamp(frame.at.as_nanos() as u64), packet.flow));
            }
        });
        told.missed += socket.overflowed();
        over.iter().try_for_each(|slot| told.slot(slot))?;
        let fds = [(stop.as_raw_fd(), false), (socket.fd(), false)];
        let [stopped, _] = poll::wait(&fds, Duration::from_millis(100)).map_err(outside)?;
        if stopped != poll::Readiness::Nothing {
            break;
        }
    }
    Ok(())
}

/// Writes slots, and sums up those written so far.
struct FlowsWriter<'a> {
    json: bool,
    path: Option<&'a Path>,
    /// Result file, put in its place at the end with all slots.
    csv: Option<WholeFile>,
    flows: BTreeMap<Flow, FlowsTotal>,
    slots: u64,
    packets: u64,
    incomplete: u64,
    /// Flows that could not be decoded, of all slots.
    left: u64,
    not_ip: u64,
    missed: u64,
}

#[derive(Clone, Copy, Default)]
struct FlowsTotal {
    packets: u64,
    slots: u64,
    most: u32,
}

#[derive(Serialize)]
struct SlotLine {
    /// Nanoseconds since 1970.
    time: u64,
    packets: u64,
    /// True if all flows are listed and their counters are right.
    complete: bool,
    unnamed: u64,
    flows: Vec<FlowCountLine>,
}

#[derive(Serialize)]
struct FlowCountLine {
    #[serde(flatten)]
    flow: FlowFields,
    packets: u32,
}

impl<'a> FlowsWriter<'a> {
    fn new(args: &'a FlowsArgs, json: bool) -> Self {
        Self {
            json,
            path: args.csv.as_deref(),
            csv: None,
            flows: BTreeMap::new(),
            slots: 0,
            packets: 0,
            incomplete: 0,
            left: 0,
            not_ip: 0,
            missed: 0,
        }
    }

    /// Begins the CSV file, after Ctrl-C is handled, so that an interrupt leaves no half of a file.
    fn begin_csv(&mut self) -> CommandResult {
        let Some(path) = self.path else { return Ok(()) };
        let mut csv = WholeFile::create(path).map_err(|error| unwritten("--csv", &error))?;
        writeln!(csv, "time_ns,src,dst,proto,src_port,dst_port,packets").map_err(|error| self.wrong_csv(&error))?;
        self.csv = Some(csv);
        Ok(())
    }

    fn wrong_csv(&self, error: &std::io::Error) -> Failure {
        let path = self.path.unwrap_or(Path::new("")).display();
        Failure::Outside(format!("--csv {path}: {error}"))
    }

    fn frame(&mut self, is_ip: bool) {
        self.not_ip += u64::from(!is_ip);
    }

    fn slot(&mut self, slot: &FlowsetSlot) -> CommandResult {
        let complete = slot.left == 0 && !slot.overcounted;
        self.slots += 1;
        self.packets += slot.packets;
        self.incomplete += u64::from(!complete);
        self.left += slot.left;
        for (flow, packets) in &slot.flows {
            let total = self.flows.entry(*flow).or_default();
            total.packets += u64::from(*packets);
            total.slots += 1;
            total.most = total.most.max(*packets);
            if let Some(csv) = &mut self.csv {
                let Flow { src, dst, protocol, src_port, dst_port } = flow;
                let row = writeln!(csv, "{},{src},{dst},{protocol},{src_port},{dst_port},{packets}", slot.begin.0);
                if let Err(error) = row {
                    // A row is missing: what comes later must not make a file of it.
                    self.csv = None;
                    return Err(self.wrong_csv(&error));
                }
            }
        }
        if self.json {
            return print_line(&SlotLine {
                time: slot.begin.0,
                packets: slot.packets,
                complete,
                unnamed: slot.left,
                flows: slot.flows.iter().map(flow_line).collect(),
            });
        }
        Ok(())
    }

    fn conclude(&mut self, args: &FlowsArgs) -> CommandResult {
        if let Some(csv) = self.csv.take() {
            csv.finish().map_err(|error| unwritten("--csv", &error))?;
        }
        if self.incomplete > 0 {
            say(&format!(
                "{} of {} slots had more flows than --flows {}: at least {} flows of them could not be told",
                self.incomplete,
                self.slots,
                args.flows.0,
                thousands(self.left)
            ));
        }
        if self.missed > 0 {
            say(&format!("{} frames passed faster than they could be counted", thousands(self.missed)));
        }
        if self.json {
            return Ok(());
        }
        print(false, &(), || self.table(args))
    }

    fn table(&self, args: &FlowsArgs) -> String {
        let mut flows: Vec<(&Flow, &FlowsTotal)> = self.flows.iter().collect();
        flows.sort_by_key(|(flow, total)| (std::cmp::Reverse(total.packets), **flow));
        let mut table = Table::new(&[
            ("flow", Align::Left),
            ("packets", Align::Right),
            ("slots", Align::Right),
            ("most in a slot", Align::Right),
        ]);
        for (flow, total) in flows.iter().take(args.top) {
            table.row(vec![
                flow.to_string(),
                thousands(total.packets),
                thousands(total.slots),
                thousands(u64::from(total.most)),
            ]);
        }
        let more = flows.len().saturating_sub(args.top);
        let more = if more > 0 {
            format!("and {} more; --csv or --json has all\n", thousands(more as u64))
        } else {
            String::new()
        };
        let not_ip =
            if self.not_ip > 0 { format!("; {} frames were no IP", thousands(self.not_ip)) } else { String::new() };
        format!(
            "{} packets of {} flows in {} slots of {}{not_ip}\n\n{table}{more}",
            thousands(self.packets),
            thousands(self.flows.len() as u64),
            thousands(self.slots),
            args.slot
        )
    }
}

fn flow_line((flow, packets): &(Flow, u32)) -> FlowCountLine {
    FlowCountLine { flow: (*flow).into(), packets: *packets }
}
