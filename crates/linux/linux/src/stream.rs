//! A TCP socket, call by call: what the standard library joins into one step is separate here, and every option can be set.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::io;
use std::mem::size_of;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libc::{c_int, c_void, sockaddr, sockaddr_in, socklen_t};

use crate::socket::{get, set};

/// Option for bytes that wait, reported with every read; not in libc.
pub const TCP_INQ: c_int = 36;
const TCP_INFO_LEN: usize = 256;
const LONGEST_READ: usize = 1 << 22;

/// A TCP socket over IPv4 in any state.
#[derive(Debug)]
pub struct StreamSocket {
    fd: OwnedFd,
}

/// Half of a connection that is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownHalf {
    Read,
    Write,
    Both,
}

fn check(result: isize) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

fn address_of(address: SocketAddrV4) -> sockaddr_in {
    sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    }
}

impl StreamSocket {
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointer is passed, and a non-negative result is a descriptor that nobody else owns.
        unsafe {
            let fd = check(libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) as isize)?;
            Ok(Self { fd: OwnedFd::from_raw_fd(fd as c_int) })
        }
    }

    /// A second handle of the same socket.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()? })
    }

    /// Limits how long a call may wait. After that it fails with `EAGAIN`, a connect with `EINPROGRESS`.
    pub fn limit_waiting(&self, most: Duration) -> io::Result<()> {
        let most = libc::timeval { tv_sec: most.as_secs() as i64, tv_usec: i64::from(most.subsec_micros()) };
        set(&self.fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &most)?;
        set(&self.fd, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &most)
    }

    pub fn bind(&self, address: SocketAddrV4) -> io::Result<()> {
        self.with_address(address, libc::bind)
    }

    pub fn connect(&self, address: SocketAddrV4) -> io::Result<()> {
        self.with_address(address, libc::connect)
    }

    fn with_address(
        &self,
        address: SocketAddrV4,
        call: unsafe extern "C" fn(c_int, *const sockaddr, socklen_t) -> c_int,
    ) -> io::Result<()> {
        let address = address_of(address);
        let len = size_of::<sockaddr_in>() as socklen_t;
        // SAFETY: `bind` and `connect` read `len` bytes of an address that lives until the call returns.
        check(unsafe { call(self.fd.as_raw_fd(), (&raw const address).cast(), len) } as isize).map(drop)
    }

    pub fn listen(&self, backlog: c_int) -> io::Result<()> {
        // SAFETY: no pointer is passed.
        check(unsafe { libc::listen(self.fd.as_raw_fd(), backlog) } as isize).map(drop)
    }

    pub fn accept(&self) -> io::Result<Self> {
        // SAFETY: the address of the peer is not asked for, and the descriptor is nobody else's.
        unsafe {
            let null = std::ptr::null_mut();
            let fd =
                check(libc::accept4(self.fd.as_raw_fd(), null, std::ptr::null_mut(), libc::SOCK_CLOEXEC) as isize)?;
            Ok(Self { fd: OwnedFd::from_raw_fd(fd as c_int) })
        }
    }

    /// `more` holds back a segment that is not full. No signal is raised if the connection is gone.
    pub fn send(&self, bytes: &[u8], more: bool) -> io::Result<usize> {
        let flags = libc::MSG_NOSIGNAL | if more { libc::MSG_MORE } else { 0 };
        // SAFETY: pointer and length are those of a slice.
        check(unsafe { libc::send(self.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
    }

    /// Reads at most `most` bytes; with the option `TCP_INQ`, also how many still wait.
    pub fn receive(&self, most: usize) -> io::Result<(usize, Option<i32>)> {
        let mut bytes = vec![0_u8; most.min(LONGEST_READ)];
        let mut control = [0_u64; 8];
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: zeros are a valid header; the kernel writes no more than its two buffers hold, both of which live until
        // the call returns, and `CMSG_FIRSTHDR` gives a pointer into the second or null.
        unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &raw mut part;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&control) as _;
            let len = check(libc::recvmsg(self.fd.as_raw_fd(), &raw mut header, 0))?;
            let about = libc::CMSG_FIRSTHDR(&raw const header);
            let is_inq = !about.is_null() && (*about).cmsg_level == libc::IPPROTO_TCP && (*about).cmsg_type == TCP_INQ;
            let waiting = is_inq.then(|| libc::CMSG_DATA(about).cast::<i32>().read_unaligned());
            Ok((len, waiting))
        }
    }

    pub fn shut_down(&self, half: ShutdownHalf) -> io::Result<()> {
        let half = match half {
            ShutdownHalf::Read => libc::SHUT_RD,
            ShutdownHalf::Write => libc::SHUT_WR,
            ShutdownHalf::Both => libc::SHUT_RDWR,
        };
        // SAFETY: no pointer is passed.
        check(unsafe { libc::shutdown(self.fd.as_raw_fd(), half) } as isize).map(drop)
    }

    /// Sets an option that is a number.
    pub fn set_option(&self, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
        set(&self.fd, level, option, &value)
    }

    /// Chooses the congestion control by its name.
    pub fn set_congestion_control(&self, name: &str) -> io::Result<()> {
        let (value, len) = (name.as_ptr().cast(), name.len() as socklen_t);
        // SAFETY: pointer and length are those of a string that lives until the call returns.
        let result =
            unsafe { libc::setsockopt(self.fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, value, len) };
        check(result as isize).map(drop)
    }

    /// Reads an option that is a number.
    pub fn option(&self, level: c_int, option: c_int) -> io::Result<c_int> {
        // SAFETY: any bytes are a number.
        unsafe { get(&self.fd, level, option) }
    }

    /// `struct tcp_info`; fields that this kernel does not have are zero.
    pub fn info(&self) -> io::Result<[u8; TCP_INFO_LEN]> {
        // SAFETY: any bytes are bytes.
        unsafe { get(&self.fd, libc::IPPROTO_TCP, libc::TCP_INFO) }
    }

    /// Flags of the descriptor (`F_GETFL`).
    pub fn flags(&self) -> io::Result<c_int> {
        // SAFETY: this command takes no pointer.
        check(unsafe { libc::fcntl(self.fd.as_raw_fd(), libc::F_GETFL) } as isize).map(|flags| flags as c_int)
    }

    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        let flags = if on { libc::O_NONBLOCK } else { 0 };
        // SAFETY: this command takes a number.
        check(unsafe { libc::fcntl(self.fd.as_raw_fd(), libc::F_SETFL, flags) } as isize).map(drop)
    }

    /// Bytes that wait to be read (`SIOCINQ`).
    pub fn waiting(&self) -> io::Result<c_int> {
        let mut waiting: c_int = 0;
        let to = (&raw mut waiting).cast::<c_void>();
        // SAFETY: the request writes one number.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::FIONREAD, to) } as isize)?;
        Ok(waiting)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::net::testing::in_own_namespace;

    #[test]
    fn two_sockets_talk_and_report_what_waits() {
        in_own_namespace(|netlink| {
            netlink.set_loopback_up().unwrap();
            let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7_001);
            let listener = StreamSocket::new().unwrap();
            listener.bind(address).unwrap();
            listener.listen(1).unwrap();
            let client = StreamSocket::new().unwrap();
            client.limit_waiting(Duration::from_secs(20)).unwrap();
            client.connect(address).unwrap();
            let server = listener.accept().unwrap();
            server.limit_waiting(Duration::from_secs(20)).unwrap();
            server.set_option(libc::IPPROTO_TCP, TCP_INQ, 1).unwrap();
            assert_eq!(client.send(b"hello", false).unwrap(), 5);
            assert_eq!(server.receive(2).unwrap(), (2, Some(3)));
            assert_eq!(server.waiting().unwrap(), 3);
            client.shut_down(ShutdownHalf::Both).unwrap();
            assert_eq!(client.send(b"more", false).unwrap_err().raw_os_error(), Some(libc::EPIPE));
            server.set_nonblocking(true).unwrap();
            assert_ne!(server.flags().unwrap() & libc::O_NONBLOCK, 0);
            assert_ne!(server.info().unwrap(), [0; TCP_INFO_LEN]);
            assert!(server.option(libc::IPPROTO_TCP, libc::TCP_MAXSEG).unwrap() > 0);
        });
    }
}
