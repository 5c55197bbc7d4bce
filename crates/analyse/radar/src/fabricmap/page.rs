//! The map as a page: one file that needs nothing else.
//!
//! The fabric is drawn in rows of switches, each link as two lanes, one for each way and as wide as its traffic; a table has its
//! packets and lost packets. Findings are boxes with the name of their kind and a number, which stands at their place too, where
//! lanes are dashed: no meaning is in colour alone. A slider moves over the steps of the run; without scripts the page shows all.

use std::collections::BTreeMap;
use std::fmt::Write;

use chart::page::PageFrame;
use chart::svg::escape;
use chart::table::thousands;
use serde::Serialize;

use super::answer::MapAnswer;
use super::findings::Finding;
use super::ports::FabricPorts;
use super::text::interval;
use crate::compare::report::text::utc;

const CSS: &str = include_str!("page/map.css");
const SCRIPT: &str = include_str!("page/map.js");
/// Flows of a finding on the page.
const MOST_FLOWS: usize = 50;
/// Links that can be drawn; more are in the table only.
const MOST_DRAWN: usize = 512;
const WIDE: f64 = 210.0;
const HIGH: f64 = 170.0;
const BOX: [f64; 2] = [110.0, 30.0];
const SLIDER: &str = "<p class=\"slide\"><label for=\"time\">Time</label> <input type=\"range\" id=\"time\" min=\"0\" max=\"0\" \
                      value=\"0\" disabled> <output id=\"when\" for=\"time\">the whole run</output></p>\n";

pub(super) fn page(answer: &MapAnswer) -> String {
    let findings = answer.findings();
    let lead = match findings.len() {
        0 => "Nothing was found.".to_owned(),
        1 => "One finding.".to_owned(),
        more => format!("{more} findings."),
    };
    let header = format!(
        "<p class=\"lead\">{lead} {} slots of {} ms, {} switches, {} links.</p>\n",
        thousands(answer.slots),
        answer.length as f64 / 1e6,
        answer.switches.len(),
        answer.links.len()
    );
    let main =
        [SLIDER.to_owned(), fabric(answer), list(answer), links(answer), switches(answer), data(answer)].concat();
    let footer = "<p>A loss interval contains the packets lost, if clocks and ways are as was said. A finding that is not sure rests on \
                  few packets.</p>\n";
    PageFrame { title: "Map of flows", css: CSS, header: &header, main: &main, footer }.html()
}

/// Row of each switch: those below first, and its place in the row.
fn layout(fabric: &FabricPorts) -> (Vec<(usize, usize)>, usize, usize) {
    let switches = fabric.switches().len();
    let mut rows = vec![0_usize; switches];
    // Links point upwards, so as many rounds as there are levels settle it.
    for _ in 0..switches.min(16) {
        for link in fabric.links() {
            let [lower, upper] = link.ends.each_ref().map(|end| end.switch);
            rows[upper] = rows[upper].max(rows[lower] + 1);
        }
    }
    let top = rows.iter().copied().max().unwrap_or(0);
    let mut used: BTreeMap<usize, usize> = BTreeMap::new();
    let places: Vec<(usize, usize)> = rows
        .iter()
        .map(|row| {
            let at = used.entry(*row).or_default();
            *at += 1;
            (*row, *at - 1)
        })
        .collect();
    let widest = used.values().copied().max().unwrap_or(1);
    (places, top, widest)
}

fn fabric(answer: &MapAnswer) -> String {
    if answer.links.len() > MOST_DRAWN {
        return String::new();
    }
    let (places, top, widest) = layout(&answer.fabric);
    let in_row = |row: usize| places.iter().filter(|(of, _)| *of == row).count();
    let width = widest as f64 * WIDE + 40.0;
    let height = top as f64 * HIGH + BOX[1] + 40.0;
    let center = |switch: usize| {
        let (row, at) = places[switch];
        let step = width / in_row(row) as f64;
        ((at as f64 + 0.5) * step, (top - row) as f64 * HIGH + BOX[1] / 2.0 + 20.0)
    };
    let mut svg = String::new();
    for (number, link) in answer.fabric.links().iter().enumerate() {
        let [low, up] = link.ends.each_ref().map(|end| center(end.switch));
        let parallel = answer.fabric.links()[..number].iter().filter(|other| ends(other) == ends(link)).count();
        lanes(&mut svg, number, &link.name, low, up, parallel as f64 * 18.0);
    }
    for (switch, name) in answer.fabric.switches().iter().enumerate() {
        let (x, y) = center(switch);
        let _ = writeln!(
            svg,
            "<g class=\"switch\" id=\"s{switch}\"><rect x=\"{:.0}\" y=\"{:.0}\" width=\"{}\" height=\"{}\" rx=\"4\"/>\
             <text x=\"{x:.0}\" y=\"{:.0}\">{}</text><text class=\"marks\" x=\"{x:.0}\" y=\"{:.0}\"></text></g>",
            x - BOX[0] / 2.0,
            y - BOX[1] / 2.0,
            BOX[0],
            BOX[1],
            y + 5.0,
            escape(name),
            y - BOX[1] / 2.0 - 5.0
        );
    }
    format!(
        "<section id=\"fabric\">\n<h2>Fabric</h2>\n<div class=\"box\"><svg class=\"fabric\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" \
         aria-label=\"Switches and links; the tables below have the same\">\n{svg}</svg></div>\n\
         <p class=\"notes\">Each link has a lane for each way, as wide as its traffic; they keep right, as on a road. A number \
         in brackets names the finding at that place; its lane or switch is dashed.</p>\n</section>\n"
    )
}

fn ends(link: &super::ports::PortLink) -> [usize; 2] {
    link.ends.each_ref().map(|end| end.switch)
}

/// The two ways of a link: a lane on either side of the line between its switches.
fn lanes(svg: &mut String, number: usize, name: &str, low: (f64, f64), up: (f64, f64), shift: f64) {
    let (dx, dy) = (up.0 - low.0, up.1 - low.1);
    let length = dx.hypot(dy).max(1.0);
    let across = (-dy / length, dx / length);
    for (from, side) in [(0, 4.0), (1, -4.0)] {
        let side = side + shift;
        let (ax, ay) = (low.0 + across.0 * side, low.1 + across.1 * side);
        let (bx, by) = (up.0 + across.0 * side, up.1 + across.1 * side);
        // Marks stand near the switch that sends.
        let part = if from == 0 { 0.26 } else { 0.74 };
        let (x, y) = (ax + (bx - ax) * part, ay + (by - ay) * part);
        let way = if from == 0 { "upwards" } else { "downwards" };
        let _ = writeln!(
            svg,
            "<g class=\"lane\" id=\"l{number}w{from}\"><title>{}, {way}</title>\
             <line x1=\"{ax:.1}\" y1=\"{ay:.1}\" x2=\"{bx:.1}\" y2=\"{by:.1}\"/>\
             <text x=\"{x:.1}\" y=\"{y:.1}\"></text></g>",
            escape(name)
        );
    }
}

fn list(answer: &MapAnswer) -> String {
    let findings = answer.findings();
    if findings.is_empty() {
        return String::new();
    }
    let entries: String = findings.iter().enumerate().map(|(number, finding)| entry(number, finding)).collect();
    let more = match answer.log.more {
        0 => String::new(),
        more => format!("<p class=\"notes\">{} more findings were not kept.</p>\n", thousands(more)),
    };
    format!("<section id=\"findings\">\n<h2>Findings</h2>\n<ol class=\"findings\">\n{entries}</ol>\n{more}</section>\n")
}

fn entry(number: usize, finding: &Finding) -> String {
    let flows = MapAnswer::flows_of(finding);
    let rows: String = flows
        .iter()
        .take(MOST_FLOWS)
        .map(|(flow, packets)| {
            format!(
                "<tr><th scope=\"row\" class=\"left\">{}</th><td>{}</td></tr>\n",
                escape(&flow.flow().to_string()),
                thousands(*packets)
            )
        })
        .collect();
    let all = flows.len() as u64 + finding.more_flows;
    let more = match all.saturating_sub(flows.len().min(MOST_FLOWS) as u64) {
        0 => String::new(),
        more => format!("<p class=\"notes\">and {} more</p>\n", thousands(more)),
    };
    let sure = if finding.is_sure { "" } else { ", not sure" };
    format!(
        "<li id=\"f{number}\" class=\"finding\"><p><strong>[{}] {}</strong> at {}{sure}: {}</p>\n\
         <p class=\"notes\">from {} for {:.2} s</p>\n\
         <details><summary>{} flows</summary><div class=\"box\"><table><thead><tr><th scope=\"col\" class=\"left\">flow</th>\
         <th scope=\"col\">packets</th></tr></thead><tbody>\n{rows}</tbody></table></div>{more}</details></li>\n",
        number + 1,
        finding.kind,
        escape(&finding.place.join(" → ")),
        reason(finding),
        utc(finding.since),
        (finding.until - finding.since) as f64 / 1e9,
        thousands(all),
    )
}

/// What a finding rests on, in words.
fn reason(finding: &Finding) -> &'static str {
    match finding.why {
        "both-ways" => "these flows cross this link both ways",
        "cycle" => "these flows go round these switches",
        "in-not-out" => "these flows come in and leave by no port",
        "link" => "nothing of these flows arrives at the other end",
        "counters" => "packets left one end and did not reach the other",
        "network" => "equal ports share unequally, and no fair hash explains how many flows each has",
        "application" => "equal ports share unequally, because of a few large flows",
        "unknown" => "equal ports share unequally; why is not known",
        "share" => "this flow takes a large share of its ports",
        "periodic" => "bursts of this flow fill a port at even distances",
        "routes" => "these flows leave by a port that the routes do not name",
        _ => "the next switch is no nearer to where these flows go",
    }
}

fn links(answer: &MapAnswer) -> String {
    let mut rows = String::new();
    for (number, (link, ways)) in answer.fabric.links().iter().zip(&answer.links).enumerate() {
        let _ = write!(rows, "<tr><th scope=\"row\" class=\"left\">{}</th>", escape(&link.name));
        for (from, totals) in ways.iter().enumerate() {
            let (packets, lost) = (thousands(totals.packets), interval(totals));
            let _ = write!(rows, "<td id=\"p{number}w{from}\">{packets}</td><td id=\"q{number}w{from}\">{lost}</td>");
        }
        let unjudged = thousands(ways[0].unjudged.max(ways[1].unjudged));
        let _ = writeln!(rows, "<td>{unjudged}</td><td class=\"left\" id=\"m{number}\"></td></tr>");
    }
    table(
        "links",
        "Links",
        "Packets upwards and downwards, and the interval that contains those lost: of the whole run, or of the time chosen above (there \
         the packets that are known to be lost). Unjudged slots of the run could not be compared.",
        &["link", "up", "lost", "down", "lost", "unjudged", "findings"],
        &rows,
    )
}

fn switches(answer: &MapAnswer) -> String {
    let mut rows = String::new();
    for (name, totals) in answer.fabric.switches().iter().zip(&answer.switches) {
        let numbers = [totals.reports, totals.packets, totals.flows, totals.missed, totals.undecoded];
        let cells: String = numbers.iter().map(|number| format!("<td>{}</td>", thousands(*number))).collect();
        let _ = writeln!(rows, "<tr><th scope=\"row\" class=\"left\">{}</th>{cells}</tr>", escape(name));
    }
    table(
        "switches",
        "Switches",
        "Flows: most of a slot. Missed frames passed unseen; undecoded flows were counted only.",
        &["switch", "reports", "packets", "flows", "missed", "undecoded"],
        &rows,
    )
}

fn table(id: &str, heading: &str, caption: &str, columns: &[&str], rows: &str) -> String {
    let side = |at: usize| if at == 0 || columns[at] == "findings" { " class=\"left\"" } else { "" };
    let head = columns.iter().enumerate().map(|(at, name)| format!("<th scope=\"col\"{}>{name}</th>", side(at)));
    let head: String = head.collect();
    format!(
        "<section id=\"{id}\">\n<h2>{heading}</h2>\n<div class=\"box\"><table><caption>{caption}</caption>\
         <thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div></section>\n"
    )
}

/// What the script shows: steps, and the places and times of findings.
#[derive(Serialize)]
struct MapData<'a> {
    begin: u64,
    steps: Vec<StepData>,
    totals: Vec<[WayData; 2]>,
    findings: Vec<FindingData<'a>>,
}

#[derive(Serialize)]
struct StepData {
    /// Milliseconds since the beginning.
    since: u64,
    until: u64,
    /// Packets and lost packets, by link and way.
    links: Vec<[WayData; 2]>,
}

type WayData = [u64; 2];

#[derive(Serialize)]
struct FindingData<'a> {
    kind: &'a str,
    since: u64,
    until: u64,
    /// Elements of the fabric that it is at.
    at: Vec<String>,
}

fn data(answer: &MapAnswer) -> String {
    let steps = answer.series.steps();
    let begin = steps.first().map_or(0, |step| step.since);
    let ms = |ns: u64| ns.saturating_sub(begin) / 1_000_000;
    let data = MapData {
        begin: begin / 1_000_000,
        steps: steps
            .iter()
            .map(|step| StepData {
                since: ms(step.since),
                until: ms(step.until),
                links: step.links.iter().map(|ways| ways.map(|way| [way.packets, way.lost])).collect(),
            })
            .collect(),
        totals: answer
            .links
            .iter()
            .map(|ways| ways.map(|way| [way.packets, way.lost.map_or(0, |[low, _]| low)]))
            .collect(),
        findings: answer
            .findings()
            .iter()
            .map(|finding| FindingData {
                kind: finding.kind.name(),
                since: ms(finding.since),
                until: ms(finding.until),
                at: elements(&answer.fabric, finding),
            })
            .collect(),
    };
    // A text that ended the script would need `</`, which JSON may write otherwise.
    let json = serde_json::to_string(&data).unwrap_or_default().replace('<', "\\u003c");
    format!("<script type=\"application/json\" id=\"data\">{json}</script>\n<script>\n{SCRIPT}</script>\n")
}

/// Lanes and switches of a finding: each port the lane that leaves it, a switch alone itself.
fn elements(fabric: &FabricPorts, finding: &Finding) -> Vec<String> {
    let mut elements = Vec::new();
    let port = |place: &String| {
        let (switch, port) = place.rsplit_once('/')?;
        fabric.link_at(fabric.switch(switch)?, port)
    };
    for place in &finding.place {
        match (fabric.switch(place), port(place)) {
            (Some(switch), _) => elements.push(format!("s{switch}")),
            (None, Some((link, end))) => elements.push(format!("l{link}w{end}")),
            (None, None) => {}
        }
    }
    // Losses, loops and swallowing links name both ends; packets leave the first.
    if matches!(finding.why, "counters" | "link") {
        elements.truncate(1);
    }
    elements
}

#[cfg(test)]
mod tests {
    use crate::fabricmap::picture::IN;
    use crate::fabricmap::stories::{SlotStory, leaf_spine};
    use crate::fabricmap::{FabricMap, FabricMapOptions};

    fn page() -> String {
        let fabric = leaf_spine();
        let mut map = FabricMap::new(fabric.clone(), None, FabricMapOptions::default());
        for slot in 0..60 {
            let mut story = SlotStory::new(&fabric, 170_000_000_000 + slot);
            (0..40).for_each(|nth| {
                story.path(nth, 5, &["leaf1", if nth % 2 == 0 { "spine1" } else { "spine2" }, "leaf2"])
            });
            story.add(200, 4, 0, "host", IN);
            story.cross(200, [4, 4], "leaf1", "spine1");
            for report in story.reports().values() {
                map.on_report(None, report.to_bytes()).unwrap();
            }
        }
        map.finish().0.html()
    }

    #[test]
    fn findings_stand_in_the_list_and_at_their_place() {
        let html = page();
        assert!(html.contains("<strong>[1] blackhole</strong> at spine1"), "{html}");
        assert!(html.contains(r#""at":["s2"]"#) && html.contains(r#"id="s2""#));
        assert!(html.contains("udp 10.0.1.0:200") || html.contains("10.0.1."), "flows are behind it");
        assert_eq!(html.matches("class=\"lane\"").count(), 8, "each link both ways");
    }

    #[test]
    fn the_page_asks_nobody_for_anything() {
        let html = page();
        for word in ["http://", "https://", "src=", "url(", "@import", "fetch(", "<link"] {
            assert!(!html.contains(word), "{word}");
        }
    }
}
