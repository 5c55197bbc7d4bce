//! Statements in `%{ }%`: the part of Python that scripts use.
//!
//! `assert EXPRESSION, MESSAGE`, `NAME = EXPRESSION` (also `+=`) and `print(…)`, separated by lines or semicolons. Expressions have
//! comparisons (chained as in Python), `and`, `or`, `not`, arithmetic, `abs`, `min`, `max`, names and numbers; messages
//! are not evaluated. All numbers are floats, exact up to 2⁵³.

use std::collections::BTreeMap;

/// Fields of `struct tcp_info` that a connection reports, by name with `tcpi_` before it.
pub(crate) type TcpInfoFields = BTreeMap<String, f64>;

/// A statement that was understood.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    /// The expression must be true; its text is for messages.
    Assert(Expression, String),
    Assign(String, Expression),
}

/// An expression as a tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Number(f64),
    Name(String),
    Not(Box<Self>),
    Negative(Box<Self>),
    Arithmetic(Box<Self>, &'static str, Box<Self>),
    /// `a < b <= c`: the first, then each operator with what follows it.
    Chain(Box<Self>, Vec<(&'static str, Self)>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Call(&'static str, Vec<Self>),
}

const COMPARISONS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];
const FUNCTIONS: [&str; 3] = ["abs", "min", "max"];
/// Operators and marks, each before the shorter ones with which it begins.
const SIGNS: [&str; 20] =
    ["==", "!=", "<=", ">=", "//", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",", "=", "[", "]", ".", ":"];
/// States of congestion control, as `tcpi_ca_state` has them.
const CONSTANTS: [(&str, f64); 5] = [
    ("TCP_CA_Open", 0.0),
    ("TCP_CA_Disorder", 1.0),
    ("TCP_CA_CWR", 2.0),
    ("TCP_CA_Recovery", 3.0),
    ("TCP_CA_Loss", 4.0),
];
/// Deeper nesting is refused, so that a script cannot exhaust the stack.
const DEEPEST: usize = 64;

/// All statements of a block.
pub(super) fn statements(text: &str) -> Result<Vec<Statement>, String> {
    let parts = split(&text.replace("\\\n", " "));
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty() && !is_print(part));
    parts.map(|part| statement(part).ok_or_else(|| format!("a statement that is not understood: {part}"))).collect()
}

fn is_print(part: &str) -> bool {
    part.starts_with("print(") && part.ends_with(')')
}

/// Splits a text at lines and semicolons outside of quotes and parentheses, and drops comments.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut quote, mut depth, mut comment) = (None, 0_usize, false);
    for letter in text.chars() {
        match (quote, letter) {
            (_, '\n') if comment || depth == 0 => {
                comment = false;
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ if comment => continue,
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            (None, '#') => {
                comment = true;
                continue;
            }
            (None, ';') if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            (None, _) => {}
        }
        part.push(letter);
    }
    parts.push(part);
    parts
}

fn statement(text: &str) -> Option<Statement> {
    if let Some(rest) = text.strip_prefix("assert ") {
        let (expression, condition) = condition(rest)?;
        return Some(Statement::Assert(expression, condition));
    }
    let (name, value) = text.split_once('=')?;
    let (name, added) = match name.trim_end().strip_suffix('+') {
        Some(name) => (name.trim(), true),
        None => (name.trim(), false),
    };
    let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    let mut tokens = ExpressionTokens::of(value)?;
    let mut value = tokens.expression()?;
    if added {
        value = Expression::Arithmetic(Box::new(Expression::Name(name.to_owned())), "+", Box::new(value));
    }
    (is_name && tokens.is_empty()).then(|| Statement::Assign(name.to_owned(), value))
}

/// The condition of an assertion and its text; what follows a comma is its message.
fn condition(text: &str) -> Option<(Expression, String)> {
    let (mut depth, mut end) = (0_i32, text.len());
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let mut tokens = ExpressionTokens::of(&text[..end])?;
    let expression = tokens.expression()?;
    tokens.is_empty().then(|| (expression, text[..end].trim().to_owned()))
}

#[derive(Clone, Debug, PartialEq)]
enum ExpressionToken {
    Number(f64),
    Name(String),
    Sign(&'static str),
}

struct ExpressionTokens {
    /// The next one last.
    reversed: Vec<ExpressionToken>,
    depth: usize,
}

impl ExpressionTokens {
    fn of(text: &str) -> Option<Self> {
        let (mut rest, mut tokens) = (text.trim_start(), Vec::new());
        while let Some(first) = rest.chars().next() {
            let (token, len) = if first.is_ascii_digit() {
                number(rest)?
            } else if first.is_ascii_alphabetic() || first == '_' {
                let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                let end = end.unwrap_or(rest.len());
                (ExpressionToken::Name(rest[..end].to_owned()), end)
            } else {
                let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign))?;
                (ExpressionToken::Sign(sign), sign.len())
            };
            tokens.push(token);
            rest = rest[len..].trim_start();
        }
        tokens.reverse();
        Some(Self { reversed: tokens, depth: 0 })
    }

    fn is_empty(&self) -> bool {
        self.reversed.is_empty()
    }

    fn take_sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        let sign = match self.reversed.last() {
            Some(ExpressionToken::Sign(sign)) => *sign,
            _ => return None,
        };
        let taken = signs.iter().find(|wanted| **wanted == sign).copied();
        if taken.is_some() {
            self.reversed.pop();
        }
        taken
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_next = matches!(self.reversed.last(), Some(ExpressionToken::Name(name)) if name == word);
        if is_next {
            self.reversed.pop();
        }
        is_next
    }

    fn expression(&mut self) -> Option<Expression> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let mut left = self.conjunction()?;
        while self.take_word("or") {
            left = Expression::Or(Box::new(left), Box::new(self.conjunction()?));
        }
        self.depth -= 1;
        Some(left)
    }

    fn conjunction(&mut self) -> Option<Expression> {
        let mut left = self.negation()?;
        while self.take_word("and") {
            left = Expression::And(Box::new(left), Box::new(self.negation()?));
        }
        Some(left)
    }

    fn negation(&mut self) -> Option<Expression> {
        let mut negations = 0;
        while self.take_word("not") {
            negations += 1;
        }
        let first = self.sum()?;
        let mut chain = Vec::new();
        while let Some(sign) = self.take_sign(&COMPARISONS) {
            chain.push((sign, self.sum()?));
        }
        let compared = if chain.is_empty() { first } else { Expression::Chain(Box::new(first), chain) };
        Some((0..negations).fold(compared, |inner, _| Expression::Not(Box::new(inner))))
    }

    fn sum(&mut self) -> Option<Expression> {
        let mut left = self.product()?;
        while let Some(sign) = self.take_sign(&["+", "-"]) {
            left = Expression::Arithmetic(Box::new(left), sign, Box::new(self.product()?));
        }
        Some(left)
    }

    fn product(&mut self) -> Option<Expression> {
        let mut left = self.atom()?;
        while let Some(sign) = self.take_sign(&["*", "//", "/", "%"]) {
            left = Expression::Arithmetic(Box::new(left), sign, Box::new(self.atom()?));
        }
        Some(left)
    }

    fn atom(&mut self) -> Option<Expression> {
        let mut signs = 0;
        while self.take_sign(&["-"]).is_some() {
            signs += 1;
        }
        let atom = match self.reversed.pop()? {
            ExpressionToken::Number(number) => Expression::Number(number),
            ExpressionToken::Sign("(") => {
                let inner = self.expression()?;
                self.take_sign(&[")"])?;
                inner
            }
            ExpressionToken::Name(name) if self.take_sign(&["("]).is_some() => self.call(&name)?,
            ExpressionToken::Name(name) => Expression::Name(name),
            ExpressionToken::Sign(_) => return None,
        };
        Some(if signs % 2 == 1 { Expression::Negative(Box::new(atom)) } else { atom })
    }

    fn call(&mut self, name: &str) -> Option<Expression> {
        let function = FUNCTIONS.into_iter().find(|function| *function == name)?;
        let mut arguments = vec![self.expression()?];
        while self.take_sign(&[","]).is_some() {
            arguments.push(self.expression()?);
        }
        self.take_sign(&[")"])?;
        Some(Expression::Call(function, arguments))
    }
}

fn number(text: &str) -> Option<(ExpressionToken, usize)> {
    if let Some(hex) = text.strip_prefix("0x") {
        let len = hex.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(hex.len());
        let number = u64::from_str_radix(&hex[..len], 16).ok()?;
        return Some((ExpressionToken::Number(number as f64), len + 2));
    }
    let len = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    Some((ExpressionToken::Number(text[..len].parse().ok()?), len))
}

/// The variables of a script's statements.
#[derive(Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, f64>);

impl Variables {
    /// Runs statements; the first that is false, with what the names in it stand for.
    pub(crate) fn run(&mut self, statements: &[Statement], info: &TcpInfoFields) -> Result<(), CheckError> {
        for statement in statements {
            match statement {
                Statement::Assign(name, value) => {
                    let value = self.value(value, info)?;
                    self.0.insert(name.clone(), value);
                }
                Statement::Assert(condition, text) => {
                    if self.value(condition, info)? == 0.0 {
                        let mut names = Vec::new();
                        condition.names(&mut names);
                        let values =
                            names.iter().filter_map(|name| Some(format!("{name} = {}", self.lookup(name, info)?)));
                        let values: Vec<String> = values.collect();
                        return Err(CheckError::False(format!("{text} is false: {}", values.join(", "))));
                    }
                }
            }
        }
        Ok(())
    }

    fn lookup(&self, name: &str, info: &TcpInfoFields) -> Option<f64> {
        let constant = || CONSTANTS.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
        info.get(name).or_else(|| self.0.get(name)).copied().or_else(constant)
    }

    fn value(&self, expression: &Expression, info: &TcpInfoFields) -> Result<f64, CheckError> {
        let value = |expression: &Expression| self.value(expression, info);
        Ok(match expression {
            Expression::Number(number) => *number,
            Expression::Name(name) => self.lookup(name, info).ok_or_else(|| CheckError::Unknown(name.clone()))?,
            Expression::Not(inner) => f64::from(value(inner)? == 0.0),
            Expression::Negative(inner) => -value(inner)?,
            Expression::Arithmetic(left, sign, right) => arithmetic(value(left)?, sign, value(right)?),
            Expression::Chain(first, rest) => {
                let mut left = value(first)?;
                for (sign, right) in rest {
                    let right = value(right)?;
                    if !compare(left, sign, right) {
                        return Ok(0.0);
                    }
                    left = right;
                }
                1.0
            }
            Expression::And(left, right) => {
                let left = value(left)?;
                if left == 0.0 { left } else { value(right)? }
            }
            Expression::Or(left, right) => {
                let left = value(left)?;
                if left == 0.0 { value(right)? } else { left }
            }
            Expression::Call(name, arguments) => {
                let values = arguments.iter().map(value).collect::<Result<Vec<f64>, _>>()?;
                match *name {
                    "abs" => values[0].abs(),
                    "min" => values.into_iter().fold(f64::INFINITY, f64::min),
                    _ => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
                }
            }
        })
    }
}

fn arithmetic(left: f64, sign: &str, right: f64) -> f64 {
    match sign {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => left / right,
        "//" => (left / right).floor(),
        _ => left - (left / right).floor() * right,
    }
}

fn compare(left: f64, sign: &str, right: f64) -> bool {
    match sign {
        "==" => left == right,
        "!=" => left != right,
        "<=" => left <= right,
        ">=" => left >= right,
        "<" => left < right,
        _ => left > right,
    }
}

/// Reason why statements did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CheckError {
    False(String),
    /// A name that nothing stands behind.
    Unknown(String),
}

impl Expression {
    fn names(&self, names: &mut Vec<String>) {
        match self {
            Self::Number(_) => {}
            Self::Name(name) => names.push(name.clone()),
            Self::Not(inner) | Self::Negative(inner) => inner.names(names),
            Self::Arithmetic(left, _, right) | Self::And(left, right) | Self::Or(left, right) => {
                left.names(names);
                right.names(names);
            }
            Self::Chain(first, rest) => {
                first.names(names);
                rest.iter().for_each(|(_, part)| part.names(names));
            }
            Self::Call(_, arguments) => arguments.iter().for_each(|argument| argument.names(names)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> Result<(), CheckError> {
        let info = TcpInfoFields::from([("tcpi_snd_cwnd".to_owned(), 10.0), ("tcpi_ca_state".to_owned(), 3.0)]);
        Variables::default().run(&statements(text).unwrap(), &info)
    }

    #[test]
    fn comparisons_chain_as_in_python() {
        assert_eq!(holds("assert 9 <= tcpi_snd_cwnd <= 11, tcpi_snd_cwnd"), Ok(()));
        assert_eq!(holds("assert tcpi_ca_state == TCP_CA_Recovery and not tcpi_snd_cwnd < 3"), Ok(()));
        assert!(holds("assert 9 <= tcpi_snd_cwnd < 10").is_err());
        assert_eq!(holds("assert 2 + 3 * 4 == 14 and -7 // 2 == -4 and 7 % 4 == 3 and 0x10 == 16"), Ok(()));
        assert_eq!(holds("assert abs(3 - 5) == 2 and max(1, 2) == 2 or 1 == 2"), Ok(()));
    }

    #[test]
    fn several_statements_with_comments_and_messages() {
        let text = "LIMIT = 12\nassert tcpi_snd_cwnd < LIMIT, 'cwnd=%d' % (tcpi_snd_cwnd)  # why; not\n\
                    print(tcpi_snd_cwnd); assert tcpi_snd_cwnd == 10, \"; #\";\\\n LIMIT += 1\nassert LIMIT == 13";
        assert_eq!(statements(text).unwrap().len(), 5);
        assert_eq!(holds(text), Ok(()));
    }

    #[test]
    fn a_false_statement_says_what_its_names_stand_for() {
        let error = holds("assert tcpi_snd_cwnd == 11, tcpi_snd_cwnd").unwrap_err();
        assert_eq!(error, CheckError::False("tcpi_snd_cwnd == 11 is false: tcpi_snd_cwnd = 10".to_owned()));
        assert_eq!(holds("assert tcpi_new == 1"), Err(CheckError::Unknown("tcpi_new".to_owned())));
    }

    #[test]
    fn other_python_is_refused() {
        for text in
            ["for x in y: pass", "assert [1]", "assert foo(1) == 2", "x -= 1", "assert 1 ==", "assert 'a' == 'a'"]
        {
            assert!(statements(text).is_err(), "{text}");
        }
        assert!(statements(&format!("assert {}1{}", "(".repeat(10_000), ")".repeat(10_000))).is_err());
    }
}
