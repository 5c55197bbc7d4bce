//! One file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::unfinished::UnfinishedPath;

/// Writes a file. An error names it, and leaves what was there before.
pub fn whole_file(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut file = WholeFile::create(path)?;
    write(&mut file.out).map_err(|error| named(path, &error))?;
    file.finish()
}

/// A file that is written bit by bit. It is in its place after [`Self::finish`]; dropped before, it never is. Errors of `create` and
/// `finish` name it.
#[derive(Debug)]
pub struct WholeFile {
    path: PathBuf,
    out: BufWriter<File>,
    place: Option<FilePlace>,
}

/// Place of an unfinished file. Devices and pipes have none: what is written to them is written.
#[derive(Debug)]
struct FilePlace {
    unfinished: UnfinishedPath,
    /// Symbolic links are followed: they stay, and lead to the new file.
    target: PathBuf,
}

impl WholeFile {
    /// Begins a file, and shows whether it can be written at all.
    pub fn create(path: &Path) -> io::Result<Self> {
        let opened = match target(path) {
            Ok(Some(target)) => FilePlace::at(target).map(|(place, file)| (Some(place), file)),
            Ok(None) => OpenOptions::new().write(true).truncate(true).open(path).map(|file| (None, file)),
            Err(error) => Err(error),
        };
        let (place, file) = opened.map_err(|error| named(path, &error))?;
        Ok(Self { path: path.to_owned(), out: BufWriter::new(file), place })
    }

    /// All of it is there.
    pub fn finish(mut self) -> io::Result<()> {
        let Self { path, out, place } = &mut self;
        let flushed = out.flush();
        let placed = flushed.and_then(|()| match place.take() {
            Some(FilePlace { unfinished, target }) => unfinished.finish(|from| fs::rename(from, target)),
            None => Ok(()),
        });
        placed.map_err(|error| named(path, &error))
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl FilePlace {
    fn at(target: PathBuf) -> io::Result<(Self, File)> {
        // Nobody may read the new one, at any moment, who could not read the old one.
        let before = fs::metadata(&target).map(|before| before.permissions()).ok();
        let mode = before.as_ref().map_or(0o666, |before| before.mode() & 0o777);
        let create = |path: &Path| OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
        let (unfinished, file) = UnfinishedPath::beside(&target, create)?;
        if let Some(before) = before {
            // The umask took away what the old one gave.
            file.set_permissions(before)?;
        }
        Ok((Self { unfinished, target }, file))
    }
}

/// The file to be replaced or made; none if there is something that cannot be replaced by a file, such as a device.
fn target(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Ok(found) if !found.is_file() => Ok(None),
        Ok(_) if is_descriptor(path) => Ok(None),
        Ok(_) => fs::canonicalize(path).map(Some),
        // A file that is to be made, or a link to one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::read_link(path) {
            Ok(to) => Ok(Some(path.parent().unwrap_or(Path::new("")).join(to))),
            Err(_) => Ok(Some(path.to_owned())),
        },
        Err(error) => Err(error),
    }
}

/// `/dev/stdout` and its like may lead to a file, but mean what is open.
fn is_descriptor(path: &Path) -> bool {
    ["/dev/", "/proc/"].iter().any(|folder| path.starts_with(folder)) && path.is_symlink()
        || path.starts_with("/dev/fd/")
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder of its own for each test, gone when it ends.
    struct OwnFolder(PathBuf);

    impl OwnFolder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("hitless-files-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for OwnFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_that_fails_leaves_what_was_there() {
        let folder = OwnFolder::new("fails");
        let path = folder.0.join("it");
        whole_file(&path, |out| out.write_all(b"first")).unwrap();
        let failed = whole_file(&path, |out| out.write_all(b"half").and(Err(io::Error::other("disk full"))));
        assert_eq!(failed.unwrap_err().to_string(), format!("{}: disk full", path.display()));
        let mut dropped = WholeFile::create(&path).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!((fs::read(&path).unwrap(), folder.names()), (b"first".to_vec(), vec!["it".to_owned()]));
    }

    #[test]
    fn links_are_followed_permissions_stay_and_devices_are_written_to() {
        let folder = OwnFolder::new("links");
        let [file, link] = ["file", "link"].map(|name| folder.0.join(name));
        symlink("file", &link).unwrap();
        whole_file(&link, |out| out.write_all(b"made")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let unfinished_mode =
            |out: &mut BufWriter<File>| out.get_ref().metadata().map(|begun| begun.permissions().mode());
        whole_file(&link, |out| {
            assert_eq!(unfinished_mode(out)? & 0o777, 0o640);
            out.write_all(b"replaced")
        })
        .unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"replaced");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.is_symlink());
        whole_file(Path::new("/dev/null"), |out| out.write_all(b"gone")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let error = whole_file(Path::new("/dev/full"), |out| out.write_all(b"no room")).unwrap_err();
        assert!(error.to_string().starts_with("/dev/full: "), "{error}");
        let error = whole_file(&folder.0, |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }
}
