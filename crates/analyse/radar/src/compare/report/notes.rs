//! Notes about two captures that readers need before they believe the result, or the reason why there is none.

use chart::table::thousands;

use super::Captures;
use super::text::{packets, percent, time};
use crate::compare::{CaptureContents, CaptureRole, CompareError, Comparison};
use capture::CaptureError;

/// The longest frame of any Ethernet, jumbo frames included.
const LONGEST: u32 = 9_022;
/// The longest without: what is longer on one side only was put together, or not yet taken apart, there.
const ORDINARY: u32 = 1_522;
/// Tags and headers of different captures differ by less.
const HEADERS: u32 = 32;
/// Captures that are cut before this say little of what packets carry.
const SHALLOW: usize = 60;
/// Fewest packets at an end that deserve a note.
const EDGE: u64 = 10;

pub(super) fn notes(comparison: &Comparison, captures: &Captures) -> Vec<String> {
    let Captures { up, down, .. } = captures;
    let mut notes = Vec::new();
    for (name, contents) in [(up, &comparison.up), (down, &comparison.down)] {
        notes.extend(of_contents(name, contents));
    }
    notes.extend(offload(comparison, captures));
    let Comparison { outside, at_edges, only_down, down_outside, unnamed, alike, depth, .. } = *comparison;
    if comparison.down.truncated && outside.after > 0 {
        notes.push(format!("{} of UP after DOWN's last whole packet: not judged", packets(outside.after)));
    } else if outside.packets() > 0 {
        notes.push(format!(
            "{} of UP from before DOWN's capture began and {} from after it ended: not judged (--whole does)",
            thousands(outside.before),
            thousands(outside.after)
        ));
    }
    if at_edges.before.max(at_edges.after) >= EDGE {
        notes.push(format!(
            "of the losses, the first {} and the last {} are from before DOWN's first frame and after its last: if DOWN's \
             capture began later or ended earlier they are none",
            thousands(at_edges.before),
            thousands(at_edges.after)
        ));
    }
    if only_down > 0 {
        let why = match (comparison.both_ways, comparison.losses()) {
            (true, _) => {
                format!("lost on the way back, as the captures have both directions: hitless radar losses {down} {up}")
            }
            (false, _) if captures.source_rewritten != captures.destination_rewritten => {
                "if the captures have both directions, --nat both: on the way back the other end is rewritten"
                    .to_owned()
            }
            (false, 0) => "they came another way, or were changed on theirs".to_owned(),
            (false, _) => "they came another way, were changed on theirs, or UP's capture dropped them".to_owned(),
        };
        notes.push(format!("{} only in DOWN: {why}", packets(only_down)));
    }
    if down_outside > 0 {
        notes.push(format!("{} of DOWN from before or after UP's capture", packets(down_outside)));
    }
    if unnamed > 0 {
        notes.push(format!(
            "{} lost {} not named: more memory (--memory) names more",
            packets(unnamed),
            if only_down == 0 && outside.packets() == 0 { "are" } else { "or so are" }
        ));
    }
    if alike > 0 {
        notes.push(format!(
            "of {} that are all alike, nobody can tell which were lost: the first are listed",
            packets(alike)
        ));
    }
    if depth < SHALLOW {
        notes.push(format!(
            "packets were cut to {depth} bytes, and compared by those: capture with a snap length of 128 or more"
        ));
    }
    let lost = comparison.losses() as f64 / comparison.judged().max(1) as f64;
    if lost > 0.5 {
        let lost = percent(lost);
        notes.push(format!("{lost} are missing: {}", likely_causes(captures)));
    }
    notes
}

fn of_contents(name: &str, contents: &CaptureContents) -> Vec<String> {
    let mut notes = Vec::new();
    if contents.truncated {
        notes.push(format!("{name}: ends within a record; the {} before it count", packets(contents.packets)));
    }
    if contents.not_ip > 0 {
        notes.push(format!("{name}: {} frames are no IP and left out", thousands(contents.not_ip)));
    }
    if contents.link_local > 0 {
        let found = packets(contents.link_local);
        notes.push(format!(
            "{name}: {found} of link-local scope, which no router forwards, counted apart and not judged"
        ));
    }
    if contents.other_links > 0 {
        let frames = thousands(contents.other_links);
        notes.push(format!("{name}: {frames} frames of link types that are not read here are left out"));
    }
    notes
}

/// Advice on taking a capture without super-frames.
const WITHOUT_OFFLOAD: &str = "capture again after: ethtool -K INTERFACE tso off gso off gro off lro off";

/// Cards and kernels that put packets together show one where there were many.
fn offload(comparison: &Comparison, captures: &Captures) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, contents) in [(&captures.up, &comparison.up), (&captures.down, &comparison.down)] {
        if contents.super_frames > 0 {
            notes.push(format!(
                "{name}: {} super-frames of segmentation or receive offload were cut into the packets of the wire",
                thousands(contents.super_frames)
            ));
        }
        if contents.uncut > 0 {
            notes.push(format!(
                "{name}: {} super-frames could not be cut; {WITHOUT_OFFLOAD}",
                thousands(contents.uncut)
            ));
        }
        if contents.inferred > 0 {
            notes.push(format!(
                "{name}: of {} super-frames the packets' size is inferred from other packets, as no handshake of theirs was \
                 captured, or none that fits; {WITHOUT_OFFLOAD}",
                thousands(contents.inferred)
            ));
        }
    }
    if comparison.without_ids {
        notes.push("identifications were not compared: super-frames do not say those of their packets".to_owned());
    }
    if comparison.misfits > 0 && comparison.up.super_frames + comparison.down.super_frames > 0 {
        notes.push(format!(
            "{} only in DOWN overlap with lost ones: perhaps super-frames were cut elsewhere than on the wire",
            packets(comparison.misfits)
        ));
    }
    notes.extend(longer_frames(comparison, captures));
    notes
}

/// Frames that no wire carries, and that were not cut.
fn longer_frames(comparison: &Comparison, captures: &Captures) -> Option<String> {
    let [up, down] = [comparison.up.longest, comparison.down.longest];
    let longer = up.max(down);
    let was_cut = comparison.up.super_frames + comparison.down.super_frames > 0;
    if was_cut || longer <= LONGEST && (longer <= ORDINARY || up.abs_diff(down) <= HEADERS) {
        return None;
    }
    let (name, shorter) = if up >= down { (&captures.up, down) } else { (&captures.down, up) };
    Some(format!(
        "{name} has frames of up to {} bytes, the other of up to {}: segmentation offload shows what is several packets \
         on the wire as one; {WITHOUT_OFFLOAD}",
        thousands(longer.into()),
        thousands(shorter.into())
    ))
}

/// Reason why super-frames cannot be compared.
fn uncut(comparison: &Comparison, captures: &Captures) -> String {
    let Captures { up, down, .. } = captures;
    for (name, contents) in [(up, &comparison.up), (down, &comparison.down)] {
        if contents.uncut > 0 {
            return format!(
                "{name}: {} super-frames of segmentation offload cannot be cut into the packets of the wire: neither a handshake \
                 nor the other capture says how long those are, or less than the whole datagram was kept; {WITHOUT_OFFLOAD}",
                thousands(contents.uncut)
            );
        }
    }
    format!(
        "{up} and {down}: {} of super-frames of segmentation offload overlap with others than on the wire, so that nobody knows where \
         to cut them; {WITHOUT_OFFLOAD}",
        packets(comparison.misfits)
    )
}

fn likely_causes(captures: &Captures) -> String {
    let nat = if !(captures.source_rewritten || captures.destination_rewritten) {
        "addresses rewritten (--nat source, destination or both), "
    } else {
        ""
    };
    format!(
        "another link or direction, {nat}a tunnel or encryption between them, packets fragmented on their way, a snap length \
         that cuts headers, or captures of different times"
    )
}

/// One line: what is wrong, and what to do.
pub fn refusal(error: &CompareError, captures: &Captures) -> String {
    let Captures { up, down, .. } = captures;
    let name = |which: &CaptureRole| match which {
        CaptureRole::Up => up,
        CaptureRole::Down => down,
    };
    match error {
        CompareError::Capture(which, error) => {
            let hint = match error {
                CaptureError::Damaged { .. } => "; editcap may save what comes before",
                _ => "",
            };
            format!("{}: {error}{hint}", name(which))
        }
        CompareError::NoPackets(which, contents) => {
            let frames = contents.not_ip + contents.other_links;
            let has = match frames {
                _ if contents.link_local > 0 => "has only link-local packets, which are not compared".to_owned(),
                0 => "has no packets".to_owned(),
                frames => format!("has {} frames and none of them is IP", thousands(frames)),
            };
            let whole = if *which == CaptureRole::Down { "; with --whole all of UP counts as lost" } else { "" };
            format!("{}: {has}: nothing to compare{whole}", name(which))
        }
        CompareError::NothingInCommon(comparison) => {
            let mut text = format!(
                "{up} ({}) and {down} ({}) have no packet in common; likely: {}",
                packets(comparison.up.packets),
                packets(comparison.down.packets),
                likely_causes(captures)
            );
            offload(comparison, captures).iter().for_each(|note| text += &format!("; {note}"));
            let spans = comparison.up.span.zip(comparison.down.span);
            if let Some(((_, up), (down, _))) = spans.filter(|((_, up), (down, _))| up < down) {
                text += &format!("; UP ends {} before DOWN begins", time((down - up) as i64));
            }
            if let Some(((up, _), (_, down))) = spans.filter(|((up, _), (_, down))| down < up) {
                text += &format!("; DOWN ends {} before UP begins", time((up - down) as i64));
            }
            text + "; with --whole all of UP counts as lost"
        }
        CompareError::Swapped { only_down } => format!(
            "{} of {down} are missing in {up}, and none the other way round: the captures seem to be swapped; try: hitless \
             radar losses {down} {up} (or --whole to take it as it is)",
            packets(*only_down)
        ),
        CompareError::SuperFrames(comparison) => uncut(comparison, captures),
        CompareError::Interrupted => "interrupted".to_owned(),
    }
}
