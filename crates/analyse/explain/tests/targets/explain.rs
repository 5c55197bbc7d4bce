//! Arbitrary bytes as captures to be explained. `fuzz/` has this target, too.

use std::io::{Cursor, Read};

use explain::answer::ExplainAnswer;
use explain::{ExplainOptions, explain};
use units::Unwatched;

/// Explains a capture alone and beside another, as text, JSON and a page.
pub(crate) fn read_all(one: &[u8], other: &[u8]) -> Option<ExplainAnswer> {
    let open = |bytes: &[u8]| {
        let bytes = bytes.to_vec();
        move || -> std::io::Result<Box<dyn Read>> { Ok(Box::new(Cursor::new(bytes.clone()))) }
    };
    let (one, other) = (open(one), open(other));
    let mut explanation = explain(&one, &ExplainOptions::default(), &Unwatched).ok()?;
    let _ = explanation.trace_slowest(1, &one, &ExplainOptions::default(), &Unwatched);
    let _ = (explanation.text(), explanation.page("mutated"));
    let answer = explanation.answer();
    let _ = explanation.read_other_end(&one, &other, &Unwatched);
    let _ = explanation.text();
    Some(answer)
}
