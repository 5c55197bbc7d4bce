//! The system calls that the standard library has no safe door to; all `unsafe` of this module tree.

#![expect(unsafe_code, reason = "the kernel is called here and nowhere else in this module tree")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{c_char, c_int, c_void};

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A socket that speaks netlink with the kernel, of the family `protocol`; each read is one datagram.
pub(crate) fn netlink_socket(protocol: c_int) -> io::Result<File> {
    // SAFETY: no pointer is passed.
    let socket = check(unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: the descriptor was just made and nobody else has it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(socket) }))
}

pub(crate) fn set_netlink_option(socket: &File, option: c_int) -> io::Result<()> {
    let on: c_int = 1;
    let (value, len) = ((&raw const on).cast::<c_void>(), size_of_val(&on) as libc::socklen_t);
    // SAFETY: `value` points to `len` readable bytes that live until the call returns.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_NETLINK, option, value, len) })?;
    Ok(())
}

/// Asks for an option of a socket, which the kernel writes in the place of the question.
pub(crate) fn socket_option(socket: &impl AsFd, level: c_int, option: c_int, value: &mut [u8]) -> io::Result<()> {
    let mut len = value.len() as libc::socklen_t;
    let (socket, value) = (socket.as_fd().as_raw_fd(), value.as_mut_ptr().cast::<c_void>());
    // SAFETY: `value` points to `len` bytes that may be written until the call returns.
    check(unsafe { libc::getsockopt(socket, level, option, value, &raw mut len) })?;
    Ok(())
}

pub(crate) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: no pointer is passed; the flags used here change namespaces, not what threads share in memory.
    check(unsafe { libc::unshare(flags) })?;
    Ok(())
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter_network(namespace: &impl AsFd) -> io::Result<()> {
    // SAFETY: no pointer is passed, and the borrow keeps the descriptor open.
    check(unsafe { libc::setns(namespace.as_fd().as_raw_fd(), libc::CLONE_NEWNET) })?;
    Ok(())
}

/// Number of the calling thread's network namespace, which no other has until the machine starts again (Linux 5.14).
pub(crate) fn network_cookie() -> io::Result<u64> {
    let socket = UnixDatagram::unbound()?;
    let mut cookie = 0_u64;
    let mut len = size_of_val(&cookie) as libc::socklen_t;
    let value = (&raw mut cookie).cast::<c_void>();
    // SAFETY: `value` points to `len` writable bytes, and `len` is a length that the kernel may write to.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, value, &raw mut len)
    })?;
    Ok(cookie)
}

/// Lets `command` start inside `namespace`.
pub(crate) fn start_in_network(command: &mut Command, namespace: OwnedFd) {
    // SAFETY: between fork and exec the hook makes one system call and allocates nothing.
    unsafe { command.pre_exec(move || enter_network(&namespace)) };
}

/// Commands of `SIOCETHTOOL` that carry one number.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum EthtoolNumber {
    GetRxChecksum = 0x14,
    SetRxChecksum,
    GetTxChecksum,
    SetTxChecksum,
    GetScatterGather,
    SetScatterGather,
    GetTso = 0x1e,
    SetTso,
    GetGso = 0x23,
    SetGso,
    GetGro = 0x2b,
    SetGro,
}

/// Sends `value` with the command and returns the number that the kernel left in its place.
pub(crate) fn ethtool_number(socket: &File, name: &str, command: EthtoolNumber, value: u32) -> io::Result<u32> {
    let mut data = [command as u32, value];
    // SAFETY: these commands read and write a `struct ethtool_value`, two words.
    unsafe { ethtool(socket, name, data.as_mut_ptr().cast())? };
    Ok(data[1])
}

const GET_DRIVER: u32 = 0x03;
const GET_LINK_SETTINGS: u32 = 0x4c;
/// `struct ethtool_drvinfo`: the command, five names of 32 bytes, 12 unused bytes and five numbers.
const DRIVER_WORDS: usize = 1 + 5 * 8 + 3 + 5;
/// `struct ethtool_link_settings` without its masks, and the most its three masks can take.
const SETTINGS_WORDS: usize = 12;
const MASK_WORDS: usize = 3 * 127;

/// The driver's name, padded with zeros.
pub(crate) fn ethtool_driver(socket: &File, name: &str) -> io::Result<[u8; 32]> {
    let mut data = [0_u32; DRIVER_WORDS];
    data[0] = GET_DRIVER;
    // SAFETY: this command reads and writes a `struct ethtool_drvinfo`, which `data` is as long as.
    unsafe { ethtool(socket, name, data.as_mut_ptr().cast())? };
    let mut driver = [0; 32];
    for (bytes, word) in driver.chunks_exact_mut(4).zip(&data[1..]) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
    Ok(driver)
}

/// The link's speed in Mbit/s as the kernel says it, which may be "unknown".
pub(crate) fn ethtool_speed(socket: &File, name: &str) -> io::Result<u32> {
    let mut data = [0_u32; SETTINGS_WORDS + MASK_WORDS];
    data[0] = GET_LINK_SETTINGS;
    // SAFETY: this command writes the settings and at most three masks of 127 words: the length of a
    // mask is a signed byte.
    unsafe { ethtool(socket, name, data.as_mut_ptr().cast())? };
    // Asked with masks of length 0, the kernel answers with minus the length that it wants.
    let [.., wanted] = data[3].to_ne_bytes();
    data = [0; SETTINGS_WORDS + MASK_WORDS];
    data[0] = GET_LINK_SETTINGS;
    data[3] = u32::from_ne_bytes([0, 0, 0, (wanted as i8).unsigned_abs()]);
    // SAFETY: as above.
    unsafe { ethtool(socket, name, data.as_mut_ptr().cast())? };
    Ok(data[1])
}

const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_STRING_SET: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;

/// A set of names that the kernel has for what an interface counts or can do.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum StringSet {
    Statistics = 1,
    Features = 4,
}

/// Bytes before the strings of a `struct ethtool_gstrings`, and before the numbers of a `struct ethtool_stats`.
const STRINGS_HEADER: usize = 12;
const STATISTICS_HEADER: usize = 8;
pub(crate) const STRING: usize = 32;

/// Number of names that the set has at this moment.
pub(crate) fn ethtool_strings_count(socket: &File, name: &str, set: StringSet) -> io::Result<u32> {
    // `struct ethtool_sset_info`: the command, an unused word, a mask of two words, and a number for each bit of it.
    let mut data = [GET_STRING_SET, 0, 0, 0, 0];
    data[2..4].copy_from_slice(&words(1 << set as u32));
    // SAFETY: with one bit in its mask, this command reads and writes these five words.
    unsafe { ethtool(socket, name, data.as_mut_ptr().cast())? };
    Ok(if data[2..4] == [0, 0] { 0 } else { data[4] })
}

/// Reads `count` names of a set, padded with zeros. Fails with `EFAULT` if the set has more.
pub(crate) fn ethtool_strings(
    socket: &File,
    name: &str,
    set: StringSet,
    count: usize,
) -> io::Result<Vec<[u8; STRING]>> {
    let mut answer = GuardedMemory::new(STRINGS_HEADER + STRING * count)?;
    let words = [GET_STRINGS, set as u32, count as u32].map(u32::to_ne_bytes);
    answer.bytes_mut()[..STRINGS_HEADER].copy_from_slice(words.as_flattened());
    // SAFETY: the kernel writes a string for each name of the set, and where they are more than there is room for, the
    // page behind the room stops it.
    unsafe { ethtool(socket, name, answer.bytes_mut().as_mut_ptr().cast())? };
    let given = u32_of(answer.bytes(), 8).min(count);
    Ok(answer.bytes()[STRINGS_HEADER..].as_chunks().0[..given].to_vec())
}

/// The driver's statistics, in the order of their names. Fails with `EFAULT` if there are more than `count`.
pub(crate) fn ethtool_statistics(socket: &File, name: &str, count: usize) -> io::Result<Vec<u64>> {
    let mut answer = GuardedMemory::new(STATISTICS_HEADER + 8 * count)?;
    let words = [GET_STATISTICS, count as u32].map(u32::to_ne_bytes);
    answer.bytes_mut()[..STATISTICS_HEADER].copy_from_slice(words.as_flattened());
    // SAFETY: as above, with a number for each statistic.
    unsafe { ethtool(socket, name, answer.bytes_mut().as_mut_ptr().cast())? };
    let given = u32_of(answer.bytes(), 4).min(count);
    let numbers = answer.bytes()[STATISTICS_HEADER..].as_chunks().0[..given].iter();
    Ok(numbers.map(|number| u64::from_ne_bytes(*number)).collect())
}

/// 32 features: which of them can be changed, which are asked for, which are in force, which never change.
pub(crate) type FeatureBlock = [u32; 4];

/// The state of the first `32 * blocks` features, in the order of their names.
pub(crate) fn ethtool_features(socket: &File, name: &str, blocks: usize) -> io::Result<Vec<FeatureBlock>> {
    let mut data = vec![0_u32; 2 + 4 * blocks];
    data[..2].copy_from_slice(&[GET_FEATURES, blocks as u32]);
    // SAFETY: this command writes no more blocks of four words than its second word says there is room for.
    unsafe { ethtool(socket, name, data.as_mut_ptr().cast())? };
    Ok(data[2..].as_chunks().0.to_vec())
}

/// Asks for features; a block says which to change, and to what. The number of blocks must be the kernel's own.
pub(crate) fn ethtool_set_features(socket: &File, name: &str, blocks: &[[u32; 2]]) -> io::Result<()> {
    let mut data = vec![SET_FEATURES, blocks.len() as u32];
    data.extend_from_slice(blocks.as_flattened());
    // SAFETY: this command reads as many blocks of two words as its second word says.
    unsafe { ethtool(socket, name, data.as_mut_ptr().cast()) }
}

fn words(number: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = number.to_ne_bytes();
    [[a, b, c, d], [e, f, g, h]].map(u32::from_ne_bytes)
}

fn u32_of(bytes: &[u8], at: usize) -> usize {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_ne_bytes(*word) as usize)
}

/// Memory with a page behind it that nobody may touch. For answers whose length the kernel alone decides: one that is
/// longer than it was a moment ago fails, instead of being written over something else.
struct GuardedMemory {
    mapping: *mut u8,
    /// Length of the mapping, with the page behind it.
    whole: usize,
    room: usize,
    len: usize,
}

impl GuardedMemory {
    fn new(len: usize) -> io::Result<Self> {
        // SAFETY: no pointer is passed.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4_096) as usize;
        let room = len.next_multiple_of(page);
        let (whole, kind) = (room + page, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at a place of the kernel's choice touches no other memory.
        let mapping = unsafe { libc::mmap(std::ptr::null_mut(), whole, libc::PROT_NONE, kind, -1, 0) };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let guarded = Self { mapping: mapping.cast(), whole, room, len };
        // SAFETY: these are the first pages of the mapping that was just made.
        check(unsafe { libc::mprotect(mapping, room, libc::PROT_READ | libc::PROT_WRITE) })?;
        Ok(guarded)
    }

    /// Right before the page that may not be touched, but for what keeps it aligned.
    fn start(&self) -> usize {
        self.room - self.len.next_multiple_of(8)
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: these bytes are inside the readable part, zeroed by the kernel, and live as long as the mapping.
        unsafe { std::slice::from_raw_parts(self.mapping.add(self.start()), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the exclusive borrow makes this the only way to them.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.add(self.start()), self.len) }
    }
}

impl Drop for GuardedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone and nothing refers to it any more.
        unsafe { libc::munmap(self.mapping.cast(), self.whole) };
    }
}

/// # Safety
/// `data` must point to as many writable bytes as the command in its first word reads and writes.
unsafe fn ethtool(socket: &File, name: &str, data: *mut c_char) -> io::Result<()> {
    // SAFETY: the structure is plain numbers and a pointer, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    request.ifr_ifru.ifru_data = data;
    // SAFETY: the request is complete and lives until the call returns; the caller vouches for `data`.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })?;
    Ok(())
}

/// Leaves the calling thread without any privilege.
#[cfg(test)]
pub(crate) fn drop_capabilities() -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let (header, none) = ([VERSION_3, 0], [0_u32; 6]);
    // SAFETY: version 3 reads two words of header and six of capabilities.
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) } as c_int)?;
    Ok(())
}

/// Runs `hook` in the single-threaded moment between fork and exec.
#[cfg(test)]
pub(crate) fn before_exec(command: &mut Command, hook: fn() -> io::Result<()>) {
    // SAFETY: the hook allocates, which glibc keeps working after a fork.
    unsafe { command.pre_exec(hook) };
}
