//! `hitless clock up`: arguments checked, and the daemon run.

use daemon::options::{parse_address, read_options};
use linux::mailbox::mailbox;
use timekeeper::{ClockConfig, ClockDaemon, ClockLink, ClockRequest, live_params, read_duties};
use units::{Span, StopFlag};

use super::{describe, status_of};
use crate::args::{ClockUpArgs, ClockUpOptions};
use crate::background::{in_background, run_directory, run_reporting};
use crate::output::{CommandResult, Failure, print};

/// Largest error of an oscillator's frequency: half of the drift between two.
const MOST_PPB: i64 = 100_000;

pub(super) fn run(args: &ClockUpArgs, json: bool) -> CommandResult {
    let file = args.config.as_deref().map_or(Ok(ClockUpOptions::default()), read_options);
    let config = config(args.options.clone().or(file.map_err(Failure::Usage)?))?;
    let node = config.duties.node.clone();
    let begun = format!("{node} keeps the time");
    if args.background {
        return in_background(&node.replace('/', "_"), &begun, |directory| {
            status_of(directory, &node).ok().map(|status| status.pid)
        });
    }
    let outside = |error: std::io::Error| Failure::Outside(error.to_string());
    let (clock, requests) = mailbox().map_err(outside)?;
    let stopper = clock.another().map_err(outside)?;
    // Failing to listen leaves Ctrl-C to end it at once.
    let _ = ctrlc::set_handler(move || {
        let _ = stopper.send(ClockRequest::Stop);
    });
    let role = match (config.duties.parent(), config.duties.backup()) {
        (None, _) => "the root".to_owned(),
        (Some(parent), None) => format!("listens to {parent}, no backup parent"),
        (Some(parent), Some(backup)) => format!("listens to {parent}, or else to {backup}"),
    };
    let begun = format!("{begun}: {role}; Ctrl-C ends it");
    let directory = run_directory()?;
    let status =
        run_reporting(|tell| ClockDaemon { config, directory: &directory, begun, tell }.run(&clock, requests))?;
    print(json, &status, || describe(&status))
}

/// Checks the options and makes a configuration of them.
fn config(options: ClockUpOptions) -> Result<ClockConfig, Failure> {
    let missing = |what: &str| Failure::Usage(format!("--{what}: expected it here, or as `{what}` in the file"));
    let plan = options.plan.ok_or_else(|| missing("plan"))?;
    let node = options.node.ok_or_else(|| missing("node"))?;
    // Nothing listens to Ctrl-C yet: it ends this process.
    let duties = read_duties(&plan, &node, &StopFlag::new()).map_err(Failure::Usage)?;
    let links = options.link.iter().map(|text| parse_link(text)).collect::<Result<Vec<_>, _>>()?;
    let wanted = duties.neighbours();
    for (at, link) in links.iter().enumerate() {
        let ClockLink { neighbour, interface } = link;
        let before = &links[..at];
        if before.iter().any(|other| other.neighbour == *neighbour || other.interface == *interface) {
            return Err(Failure::Usage(format!(
                "--link {neighbour}={interface}: given twice, as neighbour or interface"
            )));
        }
    }
    if let Some(missing) = wanted.iter().find(|name| links.iter().all(|link| link.neighbour != **name)) {
        let all = wanted.join(", ");
        return Err(Failure::Usage(format!("no --link {missing}=IFACE: by the plan {node} has to do with {all}")));
    }
    let interval = options.interval.unwrap_or(Span::from_ms(1));
    if !(Span::from_us(100)..=Span::from_ms(10_000)).contains(&interval) {
        return Err(Failure::Usage(format!("--interval {interval}: expected 100us to 10s")));
    }
    let oscillator_ppb = options.oscillator.unwrap_or(0);
    if oscillator_ppb.abs() > MOST_PPB {
        return Err(Failure::Usage(format!("--oscillator {oscillator_ppb}: expected at most {MOST_PPB} either way")));
    }
    let sets_system_clock = options.set_system_clock;
    if sets_system_clock && duties.is_root {
        return Err(Failure::Usage(format!(
            "--set-system-clock: {node} is the root of the plan, it has nobody to follow"
        )));
    }
    if sets_system_clock && oscillator_ppb != 0 {
        return Err(Failure::Usage(
            "--set-system-clock: not with --oscillator, which makes a clock wrong on purpose".to_owned(),
        ));
    }
    let address = |text: &str| parse_address(text).ok_or(format!("metrics: '{text}': expected PORT or ADDR:PORT"));
    let metrics = options.metrics.as_deref().map(address).transpose().map_err(Failure::Usage)?;
    let params = live_params(interval.as_ps() / 1_000);
    let (page, key) = (options.page, options.key);
    Ok(ClockConfig { duties, links, params, oscillator_ppb, metrics, page, key, sets_system_clock })
}

fn parse_link(text: &str) -> Result<ClockLink, Failure> {
    match text.rsplit_once('=') {
        Some((neighbour, interface)) if !neighbour.is_empty() && !interface.is_empty() => {
            Ok(ClockLink { neighbour: neighbour.to_owned(), interface: interface.to_owned() })
        }
        _ => Err(Failure::Usage(format!("--link {text}: expected NEIGHBOUR=IFACE, such as tor1=eth0"))),
    }
}
