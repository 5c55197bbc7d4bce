//! `hitless radar flows collect`: what flow meters send, printed and recorded.

use std::collections::BTreeMap;
use std::path::Path;

use chart::table::{Align, Table, thousands};
use files::WholeFile;
use radar::fabricmap::picture::{FlowCount, IN, OUT, PortPicture, SlotPicture, WayPicture};
use radar::fabricmap::ports::FabricPorts;
use radar::fabricmap::recording;
use radar::fabricmap::slot_report::SwitchSlot;
use radar::fabricmap::{FabricMap, FabricMapOptions, SwitchTotals, clock_trouble};
use radar::packet::FlowFields;
use serde::Serialize;
use units::Timestamp;

use super::map::{self, TakenReport, fabric_ports};
use crate::args::FlowsCollectArgs;
use crate::output::{CommandResult, Failure, print_line, put, say};
use crate::results::{check_file, unwritten};

pub(super) fn run(args: &FlowsCollectArgs, json: bool) -> CommandResult {
    if args.reports.listen.is_none() && args.reports.from.is_none() {
        return Err(Failure::Usage("expected --listen ADDR:PORT or --from URL".to_owned()));
    }
    let options = FabricMapOptions {
        way: 0,
        clock_error: 0,
        patience: args.reports.patience.into(),
        memory: map::memory(&args.reports)? / 2,
    };
    let map = args.topology.as_deref().map(fabric_ports).transpose()?.map(|ports| {
        let mut map = FabricMap::new(ports, None, options);
        map.keep_pictures();
        map
    });
    let mut collected =
        CollectedFlows { json, map, record: None, path: args.record.as_deref(), switches: Vec::new(), length: 0 };
    if let Some(path) = collected.path {
        check_file("--record", path)?;
    }
    let reports = map::reports(&args.reports)?;
    collected.begin()?;
    reports.take(&mut |report| collected.on_report(report))?;
    collected.finish()
}

/// What came, and what it is written to.
struct CollectedFlows<'a> {
    json: bool,
    /// Decodes slots with those of neighbours, where the topology is known.
    map: Option<FabricMap>,
    record: Option<WholeFile>,
    path: Option<&'a Path>,
    switches: Vec<(String, SwitchTotals)>,
    /// Nanoseconds of a slot.
    length: u64,
}

#[derive(Serialize)]
struct SwitchLine<'a> {
    /// Nanoseconds since 1970.
    time: u64,
    switch: &'a str,
    missed: u64,
    undecoded: u64,
    ports: Vec<PortLine<'a>>,
}

#[derive(Serialize)]
struct PortLine<'a> {
    port: &'a str,
    r#in: WayLine,
    out: WayLine,
}

#[derive(Serialize)]
struct WayLine {
    packets: u64,
    bytes: u64,
    undecoded: u64,
    flows: Vec<CollectedFlow>,
}

#[derive(Serialize)]
struct CollectedFlow {
    #[serde(flatten)]
    flow: FlowFields,
    packets: Option<u32>,
    bytes: Option<u64>,
}

impl CollectedFlows<'_> {
    /// Begins the recording, after Ctrl-C is handled, so that an interrupt leaves no half of a file.
    fn begin(&mut self) -> CommandResult {
        let Some(path) = self.path else { return Ok(()) };
        let mut file = WholeFile::create(path).map_err(|error| unwritten("--record", &error))?;
        recording::begin(&mut file).map_err(|error| self.unrecorded(&error))?;
        self.record = Some(file);
        Ok(())
    }

    fn unrecorded(&self, error: &std::io::Error) -> Failure {
        let path = self.path.unwrap_or(Path::new("")).display();
        Failure::Outside(format!("--record {path}: {error}"))
    }

    /// A report; the reason if it is refused.
    fn on_report(&mut self, TakenReport { now, bytes }: TakenReport) -> Result<Option<String>, Failure> {
        let report = match SwitchSlot::from_bytes(&bytes) {
            Ok(report) => report,
            Err(error) => return Ok(Some(error.to_string())),
        };
        let begin = Timestamp(report.slot * report.length);
        let refusal = match &mut self.map {
            Some(map) => map.on_report(Some(now), bytes.clone()).err(),
            None => clock_trouble(now, &report),
        };
        if refusal.is_some() {
            return Ok(refusal);
        }
        if let Some(file) = &mut self.record
            && let Err(error) = recording::append(file, &bytes)
        {
            // A report is missing: what comes later must not make a file of it.
            self.record = None;
            return Err(self.unrecorded(&error));
        }
        match &mut self.map {
            Some(map) => {
                map.remarks().iter().for_each(|remark| say(remark));
                self.length = report.length;
                self.judged()?;
            }
            None => {
                let alone = FabricPorts::new(vec![report.switch.clone()], Vec::new());
                let alone = alone.map_err(|error| Failure::Outside(error.to_string()))?;
                let (name, slot) = (report.switch.clone(), report.slot);
                self.picture(&SlotPicture::new(&alone, slot, BTreeMap::from([(0, report)])), &[name], begin)?;
            }
        }
        Ok(None)
    }

    /// Prints slots that have come from all switches, or have waited long enough.
    fn judged(&mut self) -> CommandResult {
        let Some(map) = &mut self.map else { return Ok(()) };
        let (pictures, names) = (map.take_pictures(), map.fabric().switches().to_vec());
        pictures.iter().try_for_each(|picture| self.picture(picture, &names, Timestamp(picture.slot * self.length)))
    }

    fn picture(&mut self, picture: &SlotPicture, names: &[String], begin: Timestamp) -> CommandResult {
        for (name, switch) in names.iter().zip(&picture.switches) {
            let Some(switch) = switch else { continue };
            let at = match self.switches.iter().position(|(known, _)| known == name) {
                Some(at) => at,
                None => {
                    self.switches.push((name.clone(), SwitchTotals::default()));
                    self.switches.len() - 1
                }
            };
            self.switches[at].1.count(switch);
            if self.json {
                let left = |way: usize| switch.ports.iter().map(|port| port.ways[way].left).sum::<u64>();
                print_line(&SwitchLine {
                    time: begin.0,
                    switch: name,
                    missed: switch.missed,
                    undecoded: left(IN).max(left(OUT)),
                    ports: switch.ports.iter().map(port_line).collect(),
                })?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> CommandResult {
        self.map.iter_mut().for_each(FabricMap::judge_all);
        self.judged()?;
        if let Some(file) = self.record.take() {
            file.finish().map_err(|error| unwritten("--record", &error))?;
        }
        if self.switches.is_empty() {
            return Err(Failure::Outside("no flow meter has reported: there is nothing to print".to_owned()));
        }
        if self.json { Ok(()) } else { put(self.table().trim_end()) }
    }

    fn table(&self) -> String {
        let right = |name| (name, Align::Right);
        let mut table = Table::new(&[
            ("switch", Align::Left),
            right("reports"),
            right("packets"),
            right("flows"),
            right("missed"),
            right("undecoded"),
        ]);
        for (name, totals) in &self.switches {
            let numbers = [totals.reports, totals.packets, totals.flows, totals.missed, totals.undecoded];
            table.row([name.clone()].into_iter().chain(numbers.map(thousands)).collect());
        }
        table.to_string()
    }
}

fn port_line(port: &PortPicture) -> PortLine<'_> {
    PortLine { port: &port.name, r#in: way_line(&port.ways[IN]), out: way_line(&port.ways[OUT]) }
}

fn way_line(way: &WayPicture) -> WayLine {
    let flow = |count: &FlowCount| CollectedFlow {
        flow: count.flow.flow().into(),
        packets: count.packets,
        bytes: count.bytes,
    };
    WayLine { packets: way.packets, bytes: way.bytes, undecoded: way.left, flows: way.flows.iter().map(flow).collect() }
}
