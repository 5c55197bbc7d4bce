//! Explains a capture and prints what the time of each connection was spent on:
//! `cargo run -p hitless-explain --example explain-capture -- capture.pcap`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::io::{Cursor, Read};

use explain::answer::ExplainAnswer;
use explain::{ExplainError, ExplainOptions, explain};
use units::Unwatched;

/// Reads the capture as often as the explanation needs, and answers for each connection.
pub(crate) fn answer(capture: &[u8]) -> Result<ExplainAnswer, ExplainError> {
    let open = || Ok(Box::new(Cursor::new(capture.to_vec())) as Box<dyn Read>);
    Ok(explain(&open, &ExplainOptions::default(), &Unwatched)?.answer())
}

pub(crate) fn print(answer: &ExplainAnswer) {
    for connection in &answer.connections {
        println!("{} to {}: {}", connection.client, connection.server, connection.verdict);
        for part in &connection.parts {
            println!("{:8.3} ms: {}, {}", part.ns as f64 / 1e6, part.cause.name(), part.side.name());
        }
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("expected a capture")?;
    print(&answer(&std::fs::read(file)?)?);
    Ok(())
}
