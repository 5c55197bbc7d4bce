//! A file that a user names, read whole: it may be a pipe that nobody writes to, or have no end.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use units::StopFlag;

use crate::clock::Clock;
use crate::poll;

/// Time between two looks whether somebody wants it to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The text of a regular file or a pipe, of no more than `most` bytes. A pipe is given up if nothing comes for `patience`, and
/// anything if it is to stop.
pub fn read_text(path: &Path, most: usize, patience: Duration, stop: &StopFlag) -> io::Result<String> {
    // A pipe is opened without waiting for the one that writes.
    let mut file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_fifo() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a file nor a pipe"));
    }
    let (mut text, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    let (clock, mut heard) = (Clock::start(), Duration::ZERO);
    loop {
        let ready = poll::wait(&[(file.as_raw_fd(), false)], LOOK)?;
        if stop.is_stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if ready == [poll::Readiness::Nothing] {
            if clock.elapsed() - heard > patience {
                let what = format!("nothing came for {} s", patience.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
            continue;
        }
        heard = clock.elapsed();
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => text.extend_from_slice(&piece[..len]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        if text.len() > most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {} MiB", most >> 20)));
        }
    }
    String::from_utf8(text).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    const MANY: Duration = Duration::from_secs(60);

    fn read(path: &str, most: usize, patience: Duration) -> Result<String, io::ErrorKind> {
        read_text(Path::new(path), most, patience, &StopFlag::new()).map_err(|error| error.kind())
    }

    #[test]
    fn what_has_no_end_and_what_never_begins_is_given_up() {
        let folder = std::env::temp_dir().join(format!("hitless-input-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| -> PathBuf { folder.join(name) };
        std::fs::write(at("file"), "hello").unwrap();
        let name = |name: &str| at(name).display().to_string();
        assert_eq!(read(&name("file"), 5, MANY).as_deref(), Ok("hello"));
        assert_eq!(read(&name("file"), 4, MANY), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(read("/dev/zero", 5, MANY), Err(io::ErrorKind::InvalidInput));
        assert_eq!(read(&name(""), 5, MANY), Err(io::ErrorKind::InvalidInput));
        assert_eq!(read(&name("none"), 5, MANY), Err(io::ErrorKind::NotFound));
        if !testkit::installed("mkfifo") {
            return;
        }
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        assert_eq!(read(&name("pipe"), 5, Duration::from_millis(60)), Err(io::ErrorKind::TimedOut));
        let stop = StopFlag::new();
        stop.stop();
        let stopped = read_text(&at("pipe"), 5, MANY, &stop).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
        std::thread::scope(|scope| {
            let late = || File::options().write(true).open(at("pipe")).unwrap().write_all(b"late").unwrap();
            scope.spawn(late);
            assert_eq!(read(&name("pipe"), 5, MANY).as_deref(), Ok("late"));
        });
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
