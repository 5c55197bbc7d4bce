//! The map of flows: what the flow meters of all switches say of a fabric, slot by slot (FlowRadar, li-thesis §4.6).
//!
//! ```text
//!   report ──▶ waits for those of other switches ──▶ SlotPicture ──▶ rules ──▶ findings, at once
//!   (a switch, a slot)   no longer than `patience`    decoded network-wide   └──▶ loss intervals, steps ──▶ MapAnswer, at the end
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | [`slot_report`], [`parts`], [`recording`] | a switch's slot as bytes, in pieces for a network, and in a file |
//! | [`ports`], [`routes`] | the fabric: links with their ports; ports by destination |
//! | [`picture`] | a slot of all switches, flowsets decoded |
//! | `rules` | what is wrong |
//! | [`findings`] | what was found, in bounded memory |
//! | [`series`] | links over time |
//! | [`answer`], `text`, `page` | the answer as JSON, text and a page |
//!
//! Invariants: waiting reports take no more than the memory given; nothing is concluded of what was not seen.

pub mod answer;
pub mod findings;
mod page;
pub mod parts;
pub mod picture;
pub mod ports;
pub mod recording;
pub mod routes;
mod rules;
pub mod series;
pub mod slot_report;
mod text;

use std::collections::BTreeMap;

use answer::MapAnswer;
use findings::{Finding, FindingLog};
use picture::{IN, OUT, SlotPicture, SwitchPicture};
use ports::FabricPorts;
use routes::PortRoutes;
use rules::{FabricRules, RuleInput};
use series::MapSeries;
use slot_report::SwitchSlot;
use units::Timestamp;

/// A report that is further from now was made by a clock that is wrong.
const FURTHEST: u64 = 60_000_000_000;
/// Slots for which the name of a switch belongs to the meter that last had it.
const OWNED: u64 = 1_000_000_000;

/// What is known of clocks and ways, and how long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricMapOptions {
    /// The longest time from one end of a link to the other, in nanoseconds.
    pub way: u64,
    /// Error of each switch's clock, in nanoseconds.
    pub clock_error: u64,
    /// Slots to wait for a switch that does not report.
    pub patience: u64,
    /// Bytes of reports that may wait.
    pub memory: usize,
}

impl Default for FabricMapOptions {
    fn default() -> Self {
        Self { way: 1_000_000, clock_error: 100_000, patience: 20, memory: 256 << 20 }
    }
}

impl FabricMapOptions {
    /// 1 if clocks may differ.
    fn clocks(&self) -> u64 {
        u64::from(self.clock_error > 0)
    }
}

/// Packets over a link, one way, as far as they could be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTotals {
    pub packets: u64,
    /// Most flows of a slot.
    pub flows: u64,
    /// Bounds of the lost packets; `None` if no slot could be compared.
    pub lost: Option<[u64; 2]>,
    /// Slots that could not be compared.
    pub unjudged: u64,
}

/// Counters of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchTotals {
    /// Packets that came in.
    pub packets: u64,
    /// Most flows of a slot.
    pub flows: u64,
    /// Frames that passed unseen.
    pub missed: u64,
    /// Flows that were not decoded, over all slots.
    pub undecoded: u64,
    pub reports: u64,
}

#[derive(Debug)]
pub struct FabricMap {
    fabric: FabricPorts,
    options: FabricMapOptions,
    /// Nanoseconds of a slot, as the first report has it.
    length: Option<u64>,
    waiting: BTreeMap<u64, BTreeMap<usize, Vec<u8>>>,
    held: usize,
    next: Option<u64>,
    meters: Vec<Option<MeterTurn>>,
    rules: FabricRules,
    log: FindingLog,
    totals: Vec<SwitchTotals>,
    series: MapSeries,
    slots: u64,
    /// Reports that came after their slot was judged.
    late: u64,
    remarks: Vec<String>,
    /// Remarks that were given out.
    told: usize,
    /// Slots for somebody who wants to see them.
    pictures: Option<Vec<SlotPicture>>,
}

/// The meter that has the name of a switch.
#[derive(Clone, Copy, Debug)]
struct MeterTurn {
    life: u64,
    last: u64,
}

impl FabricMap {
    pub fn new(fabric: FabricPorts, routes: Option<PortRoutes>, options: FabricMapOptions) -> Self {
        let switches = fabric.switches().len();
        Self {
            rules: FabricRules::new(&fabric, routes),
            series: MapSeries::new(fabric.links().len()),
            fabric,
            options,
            length: None,
            waiting: BTreeMap::new(),
            held: 0,
            next: None,
            meters: vec![None; switches],
            log: FindingLog::default(),
            totals: vec![SwitchTotals::default(); switches],
            slots: 0,
            late: 0,
            remarks: Vec::new(),
            told: 0,
            pictures: None,
        }
    }

    /// Judges what waits; no more will come. Afterwards pictures can be taken.
    pub fn judge_all(&mut self) {
        while !self.waiting.is_empty() {
            self.judge();
        }
    }

    /// Takes a report, live with the time of now; what is found with it, or why it is refused.
    pub fn on_report(&mut self, now: Option<Timestamp>, bytes: Vec<u8>) -> Result<Vec<Finding>, String> {
        let report = SwitchSlot::from_bytes(&bytes).map_err(|error| error.to_string())?;
        let switch = self.check(now, &report)?;
        self.meters[switch] = Some(MeterTurn { life: report.life, last: report.slot });
        self.length = Some(report.length);
        if self.next.is_some_and(|next| report.slot < next) {
            self.late += 1;
            return Ok(Vec::new());
        }
        self.held += bytes.len();
        if let Some(twice) = self.waiting.entry(report.slot).or_default().insert(switch, bytes) {
            self.held -= twice.len();
        }
        while self.is_ready() {
            self.judge();
        }
        Ok(self.log.news())
    }

    /// Judges what waits; no more will come.
    pub fn finish(mut self) -> (MapAnswer, Vec<Finding>) {
        self.judge_all();
        let news = self.log.news();
        let links = self.rules.totals(&self.options);
        self.series.end();
        let Self { fabric, log, totals, series, slots, late, length, remarks, .. } = self;
        (
            MapAnswer {
                fabric,
                slots,
                length: length.unwrap_or(0),
                switches: totals,
                links,
                log,
                series,
                late,
                remarks,
            },
            news,
        )
    }

    pub fn fabric(&self) -> &FabricPorts {
        &self.fabric
    }

    /// Keeps slots as they were judged, until they are taken.
    pub fn keep_pictures(&mut self) {
        self.pictures = Some(Vec::new());
    }

    /// Slots that were judged since the last call.
    pub fn take_pictures(&mut self) -> Vec<SlotPicture> {
        self.pictures.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What a person should know about reports and topology, since the last call.
    pub fn remarks(&mut self) -> Vec<String> {
        let told = std::mem::replace(&mut self.told, self.remarks.len());
        self.remarks[told..].to_vec()
    }

    /// The switch that a report is of, or the reason to refuse it.
    fn check(&mut self, now: Option<Timestamp>, report: &SwitchSlot) -> Result<usize, String> {
        let SwitchSlot { switch: name, life, slot, length, .. } = report;
        let ms = |length: u64| length as f64 / 1e6;
        let Some(switch) = self.fabric.switch(name) else {
            return Err(format!(
                "the topology has no switch {name}: give the meter the --switch that the topology has"
            ));
        };
        if let Some(ours) = self.length.filter(|ours| ours != length) {
            return Err(format!(
                "{name}: slots of {} ms, and those of others have {} ms: use the same --slot",
                ms(*length),
                ms(ours)
            ));
        }
        let FabricMapOptions { way, clock_error, .. } = self.options;
        if way.saturating_add(2 * clock_error) > *length {
            return Err(format!(
                "{name}: slots of {} ms are shorter than a packet's way and two clock errors ({} ms): use a longer --slot",
                ms(*length),
                ms(way.saturating_add(2 * clock_error))
            ));
        }
        let at = slot * length;
        if let Some(off) = now.map(|now| at.abs_diff(now.0)).filter(|off| *off > FURTHEST + length) {
            return Err(format!(
                "{name}: its clock is {} s away from the map's: set both by NTP or PTP",
                off / 1_000_000_000
            ));
        }
        match self.meters[switch] {
            Some(turn) if turn.life != *life && *slot <= turn.last.saturating_add(OWNED / length) => Err(format!(
                "two meters report as switch {name}: give each its own --switch; after a restart wait a second"
            )),
            Some(turn) if turn.life == *life && *slot <= turn.last => Err(format!("{name}: slot {slot} came twice")),
            turn => {
                if turn.is_none_or(|turn| turn.life != *life) {
                    self.remark(switch, report);
                }
                Ok(switch)
            }
        }
    }

    /// Says which ports of the topology a meter does not have.
    fn remark(&mut self, switch: usize, report: &SwitchSlot) {
        let ends = self.fabric.at(switch).iter();
        let ports = ends.map(|(link, end)| &self.fabric.links()[*link].ends[*end].port);
        let lacking: Vec<&str> =
            ports.filter(|port| !report.ports.iter().any(|has| has.name == **port)).map(String::as_str).collect();
        if !lacking.is_empty() && self.remarks.len() < 2 * self.fabric.switches().len() {
            let has: Vec<&str> = report.ports.iter().map(|port| port.name.as_str()).collect();
            self.remarks.push(format!(
                "{}: the topology has {}, and its meter has only {}: nothing is known there; give the meter those interfaces, or \
                 correct the topology",
                report.switch,
                lacking.join(", "),
                has.join(", ")
            ));
        }
    }

    /// True if the first slot that waits has come from all, or has waited long enough.
    fn is_ready(&self) -> bool {
        let Some(first) = self.waiting.keys().next() else { return false };
        let newest = self.meters.iter().flatten().map(|turn| turn.last).max().unwrap_or(0);
        let is_complete = self.meters.iter().all(|turn| turn.is_some_and(|turn| turn.last >= *first));
        is_complete || newest >= first.saturating_add(self.options.patience) || self.held > self.options.memory
    }

    fn judge(&mut self) {
        let Some((slot, reports)) = self.waiting.pop_first() else { return };
        let length = self.length.unwrap_or(1);
        self.held -= reports.values().map(Vec::len).sum::<usize>();
        if self.next.is_some_and(|next| next < slot) {
            self.rules.cut();
        }
        self.next = Some(slot + 1);
        self.slots += 1;
        let read = |(switch, bytes): (usize, Vec<u8>)| Some((switch, SwitchSlot::from_bytes(&bytes).ok()?));
        let picture = SlotPicture::new(&self.fabric, slot, reports.into_iter().filter_map(read).collect());
        for (totals, switch) in self.totals.iter_mut().zip(&picture.switches) {
            switch.iter().for_each(|switch| totals.count(switch));
        }
        let (begin, end) = (slot.saturating_mul(length), (slot + 1).saturating_mul(length));
        let input = RuleInput { fabric: &self.fabric, picture: &picture, options: &self.options, begin, end };
        self.rules.on_slot(&input, &mut self.log);
        let totals = || self.rules.totals(&self.options);
        self.series.add(&picture, begin, end, &totals);
        if let Some(pictures) = &mut self.pictures {
            pictures.push(picture);
        }
    }
}

/// What is wrong with the clock of a meter, if that shows.
pub fn clock_trouble(now: Timestamp, report: &SwitchSlot) -> Option<String> {
    let SwitchSlot { switch, slot, length, .. } = report;
    let off = slot.saturating_mul(*length).abs_diff(now.0);
    let seconds = off / 1_000_000_000;
    (off > FURTHEST + length)
        .then(|| format!("{switch}: its clock is {seconds} s away from ours: set both by NTP or PTP"))
}

impl SwitchTotals {
    /// Adds a slot.
    pub fn count(&mut self, switch: &SwitchPicture) {
        let sum = |way: usize, of: &dyn Fn(&picture::WayPicture) -> u64| -> u64 {
            switch.ports.iter().fold(0, |sum, port| sum.saturating_add(of(&port.ways[way])))
        };
        self.reports += 1;
        self.packets = self.packets.saturating_add(sum(IN, &|way| way.packets));
        self.flows = self.flows.max(sum(IN, &|way| (way.flows.len() as u64).saturating_add(way.left)));
        self.missed = self.missed.saturating_add(switch.missed);
        self.undecoded = self.undecoded.saturating_add(sum(IN, &|way| way.left).max(sum(OUT, &|way| way.left)));
    }
}

#[cfg(test)]
pub(crate) mod stories;
#[cfg(test)]
mod tests;
