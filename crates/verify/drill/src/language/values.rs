//! Arguments of system calls, as trees.

use super::cursor::{Cursor, Parsed};

/// One argument, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallArgument {
    /// `...`
    Any,
    Number(i64),
    /// A constant, or several joined by `|`.
    Symbol(String),
    Text(String),
    List(Vec<CallArgument>),
    /// Names and values; `msg_iov(1)` is `msg_iov`.
    Fields(Vec<(String, CallArgument)>),
}

impl CallArgument {
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Parsed<Self> {
        if cursor.take("...") {
            return Ok(Self::Any);
        }
        if cursor.take("[") {
            return Ok(Self::List(list(cursor, "]")?));
        }
        if cursor.take("{") {
            return braces(cursor);
        }
        if cursor.take("\"") {
            return Ok(Self::Text(cursor.until("\"")?.to_owned()));
        }
        match cursor.peek() {
            Some('-' | '0'..='9') => integer(cursor).map(Self::Number),
            Some(letter) if letter.is_ascii_alphabetic() || letter == '_' => {
                let mut symbol = cursor.word().to_owned();
                while cursor.take("|") {
                    symbol += "|";
                    symbol += cursor.word();
                }
                Ok(Self::Symbol(symbol))
            }
            _ => cursor.error(format!("an argument is not understood: {:?}", cursor.excerpt())),
        }
    }

    /// A number, alone or as the only element of a list.
    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::List(parts) => match parts.as_slice() {
                [Self::Number(number)] => Some(*number),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Fields(fields) => fields.iter().find(|(of, _)| of == name).map(|(_, value)| value),
            _ => None,
        }
    }
}

/// Values before `end`, separated by commas.
pub(crate) fn list(cursor: &mut Cursor<'_>, end: &str) -> Parsed<Vec<CallArgument>> {
    let mut parts = Vec::new();
    if cursor.take(end) {
        return Ok(parts);
    }
    loop {
        parts.push(CallArgument::parse(cursor)?);
        if cursor.take(end) {
            return Ok(parts);
        }
        cursor.expect(",")?;
    }
}

/// `{..., 40}` is a list, `{a=1, b(1)=2}` has fields.
fn braces(cursor: &mut Cursor<'_>) -> Parsed<CallArgument> {
    let mut ahead = cursor.clone();
    let named = !ahead.word().is_empty() && (ahead.sees("=") || ahead.sees("("));
    if !named {
        return list(cursor, "}").map(CallArgument::List);
    }
    let mut fields = Vec::new();
    loop {
        let name = cursor.word().to_owned();
        if cursor.take("(") {
            cursor.until(")")?;
        }
        cursor.expect("=")?;
        fields.push((name, CallArgument::parse(cursor)?));
        if cursor.take("}") {
            return Ok(CallArgument::Fields(fields));
        }
        cursor.expect(",")?;
    }
}

pub(crate) fn integer(cursor: &mut Cursor<'_>) -> Parsed<i64> {
    let sign = if cursor.take("-") { -1 } else { 1 };
    if cursor.take("0x") {
        let digits = cursor.take_while(|letter| letter.is_ascii_hexdigit());
        return match i64::from_str_radix(digits, 16) {
            Ok(number) => Ok(sign * number),
            Err(_) => cursor.error("expected a hexadecimal number"),
        };
    }
    cursor.number::<u32>().map(|number| sign * i64::from(number))
}
