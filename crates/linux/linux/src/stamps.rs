//! Frames of one EtherType on an interface, each with the time at which the kernel sent or received it.
//!
//! The kernel stamps a frame when the driver takes it, before it is on the wire, and when it comes out of the driver, after it
//! was on the wire (SO_TIMESTAMPING, software). So of a frame that went from one host to another the first stamp is never later
//! than the second. The stamp of a frame that was sent comes back through the socket's queue of errors, with its number. Stamps
//! are CLOCK_REALTIME, which anybody may set: who uses them has to look out for that.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::packet::is_full;
use crate::socket::{self, set, take_error};

/// Room for the control messages of a frame: the stamps, an extended error, and a spare.
const CONTROL: usize = 256;

/// Software stamps both ways, each with the number of the frame, and without a copy of it.
const STAMPS: u32 = libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;

/// A packet socket for frames of one EtherType.
#[derive(Debug)]
pub struct StampedSocket {
    fd: OwnedFd,
    /// Frames handed to the kernel, as it numbers them.
    sent: u32,
}

/// A frame that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampedFrame {
    pub len: usize,
    /// Sent by this host itself.
    pub outgoing: bool,
    /// Nanoseconds since 1970; `None` if the kernel gave no stamp.
    pub at: Option<u64>,
}

impl StampedSocket {
    /// Receives what is sent to the interface's address, to all, or to the `group`.
    pub fn open(interface: u32, ethertype: u16, group: [u8; 6]) -> io::Result<Self> {
        let fd = socket::raw(libc::AF_PACKET)?;
        set(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &STAMPS)?;
        let mut address = [0; 8];
        address[..6].copy_from_slice(&group);
        let membership = libc::packet_mreq {
            mr_ifindex: interface as libc::c_int,
            mr_type: libc::PACKET_MR_MULTICAST as u16,
            mr_alen: 6,
            mr_address: address,
        };
        set(&fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        bind(&fd, interface, ethertype)?;
        Ok(Self { fd, sent: 0 })
    }

    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// One frame out: the number that its stamp will have; none if there is no room.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<Option<u32>> {
        // SAFETY: the kernel reads no more than the frame's length.
        let sent = unsafe { libc::send(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
        if sent < 0 {
            let error = io::Error::last_os_error();
            // The kernel numbers a frame once it has room for it, also if the interface then refuses it.
            return if is_full(&error) { Ok(None) } else { Err(error) };
        }
        let number = self.sent;
        self.sent = self.sent.wrapping_add(1);
        Ok(Some(number))
    }

    /// The next frame that waits, if there is one.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<StampedFrame>> {
        // SAFETY: all zeros is a valid sockaddr_ll.
        let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut stamp = None;
        let len = receive(&self.fd, buffer, Some(&mut from), 0, |control| stamp = stamp.or(control.stamp()))?;
        let outgoing = from.sll_pkttype == libc::PACKET_OUTGOING;
        Ok(len.map(|len| StampedFrame { len, outgoing, at: stamp }))
    }

    /// The number of a frame that was sent and the time at which it was; none if no stamp waits.
    pub fn next_sent(&mut self) -> io::Result<Option<(u32, u64)>> {
        loop {
            let (mut stamp, mut number) = (None, None);
            let received = receive(&self.fd, &mut [], None, libc::MSG_ERRQUEUE, |control| {
                stamp = stamp.or(control.stamp());
                number = number.or(control.number());
            })?;
            match (received, number, stamp) {
                (None, ..) => return Ok(None),
                (_, Some(number), Some(stamp)) => return Ok(Some((number, stamp))),
                // Another kind of message.
                _ => {}
            }
        }
    }

    /// Begins the stamps again with 0: after an error of a send the kernel's count may differ from ours.
    pub fn renumber(&mut self) -> io::Result<()> {
        set(&self.fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &0_u32)?;
        set(&self.fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &STAMPS)?;
        while self.next_sent()?.is_some() {}
        self.sent = 0;
        Ok(())
    }

    /// The error that the kernel reports: the interface went down, or away.
    pub fn take_error(&self) -> io::Result<()> {
        take_error(&self.fd)
    }
}

fn bind(fd: &OwnedFd, interface: u32, ethertype: u16) -> io::Result<()> {
    // SAFETY: all zeros is a valid sockaddr_ll, and the kernel reads no more than its size.
    let result = unsafe {
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ethertype.to_be();
        address.sll_ifindex = interface as libc::c_int;
        libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Control messages are aligned as their header.
#[repr(align(8))]
struct ControlRoom([u8; CONTROL]);

/// One message of the socket, and `each` of its control messages; its length, or none if nothing waits.
fn receive(
    fd: &OwnedFd,
    buffer: &mut [u8],
    from: Option<&mut libc::sockaddr_ll>,
    flags: libc::c_int,
    mut each: impl FnMut(ControlMessage<'_>),
) -> io::Result<Option<usize>> {
    let mut room = ControlRoom([0; CONTROL]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all zeros is a valid msghdr; the pointers in it lead to a sockaddr_ll, one iovec over `buffer`, and the control
    // room, with their lengths, and all of them live until the call returns.
    let (received, control_len) = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        if let Some(from) = from {
            message.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
            message.msg_name = std::ptr::from_mut(from).cast();
        }
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        (message.msg_control, message.msg_controllen) = (room.0.as_mut_ptr().cast(), CONTROL);
        (libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags | libc::MSG_DONTWAIT), message.msg_controllen)
    };
    if received < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    }
    let mut rest = &room.0[..control_len.min(CONTROL)];
    while let Some((control, after)) = ControlMessage::first(rest) {
        each(control);
        rest = after;
    }
    Ok(Some(received as usize))
}

/// Control message of the kernel beside a message.
struct ControlMessage<'a> {
    level: i32,
    kind: i32,
    data: &'a [u8],
}

impl<'a> ControlMessage<'a> {
    /// `struct cmsghdr`: the length with the header, the level, the type.
    fn first(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        const HEADER: usize = size_of::<libc::cmsghdr>();
        let len = usize::from_ne_bytes(*bytes.first_chunk()?);
        let data = bytes.get(HEADER..len)?;
        let word = |at: usize| Some(i32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let control = Self { level: word(size_of::<usize>())?, kind: word(size_of::<usize>() + 4)?, data };
        Some((control, bytes.get(len.next_multiple_of(size_of::<usize>())..).unwrap_or_default()))
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        self.data.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word))
    }

    /// Three times of two words each, of which the first is the software's; zero if there is none.
    fn stamp(&self) -> Option<u64> {
        if (self.level, self.kind) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            return None;
        }
        let mut words = self.words();
        let at = words.next()?.checked_mul(1_000_000_000)?.checked_add(words.next()?)?;
        (at > 0).then_some(at)
    }

    /// Number in a `struct sock_extended_err`: the error, three bytes, padding, the kind, the number.
    fn number(&self) -> Option<u32> {
        const PACKET_TX_TIMESTAMP: i32 = 16;
        const DATA_AT: usize = 12;
        const ORIGIN_AT: usize = 4;
        if (self.level, self.kind) != (libc::SOL_PACKET, PACKET_TX_TIMESTAMP)
            || *self.data.get(ORIGIN_AT)? != libc::SO_EE_ORIGIN_TIMESTAMPING
        {
            return None;
        }
        Some(u32::from_ne_bytes(*self.data.get(DATA_AT..)?.first_chunk()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::KernelClock;
    use crate::net::testing::in_namespaces;
    use crate::net::{Namespace, Netlink};

    /// EtherType for experiments.
    const ETHERTYPE: u16 = 0x88b5;
    const GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];

    fn joined(here: &Namespace, there: &Namespace) -> [StampedSocket; 2] {
        here.with(|| {
            let netlink = Netlink::open().unwrap();
            netlink.add_veth("w0", "w1").unwrap();
            netlink.set_namespace(netlink.existing_link("w1").unwrap().index, there).unwrap();
        })
        .unwrap();
        let open = |namespace: &Namespace, name: &str| {
            let up =
                || Netlink::open().unwrap().set_up(Netlink::open().unwrap().existing_link(name).unwrap().index, true);
            namespace.with(up).unwrap().unwrap();
        };
        open(here, "w0");
        open(there, "w1");
        [(here, "w0"), (there, "w1")].map(|(namespace, name)| {
            let socket = || {
                let netlink = Netlink::open().unwrap();
                let index = netlink.existing_link(name).unwrap().index;
                netlink.wait_until_running(index).unwrap();
                StampedSocket::open(index, ETHERTYPE, GROUP).unwrap()
            };
            namespace.with(socket).unwrap()
        })
    }

    #[test]
    fn a_frame_is_stamped_when_it_leaves_and_when_it_arrives_in_this_order() {
        in_namespaces(|[here, there]| {
            let [mut near, mut far] = joined(&here, &there);
            let mut frame = GROUP.to_vec();
            frame.extend_from_slice(&[2, 0, 0, 0, 0, 1, 0x88, 0xb5, 42]);
            frame.resize(60, 0);
            // Stamps of what comes in are switched on by a thread of the kernel's, a little later.
            std::thread::sleep(std::time::Duration::from_millis(20));
            for round in 0..3 {
                let before = KernelClock::Real.nanoseconds();
                assert_eq!(near.send(&frame).unwrap(), Some(round));
                let mut buffer = [0; 100];
                let mut received = None;
                while received.is_none() {
                    received = far.receive(&mut buffer).unwrap();
                }
                let received = received.unwrap();
                assert_eq!((received.len, received.outgoing, buffer[14]), (60, false, 42));
                let (number, sent_at) = near.next_sent().unwrap().expect("a virtual wire stamps at once");
                assert_eq!(number, round);
                let arrived_at = received.at.expect("a stamp");
                let stamps = [before, sent_at, arrived_at, KernelClock::Real.nanoseconds()];
                assert!(stamps.is_sorted(), "{stamps:?}");
            }
            assert_eq!((near.next_sent().unwrap(), far.receive(&mut [0; 9]).unwrap()), (None, None));
            near.renumber().unwrap();
            assert_eq!(near.send(&frame).unwrap(), Some(0));
            assert_eq!(near.next_sent().unwrap().map(|(number, _)| number), Some(0));
        });
    }
}
