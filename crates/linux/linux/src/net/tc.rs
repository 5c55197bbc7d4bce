//! Traffic control: random loss, forwarding and rate limits inside the kernel, and their counters.
//!
//! With two veth pairs and a namespace in the middle this makes a lossy wire that costs no process:
//!
//! ```text
//!   w0 ═══ x0 ─ ingress: 1 corrupt, 2 forward ─▶ x1 ═══ w1      (and the same from x1 to x0)
//!                                                └ root: tbf
//! ```
//!
//! These have handles that no other program uses. They distinguish what a killed process left from what others own.
//!
//! Classic BPF does all of it: every kernel has `cls_bpf` where `matchall` or `netem` may be missing,
//! and it needs no privilege beyond the namespace. Loss belongs in the middle: a packet socket at
//! either end sees a frame before that end's own ingress filters do.

mod queue;

use super::Result;
use super::netlink::{Netlink, NetlinkRequest, attribute, text, u32_at};

pub use queue::{Qdisc, QdiscStatistics};

/// One classic-BPF instruction: code, jump if true, jump if false, operand.
pub type BpfInstruction = (u16, u8, u8, u32);

/// Direction through the interface in which a filter sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterDirection {
    Ingress,
    Egress,
}

/// Consequence of a filter's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterAction {
    /// The program's result is the verdict: "direct action".
    AsReturned,
    /// A packet that it matches leaves through the interface of this index.
    Redirect(u32),
    /// A packet that it matches arrives at the interface of this index instead.
    ArriveAt(u32),
    /// A packet that it matches arrives there as well.
    AlsoArriveAt(u32),
}

/// A classic-BPF filter. The filter with this priority and handle is replaced at once if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Filter<'a> {
    pub direction: FilterDirection,
    pub priority: u16,
    pub handle: u32,
    pub program: &'a [BpfInstruction],
    pub then: FilterAction,
}

const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const CLSACT_INGRESS: u32 = 0xffff_fff2;
const CLSACT_EGRESS: u32 = 0xffff_fff3;
const ROOT: u32 = 0xffff_ffff;

const BPF_ACTION: u16 = 1;
const BPF_PROGRAM_LEN: u16 = 4;
const BPF_PROGRAM: u16 = 5;
const BPF_FLAGS: u16 = 8;
const BPF_FLAG_DIRECT_ACTION: u32 = 1;
const ACTION_KIND: u16 = 1;
const ACTION_OPTIONS: u16 = 2;
const MIRRED_PARAMETERS: u16 = 2;
const EGRESS_REDIRECT: u32 = 1;
const INGRESS_REDIRECT: u32 = 3;
const INGRESS_MIRROR: u32 = 4;

/// The verdicts: go on with the next filter, drop, taken over by the action.
const ACT_UNSPEC: u32 = u32::MAX;
const ACT_SHOT: u32 = 2;
const ACT_PIPE: u32 = 3;
const ACT_STOLEN: u32 = 4;

const LOAD_WORD: u16 = 0x20;
const LOAD_LENGTH: u16 = 0x80;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
/// Loading from here gives a random word.
const RANDOM: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32;
const ALWAYS_DROP: [BpfInstruction; 1] = [(RETURN, 0, 0, ACT_SHOT)];
const ALL: [BpfInstruction; 1] = [(RETURN, 0, 0, u32::MAX)];

const GO_ON: [BpfInstruction; 1] = [(RETURN, 0, 0, ACT_UNSPEC)];

/// The priorities of a wire's filters. The last only marks clsact as made for the wire: nothing comes past `FORWARD`.
const CORRUPT: u16 = 1;
const FORWARD: u16 = 2;
const ROOM: u16 = 3;
const HANDLE: u32 = 1;
/// Numbers of our own, so that a filter somebody else has at the same priority stays.
const WIRE_HANDLE: u32 = 0x6869_7477;
const DROP_ALL_HANDLE: u32 = 0x6869_746c;
/// Filter of a wire that is closed for a moment: a stand-in that is somebody's wire keeps its own.
const CLOSED_HANDLE: u32 = 0x6869_746e;

const CREATE: i32 = libc::NLM_F_CREATE;

/// Disciplines that go by lengths, times and flows alone; `clsact` and `ingress` only hold filters.
const SORT_NOTHING: [&str; 19] = [
    "noqueue",
    "mq",
    "pfifo_fast",
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "fq_codel",
    "fq",
    "codel",
    "pie",
    "fq_pie",
    "sfq",
    "red",
    "tbf",
    "netem",
    "cake",
    "noop",
    "clsact",
    "ingress",
];

impl FilterDirection {
    fn parent(self) -> u32 {
        match self {
            Self::Ingress => CLSACT_INGRESS,
            Self::Egress => CLSACT_EGRESS,
        }
    }
}

impl Netlink {
    /// Makes room for filters; false if it was there before.
    pub(crate) fn add_clsact(&self, index: u32) -> Result<bool> {
        let header = header(index, CLSACT_HANDLE, CLSACT, 0);
        let request = NetlinkRequest::new(libc::RTM_NEWQDISC, CREATE | libc::NLM_F_EXCL, &header);
        match self.execute_on(index, format_args!("add clsact to"), request.string(libc::TCA_KIND, "clsact")) {
            Err(error) if error.is_any_of(&[libc::EEXIST]) => Ok(false),
            result => result.map(|()| true),
        }
    }

    /// Deletes the clsact with all its filters.
    pub(crate) fn delete_clsact(&self, index: u32) -> Result<()> {
        let request = NetlinkRequest::new(libc::RTM_DELQDISC, 0, &header(index, CLSACT_HANDLE, CLSACT, 0));
        self.execute_on(index, format_args!("delete clsact from"), request)
    }

    /// Needs [`Netlink::add_clsact`] before.
    pub(crate) fn set_filter(&self, index: u32, filter: Filter<'_>) -> Result<()> {
        let header = filter_header(index, filter.direction, filter.priority, filter.handle);
        let request = NetlinkRequest::new(libc::RTM_NEWTFILTER, CREATE, &header)
            .string(libc::TCA_KIND, "bpf")
            .nested(libc::TCA_OPTIONS, |options| filter.options(options));
        self.execute_on(index, format_args!("add a filter to"), request)
    }

    /// Deletes a filter; without a handle, every filter of this priority.
    pub(crate) fn delete_filter(
        &self,
        index: u32,
        direction: FilterDirection,
        priority: u16,
        handle: Option<u32>,
    ) -> Result<()> {
        let header = filter_header(index, direction, priority, handle.unwrap_or(0));
        let request = NetlinkRequest::new(libc::RTM_DELTFILTER, 0, &header).string(libc::TCA_KIND, "bpf");
        self.execute_on(index, format_args!("delete a filter from"), request)
    }

    /// Keeps what arrives from the kernel's stack; packet sockets still see it. True if clsact had to be
    /// added for it: pass that to [`Netlink::accept_on_ingress`].
    pub fn drop_all_on_ingress(&self, index: u32) -> Result<bool> {
        let created = self.add_clsact(index)?;
        let filter = Filter {
            direction: FilterDirection::Ingress,
            priority: 1,
            handle: DROP_ALL_HANDLE,
            program: &ALWAYS_DROP,
            then: FilterAction::AsReturned,
        };
        match self.set_filter(index, filter) {
            Err(error) if created => {
                let _ = self.delete_clsact(index);
                Err(error)
            }
            result => result.map(|()| created),
        }
    }

    /// Undoes [`Netlink::drop_all_on_ingress`] and [`Netlink::pass_to_each_other`]. Filters that are not there need not be
    /// undone.
    pub fn accept_on_ingress(&self, index: u32, delete_clsact: bool) -> Result<()> {
        let undone = match delete_clsact {
            true => self.delete_clsact(index),
            false => self.delete_filter(index, FilterDirection::Ingress, 1, Some(DROP_ALL_HANDLE)),
        };
        or_not_there(undone)
    }

    /// Makes the kernel do what nobody else does: what `stand_in` sends leaves through `wire`, and what arrives at `wire`
    /// arrives at `stand_in`; at both, if the kernel's stack is `wire`'s too.
    pub fn pass_to_each_other(&self, stand_in: u32, wire: u32, wire_too: bool) -> Result<()> {
        self.add_clsact(wire)?;
        self.add_clsact(stand_in)?;
        let filter = |direction, then| Filter { direction, priority: 1, handle: DROP_ALL_HANDLE, program: &ALL, then };
        let arrive = if wire_too { FilterAction::AlsoArriveAt(stand_in) } else { FilterAction::ArriveAt(stand_in) };
        self.set_filter(wire, filter(FilterDirection::Ingress, arrive))?;
        self.set_filter(stand_in, filter(FilterDirection::Egress, FilterAction::Redirect(wire)))
    }

    /// Ends passing at the stand-in: frames that `stand_in` sends are its reader's again.
    pub fn keep_to_itself(&self, stand_in: u32) -> Result<()> {
        or_not_there(self.delete_filter(stand_in, FilterDirection::Egress, 1, Some(DROP_ALL_HANDLE)))
    }

    /// Drops each arriving frame with this probability, independently; 0 takes the filter away.
    pub fn corrupt(&self, index: u32, probability: f64) -> Result<()> {
        self.add_clsact(index)?;
        let threshold = (probability * f64::from(u32::MAX)).round() as u32;
        let random = [
            (LOAD_WORD, 0, 0, RANDOM),
            (JUMP_IF_AT_LEAST, 0, 1, threshold),
            (RETURN, 0, 0, ACT_UNSPEC),
            (RETURN, 0, 0, ACT_SHOT),
        ];
        let program: &[BpfInstruction] = match threshold {
            0 => return self.delete_of_wire(index, CORRUPT).map(drop),
            u32::MAX => &ALWAYS_DROP,
            _ => &random,
        };
        self.set_filter(index, of_wire(CORRUPT, program, FilterAction::AsReturned))
    }

    /// Sends what arrives, and was not dropped, out of `to`.
    pub fn forward(&self, index: u32, to: u32) -> Result<()> {
        self.add_clsact(index)?;
        self.set_filter(index, of_wire(FORWARD, &ALL, FilterAction::Redirect(to)))
    }

    /// Lets frames of these lengths that leave `index` arrive on `to`, its other end, although they are too long for it:
    /// a veth drops what exceeds the MTU of the receiving end.
    pub fn hand_over_long_frames(&self, index: u32, to: u32, lengths: std::ops::Range<u32>) -> Result<()> {
        self.add_clsact(index)?;
        let program = [
            (LOAD_LENGTH, 0, 0, 0),
            (JUMP_IF_AT_LEAST, 0, 2, lengths.start),
            (JUMP_IF_AT_LEAST, 1, 0, lengths.end),
            (RETURN, 0, 0, u32::MAX),
            (RETURN, 0, 0, 0),
        ];
        let (direction, then) = (FilterDirection::Egress, FilterAction::ArriveAt(to));
        self.set_filter(index, Filter { direction, priority: FORWARD, handle: HANDLE, program: &program, then })
    }

    /// Makes room for a wire's filters that [`Netlink::take_up_wire`] takes away together with them.
    pub fn make_room_for_wire(&self, index: u32) -> Result<()> {
        if self.add_clsact(index)? {
            self.set_filter(index, of_wire(ROOM, &GO_ON, FilterAction::AsReturned))?;
        }
        Ok(())
    }

    /// Takes away what [`Netlink::corrupt`], [`Netlink::forward`] and [`Netlink::set_tbf`] put there, and the room that was
    /// made for it if nobody else's filters are in it. False if there was nothing.
    pub fn take_up_wire(&self, index: u32) -> Result<bool> {
        let mut found = self.delete_of_wire(index, CORRUPT)?;
        found |= self.delete_of_wire(index, FORWARD)?;
        found |= self.delete_tbf(index)?;
        if self.delete_of_wire(index, ROOM)? {
            found = true;
            if !self.has_filters(index)? {
                self.delete_clsact(index)?;
            }
        }
        Ok(found)
    }

    /// False if it is not there.
    fn delete_of_wire(&self, index: u32, priority: u16) -> Result<bool> {
        was_there(self.delete_filter(index, FilterDirection::Ingress, priority, Some(WIRE_HANDLE)))
    }

    /// Opens what [`Netlink::drop_all_on_egress`] closed.
    pub fn open_egress(&self, index: u32) -> Result<()> {
        or_not_there(self.delete_filter(index, FilterDirection::Egress, 1, Some(CLOSED_HANDLE)))
    }

    /// Lets nothing leave through an interface but what was sent before; undone by [`Netlink::open_egress`].
    pub fn drop_all_on_egress(&self, index: u32) -> Result<()> {
        self.add_clsact(index)?;
        let (direction, then) = (FilterDirection::Egress, FilterAction::AsReturned);
        let filter = Filter { direction, priority: 1, handle: CLOSED_HANDLE, program: &ALWAYS_DROP, then };
        self.set_filter(index, filter)
    }

    /// Returns a queue or filter of somebody else's on an interface that looks into packets: the kind, and the command that
    /// shows it. Queues that treat all packets alike, or go by flows, do not count.
    pub fn packet_sorting(&self, index: u32) -> Result<Option<(String, &'static str)>> {
        let request = NetlinkRequest::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP, &header(index, 0, 0, 0));
        let disciplines = self.execute(format_args!("list the queues of interface {index}"), request)?;
        let of_it = disciplines.iter().filter(|message| u32_at(message, 4) == Some(index));
        for message in of_it {
            let kind = attribute(message.get(20..).unwrap_or_default(), libc::TCA_KIND).map(text).unwrap_or_default();
            if !SORT_NOTHING.contains(&kind.as_str()) {
                return Ok(Some((format!("the queueing discipline {kind}"), "tc qdisc show dev")));
            }
        }
        for (parent, shown) in [
            (CLSACT_INGRESS, "tc filter show ingress dev"),
            (CLSACT_EGRESS, "tc filter show egress dev"),
            (0, "tc filter show dev"),
        ] {
            let request = NetlinkRequest::new(libc::RTM_GETTFILTER, libc::NLM_F_DUMP, &header(index, 0, parent, 0));
            let filters = self.execute(format_args!("list the filters of interface {index}"), request)?;
            let is_foreign =
                |message: &&Vec<u8>| !matches!(u32_at(message, 8), Some(0 | DROP_ALL_HANDLE | CLOSED_HANDLE) | None);
            if let Some(message) = filters.iter().find(is_foreign) {
                let kind = attribute(message.get(20..).unwrap_or_default(), libc::TCA_KIND).map(text);
                return Ok(Some((format!("a filter ({})", kind.unwrap_or_default()), shown)));
            }
        }
        Ok(None)
    }

    /// True if anybody has a filter in an interface's clsact.
    fn has_filters(&self, index: u32) -> Result<bool> {
        for direction in [FilterDirection::Ingress, FilterDirection::Egress] {
            let header = header(index, 0, direction.parent(), 0);
            let request = NetlinkRequest::new(libc::RTM_GETTFILTER, libc::NLM_F_DUMP, &header);
            if !self.execute(format_args!("list the filters of interface {index}"), request)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The error that says that there is nothing to undo is none.
fn or_not_there(undone: Result<()>) -> Result<()> {
    was_there(undone).map(drop)
}

/// Returns false if there was nothing to undo.
fn was_there(undone: Result<()>) -> Result<bool> {
    match undone {
        Err(error) if error.is_any_of(&[libc::ENOENT, libc::EINVAL]) => Ok(false),
        undone => undone.map(|()| true),
    }
}

/// A filter of the wire on what arrives.
fn of_wire(priority: u16, program: &[BpfInstruction], then: FilterAction) -> Filter<'_> {
    Filter { direction: FilterDirection::Ingress, priority, handle: WIRE_HANDLE, program, then }
}

/// `tcmsg`.
fn header(index: u32, handle: u32, parent: u32, info: u32) -> [u8; 20] {
    let mut header = [0; 20];
    for (bytes, word) in header[4..].chunks_exact_mut(4).zip([index, handle, parent, info]) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
    header
}

fn filter_header(index: u32, direction: FilterDirection, priority: u16, handle: u32) -> [u8; 20] {
    let all_protocols = (libc::ETH_P_ALL as u16).to_be();
    header(index, handle, direction.parent(), u32::from(priority) << 16 | u32::from(all_protocols))
}

impl Filter<'_> {
    fn options(&self, options: NetlinkRequest) -> NetlinkRequest {
        let program: Vec<u8> = self.program.iter().flat_map(encode).collect();
        let options = match self.then {
            FilterAction::AsReturned => options.number(BPF_FLAGS, BPF_FLAG_DIRECT_ACTION),
            FilterAction::Redirect(to) => options.mirred(EGRESS_REDIRECT, ACT_STOLEN, to),
            FilterAction::ArriveAt(to) => options.mirred(INGRESS_REDIRECT, ACT_STOLEN, to),
            FilterAction::AlsoArriveAt(to) => options.mirred(INGRESS_MIRROR, ACT_PIPE, to),
        };
        options.attribute(BPF_PROGRAM_LEN, &(self.program.len() as u16).to_ne_bytes()).attribute(BPF_PROGRAM, &program)
    }
}

fn encode(&(code, jump_true, jump_false, operand): &BpfInstruction) -> [u8; 8] {
    let ([a, b], [c, d, e, f]) = (code.to_ne_bytes(), operand.to_ne_bytes());
    [a, b, jump_true, jump_false, c, d, e, f]
}

impl NetlinkRequest {
    /// A filter's action: the packet, or a copy of it, goes on at another interface.
    fn mirred(self, what: u32, verdict: u32, to: u32) -> Self {
        // `tc_mirred`: index, capabilities, verdict, two reference counts, what to do, where.
        let parameters = [0, 0, verdict, 0, 0, what, to].map(u32::to_ne_bytes).concat();
        self.nested(BPF_ACTION, |actions| {
            actions.nested(1, |action| {
                action
                    .string(ACTION_KIND, "mirred")
                    .nested(ACTION_OPTIONS, |options| options.attribute(MIRRED_PARAMETERS, &parameters))
            })
        })
        .number(BPF_FLAGS, 0)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::net::testing::{in_namespaces, in_own_namespace, ip, quiet_pair};
    use crate::net::{InterfaceAddress, Namespace};

    /// Two hosts and the wire between them, each in a namespace: w0 ═ x0 → x1 ═ w1.
    struct Wire {
        middle: Netlink,
        x: [u32; 2],
        hosts: [UdpSocket; 2],
    }

    const HOSTS: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
    const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

    impl Wire {
        fn new([left, middle, right]: &[Namespace; 3]) -> Self {
            let netlink = middle.with(Netlink::open).unwrap().unwrap();
            let hosts = [left, right];
            let x = [0, 1].map(|side| {
                let (inner, outer) = (format!("x{side}"), format!("w{side}"));
                let [inner, outer_index] = quiet_pair(&netlink, &inner, &outer);
                netlink.set_namespace(outer_index, hosts[side]).unwrap();
                inner
            });
            netlink.forward(x[0], x[1]).unwrap();
            netlink.forward(x[1], x[0]).unwrap();
            let hosts = [0, 1].map(|side| hosts[side].with(|| host(side)).unwrap());
            x.iter().for_each(|index| netlink.wait_until_running(*index).unwrap());
            Self { middle: netlink, x, hosts }
        }

        /// Sends datagrams from one side in bursts that fit every queue; how many came out at the other.
        fn send(&self, from: usize, count: u64) -> u64 {
            let to = &self.hosts[1 - from];
            let before = self.counted(from);
            let (mut sent, mut received) = (0, 0);
            while sent < count {
                let burst = (count - sent).min(50);
                (0..burst).for_each(|_| assert_eq!(self.hosts[from].send(&[0; 100]).unwrap(), 100));
                sent += burst;
                eventually(|| {
                    received += drain(to);
                    received + self.counted(from).drops - before.drops == sent
                });
            }
            assert_eq!(self.counted(from).packets - before.packets, count, "nothing else is on the wire");
            received
        }

        fn counted(&self, from: usize) -> QdiscStatistics {
            self.middle.qdisc_statistics(self.x[from], Qdisc::Clsact).unwrap().unwrap()
        }
    }

    /// Gives this namespace's end of the wire its address, so that nobody needs to be asked for one.
    fn host(side: usize) -> UdpSocket {
        let netlink = Netlink::open().unwrap();
        let index = netlink.existing_link(&format!("w{side}")).unwrap().index;
        netlink.no_ipv6_autoconf(index).unwrap();
        netlink.set_mac(index, MACS[side]).unwrap();
        netlink.set_up(index, true).unwrap();
        netlink.wait_until_running(index).unwrap();
        netlink.add_address(index, &InterfaceAddress::new(ip(HOSTS[side]), 24)).unwrap();
        netlink.add_neighbour(index, ip(HOSTS[1 - side]), MACS[1 - side]).unwrap();
        let socket = UdpSocket::bind((HOSTS[side], 7_000)).unwrap();
        socket.connect((HOSTS[1 - side], 7_000)).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    }

    fn drain(socket: &UdpSocket) -> u64 {
        let mut buffer = [0; 2_000];
        std::iter::from_fn(|| socket.recv(&mut buffer).ok()).count() as u64
    }

    /// Far longer than any machine is busy.
    fn eventually(mut done: impl FnMut() -> bool) {
        for _ in 0..60_000 {
            if done() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("a minute passed");
    }

    #[test]
    fn the_wire_drops_its_share_and_counts_every_frame() {
        in_namespaces(|namespaces| {
            let wire = Wire::new(&namespaces);
            assert_eq!(wire.send(0, 200), 200);
            wire.middle.corrupt(wire.x[0], 0.25).unwrap();
            let received = wire.send(0, 4_000);
            assert_eq!(wire.counted(0).drops, 4_000 - received);
            // Six standard deviations of a binomial around 3,000.
            assert!((2_835..=3_165).contains(&received), "{received} of 4000 came through");
            assert_eq!(wire.send(1, 200), 200, "the other direction is clean");
            assert_eq!(wire.counted(1).drops, 0);

            let (inner, outer) = (wire.middle.statistics(wire.x[0]), wire.middle.statistics(wire.x[1]));
            assert_eq!(inner.unwrap().rx_packets, wire.counted(0).packets);
            assert_eq!(outer.unwrap().tx_packets, 200 + received);

            wire.middle.corrupt(wire.x[0], 1.0).unwrap();
            assert_eq!(wire.send(0, 100), 0);
            wire.middle.corrupt(wire.x[0], 0.0).unwrap();
            wire.middle.corrupt(wire.x[0], 0.0).unwrap();
            assert_eq!(wire.send(0, 100), 100);
        });
    }

    #[test]
    fn a_rate_limit_lets_a_burst_through_and_drops_what_does_not_fit_its_queue() {
        const SENT: u64 = 200;
        in_namespaces(|namespaces| {
            let wire = Wire::new(&namespaces);
            let counted = || wire.middle.qdisc_statistics(wire.x[1], Qdisc::Root).unwrap().unwrap();
            // A kilobyte a second: what trickles out while the machine is busy is a few frames at most.
            wire.middle.set_tbf(wire.x[1], 8_000, 3_000, 5_000).unwrap();
            for burst in 1..=4 {
                (0..50).for_each(|_| assert_eq!(wire.hosts[0].send(&[0; 500]).unwrap(), 500));
                eventually(|| {
                    let now = counted();
                    now.drops + now.packets + now.backlog_packets >= SENT / 4 * burst
                });
            }
            let limited = counted();
            assert!(limited.drops > SENT / 2 && limited.overlimits > 0, "{limited:?}");
            wire.middle.set_tbf(wire.x[1], 10_000_000_000, 65_536, 1_000_000).unwrap();
            let mut received = 0;
            eventually(|| {
                received += drain(&wire.hosts[1]);
                received == SENT - counted().drops
            });
            assert_eq!((counted().drops, counted().packets), (limited.drops, received));
            wire.middle.delete_root(wire.x[1]).unwrap();
            wire.middle.set_fifo(wire.x[1], 100).unwrap();
            assert_eq!(wire.send(0, 100), 100);
            assert_eq!(counted().packets, 100);
        });
    }

    #[test]
    fn dropping_all_on_ingress_leaves_foreign_filters_as_they_were() {
        in_own_namespace(|netlink| {
            let [index, _] = quiet_pair(netlink, "w0", "x0");
            assert!(netlink.drop_all_on_ingress(index).unwrap());
            netlink.accept_on_ingress(index, true).unwrap();
            assert_eq!(netlink.qdisc_statistics(index, Qdisc::Clsact).unwrap(), None);

            assert!(netlink.add_clsact(index).unwrap());
            netlink.corrupt(index, 0.5).unwrap();
            assert!(!netlink.drop_all_on_ingress(index).unwrap());
            netlink.accept_on_ingress(index, false).unwrap();
            assert!(netlink.qdisc_statistics(index, Qdisc::Clsact).unwrap().is_some());
            netlink.delete_filter(index, FilterDirection::Ingress, CORRUPT, None).unwrap();
            let gone = netlink.delete_filter(index, FilterDirection::Ingress, CORRUPT, None).unwrap_err();
            assert!(gone.to_string().starts_with("delete a filter from w0: "), "{gone}");
        });
    }

    #[test]
    fn taking_up_a_wire_leaves_nothing_of_it_and_all_that_others_have() {
        in_own_namespace(|netlink| {
            let [index, to] = quiet_pair(netlink, "w0", "x0");
            let lay = || {
                netlink.make_room_for_wire(index).unwrap();
                netlink.corrupt(index, 0.5).unwrap();
                netlink.forward(index, to).unwrap();
            };
            let has_clsact = || netlink.qdisc_statistics(index, Qdisc::Clsact).unwrap().is_some();
            assert!(!netlink.take_up_wire(index).unwrap());
            lay();
            netlink.set_tbf(index, 1_000_000, 3_000, 30_000).unwrap();
            assert!(netlink.take_up_wire(index).unwrap() && !has_clsact());
            assert!(netlink.delete_root(index).is_err(), "the rate limit is gone");

            let theirs =
                |direction| Filter { direction, handle: HANDLE, ..of_wire(CORRUPT, &GO_ON, FilterAction::AsReturned) };
            for direction in [FilterDirection::Ingress, FilterDirection::Egress] {
                lay();
                netlink.set_filter(index, theirs(direction)).unwrap();
                netlink.set_fifo(index, 100).unwrap();
                assert!(netlink.take_up_wire(index).unwrap() && !netlink.take_up_wire(index).unwrap());
                netlink.delete_filter(index, direction, CORRUPT, Some(HANDLE)).unwrap();
                netlink.delete_root(index).unwrap();
                lay();
                assert!(netlink.take_up_wire(index).unwrap() && has_clsact(), "it was there before the wire");
                netlink.delete_clsact(index).unwrap();
            }
        });
    }
}
