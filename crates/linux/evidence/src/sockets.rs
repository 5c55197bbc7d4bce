//! Turns raw events into events of connections, by their sockets.
//!
//! Calls name a socket by its place in memory only. The change of state of a socket shows which connection has it, and so
//! does every segment that arrives.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use explain::evidence::{KernelEvent, KernelPhase, SocketEvent};

use crate::layout::{EventLayout, FieldPlace};

/// Tracepoints that are recorded, by folder and name, with what they must match.
pub(crate) const TRACEPOINTS: [(&str, &str, Option<&str>); 6] = [
    ("sock", "inet_sock_set_state", Some("protocol == 6")),
    ("tcp", "tcp_probe", None),
    ("sock", "sock_send_length", Some("protocol == 6")),
    ("sock", "sock_recv_length", Some("protocol == 6")),
    ("tcp", "tcp_cong_state_set", None),
    ("tcp", "tcp_retransmit_skb", None),
];

const INET: u64 = 2;
const INET6: u64 = 10;
const ESTABLISHED: u64 = 1;
const CLOSE: u64 = 7;
/// A receive that left the data where it was.
const PEEK: u64 = libc::MSG_PEEK as u64;

type SocketEnds = (SocketAddr, SocketAddr);

/// Addresses of both ends of a connection, in an event that has them as plain bytes.
#[derive(Clone, Copy, Debug)]
struct PlainEnds {
    family: FieldPlace,
    ports: [FieldPlace; 2],
    addresses: [FieldPlace; 2],
    long_addresses: [FieldPlace; 2],
}

impl PlainEnds {
    fn of(layout: &EventLayout) -> Option<Self> {
        let both = |names: [&str; 2]| Some([layout.field(names[0])?, layout.field(names[1])?]);
        Some(Self {
            family: layout.field("family")?,
            ports: both(["sport", "dport"])?,
            addresses: both(["saddr", "daddr"])?,
            long_addresses: both(["saddr_v6", "daddr_v6"])?,
        })
    }

    fn read(&self, record: &[u8]) -> Option<SocketEnds> {
        let places = match self.family.number(record)? {
            INET => self.addresses,
            INET6 => self.long_addresses,
            _ => return None,
        };
        let end = |which: usize| {
            let port = self.ports[which].number(record)? as u16;
            Some(SocketAddr::new(address(places[which].bytes(record)?)?, port))
        };
        Some((end(0)?, end(1)?))
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let long = || <[u8; 16]>::try_from(bytes).ok().map(|bytes| IpAddr::from(Ipv6Addr::from(bytes)).to_canonical());
    <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).into()).or_else(long)
}

/// A `sockaddr` of either family.
fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let place = match u64::from(family) {
        INET => 4..8,
        INET6 => 8..24,
        _ => return None,
    };
    Some(SocketAddr::new(address(bytes.get(place)?)?, port))
}

/// Kinds of events, with the places of their fields.
#[derive(Debug)]
enum EventKind {
    State { ends: PlainEnds, socket: FieldPlace, state: FieldPlace },
    Probe { ends: [FieldPlace; 2], socket: FieldPlace, window: FieldPlace, peer_window: FieldPlace },
    Call { socket: FieldPlace, result: FieldPlace, flags: FieldPlace, sends: bool },
    Phase { ends: PlainEnds, phase: FieldPlace },
    Again { ends: PlainEnds },
}

impl EventKind {
    fn of(name: &str, layout: &EventLayout) -> Option<Self> {
        let field = |name: &str| layout.field(name);
        Some(match name {
            "inet_sock_set_state" => {
                Self::State { ends: PlainEnds::of(layout)?, socket: field("skaddr")?, state: field("newstate")? }
            }
            "tcp_probe" => Self::Probe {
                ends: [field("saddr")?, field("daddr")?],
                socket: field("skaddr")?,
                window: field("snd_cwnd")?,
                peer_window: field("snd_wnd")?,
            },
            "sock_send_length" | "sock_recv_length" => Self::Call {
                socket: field("sk")?,
                result: field("ret")?,
                flags: field("flags")?,
                sends: name == "sock_send_length",
            },
            "tcp_cong_state_set" => Self::Phase { ends: PlainEnds::of(layout)?, phase: field("cong_state")? },
            _ => Self::Again { ends: PlainEnds::of(layout)? },
        })
    }
}

/// The sockets that are known.
#[derive(Debug)]
pub(crate) struct SocketTable {
    kinds: HashMap<u16, EventKind>,
    /// Ends of each socket, by its address in the kernel's memory.
    known: HashMap<u64, SocketEnds>,
    /// Own addresses; connections of other addresses are not recorded.
    addresses: Vec<IpAddr>,
}

impl SocketTable {
    pub(crate) fn new(addresses: Vec<IpAddr>) -> Self {
        Self { kinds: HashMap::new(), known: HashMap::new(), addresses }
    }

    /// Accepts this kind of event from now on; false if it lacks a field that is needed.
    pub(crate) fn learn(&mut self, name: &str, layout: &EventLayout) -> bool {
        let Some(kind) = EventKind::of(name, layout) else { return false };
        self.kinds.insert(layout.id, kind);
        true
    }

    /// Event that a record reports of a connection of ours.
    pub(crate) fn event(&mut self, record: &[u8]) -> Option<KernelEvent> {
        let id = u16::from_ne_bytes(*record.first_chunk()?);
        let ((local, remote), news) = match self.kinds.get(&id)? {
            EventKind::State { ends, socket, state } => {
                let (socket, pair) = (socket.number(record)?, ends.read(record)?);
                match state.number(record)? {
                    ESTABLISHED => {
                        self.known.insert(socket, pair);
                        (pair, SocketEvent::Open)
                    }
                    CLOSE => {
                        self.known.remove(&socket);
                        return None;
                    }
                    _ => return None,
                }
            }
            EventKind::Probe { ends, socket, window, peer_window } => {
                let pair = (socket_address(ends[0].bytes(record)?)?, socket_address(ends[1].bytes(record)?)?);
                let windows =
                    SocketEvent::Windows { congestion: window.number(record)?, receive: peer_window.number(record)? };
                self.known.insert(socket.number(record)?, pair);
                (pair, windows)
            }
            EventKind::Call { socket, result, flags, sends } => {
                let pair = *self.known.get(&socket.number(record)?)?;
                let bytes = u64::try_from(result.signed(record)?).ok()?;
                match (sends, flags.number(record)? & PEEK) {
                    (true, _) => (pair, SocketEvent::Sent(bytes)),
                    (false, 0) => (pair, SocketEvent::Received(bytes)),
                    _ => return None,
                }
            }
            EventKind::Phase { ends, phase } => {
                (ends.read(record)?, SocketEvent::Phase(KernelPhase::numbered(phase.number(record)?)?))
            }
            EventKind::Again { ends } => (ends.read(record)?, SocketEvent::Again),
        };
        self.addresses.contains(&local.ip()).then_some(KernelEvent { local, remote, news })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(id: u16, fields: &[(&str, usize)]) -> EventLayout {
        let mut text = format!("ID: {id}\n");
        let mut offset = 8;
        for (name, size) in fields {
            text += &format!("\tfield:int {name};\toffset:{offset};\tsize:{size};\tsigned:0;\n");
            offset += size;
        }
        EventLayout::parse(&text).unwrap()
    }

    /// Events of a socket: its opening, a call of 500 bytes, its end.
    fn table() -> SocketTable {
        let mut table = SocketTable::new(vec!["10.0.0.1".parse().unwrap()]);
        let ends =
            [("family", 2), ("sport", 2), ("dport", 2), ("saddr", 4), ("daddr", 4), ("saddr_v6", 16), ("daddr_v6", 16)];
        let state = [&[("skaddr", 8), ("newstate", 4)][..], &ends].concat();
        assert!(table.learn("inet_sock_set_state", &layout(1, &state)));
        assert!(table.learn("sock_send_length", &layout(2, &[("sk", 8), ("ret", 4), ("flags", 4)])));
        assert!(table.learn("sock_recv_length", &layout(3, &[("sk", 8), ("ret", 4), ("flags", 4)])));
        table
    }

    fn state(socket: u64, state: u32, from: [u8; 4]) -> Vec<u8> {
        let mut record = vec![1, 0, 0, 0, 0, 0, 0, 0];
        record.extend(socket.to_le_bytes());
        record.extend(state.to_le_bytes());
        record.extend([2, 0, 64, 156, 80, 0]);
        record.extend(from);
        record.extend([10, 0, 0, 2]);
        record.extend([0; 32]);
        record
    }

    fn call(kind: u8, socket: u64, result: i32, flags: u32) -> Vec<u8> {
        let mut record = vec![kind, 0, 0, 0, 0, 0, 0, 0];
        record.extend(socket.to_le_bytes());
        record.extend(result.to_le_bytes());
        record.extend(flags.to_le_bytes());
        record
    }

    #[test]
    fn a_call_belongs_to_the_connection_that_its_socket_has() {
        let mut table = table();
        assert_eq!(table.event(&call(2, 9, 500, 0)), None, "a socket that nobody knows");
        let opened = table.event(&state(9, 1, [10, 0, 0, 1])).unwrap();
        assert_eq!(opened.to_string(), "open 10.0.0.1:40000 10.0.0.2:80");
        assert_eq!(table.event(&call(2, 9, 500, 0)).unwrap().news, SocketEvent::Sent(500));
        assert_eq!(table.event(&call(3, 9, 20, 0)).unwrap().news, SocketEvent::Received(20));
        assert_eq!(table.event(&call(3, 9, 20, 2)), None, "only looked at");
        assert_eq!(table.event(&call(2, 9, -11, 0)), None, "a call that failed");
        assert_eq!(table.event(&state(9, 7, [10, 0, 0, 1])), None);
        assert_eq!(table.event(&call(2, 9, 500, 0)), None, "the socket is another's now");
    }

    #[test]
    fn connections_of_other_addresses_are_left_alone() {
        let mut table = table();
        assert_eq!(table.event(&state(9, 1, [10, 0, 0, 7])), None);
        assert_eq!(table.event(&call(2, 9, 500, 0)), None);
    }

    #[test]
    fn a_kernel_that_lacks_a_field_is_noticed() {
        let mut table = SocketTable::new(Vec::new());
        assert!(!table.learn("tcp_probe", &layout(5, &[("saddr", 28), ("daddr", 28)])));
    }

    #[test]
    fn addresses_of_both_families_are_read() {
        let v4 = [2, 0, 0, 80, 10, 0, 0, 1];
        assert_eq!(socket_address(&v4), "10.0.0.1:80".parse().ok());
        let mut v6 = vec![10, 0, 0, 80, 0, 0, 0, 0];
        v6.extend([0; 10]);
        v6.extend([0xff, 0xff, 10, 0, 0, 1]);
        assert_eq!(socket_address(&v6), "10.0.0.1:80".parse().ok(), "of IPv4, on a socket for both");
        assert_eq!(socket_address(&[1, 0, 0, 80]), None);
    }
}
