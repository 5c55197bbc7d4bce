//! Metrics of a switch, or of a host that has joined, for Prometheus: the loop gives its status, which becomes a page.

use std::io::{self, PipeReader};
use std::net::TcpListener;

use linux::mailbox::{Mailbox, NoAnswer};
use linux::metrics::{MetricsPage, serve};

use crate::control::RackRequest;

/// Answers with what `text` makes of the loop's status until `stop` has something to read or is closed, or the loop ends.
pub(crate) fn serve_status<S>(
    listener: &TcpListener,
    asked: &Mailbox<RackRequest<S>>,
    stop: &PipeReader,
    text: fn(&S) -> String,
) -> io::Result<()> {
    serve(listener, stop, |path| match (asked.ask(RackRequest::Status), path) {
        (Ok(status), "/metrics" | "/") => Some(MetricsPage::metrics(text(&status))),
        (Ok(_), _) => Some(MetricsPage::text("404 Not Found", "see /metrics\n")),
        (Err(NoAnswer::Late), _) => Some(MetricsPage::text("503 Service Unavailable", "it does not answer\n")),
        (Err(NoAnswer::Ended), _) => None,
    })
}
