//! Network namespaces: one machine as several, each with its own interfaces, addresses and sockets.
//!
//! A namespace belongs to a thread, and lives as long as a thread, an interface's far end or a
//! descriptor holds it. Without root, a process first becomes root of namespaces of its own
//! ([`become_root_of_own_namespaces`]); after that all of this works as it does for root.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::panic;
use std::process::Command;
use std::thread;

use super::{NetError, Result, sys};

/// A network namespace, kept alive by this descriptor.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Namespace {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl Namespace {
    /// The calling thread's.
    pub fn current() -> Result<Self> {
        let path = "/proc/thread-self/ns/net";
        File::open(path).map(|file| Self(file.into())).map_err(|error| NetError::new(format!("open {path}"), error))
    }

    /// A new one; the calling thread stays where it is.
    pub fn new() -> Result<Self> {
        on_a_thread(|| {
            sys::unshare(libc::CLONE_NEWNET).map_err(|error| NetError::new("make a network namespace", error))?;
            Self::current()
        })
    }

    /// Number of the calling thread's namespace that no other has until the machine starts again, whereas the inode number
    /// of one that is gone is given to the next; `None` before Linux 5.14.
    pub fn cookie() -> Option<u64> {
        sys::network_cookie().ok()
    }

    /// The number by which the kernel names it in /proc, and the run directory too.
    pub fn number(&self) -> Result<u64> {
        let found = self.0.try_clone().and_then(|descriptor| File::from(descriptor).metadata());
        found.map(|found| found.ino()).map_err(|error| NetError::new("look at a network namespace", error))
    }

    /// Moves the calling thread into it; sockets that are open already stay where they are.
    pub fn enter(&self) -> Result<()> {
        sys::enter_network(self).map_err(|error| NetError::new("enter a network namespace", error))
    }

    /// Runs `f` on a thread inside the namespace and returns what it returned.
    pub fn with<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T> {
        on_a_thread(|| self.enter().map(|()| f()))
    }

    /// Lets `command`, when it is spawned, start inside the namespace.
    pub fn prepare(&self, command: &mut Command) -> Result<()> {
        let descriptor = self.0.try_clone().map_err(|error| NetError::new("keep a network namespace open", error))?;
        sys::start_in_network(command, descriptor);
        Ok(())
    }
}

fn on_a_thread<T: Send>(f: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("namespace".to_owned()).spawn_scoped(scope, f);
        let thread = thread.map_err(|error| NetError::new("start a thread", error))?;
        thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload))
    })
}

/// Right by which a process may change its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkPrivilege {
    /// The process was root, and now has a network of its own.
    Root,
    /// The process is root only of its own user namespace and of the network in it.
    Rootless,
}

/// Gives the process a network of its own in which it may do everything.
///
/// Call it first: without root it works only before a second thread exists, and for root only the
/// calling thread and those that it starts later are moved. `force_rootless` lets root see what an
/// ordinary user would see.
pub fn become_root_of_own_namespaces(force_rootless: bool) -> Result<NetworkPrivilege> {
    let status = fs::read_to_string("/proc/thread-self/status");
    let status = status.map_err(|error| NetError::new("read /proc/thread-self/status", error))?;
    if !force_rootless && may_change_networks(&status) {
        sys::unshare(libc::CLONE_NEWNET).map_err(|error| NetError::new("make a network namespace", error))?;
        return Ok(NetworkPrivilege::Root);
    }
    sys::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET)
        .map_err(|error| NetError::new(why_forbidden(&error), error))?;
    // A group map is accepted only from a process that has given up changing its groups.
    write("/proc/thread-self/setgroups", "deny")?;
    write("/proc/thread-self/uid_map", &format!("0 {} 1", effective_id(&status, "Uid:")))?;
    write("/proc/thread-self/gid_map", &format!("0 {} 1", effective_id(&status, "Gid:")))?;
    Ok(NetworkPrivilege::Rootless)
}

fn write(path: &str, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| NetError::new(format!("write {text:?} to {path}"), error))
}

fn field<'a>(status: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().split_whitespace()
}

/// Real, effective, saved: the second.
fn effective_id<'a>(status: &'a str, name: &str) -> &'a str {
    field(status, name).nth(1).unwrap_or("0")
}

fn may_change_networks(status: &str) -> bool {
    const NET_ADMIN: u32 = 12;
    const SYS_ADMIN: u32 = 21;
    let effective = field(status, "CapEff:").next().and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    effective_id(status, "Uid:") == "0" && effective >> NET_ADMIN & effective >> SYS_ADMIN & 1 != 0
}

fn why_forbidden(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSPC) => {
            "make a user namespace: this machine forbids it to ordinary users (see the sysctls \
             kernel.unprivileged_userns_clone, user.max_user_namespaces and \
             kernel.apparmor_restrict_unprivileged_userns, or run as root)"
        }
        Some(libc::EINVAL) => "make a user namespace: the process already has more than one thread",
        _ => "make a user namespace",
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Stdio;

    use super::*;
    use crate::net::Netlink;
    use crate::net::testing::in_namespaces;

    fn inode(namespace: &Namespace) -> u64 {
        namespace.number().unwrap()
    }

    #[test]
    fn a_closure_runs_inside_and_the_caller_stays_outside() {
        in_namespaces(|[namespace]| {
            let outside = inode(&Namespace::current().unwrap());
            let inside = namespace.with(|| inode(&Namespace::current().unwrap())).unwrap();
            assert_eq!(inside, inode(&namespace));
            assert_ne!(inside, outside);
            assert_eq!(inode(&Namespace::current().unwrap()), outside);
        });
    }

    #[test]
    fn each_namespace_has_a_cookie_of_its_own() {
        in_namespaces(|[here, there]| {
            let [first, again, other] =
                [&here, &here, &there].map(|namespace| namespace.with(Namespace::cookie).unwrap());
            assert_eq!(first, again);
            assert!(first.is_none() || first != other, "{first:?} {other:?}");
        });
    }

    #[test]
    fn a_socket_stays_in_the_namespace_in_which_it_was_opened() {
        in_namespaces(|[namespace]| {
            let netlink = namespace.with(Netlink::open).unwrap().unwrap();
            netlink.set_loopback_up().unwrap();
            assert!(netlink.existing_link("lo").unwrap().up);
            netlink.add_veth("only-inside", "x0").unwrap();
            assert_eq!(Netlink::open().unwrap().link("only-inside").unwrap(), None);
        });
    }

    #[test]
    fn a_program_starts_inside() {
        in_namespaces(|[namespace]| {
            let mut command = Command::new("readlink");
            namespace.prepare(command.arg("/proc/self/ns/net").stdout(Stdio::piped())).unwrap();
            let output = command.spawn().unwrap().wait_with_output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), format!("net:[{}]", inode(&namespace)));
        });
    }

    #[test]
    fn with_a_second_thread_it_is_too_late_and_the_error_says_so() {
        let error = become_root_of_own_namespaces(true).unwrap_err();
        if error.raw_os_error() == Some(libc::EINVAL) {
            assert!(error.to_string().contains("more than one thread"), "{error}");
        } else {
            assert!(error.to_string().contains("user.max_user_namespaces"), "{error}");
        }
    }

    const CHILD: &str = "HITLESS_TEST_IS_ROOTLESS_CHILD";

    /// The process starts itself again, because only a process with one thread can do this: the hook
    /// between fork and exec.
    #[test]
    fn without_root_a_process_gets_a_network_of_its_own() {
        if env::var_os(CHILD).is_some() {
            let netlink = Netlink::open().unwrap();
            netlink.add_veth("w0", "x0").unwrap();
            let index = netlink.existing_link("x0").unwrap().index;
            netlink.corrupt(index, 0.5).unwrap();
            netlink.set_tbf(index, 1_000_000, 3_000, 30_000).unwrap();
            netlink.set_offloads("w0", false).unwrap();
            netlink.set_namespace(index, &Namespace::new().unwrap()).unwrap();
            return;
        }
        if !testkit::rootless_namespaces() {
            return;
        }
        let name = concat!(module_path!(), "::without_root_a_process_gets_a_network_of_its_own");
        let mut command = Command::new(env::current_exe().unwrap());
        command.env(CHILD, "1").args(["--exact", name.split_once("::").unwrap().1]).stdout(Stdio::piped());
        sys::before_exec(&mut command, || {
            let standing = become_root_of_own_namespaces(true);
            standing.map(drop).map_err(|error| io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO)))
        });
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    fn root_without_its_capabilities_counts_as_an_ordinary_user() {
        let status = |uid, capabilities| format!("Uid:\t0\t{uid}\t0\t0\nCapEff:\t{capabilities}\n");
        assert!(may_change_networks(&status("0", "000001ffffffffff")));
        assert!(!may_change_networks(&status("1000", "000001ffffffffff")));
        assert!(!may_change_networks(&status("0", "0000000000001000")));
        assert_eq!(effective_id(&status("1000", "0"), "Uid:"), "1000");
    }
}
