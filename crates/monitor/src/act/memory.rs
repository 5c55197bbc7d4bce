//! What a monitor did to this host, in a file that its next incarnation reads: what it protected it also un-protects,
//! and what a person protected it leaves alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use units::Moment;

use bus::message::{PortId, PortState};

/// By the name of the port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActorMemory {
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
        match fs::read_to_string(path) {
            Ok(text) => Ok(serde_json::from_str(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Whole or not at all.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let new = path.with_extension("new");
        fs::write(&new, serde_json::to_string_pretty(self)?)?;
        fs::rename(new, path)
    }
}

/// A memory and where it is kept, if it is to outlive the program.
#[derive(Debug)]
pub struct StoredMemory {
    pub memory: ActorMemory,
    path: Option<PathBuf>,
    trouble: Option<String>,
}

impl StoredMemory {
    pub fn nowhere() -> Self {
        Self { memory: ActorMemory::default(), path: None, trouble: None }
    }

    /// A file that makes no sense is put aside: the links that it named are left as they are, and that is reported.
    pub fn open(path: &Path) -> Self {
        let (memory, trouble) = match ActorMemory::read(path) {
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
        let mut kept = Self { memory, path: Some(path.to_owned()), trouble };
        // Whether it can be written shows now rather than when it matters.
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
        assert_eq!(StoredMemory::open(&path).memory, kept.memory);
        fs::write(&path, "{\"protected\": 3}").unwrap();
        let again = StoredMemory::open(&path);
        assert!(again.trouble().unwrap().contains("kept as"), "{:?}", again.trouble());
        assert_eq!(again.memory, ActorMemory::default());
        assert_eq!(fs::read_to_string(path.with_extension("bad")).unwrap(), "{\"protected\": 3}");
        fs::remove_dir_all(&folder).unwrap();
        assert!(StoredMemory::open(&path).trouble().unwrap().contains("will not know"));
    }
}
