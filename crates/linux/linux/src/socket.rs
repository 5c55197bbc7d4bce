//! Common parts of packet sockets.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::c_int;

pub fn raw(family: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed, and a non-negative result is a descriptor that nobody else owns.
    unsafe {
        match libc::socket(family, libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

pub fn set<T>(fd: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes of `value` as `T` has.
    let result = unsafe {
        let value: *const T = value;
        libc::setsockopt(fd.as_raw_fd(), level, option, value.cast(), size_of::<T>() as u32)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// # Safety
/// Zeros are a valid `T`, and so is any answer of the kernel.
pub unsafe fn get<T>(fd: &OwnedFd, level: c_int, option: c_int) -> io::Result<T> {
    let mut len = size_of::<T>() as u32;
    // SAFETY: the kernel writes at most `len` bytes into `value`, and how many into `len`; the caller vouches for
    // what they make.
    unsafe {
        let mut value: T = std::mem::zeroed();
        match libc::getsockopt(fd.as_raw_fd(), level, option, (&raw mut value).cast(), &mut len) {
            0 => Ok(value),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Receives frames for other addresses too, as long as the packet socket is open.
pub(crate) fn set_promiscuous(packet_socket: &OwnedFd, interface: u32) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: interface as c_int,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set(packet_socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// The error that the kernel reports: the interface went down, or away.
pub fn take_error(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: the error is a number.
    match unsafe { get::<c_int>(fd, libc::SOL_SOCKET, libc::SO_ERROR)? } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
