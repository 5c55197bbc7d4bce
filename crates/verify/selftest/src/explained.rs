//! Answers of `explain` about both captures of a run, and about the two together.

use std::io::{Cursor, Read};

use explain::ExplainOptions;
use explain::answer::ExplainAnswer;
use linux::clock;
use units::Unwatched;

/// Explanations by the client's capture, by the server's, and by both.
pub(crate) fn explain_both(captures: &[Vec<u8>; 2]) -> Result<[ExplainAnswer; 3], String> {
    let open =
        |end: usize| move || -> std::io::Result<Box<dyn Read>> { Ok(Box::new(Cursor::new(captures[end].clone()))) };
    let [client, server] = [open(0), open(1)];
    let options = ExplainOptions { hz: ticks(), ..ExplainOptions::default() };
    let explained = |open| explain::explain(open, &options, &Unwatched).map_err(|error| format!("{error:?}"));
    let one = explained(&client)?;
    let other = explained(&server)?.answer();
    let first = one.answer();
    let mut both = one;
    both.read_other_end(&client, &server, &Unwatched).map_err(|refused| refused.error.to_string())?;
    Ok([first, other, both.answer()])
}

/// Explanation by one capture of the sender's side.
pub(crate) fn explain_one(capture: &[u8]) -> Result<ExplainAnswer, String> {
    let open = || -> std::io::Result<Box<dyn Read>> { Ok(Box::new(Cursor::new(capture.to_vec()))) };
    let options = ExplainOptions { hz: ticks(), ..ExplainOptions::default() };
    let explanation = explain::explain(&open, &options, &Unwatched).map_err(|error| format!("{error:?}"))?;
    Ok(explanation.answer())
}

/// Clock ticks of this host in a second.
fn ticks() -> u32 {
    (1_000_000_000 / clock::tick().as_nanos().max(1)) as u32
}
