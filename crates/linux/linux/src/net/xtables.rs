//! Rules of the older packet filter (`iptables-legacy`) that mean an interface. Those that newer iptables write are rules of
//! nf_tables, for which there is [`Netlink::firewall_mentions`](super::Netlink::firewall_mentions).

use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::{fs, io};

use super::netlink::{u16_at, u32_at};
use super::{NetError, Result, sys};

/// One of the two families: where its tables are listed, and where names and lengths are in an entry.
struct TableFamily {
    list: &'static str,
    save: &'static str,
    level: i32,
    /// `iniface`, which `outiface` and the masks of both follow.
    names: usize,
    next_offset: usize,
}

const FAMILIES: [TableFamily; 2] = [
    TableFamily {
        list: "/proc/thread-self/net/ip_tables_names",
        save: "iptables-legacy-save",
        level: libc::IPPROTO_IP,
        names: 16,
        next_offset: 90,
    },
    TableFamily {
        list: "/proc/thread-self/net/ip6_tables_names",
        save: "ip6tables-legacy-save",
        level: libc::IPPROTO_IPV6,
        names: 64,
        next_offset: 142,
    },
];

const GET_INFO: i32 = 64;
const GET_ENTRIES: i32 = 65;
/// Length of `ipt_getinfo`, and the offset in it of the size of all entries.
const INFO_LEN: usize = 84;
const INFO_SIZE: usize = 80;
/// Length of the header before the entries, and the offset of their size in it.
const ENTRIES_HEADER: usize = 40;
const ENTRIES_SIZE: usize = 32;
/// `IFNAMSIZ`.
const NAME_LEN: usize = 16;
/// Attempts to read a table that another process may change between two questions.
const ATTEMPTS: usize = 16;

/// The command that shows a rule that names an interface, also with a wildcard; `None` if no rule does.
pub fn xtables_mentions(interface: &str) -> Result<Option<String>> {
    for family in &FAMILIES {
        let tables = fs::read_to_string(family.list).unwrap_or_default();
        for table in tables.lines() {
            let failed = |error| NetError::new(format!("read the table {table} of {}", family.save), error);
            if family.has(&family.entries(table).map_err(failed)?, interface) {
                return Ok(Some(format!("`{} -t {table} | grep {interface}`", family.save)));
            }
        }
    }
    Ok(None)
}

impl TableFamily {
    fn entries(&self, table: &str) -> io::Result<Vec<u8>> {
        let socket = match self.level {
            libc::IPPROTO_IP => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
            _ => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
        };
        for _ in 0..ATTEMPTS {
            let mut info = vec![0; INFO_LEN];
            info[..table.len()].copy_from_slice(table.as_bytes());
            sys::socket_option(&socket, self.level, GET_INFO, &mut info)?;
            let size = u32_at(&info, INFO_SIZE).unwrap_or(0);
            let mut entries = vec![0; ENTRIES_HEADER + size as usize];
            entries[..table.len()].copy_from_slice(table.as_bytes());
            entries[ENTRIES_SIZE..ENTRIES_SIZE + 4].copy_from_slice(&size.to_ne_bytes());
            match sys::socket_option(&socket, self.level, GET_ENTRIES, &mut entries) {
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
                result => return result.map(|()| entries.split_off(ENTRIES_HEADER)),
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "it keeps changing"))
    }

    fn has(&self, mut entries: &[u8], interface: &str) -> bool {
        let mut padded = [0; NAME_LEN];
        padded[..interface.len().min(NAME_LEN)].copy_from_slice(&interface.as_bytes()[..interface.len().min(NAME_LEN)]);
        while let Some(len) = u16_at(entries, self.next_offset).map(usize::from).filter(|len| *len > self.next_offset) {
            let (entry, rest) = entries.split_at(len.min(entries.len()));
            let (masks, extensions) = (self.names + 2 * NAME_LEN, self.next_offset + 2);
            let matches = |place: usize| {
                let part = |from: usize| &entry[from + place * NAME_LEN..][..NAME_LEN];
                let mask = part(masks);
                mask[0] != 0 && (0..NAME_LEN).all(|at| (padded[at] ^ part(self.names)[at]) & mask[at] == 0)
            };
            if matches(0) || matches(1) || entry[extensions..].windows(NAME_LEN).any(|bytes| bytes == padded) {
                return true;
            }
            entries = rest;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::net::testing::in_own_namespace;

    #[test]
    fn rules_that_name_an_interface_are_found_and_others_are_not() {
        if !["iptables-legacy", "ip6tables-legacy"].into_iter().all(testkit::installed) {
            return;
        }
        in_own_namespace(|_| {
            assert_eq!(xtables_mentions("w0").unwrap(), None);
            for (program, rule, table) in [
                ("iptables-legacy", "-A INPUT -i w0 -p udp --dport 7001 -j DROP", Some("filter")),
                ("iptables-legacy", "-A FORWARD -o w+ -j DROP", Some("filter")),
                ("ip6tables-legacy", "-A INPUT ! -i w0 -j DROP", Some("filter")),
                ("iptables-legacy", "-A INPUT -i w01 -j DROP", None),
                ("iptables-legacy", "-A INPUT -i x+ -j DROP", None),
                ("iptables-legacy", "-A INPUT -p tcp --dport 22 -j DROP", None),
            ] {
                let run = |rule: &str| Command::new(program).args(rule.split(' ')).status().unwrap().success();
                if !run(rule) {
                    // A kernel without these tables has no rules in them either.
                    return;
                }
                let found = xtables_mentions("w0").unwrap();
                let shown = table.map(|table| format!("`{program}-save -t {table} | grep w0`"));
                assert_eq!(found, shown, "{rule}");
                assert!(run("-F"));
            }
        });
    }

    #[test]
    fn entries_that_are_cut_short_or_say_nonsense_never_panic() {
        for family in FAMILIES {
            for len in 0..300 {
                for fill in [0, 1, 0x55, 0xff] {
                    family.has(&vec![fill; len], "w0");
                }
                let mut entry = vec![0; len];
                if len >= family.next_offset + 2 {
                    entry[family.next_offset..family.next_offset + 2].copy_from_slice(&(len as u16).to_ne_bytes());
                }
                assert!(!family.has(&entry, "w0"), "{len}");
            }
        }
    }
}
