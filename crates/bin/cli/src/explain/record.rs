//! `hitless explain record`: what the kernel says of its connections, beside their headers.

use std::time::Duration;

use evidence::{RecordConfig, RecordSummary};
use linux::net::Netlink;

use crate::args::ExplainRecordArgs;
use crate::output::{CommandResult, Failure, print, say};

pub(super) fn run(args: &ExplainRecordArgs, json: bool) -> CommandResult {
    // A dangling symbolic link exists, too.
    if args.out.symlink_metadata().is_ok() {
        return Err(Failure::Usage(format!("--out {}: exists already; expected a new file", args.out.display())));
    }
    let link = Netlink::open().and_then(|netlink| netlink.existing_link(&args.interface));
    link.map_err(|error| Failure::Usage(error.to_string()))?;
    let lasts = args.lasts.map(|lasts| Duration::from_nanos(lasts.as_ps() / 1_000));
    let config = RecordConfig { interface: args.interface.clone(), out: args.out.clone(), lasts };
    let (stop, stopper) = std::io::pipe().map_err(|error| Failure::Outside(error.to_string()))?;
    let mut stopper = Some(stopper);
    // A second Ctrl-C finds nothing left to do.
    let _ = ctrlc::set_handler(move || drop(stopper.take()));
    if args.lasts.is_none() {
        say(&format!("recording TCP of {}; Ctrl-C ends it", args.interface));
    }
    let summary = evidence::record(&config, &stop).map_err(|error| Failure::Outside(error.to_string()))?;
    print(json, &summary, || text(&summary, &args.out.display().to_string()))
}

fn text(summary: &RecordSummary, out: &str) -> String {
    let RecordSummary { seconds, packets, events, bytes, cpu_seconds, .. } = summary;
    let mut text = format!(
        "{packets} packets and {events} events of the kernel in {seconds:.1} s: {bytes} bytes in {out}, {cpu_seconds:.2} s of processor \
         time\n"
    );
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            text += &format!("{count} {what}\n");
        }
    };
    note(summary.packets_missed, "packets were missed: the machine was too busy to record them");
    note(summary.events_missed, "events were missed: the machine was too busy to record them");
    if !summary.lacking.is_empty() {
        text += &format!("this kernel does not have: {}\n", summary.lacking.join(", "));
    }
    text += &format!("hitless explain {out} says what was slow\n");
    text
}
