//! The XDP program that takes frames off an interface for a socket, assembled by hand:
//!
//! ```text
//!   return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS)
//! ```
//!
//! It hangs on a BPF link, and is gone when the link's descriptor is closed: with the process, however it ends.

#![expect(unsafe_code, reason = "talks to the kernel")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use linux::net;

/// From linux/bpf.h and linux/if_link.h.
const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// The parts of `union bpf_attr` that are used here; the kernel takes what is missing behind them for zeros.
#[repr(C)]
struct NewMap {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
}

#[repr(C)]
struct Element {
    map: u32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct NewProgram {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
}

#[repr(C)]
struct NewLink {
    program: u32,
    interface: u32,
    attach: u32,
    flags: u32,
}

#[repr(C)]
struct EbpfInstruction {
    operation: u8,
    /// Destination in the low half, source in the high one.
    registers: u8,
    offset: i16,
    immediate: i32,
}

const fn instruction(operation: u8, to: u8, from: u8, offset: i16, immediate: i32) -> EbpfInstruction {
    EbpfInstruction { operation, registers: from << 4 | to, offset, immediate }
}

fn redirect_to(map: &OwnedFd) -> [EbpfInstruction; 6] {
    const LOAD_WORD: u8 = 0x61;
    const LOAD_LONG: u8 = 0x18;
    const MOVE: u8 = 0xb7;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    const IS_MAP: u8 = 1;
    const RX_QUEUE_INDEX: i16 = 16;
    const XDP_PASS: i32 = 2;
    const REDIRECT_MAP: i32 = 51;
    [
        instruction(LOAD_WORD, 2, 1, RX_QUEUE_INDEX, 0),
        instruction(LOAD_LONG, 1, IS_MAP, 0, map.as_raw_fd()),
        instruction(0, 0, 0, 0, 0),
        // What the helper returns for a queue that has no socket.
        instruction(MOVE, 3, 0, 0, XDP_PASS),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

/// The program on its interface; dropped, the interface has its frames back.
#[derive(Debug)]
pub(crate) struct XdpProgram {
    _link: OwnedFd,
}

impl XdpProgram {
    /// Frames that arrive on queue 0 go to `socket`, and no longer to the kernel.
    pub(crate) fn attach(interface: &net::InterfaceInfo, socket: &OwnedFd) -> io::Result<Self> {
        let failed = |what: &str, source| net::NetError { what: what.to_owned(), source, detail: None };
        let map = new_map().map_err(|error| failed("make an XSKMAP", error))?;
        insert(&map, 0, socket).map_err(|error| failed("put the socket into the XSKMAP", error))?;
        let program = load(&redirect_to(&map)).map_err(|error| failed("load the XDP program", error))?;
        let link = link(&program, interface.index).map_err(|error| {
            let taken = matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST));
            let detail = taken.then(|| "it has one already; `ip link` and `bpftool net` show which".to_owned());
            net::NetError { detail, ..failed(&format!("attach the XDP program to {}", interface.name), error) }
        })?;
        Ok(Self { _link: link })
    }
}

fn new_map() -> io::Result<OwnedFd> {
    let map = NewMap { kind: BPF_MAP_TYPE_XSKMAP, key_size: 4, value_size: 4, entries: 1 };
    // SAFETY: there is no pointer in it, and the answer is a new descriptor.
    unsafe { bpf(BPF_MAP_CREATE, &map).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

fn insert(map: &OwnedFd, key: u32, socket: &OwnedFd) -> io::Result<()> {
    let value = socket.as_raw_fd();
    let element = Element {
        map: map.as_raw_fd() as u32,
        unused: 0,
        key: (&raw const key) as u64,
        value: (&raw const value) as u64,
        flags: 0,
    };
    // SAFETY: key and value have the sizes that the map was created with, and live until the call returns.
    unsafe { bpf(BPF_MAP_UPDATE_ELEM, &element) }.map(drop)
}

fn load(code: &[EbpfInstruction]) -> io::Result<OwnedFd> {
    let program = NewProgram {
        kind: BPF_PROG_TYPE_XDP,
        instructions: code.len() as u32,
        code: code.as_ptr() as u64,
        license: c"Dual MIT/GPL".as_ptr() as u64,
    };
    // SAFETY: the code is as long as is said and the license ends in a zero; the answer is a new descriptor.
    unsafe { bpf(BPF_PROG_LOAD, &program).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// In the driver where it can, in front of the stack where it cannot.
fn link(program: &OwnedFd, interface: u32) -> io::Result<OwnedFd> {
    match link_in_mode(program, interface, XDP_FLAGS_DRV_MODE) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            link_in_mode(program, interface, XDP_FLAGS_SKB_MODE)
        }
        linked => linked,
    }
}

fn link_in_mode(program: &OwnedFd, interface: u32, flags: u32) -> io::Result<OwnedFd> {
    let link = NewLink { program: program.as_raw_fd() as u32, interface, attach: BPF_XDP, flags };
    // SAFETY: there is no pointer in it, and the answer is a new descriptor.
    unsafe { bpf(BPF_LINK_CREATE, &link).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// # Safety
/// `T` is the part of `bpf_attr` that belongs to the command, and what it points to is as the command expects.
unsafe fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<libc::c_int> {
    let attributes: *const T = attributes;
    // SAFETY: the kernel reads as many bytes as `T` has; the caller vouches for what they mean.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

/// Loads the smallest program, to see if this process may load XDP programs at all, without the code above: were a bug
/// there to look like a lack of permission, tests would be skipped instead of failing. The program is `r0 = 0; exit`.
#[cfg(test)]
pub(crate) fn load_the_least() -> net::Result<()> {
    #[repr(C)]
    struct Attributes {
        xdp: u32,
        instructions: u32,
        code: *const u8,
        license: *const libc::c_char,
    }
    const LOAD_A_PROGRAM: libc::c_long = 5;
    let code: [u8; 16] = [0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];
    let least = Attributes { xdp: 6, instructions: 2, code: code.as_ptr(), license: c"GPL".as_ptr() };
    // SAFETY: the kernel reads the attributes, two instructions of eight bytes, and a license that ends in a zero.
    let result = unsafe { libc::syscall(libc::SYS_bpf, LOAD_A_PROGRAM, &raw const least, size_of_val(&least)) };
    if result < 0 {
        let source = io::Error::last_os_error();
        return Err(net::NetError { what: "load an XDP program".to_owned(), source, detail: None });
    }
    // SAFETY: the answer is a new descriptor that nobody else has.
    drop(unsafe { OwnedFd::from_raw_fd(result as libc::c_int) });
    Ok(())
}
