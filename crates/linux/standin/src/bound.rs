//! Settings bound to the interface itself, which would go on looking at the wire, where they see protected frames in the
//! place of packets: XDP programs, filters and queues that sort packets, rules that go by the index. With `--keep-name`,
//! also rules that go by the name.
//!
//! hitless cannot move these things, because it does not know their purpose. It refuses a take-over with the command that shows
//! them, before it changes anything: a rule that no longer matches would silently open a door.

use super::{StandInConfig, SystemError};
use linux::net::{FirewallMention, InterfaceInfo, MentionKind, Netlink, xtables_mentions};
use linux::version;

/// True if the stand-in gets the interface's name.
pub(super) fn swaps_names(config: &StandInConfig, wire: &InterfaceInfo) -> bool {
    let may = config.take_over && !config.keep_name;
    // A link over the stand-in of another leaves that one's names to it.
    may && version::is_at_least(6, 2) && linux::net::StandInMark::of(wire).is_none()
}

/// Refuses to take over from an interface that something is bound to.
pub(super) fn check(
    netlink: &Netlink,
    config: &StandInConfig,
    wire: &InterfaceInfo,
    swaps: bool,
) -> Result<(), SystemError> {
    let (interface, name) = (&config.interface, &config.name);
    if wire.has_xdp {
        return Err(SystemError(format!(
            "{interface} has an XDP program, which would see protected frames; `ip -d link show dev {interface}` shows it, \
             `ip link set dev {interface} xdp off` takes it off"
        )));
    }
    if let Some((what, shown)) = netlink.packet_sorting(wire.index)? {
        return Err(SystemError(format!(
            "{interface} has {what}, which would see protected frames; `{shown} {interface}` shows it: delete it, and make it \
             anew on {name} once the link is up"
        )));
    }
    if swaps && let Some(shown) = mention_of_own_name(name)? {
        return Err(SystemError(format!(
            "a rule of the packet filter names {name}, which is called {interface} while the link is up: {shown}; say {interface} \
             in it, or use --keep-name"
        )));
    }
    let mentions = Netlink::firewall_mentions(&wire.name, wire.index)?;
    if let Some(mention) = mentions.iter().find(|mention| !follows(mention.kind, swaps)) {
        return Err(SystemError(refusal(config, &wire.name, mention)));
    }
    match if swaps { None } else { xtables_mentions(&wire.name)? } {
        Some(shown) => Err(SystemError(by_name(config, &wire.name, &shown))),
        None => Ok(()),
    }
}

/// A rule that names the stand-in. Where that name is only another one of the stand-in's, no rule matches it.
fn mention_of_own_name(name: &str) -> Result<Option<String>, SystemError> {
    match Netlink::firewall_mentions(name, u32::MAX)?.first() {
        Some(mention) => Ok(Some(mention.to_string())),
        None => Ok(xtables_mentions(name)?),
    }
}

/// True if a mention of this kind means the stand-in once that has the name.
fn follows(kind: MentionKind, swaps: bool) -> bool {
    match kind {
        MentionKind::Name => swaps,
        MentionKind::Index => false,
        // Since Linux 6.16 these go by name as well.
        MentionKind::Hook => swaps && version::is_at_least(6, 16),
    }
}

fn refusal(config: &StandInConfig, wire: &str, mention: &FirewallMention) -> String {
    let (interface, name) = (&config.interface, &config.name);
    match mention.kind {
        MentionKind::Name => by_name(config, wire, &mention.to_string()),
        MentionKind::Index => format!(
            "a rule of the packet filter means {interface} by its index, and would not mean {name}: {mention}; say `iifname` or \
             `oifname` in it, which go by the name"
        ),
        MentionKind::Hook => format!(
            "a chain of the packet filter hangs on {interface} and would see protected frames: {mention}; delete it, and make it \
             anew on {name} once the link is up"
        ),
    }
}

fn by_name(config: &StandInConfig, wire: &str, shown: &str) -> String {
    let name = &config.name;
    let instead = if config.keep_name { "leave out --keep-name, or say" } else { "say" };
    format!("a rule of the packet filter names {wire}, and would not mean {name}: {shown}; {instead} {name} in it")
}
