//! Memory of what a monitor did to this host, in a file that its next incarnation reads: it also ends the protection that
//! it began, and leaves alone what a person protected.
//!
//! All of it is about the interfaces, processes and counters of one network namespace since the machine was started, so the file
//! says which, and a monitor in another puts it aside: its ports are healthy until their own counters say otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use daemon::identity::NamespaceIdentity;
use linux::trust;
use serde::{Deserialize, Serialize};
use units::Moment;

use bus::message::{PortId, PortState};

/// What the actor remembers, by the name of the port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActorMemory {
    /// Namespace in which it was written; files of earlier versions do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<NamespaceIdentity>,
    pub protected: BTreeMap<String, ActiveProtection>,
    /// Ports of this host that were corrupting when last heard of: an alarm does not end because somebody restarts
    /// the monitor, and not every bus remembers.
    pub alarms: BTreeMap<String, PortState>,
    pub orders: BTreeMap<String, ObeyedOrder>,
}

/// A link that a monitor activated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActiveProtection {
    pub link: String,
    /// The daemon that was asked: another one's protection is somebody else's.
    pub pid: u32,
    pub since: Moment,
    /// The ports that were corrupting, and have not been found healthy since.
    pub reasons: BTreeSet<PortId>,
}

/// The last order that was obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObeyedOrder {
    pub life: u64,
    pub number: u64,
    /// The port was switched off by it.
    pub off: bool,
}

impl ActorMemory {
    /// Empty if there is no such file.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(trust::read(path)?.map_or(Ok(Self::default()), |text| serde_json::from_slice(&text))?)
    }

    /// Whole or not at all.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let here = Self { namespace: Some(NamespaceIdentity::current()), ..self.clone() };
        trust::replace(path, serde_json::to_string_pretty(&here)?.as_bytes())
    }

    fn is_of_another_namespace(&self) -> bool {
        self.namespace.as_ref().is_some_and(|namespace| !namespace.fits(&NamespaceIdentity::current()))
    }
}

/// A memory and where it is kept, if it is to outlive the program.
#[derive(Debug)]
pub struct StoredMemory {
    pub memory: ActorMemory,
    path: Option<PathBuf>,
    trouble: Option<String>,
    remark: Option<String>,
}

impl StoredMemory {
    pub fn nowhere() -> Self {
        Self { memory: ActorMemory::default(), path: None, trouble: None, remark: None }
    }

    /// A file that makes no sense is put aside: the links that it named are left as they are, and that is reported. So is one of
    /// another network namespace.
    pub fn open(path: &Path) -> Self {
        let mut remark = None;
        let (memory, trouble) = match ActorMemory::read(path) {
            Ok(memory) if memory.is_of_another_namespace() => {
                remark = Some(put_aside(path));
                (ActorMemory::default(), None)
            }
            Ok(memory) => (memory, None),
            Err(error) => {
                let aside = path.with_extension("bad");
                let kept = fs::rename(path, &aside);
                let where_to = if kept.is_ok() { format!("; kept as {}", aside.display()) } else { String::new() };
                let what = format!(
                    "{}: {error}{where_to}: links that a monitor protected before will not be un-protected",
                    path.display()
                );
                (ActorMemory::default(), Some(what))
            }
        };
        let mut kept = Self { memory, path: Some(path.to_owned()), trouble, remark };
        // Finds out at the start that the file cannot be written, rather than when it matters.
        if kept.trouble.is_none() {
            kept.save();
        }
        kept
    }

    pub fn save(&mut self) {
        let Some(path) = &self.path else { return };
        self.trouble = self.memory.write(path).err().map(|error| {
            format!("{}: {error}: a restarted monitor will not know what this one protected", path.display())
        });
    }

    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Remark for a person on how the file was found.
    pub fn remark(&self) -> Option<&str> {
        self.remark.as_deref()
    }
}

fn put_aside(path: &Path) -> String {
    let aside = path.with_extension("aside");
    let kept = fs::rename(path, &aside).map_or_else(|error| error.to_string(), |()| aside.display().to_string());
    format!(
        "{}: written in another network namespace, or before the machine was started: put aside ({kept}), nothing of it is applied",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_makes_no_sense_is_put_aside() {
        let folder = std::env::temp_dir().join(format!("hitless-memory-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("monitor.state");
        let mut kept = StoredMemory::open(&path);
        assert_eq!((kept.trouble(), &kept.memory), (None, &ActorMemory::default()));
        let protection = ActiveProtection {
            link: "hit0".to_owned(),
            pid: 7,
            since: Moment::from_ms(5),
            reasons: [PortId::new("leaf3", "eth7")].into(),
        };
        kept.memory.protected.insert("eth1".to_owned(), protection);
        kept.memory.orders.insert("eth2".to_owned(), ObeyedOrder { life: 1, number: 2, off: true });
        kept.save();
        let read = StoredMemory::open(&path).memory;
        assert_eq!(ActorMemory { namespace: None, ..read }, kept.memory);
        fs::write(&path, "{\"protected\": 3}").unwrap();
        let again = StoredMemory::open(&path);
        assert!(again.trouble().unwrap().contains("kept as"), "{:?}", again.trouble());
        assert_eq!(again.memory, ActorMemory::default());
        assert_eq!(fs::read_to_string(path.with_extension("bad")).unwrap(), "{\"protected\": 3}");
        fs::remove_dir_all(&folder).unwrap();
        assert!(StoredMemory::open(&path).trouble().unwrap().contains("will not know"));
    }

    #[test]
    fn what_a_monitor_of_another_namespace_or_boot_did_is_put_aside_and_not_applied() {
        let folder = std::env::temp_dir().join(format!("hitless-memory-elsewhere-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("monitor.state");
        let protection = ActiveProtection {
            link: "hit0".to_owned(),
            pid: 7,
            since: Moment::from_ms(5),
            reasons: [PortId::new("leaf3", "eth7")].into(),
        };
        let memory = ActorMemory { protected: [("eth1".to_owned(), protection)].into(), ..ActorMemory::default() };
        let mut elsewhere = serde_json::to_value(&memory).unwrap();
        // One of an earlier version does not say where it was written, and is believed.
        fs::write(&path, elsewhere.to_string()).unwrap();
        let found = StoredMemory::open(&path);
        assert_eq!((found.memory.protected, found.remark), (memory.protected.clone(), None));
        elsewhere["namespace"] = serde_json::json!({"boot": "another", "cookie": 1});
        fs::write(&path, elsewhere.to_string()).unwrap();
        let found = StoredMemory::open(&path);
        assert!(found.memory.protected.is_empty() && found.trouble().is_none());
        assert!(found.remark().unwrap().contains("another network namespace"), "{:?}", found.remark());
        assert!(path.with_extension("aside").exists());
        assert_eq!(StoredMemory::open(&path).remark(), None, "only once");
        fs::remove_dir_all(&folder).unwrap();
    }
}
