//! Policy rules that name an interface, and neighbours that somebody wrote down: both can be given to another interface
//! beside the one they are for.
//!
//! Neither is taken away from the first: a rule for an interface without traffic matches nothing, and a neighbour there
//! is asked for by nobody. (The kernel itself forgets all neighbours of an interface that loses its last address.)

use std::net::IpAddr;

use super::Result;
use super::netlink::{Netlink, NetlinkRequest, attribute, attributes, push, text, to_ip, u16_at, u32_at};

/// A policy rule (`ip rule`), as the kernel's own message: attributes that are not known here come along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRule(Vec<u8>);

/// Length of `fib_rule_hdr`, and where its flags are.
const HEADER: usize = 12;
const FLAGS: usize = 8;
/// The only flag that is part of the rule: it inverts the match. The other flags are the rule's state.
const INVERTED: u32 = 2;
const INCOMING_NAME: u16 = 3;
const OUTGOING_NAME: u16 = 17;
/// `ndmsg`.
const NEIGHBOUR_HEADER: usize = 12;

impl PolicyRule {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads the bytes that [`PolicyRule::as_bytes`] gave.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() >= HEADER).then_some(Self(bytes))
    }

    /// The rule with another interface in the place of one that it names; `None` if it does not name it.
    fn renamed(dumped: &[u8], from: &str, to: &str) -> Option<Self> {
        let mut message = dumped.get(..HEADER)?.to_vec();
        message[FLAGS..].copy_from_slice(&(u32_at(dumped, FLAGS)? & INVERTED).to_ne_bytes());
        let mut named = false;
        for (kind, value) in attributes(&dumped[HEADER..]) {
            let names = matches!(kind, INCOMING_NAME | OUTGOING_NAME) && text(value) == from;
            named |= names;
            match names {
                true => push(&mut message, kind, &[to.as_bytes(), &[0]].concat()),
                false => push(&mut message, kind, value),
            }
        }
        named.then_some(Self(message))
    }

    fn request(&self, kind: u16, flags: i32) -> NetlinkRequest {
        NetlinkRequest::new(kind, flags, &self.0)
    }
}

impl Netlink {
    /// The rules that name an interface, as they would be for another.
    pub fn rules_renamed(&self, from: &str, to: &str) -> Result<Vec<PolicyRule>> {
        let mut rules = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let mut header = [0; HEADER];
            header[0] = family as u8;
            let request = NetlinkRequest::new(libc::RTM_GETRULE, libc::NLM_F_DUMP, &header);
            let answers = match self.execute(format_args!("list the policy rules"), request) {
                // A kernel without policy rules has none.
                Err(error) if error.is_any_of(&[libc::EOPNOTSUPP, libc::EAFNOSUPPORT]) => continue,
                answers => answers?,
            };
            rules.extend(answers.iter().filter_map(|message| PolicyRule::renamed(message, from, to)));
        }
        Ok(rules)
    }

    /// A rule that is there already is no error.
    pub fn add_rule(&self, rule: &PolicyRule) -> Result<()> {
        let request = rule.request(libc::RTM_NEWRULE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        match self.execute(format_args!("add a policy rule"), request) {
            Err(error) if error.is_any_of(&[libc::EEXIST]) => Ok(()),
            added => added.map(drop),
        }
    }

    /// A rule that is gone already is no error.
    pub fn delete_rule(&self, rule: &PolicyRule) -> Result<()> {
        match self.execute(format_args!("delete a policy rule"), rule.request(libc::RTM_DELRULE, 0)) {
            Err(error) if error.is_any_of(&[libc::ENOENT]) => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// The neighbours of an interface that an administrator configured, which ARP and ND do not find.
    pub fn static_neighbours(&self, index: u32) -> Result<Vec<(IpAddr, [u8; 6])>> {
        let request = NetlinkRequest::new(libc::RTM_GETNEIGH, libc::NLM_F_DUMP, &[0; NEIGHBOUR_HEADER]);
        let answers = self.execute(format_args!("list the neighbours of interface {index}"), request)?;
        let neighbour = |message: &Vec<u8>| {
            let is_wanted = u32_at(message, 4)? == index && u16_at(message, 8)? & libc::NUD_PERMANENT != 0;
            let rest = message.get(NEIGHBOUR_HEADER..).filter(|_| is_wanted)?;
            let mac = attribute(rest, libc::NDA_LLADDR)?.try_into().ok()?;
            Some((to_ip(attribute(rest, libc::NDA_DST)?)?, mac))
        };
        Ok(answers.iter().filter_map(neighbour).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing::{in_own_namespace, ip, quiet_pair};

    #[test]
    fn a_rule_for_one_interface_is_given_to_another_and_taken_away_again() {
        in_own_namespace(|netlink| {
            quiet_pair(netlink, "w0", "x0");
            let mut rule = vec![libc::AF_INET as u8, 0, 0, 0, 100, 0, 0, 1, 0, 0, 0, 0];
            push(&mut rule, INCOMING_NAME, b"w0\0");
            push(&mut rule, 6, &500_u32.to_ne_bytes());
            netlink.add_rule(&PolicyRule::from_bytes(rule).unwrap()).unwrap();
            assert_eq!(netlink.rules_renamed("x0", "hit0").unwrap(), []);
            let copies = netlink.rules_renamed("w0", "hit0").unwrap();
            assert_eq!(copies.len(), 1);
            for _ in 0..2 {
                netlink.add_rule(&copies[0]).unwrap();
                assert_eq!(netlink.rules_renamed("hit0", "w0").unwrap().len(), 1);
            }
            for _ in 0..2 {
                netlink.delete_rule(&copies[0]).unwrap();
                assert_eq!(netlink.rules_renamed("hit0", "w0").unwrap(), []);
            }
            assert_eq!(netlink.rules_renamed("w0", "hit0").unwrap(), copies);
        });
    }

    #[test]
    fn only_neighbours_that_somebody_wrote_down_are_listed() {
        in_own_namespace(|netlink| {
            let [index, other] = quiet_pair(netlink, "w0", "x0");
            let known = [(ip("10.1.0.9"), [2, 0, 0, 0, 0, 9]), (ip("2001:db8::9"), [2, 0, 0, 0, 0, 8])];
            for (ip, mac) in known {
                netlink.add_neighbour(index, ip, mac).unwrap();
            }
            assert_eq!(netlink.static_neighbours(index).unwrap(), known);
            assert_eq!(netlink.static_neighbours(other).unwrap(), []);
        });
    }
}
