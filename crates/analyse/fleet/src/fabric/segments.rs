//! The parts of a fabric, and what they are called.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{FabricLink, FabricSegment, Switch, SwitchId};

/// Every switch and every link says which it belongs to; links are sorted by that.
pub(super) fn segments(switches: &[Switch], links: &[FabricLink], tors: &[bool], count: u32) -> Vec<FabricSegment> {
    let empty = |_| FabricSegment { name: String::new(), links: 0..0, tors: Vec::new(), switches: Vec::new() };
    let mut segments: Vec<FabricSegment> = (0..count).map(empty).collect();
    for (id, switch) in (0..).map(SwitchId).zip(switches) {
        let Some(number) = switch.segment else { continue };
        segments[number as usize].switches.push(id);
        if tors[id.index()] {
            segments[number as usize].tors.push(id);
        }
    }
    let mut begin = 0;
    for (number, segment) in (0..).zip(&mut segments) {
        let end = begin + links[begin as usize..].partition_point(|link| link.segment <= number) as u32;
        segment.links = begin..end;
        begin = end;
        segment.switches.sort_by_key(|switch| Reverse(switches[switch.index()].level));
    }
    name_segments(&mut segments, switches);
    segments
}

/// Names each segment after the common beginning of its switches' names (`pod3` of `pod3/tor1` and `pod3/fabric0`), if
/// no other segment has the same; by number otherwise.
fn name_segments(segments: &mut [FabricSegment], switches: &[Switch]) {
    let names: Vec<&str> = segments.iter().map(|segment| common_name(segment, switches)).collect();
    let mut times: HashMap<&str, u32> = HashMap::new();
    for name in &names {
        *times.entry(name).or_default() += 1;
    }
    for (number, (segment, name)) in segments.iter_mut().zip(&names).enumerate() {
        let unique = !name.is_empty() && times[name] == 1;
        segment.name = if unique { (*name).to_owned() } else { format!("segment{number}") };
    }
}

fn common_name<'a>(segment: &FabricSegment, switches: &'a [Switch]) -> &'a str {
    let mut names = segment.switches.iter().map(|switch| switches[switch.index()].name.as_str());
    let first = names.next().unwrap_or_default();
    let shared = |name: &str| first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    match names.map(shared).min() {
        None => first,
        // Only whole words say something.
        Some(common) => first.get(..common).and_then(|text| text.rfind(SEPARATORS)).map_or("", |end| &first[..end]),
    }
}

/// Characters between the words of a name.
const SEPARATORS: [char; 4] = ['/', '-', '.', '_'];
