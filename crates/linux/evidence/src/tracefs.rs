//! A tracing instance of our own.
//!
//! The kernel's events are enabled in an instance that only we read, so that nobody else's tracing is disturbed. Where tracefs
//! is not mounted, it is mounted in a mount namespace of the calling thread alone.

#![expect(unsafe_code, reason = "mounts have no door in the standard library")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use linux::SystemError;

use crate::layout::EventLayout;
use crate::leftovers::{InstanceName, remove_leftovers};

/// Mount point that Linux provides for tracefs.
const TRACEFS: &str = "/sys/kernel/tracing";
/// Size of the ring buffer of each processor, in kilobytes.
const BUFFER_KB: &str = "8192";
/// The largest page of a ring buffer that is read.
const PAGE: usize = 64 << 10;

/// Ends with the program; its events are turned off, and the instance is removed.
#[derive(Debug)]
pub(crate) struct TraceInstance {
    path: PathBuf,
    pipes: Vec<File>,
    page: Vec<u8>,
}

impl TraceInstance {
    /// Opens tracefs for the calling thread, which gets its own mounts if need be.
    pub(crate) fn new() -> Result<Self, SystemError> {
        let root = Path::new(TRACEFS);
        if !root.join("events").exists() {
            mount_privately().map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => SystemError(format!("tracefs: {error}; this needs root")),
                io::ErrorKind::NotFound => SystemError(format!("{TRACEFS}: {error}; this kernel has no tracing")),
                _ => SystemError(format!("cannot mount tracefs: {error}")),
            })?;
        }
        // A process may record more than once, also at the same time.
        static RECORDINGS: AtomicU32 = AtomicU32::new(0);
        let number = RECORDINGS.fetch_add(1, Ordering::Relaxed);
        let instances = root.join("instances");
        remove_leftovers(&instances);
        let path = instances.join(InstanceName::own(number).to_string());
        fs::create_dir(&path).map_err(|error| trouble(&path, &error))?;
        let mut instance = Self { path, pipes: Vec::new(), page: vec![0; PAGE] };
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", BUFFER_KB)?;
        // Whoever waits for events hears of the first.
        let _ = instance.write("buffer_percent", "0");
        instance.open_pipes()?;
        Ok(instance)
    }

    fn open_pipes(&mut self) -> Result<(), SystemError> {
        let folder = self.path.join("per_cpu");
        let cpus = fs::read_dir(&folder).map_err(|error| trouble(&folder, &error))?;
        for cpu in cpus.flatten() {
            let pipe = cpu.path().join("trace_pipe_raw");
            let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&pipe);
            self.pipes.push(opened.map_err(|error| trouble(&pipe, &error))?);
        }
        Ok(())
    }

    fn write(&self, name: &str, value: &str) -> Result<(), SystemError> {
        let path = self.path.join(name);
        fs::write(&path, value).map_err(|error| trouble(&path, &error))
    }

    /// Records this event from now on, and returns the places of its fields. `None` if this kernel does not have it.
    pub(crate) fn enable(
        &self,
        group: &str,
        name: &str,
        filter: Option<&str>,
    ) -> Result<Option<EventLayout>, SystemError> {
        let folder = self.path.join("events").join(group).join(name);
        let Ok(format) = fs::read_to_string(folder.join("format")) else { return Ok(None) };
        if let Some(filter) = filter {
            self.write(&format!("events/{group}/{name}/filter"), filter)?;
        }
        self.write(&format!("events/{group}/{name}/enable"), "1")?;
        Ok(EventLayout::parse(&format))
    }

    pub(crate) fn fds(&self) -> impl Iterator<Item = RawFd> {
        self.pipes.iter().map(AsRawFd::as_raw_fd)
    }

    /// Hands out every page that is there.
    pub(crate) fn pages(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        for pipe in &mut self.pipes {
            loop {
                match pipe.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(len) => each(&self.page[..len]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

impl Drop for TraceInstance {
    fn drop(&mut self) {
        let _ = self.write("events/enable", "0");
        // An instance that is being read cannot be removed.
        self.pipes.clear();
        let _ = fs::remove_dir(&self.path);
        if let Some(instances) = self.path.parent() {
            remove_leftovers(instances);
        }
    }
}

fn trouble(path: &Path, error: &io::Error) -> SystemError {
    let hint = if error.kind() == io::ErrorKind::PermissionDenied { "; this needs root" } else { "" };
    SystemError(format!("{}: {error}{hint}", path.display()))
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn mount_privately() -> io::Result<()> {
    // SAFETY: no pointer is passed; mounts, root and working folder of this thread become its own.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let (private, no_data) = (libc::MS_REC | libc::MS_PRIVATE, std::ptr::null());
    // SAFETY: the strings end with a zero and live for ever; the kernel needs neither type nor data here.
    check(unsafe { libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), private, no_data) })?;
    let (name, place) = (c"tracefs".as_ptr(), c"/sys/kernel/tracing".as_ptr());
    // SAFETY: as above.
    check(unsafe { libc::mount(name, place, name, 0, no_data) })
}
