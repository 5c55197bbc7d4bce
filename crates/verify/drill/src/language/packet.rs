//! A segment of a script: `[ect0] P. 1:1001(1000) ack 1 win 257 <nop,nop,TS val 1 ecr 2>`.

use super::cursor::{Cursor, Parsed};
use crate::segment::{DrillSegment, EcnField, HeaderOption, TcpFlags};

/// Reads the segment that follows `<` or `>`.
pub(super) fn segment(cursor: &mut Cursor<'_>) -> Parsed<DrillSegment> {
    let ecn = ecn(cursor)?;
    let letters = cursor.take_while(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter));
    let Some(flags) = TcpFlags::parse(letters) else {
        return cursor.error(format!("flags or a kind of packet that is not understood: {letters:?}"));
    };
    let seq = cursor.number()?;
    cursor.expect(":")?;
    let end: u32 = cursor.number()?;
    cursor.expect("(")?;
    let len = cursor.number()?;
    cursor.expect(")")?;
    let mut segment = DrillSegment { flags, seq, len, ecn, options: Some(Vec::new()), ..DrillSegment::default() };
    if segment.end() != end {
        return cursor.error(format!("{seq}:{end} is not {len} bytes long"));
    }
    if cursor.take("ack") {
        segment.ack = cursor.number()?;
    }
    if cursor.take("win") {
        segment.window = Some(cursor.number()?);
    }
    if cursor.sees("urg") {
        return cursor.error("urgent data is not understood");
    }
    if cursor.take("<") {
        segment.options = options(cursor)?;
    }
    Ok(segment)
}

fn ecn(cursor: &mut Cursor<'_>) -> Parsed<Option<EcnField>> {
    if !cursor.take("[") {
        return Ok(None);
    }
    let name = cursor.word();
    let field = match name {
        "ect0" => EcnField::Ect0,
        "ect1" => EcnField::Ect1,
        "ce" => EcnField::Experienced,
        "noecn" => EcnField::NotCapable,
        _ => return cursor.error(format!("a property of the IP header that is not understood: {name:?}")),
    };
    cursor.expect("]")?;
    Ok(Some(field))
}

/// `None` for `...`: whatever they are.
fn options(cursor: &mut Cursor<'_>) -> Parsed<Option<Vec<HeaderOption>>> {
    if cursor.take("...") {
        cursor.expect(">")?;
        return Ok(None);
    }
    let mut options = Vec::new();
    loop {
        options.push(option(cursor)?);
        if cursor.take(">") {
            return Ok(Some(options));
        }
        cursor.expect(",")?;
    }
}

fn option(cursor: &mut Cursor<'_>) -> Parsed<HeaderOption> {
    Ok(match cursor.word() {
        "nop" => HeaderOption::Nop,
        "eol" => HeaderOption::EndOfList,
        "mss" => HeaderOption::Mss(cursor.number()?),
        "wscale" => HeaderOption::WindowScale(cursor.number()?),
        "sackOK" => HeaderOption::SackPermitted,
        "sack" => HeaderOption::Sack(blocks(cursor)?),
        "TS" => {
            cursor.expect("val")?;
            let value = cursor.number()?;
            cursor.expect("ecr")?;
            HeaderOption::Timestamp { value, echo: cursor.number()? }
        }
        other => return cursor.error(format!("a TCP option that is not understood: {other:?}")),
    })
}

fn blocks(cursor: &mut Cursor<'_>) -> Parsed<Vec<(u32, u32)>> {
    let mut blocks = Vec::new();
    while cursor.peek().is_some_and(|letter| letter.is_ascii_digit()) {
        let from = cursor.number()?;
        cursor.expect(":")?;
        blocks.push((from, cursor.number()?));
    }
    Ok(blocks)
}
