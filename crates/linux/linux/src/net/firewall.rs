//! Rules of the packet filter (nf_tables, over netlink) that mean one interface, and where each is shown.
//!
//! A rule can mean an interface by its name, which it compares with each packet's; by its index, which it got when it was
//! loaded (`iif`, where `iifname` is the name); or because its chain hangs on the interface. Rules are read, never changed.

use std::collections::BTreeMap;
use std::fmt;

use super::Result;
use super::netlink::{Netlink, NetlinkRequest, attribute, attributes, text};

/// Way in which a part of the packet filter means an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MentionKind {
    /// `iifname "eth1"`, also with a wildcard or in a set.
    Name,
    /// `iif "eth1"`: the index that was the interface's when the rule was loaded.
    Index,
    /// A chain or a flow table on the interface itself.
    Hook,
}

/// A part of the packet filter that means an interface; as text, the command that shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirewallMention {
    pub kind: MentionKind,
    family: &'static str,
    table: String,
    place: MentionPlace,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MentionPlace {
    Rule { chain: String, handle: u64 },
    Chain(String),
    Set(String),
    FlowTable,
}

impl fmt::Display for FirewallMention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, table, .. } = self;
        match &self.place {
            MentionPlace::Rule { chain, handle } => {
                write!(f, "`nft -a list chain {family} {table} {chain}`, handle {handle}")
            }
            MentionPlace::Chain(chain) => write!(f, "`nft list chain {family} {table} {chain}`"),
            // One without a name of its own is shown in its rule.
            MentionPlace::Set(set) if set.starts_with("__") => write!(f, "`nft list table {family} {table}`"),
            MentionPlace::Set(set) => write!(f, "`nft list set {family} {table} {set}`"),
            MentionPlace::FlowTable => write!(f, "`nft list flowtables {family}`"),
        }
    }
}

/// Length of `nfgenmsg`; its first byte is the family.
const HEADER: usize = 4;
const SUBSYSTEM: u16 = 10 << 8;
const GET_CHAIN: u16 = SUBSYSTEM | 4;
const GET_RULE: u16 = SUBSYSTEM | 7;
const GET_SET: u16 = SUBSYSTEM | 10;
const GET_ELEMENTS: u16 = SUBSYSTEM | 13;
const GET_FLOW_TABLE: u16 = SUBSYSTEM | 23;

/// Attributes of everything that is in a table.
const TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_HOOK_DEVICE: u16 = 3;
const CHAIN_HOOK_DEVICES: u16 = 4;
const FLOW_TABLE_HOOK: u16 = 3;
const FLOW_TABLE_DEVICES: u16 = 3;
const RULE_CHAIN: u16 = 2;
const RULE_HANDLE: u16 = 3;
const RULE_EXPRESSIONS: u16 = 4;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const META_TO: u16 = 1;
const META_KEY: u16 = 2;
const FIB_TO: u16 = 1;
const FIB_RESULT: u16 = 2;
const COMPARE_FROM: u16 = 1;
const COMPARE_DATA: u16 = 3;
const DATA_VALUE: u16 = 1;
const EXTENSION_INFO: u16 = 3;
const SET_NAME: u16 = 2;
const SET_FLAGS: u16 = 3;
const SET_KEY_TYPE: u16 = 4;
const ELEMENTS_SET: u16 = 2;
const ELEMENTS: u16 = 3;
const ELEMENT_KEY: u16 = 1;

const SET_HAS_INTERVALS: u32 = 4;
/// Bits of one type in a set's key; a key of several fields has one type beside the other.
const TYPE_BITS: u32 = 6;
const TYPE_INDEX: u32 = 20;
const TYPE_NAME: u32 = 41;
/// `IFNAMSIZ`.
const NAME_LEN: usize = 16;

/// Kind of value that a register was loaded with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadedValue {
    Index,
    Name,
}

/// The interface that is looked for.
struct SoughtInterface<'a> {
    name: &'a str,
    index: u32,
}

impl Netlink {
    /// Mentions of an interface in the packet filter of this namespace; none on a kernel without nf_tables.
    pub fn firewall_mentions(name: &str, index: u32) -> Result<Vec<FirewallMention>> {
        let sought = SoughtInterface { name, index };
        let mut found = Vec::new();
        let filter = match Self::open_for(libc::NETLINK_NETFILTER) {
            Err(error) if error.is_any_of(&[libc::EPROTONOSUPPORT]) => return Ok(found),
            filter => filter?,
        };
        let chains = filter.list_filter(GET_CHAIN, 0, |request| request)?;
        found.extend(chains.iter().filter_map(|message| sought.chain(message)));
        let rules = filter.list_filter(GET_RULE, 0, |request| request)?;
        found.extend(rules.iter().filter_map(|message| sought.rule(message)));
        let tables = filter.list_filter(GET_FLOW_TABLE, 0, |request| request)?;
        found.extend(tables.iter().filter_map(|message| sought.flow_table(message)));
        for set in filter.list_filter(GET_SET, 0, |request| request)? {
            let Some(family) = set.first().copied() else { continue };
            let [table, name] = [TABLE, SET_NAME].map(|kind| text(within(&set, kind)));
            let elements = filter.list_filter(GET_ELEMENTS, family, |request| {
                request.string(TABLE, &table).string(ELEMENTS_SET, &name)
            })?;
            found.extend(elements.iter().find_map(|message| sought.elements(&set, message)));
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// Lists objects of the packet filter. The list is empty for a kind that the kernel does not know, and for a table that
    /// went away since it was listed.
    fn list_filter(
        &self,
        kind: u16,
        family: u8,
        fill: impl FnOnce(NetlinkRequest) -> NetlinkRequest,
    ) -> Result<Vec<Vec<u8>>> {
        let request = fill(NetlinkRequest::new(kind, libc::NLM_F_DUMP, &[family, 0, 0, 0]));
        match self.execute(format_args!("list the packet filter"), request) {
            Err(error) if error.is_any_of(&[libc::EINVAL, libc::EOPNOTSUPP, libc::ENOENT]) => Ok(Vec::new()),
            answers => answers,
        }
    }
}

impl SoughtInterface<'_> {
    fn chain(&self, message: &[u8]) -> Option<FirewallMention> {
        let hook = within(message, CHAIN_HOOK);
        let device = attribute(hook, CHAIN_HOOK_DEVICE).map(text);
        let has_it = device.as_deref() == Some(self.name) || self.is_among(attribute(hook, CHAIN_HOOK_DEVICES));
        let chain = text(within(message, CHAIN_NAME));
        has_it.then(|| mention(MentionKind::Hook, message, MentionPlace::Chain(chain)))
    }

    fn flow_table(&self, message: &[u8]) -> Option<FirewallMention> {
        let devices = attribute(within(message, FLOW_TABLE_HOOK), FLOW_TABLE_DEVICES);
        self.is_among(devices).then(|| mention(MentionKind::Hook, message, MentionPlace::FlowTable))
    }

    fn is_among(&self, devices: Option<&[u8]>) -> bool {
        attributes(devices.unwrap_or_default()).any(|(_, device)| text(device) == self.name)
    }

    fn rule(&self, message: &[u8]) -> Option<FirewallMention> {
        let mut loaded = BTreeMap::new();
        let expressions = attributes(within(message, RULE_EXPRESSIONS));
        let kind = expressions.filter_map(|(_, expression)| self.expression(expression, &mut loaded)).min()?;
        let handle = within(message, RULE_HANDLE).first_chunk().map_or(0, |handle| u64::from_be_bytes(*handle));
        Some(mention(kind, message, MentionPlace::Rule { chain: text(within(message, RULE_CHAIN)), handle }))
    }

    fn expression(&self, expression: &[u8], loaded: &mut BTreeMap<u32, LoadedValue>) -> Option<MentionKind> {
        let data = attribute(expression, EXPRESSION_DATA).unwrap_or_default();
        let number =
            |kind| attribute(data, kind).and_then(|value| value.first_chunk()).map(|be| u32::from_be_bytes(*be));
        match text(attribute(expression, EXPRESSION_NAME)?).as_str() {
            "meta" => load(loaded, number(META_TO)?, value_of_meta(number(META_KEY)?)),
            "fib" => load(loaded, number(FIB_TO)?, value_of_fib(number(FIB_RESULT)?)),
            "cmp" => {
                let value = attribute(attribute(data, COMPARE_DATA)?, DATA_VALUE)?;
                return match loaded.get(&register(number(COMPARE_FROM)?))? {
                    LoadedValue::Index => (value == self.index.to_ne_bytes()).then_some(MentionKind::Index),
                    LoadedValue::Name => self.is_named_by(value, true).then_some(MentionKind::Name),
                };
            }
            // Extensions of iptables, in forms of their own.
            "match" | "target" => {
                let info = attribute(data, EXTENSION_INFO)?;
                return info.windows(NAME_LEN).any(|bytes| self.is_named_by(bytes, false)).then_some(MentionKind::Name);
            }
            _ => {}
        }
        None
    }

    fn elements(&self, set: &[u8], message: &[u8]) -> Option<FirewallMention> {
        let number = |kind| within(set, kind).first_chunk().map_or(0, |be| u32::from_be_bytes(*be));
        let (flags, key_type) = (number(SET_FLAGS), number(SET_KEY_TYPE));
        let has = |wanted| (0..u32::BITS / TYPE_BITS).any(|at| key_type >> (at * TYPE_BITS) & 0x3f == wanted);
        let by_prefix = flags & SET_HAS_INTERVALS != 0;
        let kind = attributes(within(message, ELEMENTS)).find_map(|(_, element)| {
            let key = attribute(attribute(element, ELEMENT_KEY)?, DATA_VALUE)?;
            let mut parts = (0..key.len()).step_by(4).map(|at| &key[at..]);
            if has(TYPE_INDEX) && parts.clone().any(|part| part.starts_with(&self.index.to_ne_bytes())) {
                return Some(MentionKind::Index);
            }
            let names = |part: &[u8]| self.is_named_by(&part[..part.len().min(NAME_LEN)], by_prefix);
            (has(TYPE_NAME) && parts.any(names)).then_some(MentionKind::Name)
        })?;
        Some(mention(kind, set, MentionPlace::Set(text(within(set, SET_NAME)))))
    }

    /// True if these bytes are the name with zeros behind it; or, if they may be, the beginning of it.
    fn is_named_by(&self, bytes: &[u8], by_prefix: bool) -> bool {
        let (said, zeros) = bytes.split_at(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
        let is_whole = bytes.len() == NAME_LEN && zeros.iter().all(|byte| *byte == 0);
        let is_start = by_prefix && zeros.is_empty() && !said.is_empty();
        let name = self.name.as_bytes();
        (is_whole && said == name) || (is_start && name.starts_with(said))
    }
}

fn mention(kind: MentionKind, message: &[u8], place: MentionPlace) -> FirewallMention {
    let family = match message.first() {
        Some(1) => "inet",
        Some(2) => "ip",
        Some(3) => "arp",
        Some(5) => "netdev",
        Some(7) => "bridge",
        _ => "ip6",
    };
    FirewallMention { kind, family, table: text(within(message, TABLE)), place }
}

/// An attribute of a message, nothing if it is not there.
fn within(message: &[u8], kind: u16) -> &[u8] {
    message.get(HEADER..).and_then(|rest| attribute(rest, kind)).unwrap_or_default()
}

/// The four wide registers are the first words of four narrow ones each.
fn register(number: u32) -> u32 {
    if (1..=4).contains(&number) { 8 + 4 * (number - 1) } else { number }
}

fn load(loaded: &mut BTreeMap<u32, LoadedValue>, to: u32, value: Option<LoadedValue>) {
    match value {
        Some(value) => drop(loaded.insert(register(to), value)),
        None => drop(loaded.remove(&register(to))),
    }
}

fn value_of_meta(key: u32) -> Option<LoadedValue> {
    match key {
        // Incoming, outgoing, and the port of a VRF.
        4 | 5 | 33 => Some(LoadedValue::Index),
        // The same, and the ports of a bridge.
        6 | 7 | 17 | 18 | 34 => Some(LoadedValue::Name),
        _ => None,
    }
}

fn value_of_fib(result: u32) -> Option<LoadedValue> {
    match result {
        1 => Some(LoadedValue::Index),
        2 => Some(LoadedValue::Name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::net::testing::{in_own_namespace, quiet_pair};

    /// Loads a rule set into the calling thread's namespace.
    fn load_rules(rules: &str) {
        let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        nft.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
        assert!(nft.wait().unwrap().success(), "{rules}");
    }

    fn mentions(index: u32) -> Vec<(MentionKind, String)> {
        let found = Netlink::firewall_mentions("w0", index).unwrap();
        found.iter().map(|mention| (mention.kind, mention.to_string())).collect()
    }

    #[test]
    fn every_way_to_mean_an_interface_is_found_and_others_are_not() {
        if !testkit::installed("nft") {
            return;
        }
        in_own_namespace(|netlink| {
            let [index, _] = quiet_pair(netlink, "w0", "x0");
            assert_eq!(mentions(index), []);
            let chain = |rule: &str| {
                format!("table inet t {{\n chain c {{ type filter hook input priority 0;\n {rule}\n }}\n}}\n")
            };
            use MentionKind::{Hook, Index, Name};
            for (rule, kind) in [
                ("iifname \"w0\" udp dport 7001 drop", Some(Name)),
                ("oifname != \"w0\" drop", Some(Name)),
                ("iifname \"w*\" drop", Some(Name)),
                ("iifname { \"w0\", \"lo\" } drop", Some(Name)),
                ("iifname vmap { \"w0\" : drop }", Some(Name)),
                ("iifname . tcp dport { \"w0\" . 22 } drop", Some(Name)),
                ("iif \"w0\" drop", Some(Index)),
                ("iif { \"w0\", \"lo\" } drop", Some(Index)),
                ("meta sdif \"w0\" drop", Some(Index)),
                ("iif \"w0\" iifname \"w0\" drop", Some(Name)),
                ("iifname \"x0\" iif \"lo\" drop", None),
                (&format!("iif \"lo\" meta mark {index} drop"), None),
                (&format!("tcp dport {{ {index}, 22 }} drop"), None),
                ("iifname \"w01\" drop", None),
                ("iifname \"x*\" drop", None),
            ] {
                load_rules(&chain(rule));
                let found: Vec<MentionKind> = mentions(index).into_iter().map(|(kind, _)| kind).collect();
                assert_eq!(found, kind.into_iter().collect::<Vec<_>>(), "{rule}");
                load_rules("flush ruleset");
            }
            load_rules("table netdev n {\n chain c { type filter hook ingress device w0 priority 0;\n }\n}\n");
            assert_eq!(mentions(index), [(Hook, "`nft list chain netdev n c`".to_owned())]);
        });
    }

    #[test]
    fn a_rule_and_a_set_are_shown_by_the_commands_that_are_printed() {
        if !testkit::installed("nft") {
            return;
        }
        in_own_namespace(|netlink| {
            let [index, _] = quiet_pair(netlink, "w0", "x0");
            load_rules(
                "table ip t {\n set s { type ifname; elements = { \"w0\" } }\n chain c {\n accept\n iifname \"w0\" drop\n }\n}\n",
            );
            let found = mentions(index);
            assert_eq!(found.len(), 2, "{found:?}");
            for (_, shown) in found {
                let command = shown.split('`').nth(1).unwrap();
                let output = Command::new("sh").args(["-c", command]).output().unwrap();
                let listed = String::from_utf8(output.stdout).unwrap();
                let handle =
                    shown.split_once("handle ").map_or(String::new(), |(_, handle)| format!("# handle {handle}"));
                assert!(
                    listed.lines().any(|line| line.contains("\"w0\"") && line.ends_with(&handle)),
                    "{shown}: {listed}"
                );
            }
        });
    }

    #[test]
    fn messages_that_are_cut_short_never_panic() {
        let sought = SoughtInterface { name: "w0", index: 7 };
        let message = [1, 0, 0, 0, 8, 0, 1, 0, b't', 0, 0, 0, 12, 0, 4, 0x80, 8, 0, 1, 0x80, 4, 0, 1, 0];
        for len in 0..message.len() {
            let cut = &message[..len];
            assert_eq!((sought.rule(cut), sought.chain(cut), sought.flow_table(cut)), (None, None, None));
            assert_eq!(sought.elements(cut, cut), None);
        }
    }
}
