//! Settings files: TOML text to values that know their line, the keys that are allowed, what the command line says instead,
//! and sweeps.
//!
//! | file | what it does |
//! | --- | --- |
//! | `tree`, `document` | text to values, each with its line; the same from JSON |
//! | `set` | what the command line says instead |
//! | `place` | lines of bytes, errors of syntax with their line |
//! | `keys` | which keys there are; unknown ones are answered with the nearest |
//! | `sweep` | lists to points |
//! | `reader` | values to types; which keys were read |
//! | `table` | values of files without sweeps to types, with their lines |
//! | `seeds` | seeds as ranges and lists |

pub mod document;
mod error;
pub mod keys;
mod place;
pub mod reader;
mod seeds;
pub mod set;
pub mod sweep;
mod table;
pub mod tree;

pub use document::SettingsDocument;
pub use error::{KeyError, SourceLocation};
pub use keys::{KeyShape, Keys};
pub use place::{LineIndex, TomlError, from_toml};
pub use reader::{ReadResult, SettingsReader, UsedKeys};
pub use seeds::Seeds;
pub use table::TableReader;
