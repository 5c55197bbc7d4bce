//! Port counters as files, as a driver shows them in `/sys/class/net`.

use std::fs;
use std::io;
use std::path::Path;

use super::DirectionCounters;

/// The counters of both ports, as their drivers would keep them, for those who read such files.
pub fn keep_counters(directory: &Path, names: &[&str; 2], lanes: &[DirectionCounters; 2]) -> io::Result<()> {
    for (port, name) in names.iter().enumerate() {
        let (sent, received) = (&lanes[port], &lanes[1 - port]);
        let files = [
            ("rx_packets", received.passed),
            ("rx_bytes", received.passed_bytes),
            ("rx_crc_errors", received.dropped),
            ("rx_errors", received.dropped),
            ("tx_packets", sent.offered),
            ("tx_bytes", sent.offered_bytes),
            ("tx_dropped", sent.overflowed),
        ];
        let statistics = directory.join(name).join("statistics");
        fs::create_dir_all(&statistics)?;
        for (file, value) in files {
            write_whole(&statistics.join(file), value)?;
        }
    }
    Ok(())
}

/// Readers see the old value or the new one, never half of it.
fn write_whole(path: &Path, value: u64) -> io::Result<()> {
    let new = path.with_extension("new");
    let written = fs::write(&new, format!("{value}\n")).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}
