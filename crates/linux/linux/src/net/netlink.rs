//! Netlink: requests with nested attributes, acknowledgements and dumps over one blocking socket. Mostly rtnetlink;
//! generic netlink, for families that have a name instead of a number, speaks the same way ([`Netlink::family`]).
//!
//! ```text
//!   request ──▶ kernel    change:  ACK | error (with a sentence on why, where the kernel has one)
//!                         get:     answer, ACK
//!                         dump:    answer, answer, …, DONE
//! ```
//!
//! Everything is in the machine's byte order. Answers to an earlier request that failed half way are
//! recognised by their sequence number and skipped.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{NetError, Result, sys};

/// A connection to the kernel's network configuration in one namespace.
#[derive(Debug)]
pub struct Netlink {
    socket: File,
    sequence: Cell<u32>,
}

const HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
/// Length of `genlmsghdr`.
pub(super) const GENERIC_HEADER: usize = 4;
/// The kernel never fills more than 32 KiB at once.
const BUFFER: usize = 65_536;
const DUMP: u16 = libc::NLM_F_DUMP as u16;
const DUMP_INTERRUPTED: u16 = libc::NLM_F_DUMP_INTR as u16;
/// A constant that libc lacks: the acknowledgement omits the request, and attributes follow.
const CAPPED: u16 = 0x100;
const HAS_ATTRIBUTES: u16 = 0x200;
const ERROR_SENTENCE: u16 = 1;
/// Length of `rtnexthop`.
const HOP_HEADER: usize = 8;
/// Pervasive and on-link. The other flags of a hop are its state, and the kernel refuses a request that has them.
pub(super) const KEPT_HOP_FLAGS: u8 = 2 | 4;
/// A dump that something else keeps changing is asked for again, but not for ever.
const DUMP_ATTEMPTS: usize = 16;

/// The kernel's answer to a request that it did not carry out.
struct NetlinkRefusal {
    source: io::Error,
    detail: Option<String>,
}

impl From<io::Error> for NetlinkRefusal {
    fn from(source: io::Error) -> Self {
        Self { source, detail: None }
    }
}

impl Netlink {
    /// Opens a connection to the calling thread's network namespace, and stays with it.
    pub fn open() -> Result<Self> {
        Self::open_for(libc::NETLINK_ROUTE)
    }

    /// [`Netlink::open`] for another of the kernel's subsystems.
    pub(super) fn open_for(protocol: i32) -> Result<Self> {
        let socket = sys::netlink_socket(protocol).map_err(|error| NetError::new("open a netlink socket", error))?;
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK, libc::NETLINK_GET_STRICT_CHK] {
            // Each only makes answers better or shorter; kernels before 4.20 lack some.
            let _ = sys::set_netlink_option(&socket, option);
        }
        Ok(Self { socket, sequence: Cell::new(0) })
    }

    /// The socket, for ioctls in the same namespace.
    pub(super) fn socket(&self) -> &File {
        &self.socket
    }

    /// Sends a request and returns what came before its acknowledgement or end, without headers.
    pub(super) fn execute(&self, what: fmt::Arguments<'_>, request: NetlinkRequest) -> Result<Vec<Vec<u8>>> {
        self.transact(request).map_err(|refusal| NetError {
            what: what.to_string(),
            source: refusal.source,
            detail: refusal.detail,
        })
    }

    /// [`Netlink::execute`] for a change to one interface, whose name ends the error's first half.
    pub(super) fn execute_on(&self, index: u32, what: fmt::Arguments<'_>, request: NetlinkRequest) -> Result<()> {
        self.transact(request).map(drop).map_err(|refusal| NetError {
            what: format!("{what} {}", self.name_of(index)),
            source: refusal.source,
            detail: refusal.detail,
        })
    }

    /// The number of a generic family, over a socket that was opened for such; none if the kernel does not have it.
    pub(super) fn family(&self, name: &str) -> Result<Option<u16>> {
        let request = NetlinkRequest::generic(libc::GENL_ID_CTRL as u16, libc::CTRL_CMD_GETFAMILY as u8, 1)
            .string(libc::CTRL_ATTR_FAMILY_NAME as u16, name);
        match self.execute(format_args!("find the netlink family {name}"), request) {
            Ok(answers) => Ok(answers.first().and_then(|message| {
                attribute(message.get(GENERIC_HEADER..)?, libc::CTRL_ATTR_FAMILY_ID as u16).and_then(|id| u16_at(id, 0))
            })),
            Err(error) if error.is_any_of(&[libc::ENOENT]) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn transact(&self, mut request: NetlinkRequest) -> std::result::Result<Vec<Vec<u8>>, NetlinkRefusal> {
        for _ in 0..DUMP_ATTEMPTS {
            let sequence = self.sequence.get().wrapping_add(1);
            self.sequence.set(sequence);
            (&self.socket).write_all(request.finish(sequence))?;
            if let Some(answers) = self.collect(sequence)? {
                return Ok(answers);
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "it keeps changing").into())
    }

    /// The answers to one request; none if the kernel's state changed while it was dumped.
    fn collect(&self, sequence: u32) -> std::result::Result<Option<Vec<Vec<u8>>>, NetlinkRefusal> {
        let mut buffer = vec![0; BUFFER];
        let (mut answers, mut consistent) = (Vec::new(), true);
        loop {
            let len = read(&self.socket, &mut buffer)?;
            let mut rest = &buffer[..len];
            while !rest.is_empty() {
                let (message, tail) =
                    NetlinkMessage::split(rest).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
                rest = tail;
                if message.sequence != sequence {
                    continue;
                }
                consistent &= message.flags & DUMP_INTERRUPTED == 0;
                match i32::from(message.kind) {
                    libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                        message.verdict()?;
                        return Ok(consistent.then_some(answers));
                    }
                    libc::NLMSG_NOOP => {}
                    _ => answers.push(message.body.to_vec()),
                }
            }
        }
    }
}

fn read(mut socket: &File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

struct NetlinkMessage<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

impl<'a> NetlinkMessage<'a> {
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let len = u32_at(bytes, 0)? as usize;
        let body = bytes.get(HEADER..len)?;
        let message = Self { kind: u16_at(bytes, 4)?, flags: u16_at(bytes, 6)?, sequence: u32_at(bytes, 8)?, body };
        Some((message, bytes.get(aligned(len)..).unwrap_or_default()))
    }

    /// Result in an acknowledgement or at the end of a dump: zero is success.
    fn verdict(&self) -> std::result::Result<(), NetlinkRefusal> {
        let code = u32_at(self.body, 0).unwrap_or(0) as i32;
        if code == 0 {
            return Ok(());
        }
        let detail = attributes(self.verdict_attributes()).find(|(kind, _)| *kind == ERROR_SENTENCE);
        Err(NetlinkRefusal {
            source: io::Error::from_raw_os_error(code.saturating_neg()),
            detail: detail.map(|(_, sentence)| text(sentence)),
        })
    }

    fn verdict_attributes(&self) -> &'a [u8] {
        let echoed = match u32_at(self.body, 4) {
            _ if i32::from(self.kind) == libc::NLMSG_DONE => 0,
            _ if self.flags & CAPPED != 0 => HEADER,
            len => aligned(len.unwrap_or(0) as usize),
        };
        let start = if self.flags & HAS_ATTRIBUTES == 0 { self.body.len() } else { 4 + echoed };
        self.body.get(start..).unwrap_or_default()
    }
}

/// A request under construction; attributes are appended in order.
pub(super) struct NetlinkRequest(Vec<u8>);

impl NetlinkRequest {
    /// `header` is the fixed part that follows the netlink header (`ifinfomsg`, `tcmsg`, …).
    pub(crate) fn new(kind: u16, flags: i32, header: &[u8]) -> Self {
        let mut flags = flags as u16 | libc::NLM_F_REQUEST as u16;
        // A dump ends by itself.
        if flags & DUMP != DUMP {
            flags |= libc::NLM_F_ACK as u16;
        }
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Self(bytes).raw(header)
    }

    /// A command of a generic family.
    pub(crate) fn generic(family: u16, command: u8, version: u8) -> Self {
        Self::new(family, 0, &[command, version, 0, 0])
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self.0.resize(aligned(self.0.len()), 0);
        self
    }

    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        push(&mut self.0, kind, value);
        self
    }

    pub(crate) fn number(self, kind: u16, value: u32) -> Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    pub(crate) fn string(self, kind: u16, value: &str) -> Self {
        self.attribute(kind, &[value.as_bytes(), &[0]].concat())
    }

    pub(crate) fn nested(self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.0.len();
        let mut filled = fill(self.attribute(kind | libc::NLA_F_NESTED as u16, &[]));
        let len = u16::try_from(filled.0.len() - start).expect("an attribute has less than 64 KiB");
        filled.0[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        filled
    }

    fn finish(&mut self, sequence: u32) -> &[u8] {
        let len = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        &self.0
    }
}

/// Appends an attribute to a message.
pub(super) fn push(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let len = u16::try_from(ATTRIBUTE_HEADER + value.len()).expect("an attribute has less than 64 KiB");
    message.extend_from_slice(&len.to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(value);
    message.resize(aligned(message.len()), 0);
}

/// The attributes of a message or of a nested attribute, up to the first that is cut short.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & libc::NLA_TYPE_MASK as u16;
        let value = bytes.get(ATTRIBUTE_HEADER..len)?;
        bytes = bytes.get(aligned(len)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The first attribute of this kind.
pub(super) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes)
}

/// The hops of a multipath route with one interface in place of another, and without the moment's state.
pub(super) fn exchange_hops(hops: &[u8], old: u32, new: u32) -> Vec<u8> {
    let mut hops = hops.to_vec();
    let mut at = 0;
    while let (Some(len), Some(index)) = (u16_at(&hops, at), u32_at(&hops, at + 4)) {
        hops[at + 2] &= KEPT_HOP_FLAGS;
        if index == old {
            hops[at + 4..at + HOP_HEADER].copy_from_slice(&new.to_ne_bytes());
        }
        at += usize::from(len).max(HOP_HEADER).next_multiple_of(4);
    }
    hops
}

pub(super) fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

pub(super) fn to_ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|octets| Ipv4Addr::from(octets).into());
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|octets| Ipv6Addr::from(octets).into())).ok()
}

pub(super) fn family(ip: IpAddr) -> u8 {
    (if ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

/// The network to which an address with this prefix belongs.
pub(super) fn masked(ip: IpAddr, prefix: u8) -> IpAddr {
    let unused = |bits: u8| u32::from(bits.saturating_sub(prefix));
    match ip {
        IpAddr::V4(ip) => Ipv4Addr::from(u32::MAX.checked_shl(unused(32)).unwrap_or(0) & u32::from(ip)).into(),
        IpAddr::V6(ip) => Ipv6Addr::from(u128::MAX.checked_shl(unused(128)).unwrap_or(0) & u128::from(ip)).into(),
    }
}

fn aligned(len: usize) -> usize {
    len.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_attributes_are_read_as_they_were_written() {
        let mut request = NetlinkRequest::new(16, 0, &[7; 3])
            .string(1, "veth")
            .nested(2, |inner| inner.number(3, 42).nested(4, |deepest| deepest.attribute(5, b"x")));
        let bytes = request.finish(9);
        let (message, rest) = NetlinkMessage::split(bytes).unwrap();
        assert_eq!((message.kind, message.sequence, rest.len()), (16, 9, 0));
        let body = &message.body[4..];
        assert_eq!(text(attribute(body, 1).unwrap()), "veth");
        let inner = attribute(body, 2).unwrap();
        assert_eq!(attribute(inner, 3).and_then(|value| u32_at(value, 0)), Some(42));
        assert_eq!(attribute(attribute(inner, 4).unwrap(), 5), Some(&b"x"[..]));
    }

    #[test]
    fn a_prefix_masks_from_nothing_to_everything() {
        let mask = |ip: &str, prefix| masked(ip.parse().unwrap(), prefix).to_string();
        assert_eq!([0, 20, 32].map(|prefix| mask("10.1.255.7", prefix)), ["0.0.0.0", "10.1.240.0", "10.1.255.7"]);
        assert_eq!([0, 32, 128].map(|prefix| mask("2001:db8:9::1", prefix)), ["::", "2001:db8::", "2001:db8:9::1"]);
    }

    #[test]
    fn attributes_that_are_cut_short_end_the_list_and_never_panic() {
        let whole = NetlinkRequest::new(16, 0, &[]).number(1, 1).number(2, 2).0.split_off(HEADER);
        for len in 0..whole.len() {
            assert_eq!(attributes(&whole[..len]).count(), len / 8);
        }
        assert_eq!(attributes(&[0; 8]).count(), 0);
    }

    #[test]
    fn a_refusal_carries_the_kernels_sentence_with_and_without_the_request() {
        let sentence = NetlinkRequest::new(0, 0, &[]).string(ERROR_SENTENCE, "no such thing").0.split_off(HEADER);
        let mut echo = [0; 20];
        echo[..4].copy_from_slice(&20_u32.to_ne_bytes());
        for (flags, echoed) in [(CAPPED, &echo[..HEADER]), (0, &echo[..])] {
            let body = [&(-libc::EINVAL).to_ne_bytes(), echoed, &sentence].concat();
            let message = NetlinkMessage {
                kind: libc::NLMSG_ERROR as u16,
                flags: flags | HAS_ATTRIBUTES,
                sequence: 1,
                body: &body,
            };
            let refusal = message.verdict().err().unwrap();
            assert_eq!(refusal.source.raw_os_error(), Some(libc::EINVAL));
            assert_eq!(refusal.detail.as_deref(), Some("no such thing"));
        }
    }
}
