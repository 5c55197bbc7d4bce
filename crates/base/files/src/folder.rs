//! A folder of files that only make sense together.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::unfinished::UnfinishedPath;

/// A folder that is filled elsewhere. After [`Self::finish`] all of it is in its place; dropped before, nothing is. In a folder that
/// is there already, files of the same names are replaced, and others stay.
#[derive(Debug)]
pub struct WholeFolder {
    path: PathBuf,
    unfinished: UnfinishedPath,
    /// The part of the path that is new: folders above this one may have to be made too.
    within: PathBuf,
    /// The outermost folder that is not there yet; none if the folder itself is.
    outermost: Option<PathBuf>,
}

impl WholeFolder {
    /// Begins a folder, and shows whether it can be made at all.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::begin(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    fn begin(path: &Path) -> io::Result<Self> {
        let outermost = path.ancestors().take_while(|folder| is_absent(folder)).last();
        let make = |place: &Path| fs::create_dir(place);
        let (unfinished, within) = match outermost {
            Some(outermost) => {
                let within = path.strip_prefix(outermost).map_err(io::Error::other)?;
                (UnfinishedPath::beside(outermost, make)?.0, within.to_owned())
            }
            // Inside, because the folder may be a file system of its own.
            None => (UnfinishedPath::beside(&path.join("new"), make)?.0, PathBuf::new()),
        };
        let folder = Self { path: path.to_owned(), unfinished, within, outermost: outermost.map(Path::to_owned) };
        fs::create_dir_all(folder.path())?;
        Ok(folder)
    }

    /// Path under which the folder's files are to be written.
    pub fn path(&self) -> PathBuf {
        // Joined to nothing, a path would end in a slash.
        if self.within.as_os_str().is_empty() {
            self.unfinished.path().to_owned()
        } else {
            self.unfinished.path().join(&self.within)
        }
    }

    /// Puts the folder in its place, once everything is there.
    pub fn finish(self) -> io::Result<()> {
        let Self { path, unfinished, outermost, .. } = self;
        let placed = unfinished.finish(|from| match &outermost {
            Some(outermost) => fs::rename(from, outermost),
            None => move_into(from, &path).and_then(|()| fs::remove_dir(from)),
        });
        placed.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }
}

fn is_absent(folder: &Path) -> bool {
    !folder.as_os_str().is_empty() && fs::symlink_metadata(folder).is_err()
}

/// Moves what is in one folder into another.
fn move_into(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() && place.is_dir() {
            move_into(&entry.path(), &place)?;
            fs::remove_dir(entry.path())?;
        } else {
            fs::rename(entry.path(), place)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_there_with_all_its_files_or_not_at_all() {
        let base = std::env::temp_dir().join(format!("hitless-folders-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let path = base.join("a/b");
        let folder = WholeFolder::create(&path).unwrap();
        fs::write(folder.path().join("one"), "1").unwrap();
        drop(folder);
        assert_eq!(names(&base), Vec::<String>::new());

        let folder = WholeFolder::create(&path).unwrap();
        fs::write(folder.path().join("one"), "1").unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/two"), "2").unwrap();
        folder.finish().unwrap();
        assert_eq!((names(&base), names(&path)), (vec!["a".to_owned()], vec!["below".to_owned(), "one".to_owned()]));

        let folder = WholeFolder::create(&path).unwrap();
        fs::write(folder.path().join("one"), "new").unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/three"), "3").unwrap();
        assert_eq!(fs::read(path.join("one")).unwrap(), b"1");
        folder.finish().unwrap();
        assert_eq!((fs::read(path.join("one")).unwrap(), names(&path.join("below")).len()), (b"new".to_vec(), 2));
        assert_eq!(names(&path), ["below", "one"]);

        let refused = WholeFolder::create(&path.join("one")).unwrap_err();
        assert!(refused.to_string().contains("a/b/one: "), "{refused}");
        fs::remove_dir_all(&base).unwrap();
    }
}
