//! An open descriptor given from one process to another over a Unix socket.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;

/// Room for one descriptor with its header, aligned as the header wants it.
#[repr(C, align(8))]
struct ControlBuffer([u8; 64]);

/// A message of one byte with room for a descriptor beside it.
fn message(byte: &mut libc::iovec, control: &mut ControlBuffer) -> libc::msghdr {
    // SAFETY: all zeros is an empty message.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = ptr::from_mut(byte);
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    message
}

pub(crate) fn send(stream: &UnixStream, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let mut byte = [0u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = ControlBuffer([0; 64]);
    let mut message = message(&mut part, &mut control);
    // SAFETY: `CMSG_SPACE` computes; `message` points to `control`, which is aligned and has room for a header and one
    // descriptor, so that the first header and its data lie within; the kernel only reads what `message` points to.
    let sent = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        ptr::write_unaligned(libc::CMSG_DATA(header).cast(), descriptor.as_raw_fd());
        libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The descriptor that the other end sent; none if it closed without.
pub(crate) fn receive(stream: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = ControlBuffer([0; 64]);
    let mut message = message(&mut part, &mut control);
    // SAFETY: the kernel writes a byte to `byte` and no more than its length to `control`.
    let received = unsafe { libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has set the length of what it wrote; a header of this type with this length is followed by one
    // descriptor, which is this process's from now on.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        let one = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        let is_descriptor = !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_RIGHTS
            && (*header).cmsg_len as usize == one;
        Ok(is_descriptor.then(|| OwnedFd::from_raw_fd(ptr::read_unaligned(libc::CMSG_DATA(header).cast()))))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_descriptor_arrives_and_is_the_same_file() {
        let (here, there) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(&here, writer.as_fd()).unwrap();
        let arrived = receive(&there).unwrap().unwrap();
        drop(writer);
        std::fs::File::from(arrived).write_all(b"through another").unwrap();
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "through another");
    }

    #[test]
    fn nothing_arrives_from_one_who_sends_none() {
        let (mut here, there) = UnixStream::pair().unwrap();
        here.write_all(b"x").unwrap();
        assert!(receive(&there).unwrap().is_none());
        drop(here);
        assert!(receive(&there).unwrap().is_none());
    }
}
