//! Experiment files, as part of the program.

/// The name and the text of a file.
pub type File = (&'static str, &'static str);

/// Files of a folder below `experiments/`, as a list of [`File`].
macro_rules! files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(
            ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/", $folder, "/", $name))),
        )*]
    };
}

pub(crate) use files;
