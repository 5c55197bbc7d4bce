//! AF_XDP sockets: an XDP program takes frames off the interface before the kernel's stack sees them and puts
//! them into memory shared with us; what goes out is copied into such memory and leaves in one system call.
//!
//! Copies both ways, in the driver where it knows XDP and in front of the stack ("generic") where it does not: the
//! latter is a little faster on a veth pair, but does not look at frames that traffic control on this machine has
//! redirected (`mirred`), and a wire made of such redirections, as `lab::stage` builds it, would pass us by.
//! Needs CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF in the machine's own user namespace, and one receive queue.
//!
//! Differences from a packet socket:
//!
//! - The program takes everything: frames do not reach the kernel's stack as well, nor a capture on the interface.
//! - A VLAN tag that the driver, or the other end of a veth pair, has moved out of the frame is lost: XDP
//!   shows only the frame, so an *unprotected* frame would arrive without its tag. `ethtool -K IFACE rxvlan off`
//!   (on a veth, `txvlan off` at the other end) leaves it where it is. Behind a header of ours no tag is touched.
//! - The socket is always writable, since the kernel means its ring and not the interface: a loop that waits for
//!   room looks again and again.
//! - An interface that goes down is noticed when something is sent, not before, and these frames leave when it is up
//!   again.
//!
//! Invariants: a frame for sending is free (a bit in [`XdpSender::free`]), or it is the kernel's: from when it is put
//! into the TX ring until the completion ring returns it. How far the kernel has read the TX ring does not count,
//! since it says so only some time later.

#![expect(unsafe_code, reason = "talks to the kernel")]

mod program;
mod umem;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use libc::{c_int, xdp_desc};

use self::program::XdpProgram;
use self::umem::{FromKernel, RingLocation, ToKernel, Umem};
use super::queues;
use super::{Wire, WireFrame};
use crate::pool::FramePool;
use linux::net::{self, Netlink};
use linux::socket::{self, get, set, take_error};

/// Frames that may have arrived and wait for us: twice the largest window. A power of two.
const RECEIVING: u32 = 8_192;
/// Frames that may be on their way out; what is on its way cannot be overtaken by a retransmission. One bit each.
const SENDING: u32 = u128::BITS;
/// Never more than half full, which the kernel calls writable.
const TX_RING: u32 = 2 * SENDING;
/// Enough for all of them, as the kernel counts.
const SEND_BUFFER: c_int = SENDING as c_int * 8_192;
/// Bytes that the kernel keeps free in front of a frame.
const HEADROOM: u32 = 256;
/// Ethernet header and a tag.
const FRAMING: u32 = 18;
/// The kernel takes frames from 2 KB up to a page.
const FRAME_SIZES: [u32; 2] = [2_048, 4_096];

/// The wire side on an AF_XDP socket.
#[derive(Debug)]
pub(crate) struct XdpWire {
    /// First, so that the kernel has its frames back before the socket closes.
    _program: XdpProgram,
    fd: OwnedFd,
    umem: Umem,
    fill: ToKernel<u64>,
    rx: FromKernel<xdp_desc>,
    sending: XdpSender,
    overflowed: u64,
    /// Keeps the interface promiscuous.
    _membership: OwnedFd,
}

impl XdpWire {
    /// Takes what arrives on an interface of this MTU.
    pub(crate) fn open(index: u32, mtu: u32) -> io::Result<Self> {
        let frame_size = frame_size(mtu)?;
        let links = Netlink::open()?.links()?;
        let link = links.into_iter().find(|link| link.index == index);
        let link = link.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
        let membership = promiscuous(index).map_err(|error| failed("make the interface promiscuous", error))?;
        if queues::has_several(&link)? {
            let fix = format!("it has several receive queues; `ethtool -L {} combined 1` first", link.name);
            return Err(io::Error::new(io::ErrorKind::Unsupported, fix));
        }
        let fd = socket::raw(libc::AF_XDP).map_err(|error| failed("make an AF_XDP socket", error))?;
        let umem = Umem::new(RECEIVING + SENDING, frame_size)?;
        let mut rings = Rings::new(&fd, &umem).map_err(no_locked_memory)?;
        (0..RECEIVING).for_each(|frame| rings.fill.push(umem.address(frame)));
        rings.fill.publish();
        bind(&fd, index).map_err(|error| failed(&format!("bind to {}", link.name), error))?;
        // Last, so that nothing arrives before there is a frame to put it into.
        let program = XdpProgram::attach(&link, &fd)?;
        Ok(Self {
            _program: program,
            fd,
            umem,
            fill: rings.fill,
            rx: rings.rx,
            sending: XdpSender { tx: rings.tx, completion: rings.completion, free: u128::MAX, waiting: false },
            overflowed: 0,
            _membership: membership,
        })
    }
}

impl Wire for XdpWire {
    fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    fn receive(&mut self, most: usize, each: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        if self.sending.waiting {
            // What is wrong with the wire is for `send` to say.
            let _ = self.sending.kick(&self.fd);
        }
        let mut received = 0;
        while received < most
            && let Some(arrived) = self.rx.pop()
        {
            // SAFETY: the frame came out of the RX ring and is not in the fill ring again while it is looked at.
            each(unsafe { self.umem.bytes(arrived.addr, arrived.len) });
            // There is room: the ring has an entry for every frame.
            self.fill.push(self.umem.address(self.umem.frame(arrived.addr)));
            received += 1;
        }
        if received > 0 {
            self.fill.publish();
            self.rx.publish();
        }
        Ok(received)
    }

    fn send(&mut self, frames: &[WireFrame], pool: &FramePool) -> io::Result<usize> {
        if frames.iter().any(|frame| frame.bytes() > self.umem.frame_size() as usize) {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        // Before anything is added: the wire may still be down.
        if self.sending.waiting {
            self.sending.kick(&self.fd)?;
        }
        self.sending.reclaim(&self.umem);
        let queued = self.sending.queue(&mut self.umem, frames, pool);
        if queued > 0 {
            self.sending.kick(&self.fd)?;
        }
        Ok(queued)
    }

    fn overflowed(&mut self) -> u64 {
        // A frame that finds the fill ring empty counts as dropped, too.
        let overflowed = statistics(&self.fd).map_or(self.overflowed, |now| now.rx_dropped + now.rx_ring_full);
        overflowed - std::mem::replace(&mut self.overflowed, overflowed)
    }

    fn error(&mut self) -> Option<io::Error> {
        take_error(&self.fd).err()
    }
}

/// The frames for sending, behind those for receiving.
#[derive(Debug)]
struct XdpSender {
    tx: ToKernel<xdp_desc>,
    completion: FromKernel<u64>,
    /// A bit for each frame that is ours to write to.
    free: u128,
    /// The kernel has not read all of the TX ring.
    waiting: bool,
}

impl XdpSender {
    fn bit(umem: &Umem, address: u64) -> u128 {
        1 << (umem.frame(address) - RECEIVING)
    }

    /// Takes over what the kernel has sent.
    fn reclaim(&mut self, umem: &Umem) {
        while let Some(address) = self.completion.pop() {
            self.free |= Self::bit(umem, address);
        }
        self.completion.publish();
    }

    /// Copies frames into the TX ring, as long as there are free ones; how many there were.
    fn queue(&mut self, umem: &mut Umem, frames: &[WireFrame], pool: &FramePool) -> usize {
        let mut queued = 0;
        for frame in frames {
            let slot = self.free.trailing_zeros();
            if slot == SENDING {
                break;
            }
            let len = frame.bytes() as u32;
            let address = umem.address(RECEIVING + slot);
            // SAFETY: a free frame is ours until it is in the TX ring.
            let mut to = unsafe { umem.bytes_mut(address, len) };
            for part in frame.parts(pool) {
                let (here, rest) = to.split_at_mut(part.len());
                here.copy_from_slice(part);
                to = rest;
            }
            self.free &= !(1 << slot);
            self.tx.push(xdp_desc { addr: address, len, options: 0 });
            queued += 1;
        }
        self.tx.publish();
        queued
    }

    /// Has the kernel send what is in the TX ring, as far as the interface takes it.
    fn kick(&mut self, fd: &OwnedFd) -> io::Result<()> {
        /// The least that the kernel sends in a call, and then asks to be called again.
        const BATCH: u32 = 16;
        self.waiting = true;
        let mut calls = 0;
        while calls <= SENDING / BATCH {
            let Err(error) = send(fd) else {
                self.waiting = false;
                break;
            };
            match error.raw_os_error() {
                // A frame was dropped, for want of a carrier for one: it is gone, as on any wire.
                Some(libc::EBUSY) => {}
                Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => calls += 1,
                _ => return Err(error),
            }
        }
        Ok(())
    }
}

fn failed(what: &str, source: io::Error) -> io::Error {
    net::NetError { what: what.to_owned(), source, detail: None }.into()
}

/// The kernel calls memory that may not be locked a lack of buffers.
fn no_locked_memory(source: io::Error) -> io::Error {
    let is_limit = source.raw_os_error() == Some(libc::ENOBUFS);
    let advice =
        "its frames are locked in memory: this needs CAP_IPC_LOCK, or LimitMEMLOCK=64M in the unit (`ulimit -l 65536`)";
    net::NetError { what: "make the rings".to_owned(), source, detail: is_limit.then(|| advice.to_owned()) }.into()
}

fn frame_size(mtu: u32) -> io::Result<u32> {
    let needed = mtu.saturating_add(FRAMING + HEADROOM);
    FRAME_SIZES.into_iter().find(|size| *size >= needed).ok_or_else(|| {
        let most = FRAME_SIZES[1] - FRAMING - HEADROOM;
        let why = format!("its MTU is {mtu}, and a frame must fit into a page: at most {most}");
        io::Error::new(io::ErrorKind::Unsupported, why)
    })
}

/// The four rings of a socket.
struct Rings {
    fill: ToKernel<u64>,
    completion: FromKernel<u64>,
    rx: FromKernel<xdp_desc>,
    tx: ToKernel<xdp_desc>,
}

impl Rings {
    fn new(fd: &OwnedFd, umem: &Umem) -> io::Result<Self> {
        set(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER)?;
        set(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &umem.registration())?;
        set(fd, libc::SOL_XDP, libc::XDP_UMEM_FILL_RING, &RECEIVING)?;
        set(fd, libc::SOL_XDP, libc::XDP_UMEM_COMPLETION_RING, &TX_RING)?;
        set(fd, libc::SOL_XDP, libc::XDP_RX_RING, &RECEIVING)?;
        set(fd, libc::SOL_XDP, libc::XDP_TX_RING, &TX_RING)?;
        // SAFETY: offsets are plain numbers.
        let offsets: libc::xdp_mmap_offsets = unsafe { get(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)? };
        let place = |page, offsets, entries| RingLocation { page, offsets, entries };
        let (fill, completion) = (libc::XDP_UMEM_PGOFF_FILL_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING);
        Ok(Self {
            fill: ToKernel::map(fd, place(fill as libc::off_t, offsets.fr, RECEIVING))?,
            completion: FromKernel::map(fd, place(completion as libc::off_t, offsets.cr, TX_RING))?,
            rx: FromKernel::map(fd, place(libc::XDP_PGOFF_RX_RING, offsets.rx, RECEIVING))?,
            tx: ToKernel::map(fd, place(libc::XDP_PGOFF_TX_RING, offsets.tx, TX_RING))?,
        })
    }
}

/// A socket that receives nothing itself; as long as it is open, frames for other addresses arrive.
fn promiscuous(index: u32) -> io::Result<OwnedFd> {
    let fd = socket::raw(libc::AF_PACKET)?;
    socket::set_promiscuous(&fd, index)?;
    Ok(fd)
}

fn bind(fd: &OwnedFd, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_COPY,
        sxdp_ifindex: index,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: the kernel reads no more than the address.
    let result = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as u32) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has the kernel look at the TX ring.
fn send(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: neither a message nor an address is passed.
    let result = unsafe { libc::sendto(fd.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn statistics(fd: &OwnedFd) -> io::Result<libc::xdp_statistics> {
    // SAFETY: statistics are plain numbers.
    unsafe { get(fd, libc::SOL_XDP, libc::XDP_STATISTICS) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::backend::PacketWire;
    use crate::backend::queues::Channels;
    use crate::frame::LONGEST_HEAD;
    use crate::standin::wire_socket;
    use linux::net::Namespace;
    use linux::packet::PacketSocket;
    use linux::poll::{self, Readiness};

    const MTU: u32 = 1_500;
    const SHORTEST: usize = 60;
    const LONGEST: usize = 1_514;

    /// Tells a story in a namespace with a veth pair, or skips the test where there may be no namespace or no XDP
    /// program. On one processor: each has a queue of its own between the ends of a veth, so frames sent from two may
    /// overtake each other.
    fn with_pair(story: impl FnOnce(&Netlink, [u32; 2]) -> io::Result<()> + Send) {
        let Some(namespace) = testkit::permitted(Namespace::new()) else { return };
        let Some(()) = testkit::permitted(program::load_the_least()) else { return };
        let told = namespace.with(|| {
            // SAFETY: takes nothing and touches nothing.
            poll::pin(unsafe { libc::sched_getcpu() }.max(0) as usize)?;
            let netlink = Netlink::open()?;
            story(&netlink, pair(&netlink, "w0", "x0"))
        });
        told.unwrap().unwrap();
    }

    fn pair(netlink: &Netlink, name: &str, peer: &str) -> [u32; 2] {
        netlink.add_veth(name, peer).unwrap();
        let indices = [name, peer].map(|name| netlink.existing_link(name).unwrap().index);
        for index in indices {
            netlink.no_ipv6_autoconf(index).unwrap();
            netlink.set_up(index, true).unwrap();
        }
        indices.into_iter().for_each(|index| netlink.wait_until_running(index).unwrap());
        indices
    }

    fn packet(index: u32) -> PacketWire {
        PacketWire::new(PacketSocket::open(index, &wire_socket(MTU, 8_192)).unwrap(), None)
    }

    /// Frames of all lengths, no two alike; some have a tag.
    fn frame(number: usize) -> Vec<u8> {
        let len = SHORTEST + number * 37 % (LONGEST - SHORTEST + 1);
        let mut bytes: Vec<u8> = (0..len).map(|at| (at * 7 + number) as u8).collect();
        bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8]);
        let kind = if number.is_multiple_of(5) { [0x81, 0x00] } else { [0x88, 0xb5] };
        bytes[12..14].copy_from_slice(&kind);
        bytes[16..20].copy_from_slice(&(number as u32).to_be_bytes());
        bytes
    }

    /// Frame in pieces, as the link would send it: a head, the rest of a frame, and zeros behind some.
    fn outgoing(pool: &mut FramePool, bytes: &[u8]) -> WireFrame {
        let padding = bytes.iter().rev().take(64).take_while(|byte| **byte == 0).count();
        let body = &bytes[..bytes.len() - padding];
        let frame = pool.claim(body.len()).unwrap();
        pool.get_mut(&frame).copy_from_slice(body);
        let mut head = [0; LONGEST_HEAD];
        head[..14].copy_from_slice(&bytes[..14]);
        WireFrame { head, head_len: 14, frame: Some(frame), skip: 14, padding, run: crate::backend::RunPlace::Alone }
    }

    fn send_some(wire: &mut dyn Wire, frames: &[Vec<u8>]) -> io::Result<usize> {
        let longest = frames.iter().map(Vec::len).max().unwrap_or(0);
        let mut pool = FramePool::new(frames.len() as u32, longest);
        let frames: Vec<_> = frames.iter().map(|bytes| outgoing(&mut pool, bytes)).collect();
        wire.send(&frames, &pool)
    }

    /// Receives until nothing more has arrived for a while.
    fn receive_all(wire: &mut dyn Wire) -> Vec<Vec<u8>> {
        let mut received = Vec::new();
        loop {
            let some = wire.receive(50, &mut |bytes| received.push(bytes.to_vec())).unwrap();
            let fds = [(wire.fd(), false)];
            if some == 0 && poll::wait(&fds, Duration::from_millis(50)).unwrap() == [Readiness::Nothing] {
                return received;
            }
        }
    }

    /// Thousands of frames, in bursts, as many of each as find room.
    fn carries_everything_in_order(from: &mut dyn Wire, to: &mut dyn Wire) {
        let frames: Vec<_> = (0..6_000).map(frame).collect();
        let (mut sent, mut received) = (0, Vec::new());
        for burst in [1, 64, 3, 200, 17].into_iter().cycle() {
            sent += send_some(from, &frames[sent..frames.len().min(sent + burst)]).unwrap();
            to.receive(burst, &mut |bytes| received.push(bytes.to_vec())).unwrap();
            if sent == frames.len() {
                break;
            }
        }
        received.extend(receive_all(to));
        assert_eq!(received.len(), frames.len());
        assert!(received == frames, "frames differ from those sent");
        assert_eq!((from.overflowed(), to.overflowed()), (0, 0));
        assert!(from.error().is_none() && to.error().is_none());
    }

    #[test]
    fn frames_of_a_packet_socket_arrive_as_they_were_sent() {
        with_pair(|_, [here, there]| {
            carries_everything_in_order(&mut packet(there), &mut XdpWire::open(here, MTU)?);
            Ok(())
        });
    }

    #[test]
    fn a_packet_socket_receives_frames_as_they_were_sent() {
        with_pair(|_, [here, there]| {
            carries_everything_in_order(&mut XdpWire::open(here, MTU)?, &mut packet(there));
            Ok(())
        });
    }

    #[test]
    fn two_of_them_make_a_wire_both_ways() {
        with_pair(|_, [here, there]| {
            let (mut here, mut there) = (XdpWire::open(here, MTU)?, XdpWire::open(there, MTU)?);
            carries_everything_in_order(&mut here, &mut there);
            carries_everything_in_order(&mut there, &mut here);
            Ok(())
        });
    }

    /// Not a wish but a limit: should the kernel ever change it, the module's doc should too.
    #[test]
    fn frames_that_traffic_control_has_redirected_arrive_as_well() {
        with_pair(|netlink, [here, middle]| {
            let [middle_too, there] = pair(netlink, "x1", "w1");
            netlink.forward(middle, middle_too).unwrap();
            let (mut from, mut to) = (packet(here), XdpWire::open(there, MTU)?);
            send_some(&mut from, &[frame(1)])?;
            assert_eq!(receive_all(&mut to), [frame(1)]);
            Ok(())
        });
    }

    #[test]
    fn frames_that_found_no_room_are_counted_once() {
        with_pair(|_, [here, there]| {
            let (mut wire, mut peer) = (XdpWire::open(here, MTU)?, packet(there));
            let frames: Vec<_> = (0..RECEIVING as usize + 1_000).map(frame).collect();
            let mut sent = 0;
            while sent < frames.len() {
                sent += send_some(&mut peer, &frames[sent..frames.len().min(sent + 64)])?;
            }
            let received = receive_all(&mut wire);
            assert!(received == frames[..RECEIVING as usize], "{} received", received.len());
            assert_eq!((wire.overflowed(), wire.overflowed()), (1_000, 0));
            Ok(())
        });
    }

    #[test]
    fn what_is_on_its_way_is_bounded_and_the_rest_stays_with_the_caller() {
        with_pair(|netlink, [here, middle]| {
            let [middle_too, there] = pair(netlink, "x1", "w1");
            netlink.forward(middle, middle_too).unwrap();
            netlink.set_tbf(middle_too, 100_000_000, 3_000, 10_000_000).unwrap();
            let (mut wire, mut peer) = (XdpWire::open(here, MTU)?, packet(there));
            let frames: Vec<_> = (0..1_000).map(frame).collect();
            let mut sent = send_some(&mut wire, &frames)?;
            assert!((20..=SENDING as usize).contains(&sent), "{sent} sent at once");
            while sent < frames.len() {
                sent += send_some(&mut wire, &frames[sent..])?;
            }
            let received = receive_all(&mut peer);
            assert!(received == frames, "{} received", received.len());
            Ok(())
        });
    }

    #[test]
    fn a_wire_that_goes_down_says_so_and_carries_on_when_it_is_up_again() {
        with_pair(|netlink, [here, there]| {
            let (mut wire, mut peer) = (XdpWire::open(here, MTU)?, packet(there));
            let frames: Vec<_> = (0..200).map(frame).collect();
            netlink.set_up(here, false)?;
            for _ in 0..5 {
                let error = send_some(&mut wire, &frames[..100]).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN));
            }
            netlink.set_up(here, true)?;
            netlink.wait_until_running(here)?;
            assert_eq!(send_some(&mut wire, &frames[100..110])?, 10);
            // Only what was sent when nobody knew, once.
            assert!(receive_all(&mut peer) == frames[..110]);
            send_some(&mut peer, &frames[..10])?;
            assert!(receive_all(&mut wire) == frames[..10]);
            Ok(())
        });
    }

    #[test]
    fn without_a_carrier_frames_are_gone_and_none_is_kept() {
        with_pair(|netlink, [here, there]| {
            let mut wire = XdpWire::open(here, MTU)?;
            let frames: Vec<_> = (0..100).map(frame).collect();
            netlink.set_up(there, false)?;
            for _ in 0..5 {
                assert_eq!(send_some(&mut wire, &frames)?, frames.len());
            }
            wire.sending.reclaim(&wire.umem);
            assert_eq!(wire.sending.free, u128::MAX);
            Ok(())
        });
    }

    #[test]
    fn an_interface_that_is_deleted_is_an_error() {
        with_pair(|netlink, [here, _]| {
            let mut wire = XdpWire::open(here, MTU)?;
            netlink.delete_link(here)?;
            assert_eq!(wire.error().and_then(|error| error.raw_os_error()), Some(libc::ENETDOWN));
            let error = send_some(&mut wire, &[frame(1)]).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
            Ok(())
        });
    }

    #[test]
    fn an_interface_has_one_at_most_and_its_frames_back_afterwards() {
        with_pair(|netlink, [here, there]| {
            let wire = XdpWire::open(here, MTU)?;
            let error = XdpWire::open(here, MTU).unwrap_err();
            assert_eq!(error.to_string(), "bind to w0: Device or resource busy");
            let error = XdpProgram::attach(&netlink.existing_link("w0")?, &wire.fd).unwrap_err();
            assert!(error.to_string().starts_with("attach the XDP program to w0: "), "{error}");
            assert!(error.to_string().contains("it has one already"), "{error}");
            let (mut plain, mut peer) = (packet(here), packet(there));
            send_some(&mut peer, &[frame(1)])?;
            assert_eq!(receive_all(&mut plain), [[0; 0]; 0]);
            drop(wire);
            send_some(&mut peer, &[frame(2)])?;
            assert_eq!(receive_all(&mut plain), [frame(2)]);
            Ok(())
        });
    }

    #[test]
    fn what_cannot_be_had_is_refused_with_the_reason() {
        with_pair(|_, [here, _]| {
            let error = XdpWire::open(here, 9_000).unwrap_err();
            assert_eq!(error.to_string(), "its MTU is 9000, and a frame must fit into a page: at most 3822");
            assert_eq!(XdpWire::open(9_999, MTU).unwrap_err().raw_os_error(), Some(libc::ENODEV));
            drop(XdpWire::open(here, 3_822)?);
            let mut channels = Channels { command: Channels::SET, rx: 2, tx: 2, ..Channels::default() };
            queues::ethtool_channels(&socket::raw(libc::AF_PACKET)?, "w0", &mut channels)?;
            let error = XdpWire::open(here, MTU).unwrap_err();
            assert!(error.to_string().contains("several receive queues"), "{error}");
            channels.rx = 1;
            queues::ethtool_channels(&socket::raw(libc::AF_PACKET)?, "w0", &mut channels)?;
            let error = send_some(&mut XdpWire::open(here, MTU)?, &[vec![1; 5_000]]).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
            Ok(())
        });
    }
}
