//! Writes Chakra traces, as their generators do.

/// An attribute of a node: its name, the field of its value, the value.
pub(crate) type TraceAttribute<'a> = (&'a str, u64, u64);

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3, out);
    varint(value, out);
}

fn bytes(field: u64, value: &[u8], out: &mut Vec<u8>) {
    varint(field << 3 | 2, out);
    varint(value.len() as u64, out);
    out.extend(value);
}

fn delimited(message: &[u8], out: &mut Vec<u8>) {
    varint(message.len() as u64, out);
    out.extend(message);
}

/// The beginning of a trace.
pub(crate) fn metadata(version: &str) -> Vec<u8> {
    let (mut message, mut out) = (Vec::new(), Vec::new());
    bytes(1, version.as_bytes(), &mut message);
    delimited(&message, &mut out);
    out
}

/// A node behind its length.
pub(crate) fn node(
    id: u64,
    kind: u64,
    dependencies: &[u64],
    micros: u64,
    attributes: &[TraceAttribute<'_>],
) -> Vec<u8> {
    let (mut message, mut packed, mut out) = (Vec::new(), Vec::new(), Vec::new());
    number(1, id, &mut message);
    bytes(2, format!("node {id}").as_bytes(), &mut message);
    number(3, kind, &mut message);
    dependencies.iter().for_each(|id| varint(*id, &mut packed));
    bytes(5, &packed, &mut message);
    number(7, micros, &mut message);
    for (name, field, value) in attributes {
        let mut attribute = Vec::new();
        bytes(1, name.as_bytes(), &mut attribute);
        number(*field, *value, &mut attribute);
        bytes(10, &attribute, &mut message);
    }
    delimited(&message, &mut out);
    out
}
