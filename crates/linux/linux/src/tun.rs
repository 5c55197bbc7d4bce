//! A TUN interface: a program takes the place of the network behind it, and sees IP packets.
//!
//! The device has a vnet header, so a super-packet of the host arrives in one piece, as a card would get it. The interface
//! ends with the descriptor.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::offload::VnetHeader;

/// Request number from linux/if_tun.h.
const TUNSETIFF: u64 = 0x4004_54ca;
const TUNSETOFFLOAD: u64 = 0x4004_54d0;
const IFF_TUN: libc::c_short = 0x0001;
const IFF_NO_PI: libc::c_short = 0x1000;
const IFF_VNET_HDR: libc::c_short = 0x4000;
/// Partial checksums; TCP over IPv4, over IPv6, with ECN.
const OFFLOADS: libc::c_ulong = 0x01 | 0x02 | 0x04 | 0x08;
/// An IP packet of 64 KB and the vnet header.
const LONGEST: usize = 65_536 + VnetHeader::LEN;

/// A TUN interface and what waits behind it.
#[derive(Debug)]
pub struct Tun {
    file: File,
    buffer: Box<[u8]>,
}

impl Tun {
    /// Makes the interface in the calling thread's namespace; `name` is its name.
    pub fn open(name: &str) -> io::Result<Self> {
        let file = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: all zeros is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
        // SAFETY: this request reads and writes an ifreq, which lives until the call returns.
        check(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &raw mut request) })?;
        // SAFETY: this request takes a number.
        check(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD as _, OFFLOADS) })?;
        Ok(Self { file, buffer: vec![0; LONGEST].into() })
    }

    /// Descriptor to wait on.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The next IP packet that the host sent, if there is one.
    pub fn receive(&mut self) -> io::Result<Option<&[u8]>> {
        let len = match self.file.read(&mut self.buffer) {
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(self.buffer[..len].get(VnetHeader::LEN..))
    }

    /// Hands an IP packet with valid checksums to the host.
    pub fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let parts = [IoSlice::new(&[0; VnetHeader::LEN]), IoSlice::new(packet)];
        self.file.write_vectored(&parts).map(drop)
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::net::InterfaceAddress;
    use crate::net::testing::{in_own_namespace, ip};
    use crate::poll;

    #[test]
    fn what_the_host_sends_comes_out_and_what_goes_in_reaches_the_host() {
        in_own_namespace(|netlink| {
            let mut tun = Tun::open("tun0").unwrap();
            let index = netlink.existing_link("tun0").unwrap().index;
            netlink.no_ipv6_autoconf(index).unwrap();
            netlink.add_address(index, &InterfaceAddress::new(ip("10.0.0.1"), 24)).unwrap();
            netlink.set_up(index, true).unwrap();
            let socket = UdpSocket::bind("10.0.0.1:7").unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            socket.send_to(b"hello", "10.0.0.2:9").unwrap();
            let packet = loop {
                poll::wait(&[(tun.fd(), false)], Duration::from_secs(1)).unwrap();
                match tun.receive().unwrap() {
                    Some(packet) if packet[9] == 17 => break packet.to_vec(),
                    _ => {}
                }
            };
            assert_eq!(packet[28..], *b"hello");
            let mut back = packet;
            let (source, target) = back[12..20].split_at_mut(4);
            source.swap_with_slice(target);
            back.swap(20, 22);
            back.swap(21, 23);
            // UDP over IPv4 may do without a checksum.
            back[26..28].fill(0);
            tun.send(&back).unwrap();
            let mut answer = [0; 16];
            let (len, from) = socket.recv_from(&mut answer).unwrap();
            assert_eq!((&answer[..len], from.to_string().as_str()), (&b"hello"[..], "10.0.0.2:9"));
        });
    }
}
