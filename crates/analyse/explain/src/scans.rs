//! Connections without payload, of which there may be a million in a capture: scans, floods, probes of load balancers.
//!
//! Each is a note of some bytes; they are said together, by who opened them or by whom they were meant for.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use crate::pairs::{AddressBook, PairKey};

/// Connections of one host that are worth a line of their own.
const MANY: usize = 100;
/// Servers of one client that are worth a line each.
const FEW_SERVERS: usize = 16;

/// Progress of a connection without payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BareOutcome {
    /// No answer was captured.
    Unanswered,
    /// A reset came back.
    Refused,
    Opened,
}

/// A connection without payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BareNote {
    pub pair: PairKey,
    /// The client comes first in the pair.
    pub client_first: bool,
    pub outcome: BareOutcome,
    pub at: u64,
}

/// Connections without payload that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScanAnswer {
    /// Host that opened them, and host for which they were meant; `None` if there are several.
    pub client: Option<IpAddr>,
    pub server: Option<IpAddr>,
    pub clients: u64,
    pub servers: u64,
    /// Number of different ports of servers, the lowest and the highest.
    pub ports: u64,
    pub first_port: u16,
    pub last_port: u16,
    pub connections: u64,
    pub unanswered: u64,
    pub refused: u64,
    pub opened: u64,
    pub start_ns: u64,
    pub end_ns: u64,
}

/// Host that opened a connection, and server for which it was meant.
#[derive(Clone, Copy, Debug)]
struct ScannedConnection {
    client: IpAddr,
    server: SocketAddr,
}

/// Joins many connections without payload into few answers.
pub(crate) fn scans(mut notes: Vec<BareNote>, book: &AddressBook) -> Vec<ScanAnswer> {
    let resolve = |note: BareNote| {
        let (client, server) = book.ends(note.pair, note.client_first);
        ScannedConnection { client: client.ip(), server }
    };
    let mut scans = Vec::new();
    notes.sort_unstable_by_key(|note| resolve(*note).client);
    let mut rest = Vec::new();
    for of_client in notes.chunk_by(|one, other| resolve(*one).client == resolve(*other).client) {
        if of_client.len() < MANY {
            rest.extend_from_slice(of_client);
        } else {
            by_server(of_client, &resolve, &mut scans);
        }
    }
    drop(notes);
    rest.sort_unstable_by_key(|note| resolve(*note).server.ip());
    let mut others = Vec::new();
    for of_server in rest.chunk_by(|one, other| resolve(*one).server.ip() == resolve(*other).server.ip()) {
        if of_server.len() < MANY {
            others.extend_from_slice(of_server);
        } else {
            scans.push(scan(of_server, &resolve));
        }
    }
    if !others.is_empty() {
        scans.push(scan(&others, &resolve));
    }
    scans.sort_by_key(|scan| (std::cmp::Reverse(scan.connections), scan.start_ns, scan.client, scan.server));
    scans
}

/// One client's: a line for each server, if they are few.
fn by_server(notes: &[BareNote], resolve: &impl Fn(BareNote) -> ScannedConnection, scans: &mut Vec<ScanAnswer>) {
    let servers = distinct(notes.iter().map(|note| resolve(*note).server.ip()));
    if servers.len() > FEW_SERVERS {
        scans.push(scan(notes, resolve));
        return;
    }
    for server in servers {
        let meant: Vec<BareNote> = notes.iter().copied().filter(|note| resolve(*note).server.ip() == server).collect();
        scans.push(scan(&meant, resolve));
    }
}

/// Distinct values, in order.
fn distinct<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn scan(notes: &[BareNote], resolve: &impl Fn(BareNote) -> ScannedConnection) -> ScanAnswer {
    let clients = distinct(notes.iter().map(|note| resolve(*note).client));
    let servers = distinct(notes.iter().map(|note| resolve(*note).server.ip()));
    let ports = distinct(notes.iter().map(|note| resolve(*note).server.port()));
    let count = |outcome: BareOutcome| notes.iter().filter(|note| note.outcome == outcome).count() as u64;
    let only = |of: &[IpAddr]| of.first().copied().filter(|_| of.len() == 1);
    ScanAnswer {
        client: only(&clients),
        server: only(&servers),
        clients: clients.len() as u64,
        servers: servers.len() as u64,
        ports: ports.len() as u64,
        first_port: ports.first().copied().unwrap_or_default(),
        last_port: ports.last().copied().unwrap_or_default(),
        connections: notes.len() as u64,
        unanswered: count(BareOutcome::Unanswered),
        refused: count(BareOutcome::Refused),
        opened: count(BareOutcome::Opened),
        start_ns: notes.iter().map(|note| note.at).min().unwrap_or_default(),
        end_ns: notes.iter().map(|note| note.at).max().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(book: &mut AddressBook, client: &str, server: &str, at: u64, outcome: BareOutcome) -> BareNote {
        let (pair, client_first) = book.pair(client.parse().unwrap(), server.parse().unwrap());
        BareNote { pair, client_first, outcome, at }
    }

    #[test]
    fn scans_are_said_by_who_did_them_and_floods_by_whom_they_hit() {
        let mut book = AddressBook::default();
        let mut notes = Vec::new();
        for port in 0..200_u16 {
            let server = format!("10.0.0.2:{}", 1 + port);
            notes.push(note(&mut book, "10.0.0.1:4000", &server, 7 + u64::from(port), BareOutcome::Refused));
            let server = format!("10.9.{}.1:22", port);
            notes.push(note(&mut book, "[2001:db8::1]:5", &server.replace("10.9", "10.8"), 9, BareOutcome::Unanswered));
            let client = format!("172.16.{}.9:999", port % 50);
            notes.push(note(&mut book, &client, "10.0.0.3:80", u64::from(port), BareOutcome::Unanswered));
        }
        notes.push(note(&mut book, "10.5.5.5:1", "10.6.6.6:2", 3, BareOutcome::Opened));
        let scans = scans(notes, &book);
        let said: Vec<_> =
            scans.iter().map(|scan| (scan.connections, scan.clients, scan.servers, scan.ports)).collect();
        assert_eq!(said, [(200, 50, 1, 1), (200, 1, 1, 200), (200, 1, 200, 1), (1, 1, 1, 1)]);
        let flood = &scans[0];
        assert_eq!((flood.client, flood.server), (None, Some("10.0.0.3".parse().unwrap())));
        let scan = &scans[1];
        assert_eq!((scan.client, scan.refused, scan.unanswered), (Some("10.0.0.1".parse().unwrap()), 200, 0));
        assert_eq!((scan.first_port, scan.last_port, scan.start_ns, scan.end_ns), (1, 200, 7, 206));
        assert_eq!(scans[3].opened, 1);
    }
}
