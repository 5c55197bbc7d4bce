//! A place in a script's text, from which tokens are taken one by one.

/// Error about text that could not be read, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotUnderstood {
    pub(crate) line: usize,
    pub(crate) why: String,
}

pub(crate) type Parsed<T> = Result<T, NotUnderstood>;

/// A position in the text; lines count from 1.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1 }
    }

    pub(crate) fn line(&self) -> usize {
        self.line
    }

    pub(crate) fn error<T>(&self, why: impl Into<String>) -> Parsed<T> {
        Err(NotUnderstood { line: self.line, why: why.into() })
    }

    pub(crate) fn at_end(&mut self) -> bool {
        self.skip_blanks();
        self.rest.is_empty()
    }

    /// Passes `bytes` bytes, and counts their lines.
    fn pass(&mut self, bytes: usize) -> &'a str {
        let (passed, rest) = self.rest.split_at(bytes);
        self.line += passed.matches('\n').count();
        self.rest = rest;
        passed
    }

    /// White space and comments (`//` and `/* */`).
    pub(crate) fn skip_blanks(&mut self) {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.pass(blanks);
            let comment = if self.rest.starts_with("//") {
                self.rest.find('\n').unwrap_or(self.rest.len())
            } else if self.rest.starts_with("/*") {
                self.rest.find("*/").map_or(self.rest.len(), |at| at + 2)
            } else {
                return;
            };
            self.pass(comment);
        }
    }

    /// True if `token` comes next; does not consume it.
    pub(crate) fn sees(&mut self, token: &str) -> bool {
        self.skip_blanks();
        self.rest.starts_with(token)
    }

    /// Takes `token` if it comes next.
    pub(crate) fn take(&mut self, token: &str) -> bool {
        let is_next = self.sees(token);
        if is_next {
            self.pass(token.len());
        }
        is_next
    }

    pub(crate) fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.take(token) { Ok(()) } else { self.error(format!("expected {token:?} before {:?}", self.excerpt())) }
    }

    /// The beginning of what is left of the line, for messages.
    pub(crate) fn excerpt(&self) -> String {
        self.rest.lines().next().unwrap_or_default().chars().take(40).collect()
    }

    /// All characters up to the first that does not fit; may be empty.
    pub(crate) fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        self.skip_blanks();
        let end = self.rest.find(|letter| !fits(letter)).unwrap_or(self.rest.len());
        self.pass(end)
    }

    /// The text before `token`, which is passed too.
    pub(crate) fn until(&mut self, token: &str) -> Parsed<&'a str> {
        let Some(end) = self.rest.find(token) else { return self.error(format!("no {token:?} until the end")) };
        let text = self.pass(end);
        self.pass(token.len());
        Ok(text)
    }

    /// A name; empty if none comes next.
    pub(crate) fn word(&mut self) -> &'a str {
        self.take_while(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    }

    pub(crate) fn number<T: std::str::FromStr>(&mut self) -> Parsed<T> {
        let digits = self.take_while(|letter| letter.is_ascii_digit());
        match digits.parse() {
            Ok(number) => Ok(number),
            Err(_) => self.error(format!("expected a number before {:?}", self.excerpt())),
        }
    }

    /// The next character, which stays.
    pub(crate) fn peek(&mut self) -> Option<char> {
        self.skip_blanks();
        self.rest.chars().next()
    }
}
