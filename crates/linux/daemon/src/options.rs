//! Options in files, and addresses as options have them.

use std::net::SocketAddr;
use std::path::Path;

use serde::de::DeserializeOwned;

/// Reads a file of options; an error is one line that names the file and the place.
pub fn read_options<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    settings::from_toml(&text).map_err(|error| format!("{}, {error}", path.display()))
}

/// A port alone means this machine only.
pub fn parse_address(text: &str) -> Option<SocketAddr> {
    match text.parse::<u16>() {
        Ok(port) => Some(SocketAddr::from(([127, 0, 0, 1], port))),
        Err(_) => text.strip_prefix(':').map_or_else(|| text.parse().ok(), parse_address),
    }
}
