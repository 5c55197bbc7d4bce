//! Settings of one interface under `/proc/sys/net`: `ipv4/conf/eth1/rp_filter` and its like.
//!
//! They are read and written as files, since netlink offers most of them nowhere. The files are those of the calling
//! thread's namespace. A setting that cannot be read (a secret that nobody has set) or cannot be written is none; nor is
//! one that follows from another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{NetError, Result};

const ROOT: &str = "/proc/sys/net";
/// Directories of a family for the settings of each interface.
const KINDS: [&str; 2] = ["conf", "neigh"];
/// The MTU as IPv6 sees it, which follows the interface's; and coarser forms of other settings.
const FOLLOW: [&str; 4] = ["ipv6/conf/mtu", "base_reachable_time", "retrans_time", "unres_qlen"];
const IPV6_OFF: &str = "ipv6/conf/disable_ipv6";
/// Secret from which addresses are made; and the way in which addresses are made.
const SECRET: &str = "ipv6/conf/stable_secret";
const SECRET_USE: &str = "ipv6/conf/addr_gen_mode";

/// The settings of an interface: `ipv4/conf/rp_filter` and its value.
pub type InterfaceSettings = BTreeMap<String, String>;

/// The settings of the interface of this name.
pub fn settings(interface: &str) -> io::Result<InterfaceSettings> {
    let mut found = InterfaceSettings::new();
    for family in names_in(Path::new(ROOT))? {
        for kind in KINDS {
            for setting in names_in(&Path::new(ROOT).join(&family).join(kind).join(interface))? {
                let key = format!("{family}/{kind}/{setting}");
                let follows = FOLLOW.iter().any(|follows| key.ends_with(&format!("/{follows}")) || key == *follows);
                let path = path(interface, &key);
                if !follows && is_writable(&path) {
                    found.extend(fs::read_to_string(&path).ok().map(|value| (key, value.trim().to_owned())));
                }
            }
        }
    }
    Ok(found)
}

/// Gives an interface those of these settings in which it differs. IPv6 is switched off before, and on after all others:
/// it acts on them at once.
pub fn adjust_settings(interface: &str, wanted: &InterfaceSettings) -> Result<()> {
    let has = settings(interface).map_err(|error| NetError::new(format!("read the settings of {interface}"), error))?;
    let rank = |key: &str, value: &str| match key {
        SECRET => 0,
        IPV6_OFF if value != "0" => 1,
        IPV6_OFF => 3,
        _ => 2,
    };
    // A secret that is not set yet cannot be read, and is there all the same. It is used as soon as it is set.
    let differs = |key: &str| match (wanted.get(key), has.get(key)) {
        (Some(wanted), Some(has)) => wanted != has,
        (wanted, _) => wanted.is_some() && key == SECRET,
    };
    let is_to_be_set = |key: &str| differs(key) || (key == SECRET_USE && differs(SECRET));
    let mut differing: Vec<(&String, &String)> = wanted.iter().filter(|(key, _)| is_to_be_set(key)).collect();
    differing.sort_by_key(|(key, value)| rank(key, value));
    for (key, value) in differing {
        match fs::write(path(interface, key), value) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(NetError::new(format!("set net/{key} of {interface} to {value}"), error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn path(interface: &str, key: &str) -> PathBuf {
    let (folder, setting) = key.rsplit_once('/').unwrap_or(("", key));
    Path::new(ROOT).join(folder).join(interface).join(setting)
}

/// Names in a folder; none if the folder does not exist.
fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn is_writable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o222 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing::in_own_namespace;

    #[test]
    fn an_interface_is_set_like_another_and_unlike_it_again() {
        in_own_namespace(|netlink| {
            netlink.add_veth("w0", "x0").unwrap();
            let before = settings("x0").unwrap();
            assert_eq!(settings("w0").unwrap(), before, "two that were just made are alike");
            let differing = [
                ("ipv4/conf/rp_filter", "1"),
                ("ipv4/conf/forwarding", "1"),
                ("ipv4/neigh/gc_stale_time", "77"),
                ("ipv4/neigh/base_reachable_time_ms", "12345"),
                ("ipv6/conf/accept_ra", "0"),
                ("ipv6/conf/disable_ipv6", "1"),
            ];
            for (key, value) in differing {
                fs::write(path("w0", key), value).unwrap();
            }
            fs::write(path("w0", SECRET), "2001:db8::1").unwrap();
            let wanted = settings("w0").unwrap();
            assert_eq!(wanted["ipv6/conf/addr_gen_mode"], "2", "a secret of one's own is used");
            adjust_settings("x0", &wanted).unwrap();
            assert_eq!(settings("x0").unwrap(), wanted);
            fs::write(path("w0", SECRET_USE), "0").unwrap();
            netlink.add_veth("y0", "y1").unwrap();
            adjust_settings("y0", &settings("w0").unwrap()).unwrap();
            assert_eq!(settings("y0").unwrap()[SECRET_USE], "0", "unless somebody does not want it used");
            adjust_settings("x0", &before).unwrap();
            let after = settings("x0").unwrap();
            let still: Vec<&String> = after.keys().filter(|key| after.get(*key) != before.get(*key)).collect();
            assert_eq!(still, [SECRET], "nobody can unset a secret");
        });
    }

    #[test]
    fn the_mtu_is_no_setting_and_an_interface_that_is_not_there_has_none() {
        in_own_namespace(|netlink| {
            netlink.add_veth("w0", "x0").unwrap();
            let found = settings("w0").unwrap();
            assert!(
                found.contains_key("ipv4/conf/rp_filter") && found.contains_key("ipv6/conf/accept_ra"),
                "{found:?}"
            );
            let follow = ["ipv6/conf/mtu", "ipv6/conf/mc_forwarding", "ipv4/neigh/retrans_time"];
            assert!(follow.iter().all(|key| !found.contains_key(*key)), "{found:?}");
            assert_eq!(settings("nowhere").unwrap(), InterfaceSettings::new());
        });
    }
}
