//! Number of queues that an interface receives on. It is not read from sysfs, which shows the interfaces of the namespace
//! in which it was mounted.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

use linux::net;

/// True if frames arrive on more than one queue, and so in another order than they were on the wire.
pub(crate) fn has_several(link: &net::InterfaceInfo) -> io::Result<bool> {
    let socket = OwnedFd::from(UnixDatagram::unbound()?);
    let mut channels = Channels { command: Channels::GET, ..Channels::default() };
    let queues = match ethtool_channels(&socket, &link.name, &mut channels) {
        Ok(()) => channels.rx + channels.combined,
        // The driver cannot say, so it is what the kernel has made room for.
        Err(_) => link.num_rx_queues,
    };
    Ok(queues > 1)
}

/// `struct ethtool_channels`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Channels {
    pub command: u32,
    pub most: [u32; 4],
    pub rx: u32,
    pub tx: u32,
    pub other: u32,
    pub combined: u32,
}

impl Channels {
    pub(crate) const GET: u32 = 0x3c;
}

/// Carries out the command that stands in `channels`, which also takes the answer.
pub(crate) fn ethtool_channels(socket: &OwnedFd, name: &str, channels: &mut Channels) -> io::Result<()> {
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut *channels).cast();
    // SAFETY: the command reads and writes a `struct ethtool_channels`, which `channels` is, during the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
