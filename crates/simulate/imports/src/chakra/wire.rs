//! Traces as protobuf: `GlobalMetadata`, then nodes, each behind its length.
//!
//! Only the few fields that matter are read, and all others are skipped by their wire type, so this is shorter than structs
//! for the whole schema, and needs no library.

use std::io::{BufRead, Read};

use super::node::TraceNode;
use crate::error::{ImportError, shortened};

/// Longer nodes are not what is expected here.
const LONGEST_MESSAGE: u64 = 16 << 20;
/// Dependencies of one node, at most.
const MOST_DEPENDENCIES: usize = 1 << 20;

/// The value of a field.
enum FieldValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// 32 or 64 bits that nothing here needs.
    Fixed,
}

pub(super) fn read(
    rank: u32,
    from: &mut dyn BufRead,
    take: &mut dyn FnMut(TraceNode) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut bytes = Vec::new();
    let mut message = 0_u64;
    loop {
        let wrong = |problem: String| ImportError::rank(rank, format_args!("message {message}: {problem}"));
        let Some(len) = length(from).map_err(wrong)? else { break };
        if len > LONGEST_MESSAGE {
            return Err(wrong(format!("of {len} bytes: expected a Chakra trace (is it another format?)")));
        }
        bytes.clear();
        let read = Read::take(&mut *from, len).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
        if (read as u64) < len {
            return Err(wrong(format!("{read} of {len} bytes: the file is cut short")));
        }
        if message == 0 {
            check_version(&bytes).map_err(wrong)?;
        } else {
            take(node(&bytes).map_err(wrong)?)?;
        }
        message += 1;
    }
    if message == 0 { Err(ImportError::rank(rank, "the file is empty: expected a Chakra trace")) } else { Ok(()) }
}

/// The length before a message; `None` at the end of the file.
fn length(from: &mut dyn BufRead) -> Result<Option<u64>, String> {
    let mut value = 0_u64;
    for at in 0..10 {
        let mut byte = [0];
        match from.read_exact(&mut byte) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof && at == 0 => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err("the file is cut short".into());
            }
            Err(error) => return Err(error.to_string()),
        }
        value |= u64::from(byte[0] & 0x7f).checked_shl(7 * at).unwrap_or_default();
        if byte[0] < 0x80 {
            return Ok(Some(value));
        }
    }
    Err("is no length: expected a Chakra trace (is it another format?)".into())
}

/// Versions of the schema whose nodes have the same fields.
fn check_version(metadata: &[u8]) -> Result<(), String> {
    let mut version = String::new();
    for_each_field(metadata, &mut |number, value| {
        if let (1, FieldValue::Bytes(text)) = (number, value) {
            version = String::from_utf8_lossy(text).into_owned();
        }
        Ok(())
    })?;
    match version.as_str() {
        "0.0.4" => Ok(()),
        text if text.starts_with("1.") => Ok(()),
        text => Err(format!("schema '{}': expected version 1.x or 0.0.4", shortened(text))),
    }
}

fn node(message: &[u8]) -> Result<TraceNode, String> {
    // A number that is missing is 0, as protobuf leaves zeros out.
    let mut node = TraceNode::default();
    for_each_field(message, &mut |number, value| {
        match (number, value) {
            (1, FieldValue::Number(id)) => node.id = id,
            (3, FieldValue::Number(kind)) => node.kind = kind.into(),
            (4 | 5, FieldValue::Number(id)) => node.dependencies.push(id),
            (4 | 5, FieldValue::Bytes(packed)) => {
                let mut rest = packed;
                while !rest.is_empty() {
                    node.dependencies.push(varint(&mut rest)?);
                }
            }
            (7, FieldValue::Number(duration)) => node.duration = duration,
            (10, FieldValue::Bytes(attribute)) => set_attribute(&mut node, attribute)?,
            (1 | 3 | 7 | 10, _) => return Err(format!("field {number} is of another kind: is it another schema?")),
            _ => {}
        }
        if node.dependencies.len() > MOST_DEPENDENCIES { Err("too many dependencies".into()) } else { Ok(()) }
    })?;
    Ok(node)
}

fn set_attribute(node: &mut TraceNode, attribute: &[u8]) -> Result<(), String> {
    let (mut name, mut number, mut text) = (&[][..], 0_i64, None);
    for_each_field(attribute, &mut |field, value| {
        match (field, value) {
            (1, FieldValue::Bytes(bytes)) => name = bytes,
            // int32, int64, uint32, uint64, bool: two's complement in 64 bits.
            (7 | 9 | 11 | 13 | 27, FieldValue::Number(bits)) => number = bits as i64,
            // sint32, sint64: zigzag.
            (15 | 17, FieldValue::Number(bits)) => number = (bits >> 1) as i64 ^ -((bits & 1) as i64),
            (29, FieldValue::Bytes(bytes)) => text = Some(bytes),
            _ => {}
        }
        Ok(())
    })?;
    match name {
        b"pg_name" => node.group = text.map_or_else(|| number.to_string(), |text| String::from_utf8_lossy(text).into()),
        b"involved_dim" => node.has_dimensions = true,
        name => {
            let said = |problem| format!("{} {problem}", shortened(&String::from_utf8_lossy(name)));
            node.set(name, number).map_err(said)?;
        }
    }
    Ok(())
}

/// Fields of a message, in their order.
fn for_each_field<'a>(
    message: &'a [u8],
    take: &mut dyn FnMut(u64, FieldValue<'a>) -> Result<(), String>,
) -> Result<(), String> {
    let mut rest = message;
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let value = match key & 7 {
            0 => FieldValue::Number(varint(&mut rest)?),
            1 => split(&mut rest, 8).map(|_| FieldValue::Fixed)?,
            2 => {
                let len = varint(&mut rest)?;
                FieldValue::Bytes(split(&mut rest, len)?)
            }
            5 => split(&mut rest, 4).map(|_| FieldValue::Fixed)?,
            other => return Err(format!("wire type {other}: expected a Chakra trace (is it another format?)")),
        };
        take(key >> 3, value)?;
    }
    Ok(())
}

fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0_u64;
    for at in 0..10 {
        let byte = split(rest, 1)?[0];
        value |= u64::from(byte & 0x7f).checked_shl(7 * at).unwrap_or_default();
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number of more than ten bytes: expected a Chakra trace".into())
}

fn split<'a>(rest: &mut &'a [u8], len: u64) -> Result<&'a [u8], String> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let (first, other) =
        rest.split_at_checked(len).ok_or("a field is longer than its message: is the file damaged?")?;
    *rest = other;
    Ok(first)
}
