//! Arbitrary bytes as questions about a trail with their answers. `fuzz/` has this target, too.

use radar::trail::{Trail, TrailAnswer, TrailQuestion};

/// A byte for the length of a question, the question, and an answer to it. What can be read is written the same again, and an
/// empty trail answers any question.
pub(crate) fn answer(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first() else { return };
    let (question, answer) = rest.split_at((usize::from(*length)).min(rest.len()));
    let Some(question) = TrailQuestion::from_bytes(question) else { return };
    assert_eq!(TrailQuestion::from_bytes(&question.to_bytes()), Some(question.clone()));
    let mut trail = Trail::new(1 << 10);
    assert_eq!(trail.answer(&question, 10_000_000, |_| true), question.unanswered());
    trail.forget();
    if let Some(answer) = TrailAnswer::from_bytes(&question, answer) {
        assert_eq!(TrailAnswer::from_bytes(&question, &answer.to_bytes()), Some(answer));
    }
}
