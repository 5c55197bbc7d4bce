//! Splits Rust source into words and marks, so that nothing in a string or a comment is taken for code.
//!
//! Not a whole lexer: a number like `1.5` is three tokens and `->` is two. The measurements need no more.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An identifier or a keyword.
    Word,
    /// One character of punctuation.
    Mark,
    /// A number, a character, or a string of any form.
    Literal,
    Lifetime,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    /// First and last line of the token, from 1: a string may span several.
    pub(crate) line: usize,
    pub(crate) last_line: usize,
}

/// The tokens of a file, and the number of its documentation lines.
#[derive(Debug, Default)]
pub(crate) struct FileTokens<'a> {
    pub(crate) tokens: Vec<Token<'a>>,
    /// Lines that begin with `///` or `//!`.
    pub(crate) doc_lines: usize,
}

pub(crate) fn lex(text: &str) -> FileTokens<'_> {
    let mut lexed = FileTokens::default();
    let (mut at, mut line) = (0, 1);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (length, kind) = next(rest, first);
        let piece = &rest[..length];
        let last_line = line + piece.matches('\n').count();
        match kind {
            Some(kind) => lexed.tokens.push(Token { kind, text: piece, line, last_line }),
            None => lexed.doc_lines += usize::from(is_doc(piece)),
        }
        (at, line) = (at + length, last_line);
    }
    lexed
}

fn is_doc(comment: &str) -> bool {
    comment.starts_with("//!") || comment.starts_with("///") && !comment.starts_with("////")
}

/// The length of what `rest` begins with, and its kind unless it is white space or a comment.
fn next(rest: &str, first: char) -> (usize, Option<TokenKind>) {
    if first.is_whitespace() {
        return (first.len_utf8(), None);
    }
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), None);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), None);
    }
    if let Some(length) = string(rest).or_else(|| character(rest)) {
        return (length, Some(TokenKind::Literal));
    }
    let word = |from: &str| from.find(|c: char| !is_word(c)).unwrap_or(from.len());
    match first {
        '\'' => (1 + word(&rest[1..]), Some(TokenKind::Lifetime)),
        '0'..='9' => (word(rest), Some(TokenKind::Literal)),
        'r' if rest.starts_with("r#") => (2 + word(&rest[2..]), Some(TokenKind::Word)),
        _ if is_word(first) => (word(rest), Some(TokenKind::Word)),
        _ => (first.len_utf8(), Some(TokenKind::Mark)),
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn block_comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    loop {
        match rest.as_bytes().get(at..at + 2) {
            Some(b"/*") => (at, depth) = (at + 2, depth + 1),
            Some(b"*/") => (at, depth) = (at + 2, depth - 1),
            Some(_) => at += 1,
            None => return rest.len(),
        }
        if depth == 0 {
            return at;
        }
    }
}

/// The length of the string literal that `rest` begins with: `"…"`, `b"…"`, `c"…"`, `r#"…"#` and their mixtures.
fn string(rest: &str) -> Option<usize> {
    let prefix = rest.find(|c| !matches!(c, 'b' | 'c' | 'r')).filter(|length| *length <= 2)?;
    let is_raw = rest[..prefix].ends_with('r');
    let hashes = rest[prefix..].bytes().take_while(|byte| is_raw && *byte == b'#').count();
    let body = prefix + hashes + 1;
    if rest.as_bytes().get(body - 1) != Some(&b'"') {
        return None;
    }
    if is_raw {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(rest[body..].find(&end).map_or(rest.len(), |found| body + found + end.len()));
    }
    Some(body + quoted(&rest[body..], b'"'))
}

/// The length of the character literal that `rest` begins with; a lifetime is none.
fn character(rest: &str) -> Option<usize> {
    let body = if rest.starts_with("b'") { 2 } else { 1 };
    let inside = rest.strip_prefix("b'").or_else(|| rest.strip_prefix('\''))?;
    let mut chars = inside.chars();
    let is_character = chars.next()? == '\\' || chars.next() == Some('\'');
    is_character.then(|| body + quoted(inside, b'\''))
}

/// The length of `rest` up to and with the closing quote.
fn quoted(rest: &str, quote: u8) -> usize {
    let mut bytes = rest.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => _ = bytes.next(),
            _ if byte == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let tokens = lex(text).tokens;
        tokens.into_iter().filter(|token| token.kind == TokenKind::Word).map(|token| token.text).collect()
    }

    #[test]
    fn strings_and_comments_are_no_code() {
        assert_eq!(words("a /* b /* ç */ d */ e // f\ng"), ["a", "e", "g"]);
        assert_eq!(words(r##"a("b\"c", r#"d"e"#, b"f", br"g\", 'h', b'\'', '"', i)"##), ["a", "i"]);
    }

    #[test]
    fn a_lifetime_is_no_character() {
        let lexed = lex("fn f<'a>(c: &'a str) { r#type('x', 'static) }");
        let of = |kind| lexed.tokens.iter().filter(move |token| token.kind == kind).map(|token| token.text);
        assert_eq!(of(TokenKind::Lifetime).collect::<Vec<_>>(), ["'a", "'a", "'static"]);
        assert_eq!(of(TokenKind::Literal).collect::<Vec<_>>(), ["'x'"]);
        assert_eq!(of(TokenKind::Word).collect::<Vec<_>>(), ["fn", "f", "c", "str", "r#type"]);
    }

    #[test]
    fn lines_are_counted_through_strings_and_documentation_apart() {
        let lexed = lex("//! doc\n/// doc\n// why\nlet x = \"a\nb\";\ny");
        assert_eq!(lexed.doc_lines, 2);
        let lines: Vec<_> = lexed.tokens.iter().map(|token| (token.line, token.last_line)).collect();
        assert_eq!(lines, [(4, 4), (4, 4), (4, 4), (4, 5), (5, 5), (6, 6)]);
    }
}
