//! Explanations in words.

use crate::fabric::{Fabric, LinkId};

use super::DisableTime;
use super::obstacle::{DisableObstacle, PathMargin};

/// Links named in one sentence; the others are counted.
const NAMED: usize = 4;

pub(crate) fn goes(tightest: Option<&PathMargin>) -> String {
    match tightest {
        Some(PathMargin { tor, paths, of, required }) => {
            format!("goes: below it ToR {tor} is tightest and keeps {paths} of {of} paths, {required} are required")
        }
        None => "goes: no ToR would have a path over it".to_owned(),
    }
}

pub(crate) fn stays(fabric: &Fabric, obstacle: &DisableObstacle, goes_now: impl Fn(LinkId) -> bool) -> String {
    let PathMargin { tor, paths, of, required } = &obstacle.room;
    let fact = format!("stays: without it ToR {tor} would keep {paths} of {of} paths, {required} are required");
    let (now, before): (Vec<LinkId>, Vec<LinkId>) = obstacle.out.iter().partition(|link| goes_now(**link));
    let mut reasons = Vec::new();
    for (links, what) in [(before, "out for repair"), (now, "to go now")] {
        if !links.is_empty() {
            let verb = if links.len() == 1 { "is" } else { "are" };
            let names = links.iter().map(|link| fabric.name(*link).to_string()).collect::<Vec<_>>();
            reasons.push(format!("{} {verb} {what}", listed(&names)));
        }
    }
    if reasons.is_empty() {
        format!("{fact}, with every other link above it in service")
    } else {
        format!("{fact}, because {}", reasons.join(" and "))
    }
}

pub(super) fn repair(when: DisableTime, unlocks: &[String], unlocked: f64, after: Option<&str>) -> String {
    let begin = match (when, after) {
        (DisableTime::NeedsWindow, _) => {
            return "cannot go even with all others back: needs a maintenance window".to_owned();
        }
        (DisableTime::Later, Some(after)) => format!("goes when {after} is back; "),
        _ => String::new(),
    };
    match unlocks.len() {
        0 => format!("{begin}makes room for no other"),
        _ => format!("{begin}makes room for {} to go: {unlocked:.2e} of loss", listed(unlocks)),
    }
}

fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [some @ .., last] if names.len() <= NAMED => format!("{} and {last}", some.join(", ")),
        _ => format!("{} and {} more", names[..NAMED - 1].join(", "), names.len() + 1 - NAMED),
    }
}
