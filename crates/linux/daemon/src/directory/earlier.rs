//! Remains of another network namespace in a run directory: it had the same number and is gone, or the machine was started
//! since.
//!
//! Nothing of it is ever applied. Notes are put aside under another name, for people, until the link of that name ends; sockets, logs
//! and pages, which nobody serves any more, are removed with them.

use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linux::net::{Netlink, StandInMark};
use linux::trust;
use serde::{Deserialize, Serialize};

use super::{RunDirectory, lock_file};
use crate::identity::NamespaceIdentity;

/// The file that says which namespace a directory belongs to.
const NAMESPACE: &str = "namespace";
/// Another daemon that begins has it locked for a moment; every 5 ms.
const LOCK_ATTEMPTS: u32 = 200;

/// Notes with the namespace that they are true of.
#[derive(Serialize, Deserialize)]
struct SignedNotes<T> {
    /// Namespace of the notes; those of earlier versions have none.
    #[serde(default)]
    namespace: Option<NamespaceIdentity>,
    #[serde(flatten)]
    notes: T,
}

impl RunDirectory {
    /// The notes of a name that were written in this namespace; those of another count as none.
    pub fn read_notes(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let notes = trust::read(&self.notes(name))?;
        Ok(notes.filter(|notes| is_ours(name, notes)))
    }

    /// Writes them in one step: a reader finds either the old notes or the new ones.
    pub fn write_notes(&self, name: &str, notes: &impl Serialize) -> io::Result<()> {
        let signed = SignedNotes { namespace: Some(NamespaceIdentity::current()), notes };
        trust::replace(&self.notes(name), &serde_json::to_vec(&signed)?)
    }

    /// Puts the notes of a name aside if another namespace wrote them; a line that says so. The caller has the name's lock.
    pub fn put_aside(&self, name: &str) -> io::Result<Option<String>> {
        let path = self.notes(name);
        match trust::read(&path)? {
            Some(notes) if !is_ours(name, &notes) => {}
            _ => return Ok(None),
        }
        if answers(&self.keeper(name)) {
            return Err(io::Error::other(format!(
                "a keeper in another network namespace has {name} here; give each namespace a directory of its own \
                 (HITLESS_RUN_DIR)"
            )));
        }
        fs::rename(&path, self.aside(name))?;
        for left in [self.keeper(name), self.socket(name)] {
            let _ = fs::remove_file(left);
        }
        Ok(Some(format!(
            "{}: notes of another network namespace, which is gone, or of before the machine was started: put aside as {}, \
             nothing of them is applied",
            path.display(),
            self.aside(name).display()
        )))
    }

    /// Makes the directory this namespace's, and rids it of what another left.
    pub(super) fn begin(&self) -> io::Result<Vec<String>> {
        let path = self.path.join(NAMESPACE);
        for _ in 0..LOCK_ATTEMPTS {
            let Some((file, _)) = lock_file(path.clone())? else {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            let present = NamespaceIdentity::current();
            let noted = trust::read(&path)?.and_then(|text| serde_json::from_slice::<NamespaceIdentity>(&text).ok());
            let said = match &noted {
                Some(noted) if !noted.fits(&present) => self.clear()?,
                _ => Vec::new(),
            };
            if noted.as_ref() != Some(&present) {
                // In place: whoever waits for the lock has this file open.
                file.set_len(0)?;
                (&file).write_all(&serde_json::to_vec(&present)?)?;
            }
            return Ok(said);
        }
        Ok(Vec::new())
    }

    /// Removes everything but notes, which are put aside. A file that a process still serves shows that the namespace is
    /// not gone.
    fn clear(&self) -> io::Result<Vec<String>> {
        let files: Vec<PathBuf> = fs::read_dir(&self.path)?.flatten().map(|entry| entry.path()).collect();
        if files.iter().any(|file| answers(file)) {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        // Locks are looked after by who has them.
        let is_lock = |file: &Path| file.extension().is_some_and(|end| end == "lock");
        for file in files.iter().filter(|file| !is_remainder(file) && !is_lock(file)) {
            match file.file_name().and_then(|name| name.to_str()?.strip_suffix(".json")) {
                Some(name) if fs::rename(file, self.aside(name)).is_ok() => names.push(name.to_owned()),
                // Nobody reads a file that stays: notes say themselves that they belong to another namespace.
                Some(_) => {}
                None => drop(fs::remove_file(file)),
            }
        }
        names.sort();
        let notes = if names.is_empty() { "no notes".to_owned() } else { format!("notes of {}", names.join(", ")) };
        Ok(vec![format!(
            "{}: left by another network namespace, which is gone and had the same number, or from before the machine was started: \
             {notes} put aside (NAME.json.aside), the rest removed; nothing of it is applied",
            self.path.display()
        )])
    }

    /// Removes the directory if it is empty but for what says whose it is. Notes that were put aside for people keep it.
    pub(super) fn remove(&self) -> bool {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        if !files.iter().all(|file| file.file_name().is_some_and(|name| name == NAMESPACE)) {
            return false;
        }
        files.iter().for_each(|file| drop(fs::remove_file(file)));
        fs::remove_dir(&self.path).is_ok()
    }
}

/// True for the file that says who a directory belongs to, and for files that were put aside.
fn is_remainder(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == NAMESPACE) || file.extension().is_some_and(|end| end == "aside")
}

fn answers(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}

/// True if notes were written in the calling thread's namespace. If they do not say so, as those of earlier versions, the
/// stand-in itself does: it would have gone with its namespace. True also for a file that is not in the format of notes:
/// its reader refuses it.
fn is_ours(name: &str, notes: &[u8]) -> bool {
    match serde_json::from_slice::<SignedNotes<serde_json::Value>>(notes) {
        Ok(SignedNotes { namespace: Some(namespace), .. }) => namespace.fits(&NamespaceIdentity::current()),
        Ok(SignedNotes { namespace: None, .. }) => is_stand_in(name),
        Err(_) => true,
    }
}

fn is_stand_in(name: &str) -> bool {
    let link = Netlink::open().and_then(|netlink| netlink.link(name)).ok().flatten();
    link.is_some_and(|link| StandInMark::of(&link).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn directory(name: &str) -> RunDirectory {
        let parent = std::env::temp_dir().join(format!("hitless-earlier-{name}-{}", std::process::id()));
        let directory = RunDirectory { path: parent.join("netns-1"), is_own: true };
        directory.make().unwrap();
        directory
    }

    fn foreign() -> Value {
        json!({"boot": "another", "cookie": 1})
    }

    fn names(directory: &RunDirectory) -> Vec<String> {
        let entries = fs::read_dir(directory.path()).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn notes_are_read_in_the_namespace_that_wrote_them_and_put_aside_in_another() {
        let directory = directory("notes");
        directory.write_notes("hit0", &json!({"changes": [1]})).unwrap();
        let ours: Value = serde_json::from_slice(&directory.read_notes("hit0").unwrap().unwrap()).unwrap();
        assert_eq!((ours["changes"].clone(), directory.put_aside("hit0").unwrap()), (json!([1]), None));
        let other = json!({"namespace": foreign(), "changes": [2]});
        trust::replace(&directory.notes("hit0"), other.to_string().as_bytes()).unwrap();
        assert_eq!(directory.read_notes("hit0").unwrap(), None);
        let said = directory.put_aside("hit0").unwrap().unwrap();
        assert!(said.contains("another network namespace") && said.contains("hit0.json.aside"), "{said}");
        assert!(!directory.notes("hit0").exists() && directory.aside("hit0").exists());
        // The link's end takes it away, and with the last file the directory goes.
        directory.tidy("hit0");
        assert!(!directory.path().exists());
    }

    #[test]
    fn notes_of_an_earlier_version_count_only_where_their_stand_in_is() {
        let directory = directory("unsigned");
        trust::replace(&directory.notes("nosuch0"), b"{\"changes\": []}").unwrap();
        assert_eq!(directory.read_notes("nosuch0").unwrap(), None);
        // The reader refuses content that makes no sense.
        trust::replace(&directory.notes("nosuch0"), b"nonsense").unwrap();
        assert!(directory.read_notes("nosuch0").unwrap().is_some());
        fs::remove_dir_all(directory.path().parent().unwrap()).unwrap();
    }

    #[test]
    fn a_directory_of_another_namespace_is_cleared_and_its_notes_are_put_aside() {
        let directory = directory("clear");
        for name in ["hit0.json", "hit1.json", "hit0.log", "monitor.state"] {
            fs::write(directory.path().join(name), "{}").unwrap();
        }
        drop(std::os::unix::net::UnixListener::bind(directory.socket("hit1")).unwrap());
        assert_eq!(directory.make().unwrap(), Vec::<String>::new(), "this namespace's own");
        assert_eq!(names(&directory).len(), 6);
        fs::write(directory.path().join(NAMESPACE), foreign().to_string()).unwrap();
        let said = directory.make().unwrap();
        assert!(said.len() == 1 && said[0].contains("notes of hit0, hit1 put aside"), "{said:?}");
        assert_eq!(names(&directory), ["hit0.json.aside", "hit1.json.aside", NAMESPACE]);
        assert_eq!(directory.make().unwrap(), Vec::<String>::new(), "only once");
        directory.sweep();
        assert_eq!(names(&directory).len(), 3, "what was put aside is kept until the link of that name ends");
        directory.tidy("hit0");
        directory.tidy("hit1");
        assert!(!directory.path().exists());
    }

    #[test]
    fn a_directory_in_which_somebody_has_a_lock_stays() {
        let directory = directory("locked");
        let lock = directory.lock_name("hit1").unwrap().unwrap();
        directory.sweep();
        assert_eq!(names(&directory), ["hit1.lock", NAMESPACE]);
        assert!(directory.lock_name("hit1").unwrap().is_none(), "it is had still");
        drop(lock);
        directory.sweep();
        assert!(!directory.path().exists());
    }

    #[test]
    fn a_directory_in_which_a_process_answers_is_not_cleared() {
        let directory = directory("served");
        let _listener = std::os::unix::net::UnixListener::bind(directory.socket("hit0")).unwrap();
        fs::write(directory.path().join(NAMESPACE), foreign().to_string()).unwrap();
        assert_eq!(directory.make().unwrap(), Vec::<String>::new());
        assert!(directory.socket("hit0").exists());
        fs::remove_dir_all(directory.path().parent().unwrap()).unwrap();
    }

    #[test]
    fn notes_whose_keeper_lives_in_another_namespace_are_left_alone() {
        let directory = directory("kept");
        let other = json!({"namespace": foreign(), "changes": []});
        trust::replace(&directory.notes("hit0"), other.to_string().as_bytes()).unwrap();
        let _keeper = std::os::unix::net::UnixListener::bind(directory.keeper("hit0")).unwrap();
        assert!(directory.put_aside("hit0").unwrap_err().to_string().contains("a keeper in another network namespace"));
        assert!(directory.notes("hit0").exists());
        fs::remove_dir_all(directory.path().parent().unwrap()).unwrap();
    }
}
