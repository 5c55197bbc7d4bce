//! Days on which names matter: somebody renames an interface, or a firewall goes by its name.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::actions::{FaultTargets, PATIENCE};
use super::plan::PlannedFault;
use super::supervisor::{Launch, STAND_IN};
use crate::stage;
use linux::net::{Namespace, Netlink};
use linux::{SystemError, version};
use units::StopFlag;

/// Names to which the wire and the stand-in are renamed.
const OTHER_NAMES: [&str; 2] = ["wire9", "other0"];
/// Ports that rules drop: by a chain for all packets, and by a chain of the interface.
const DROPPED: [u16; 2] = [7_703, 7_705];
/// Port that no rule drops.
const OPEN: u16 = 7_707;
const KNOCK_EVERY: Duration = Duration::from_millis(2);

/// True if there is a program that loads rules.
pub(super) fn can_filter() -> bool {
    Command::new("nft").arg("--version").stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
}

impl FaultTargets<'_> {
    /// Renames the wire or the stand-in, and back again or not: whoever starts next finds them all the same.
    pub(super) fn rename(&self, fault: &PlannedFault) -> Result<(), SystemError> {
        let (which, comes_back) = ((fault.seed % 2) as usize, (fault.seed / 2).is_multiple_of(2));
        let namespace = &self.stage.ends[fault.end];
        let (index, name) = namespace.with(|| {
            let netlink = Netlink::open()?;
            let both = [netlink.existing_wire_of(stage::plug(fault.end))?, netlink.existing_link(STAND_IN)?];
            let link = &both[which];
            netlink.rename(link.index, OTHER_NAMES[which])?;
            Ok::<_, SystemError>((link.index, link.name.clone()))
        })??;
        self.wait(fault.lasts);
        if comes_back {
            namespace.with(|| Ok::<_, SystemError>(Netlink::open()?.rename(index, &name)?))??;
        }
        Ok(())
    }

    /// Has an end drop what comes to some ports through the interface of its plug's name, knocks at them, and kills or
    /// restarts the daemon meanwhile. What gets through is a problem.
    pub(super) fn filter(&self, fault: &PlannedFault) -> Result<(), SystemError> {
        let PlannedFault { end, lasts, .. } = *fault;
        let (host, daemon, over) = (&self.stage.ends[end], &self.ends[end], StopFlag::new());
        let open = AtomicU64::new(0);
        // Perhaps the name that rules would mean is nobody's since an earlier day.
        host.with(|| {
            let netlink = Netlink::open()?;
            netlink.rename(netlink.existing_link(STAND_IN)?.index, stage::plug(end))
        })??;
        load_rules(host, &rules(stage::plug(end)))?;
        let arrived = std::thread::scope(|scope| {
            let _over = over.stop_on_drop();
            let knocks = scope.spawn(|| knock(&self.stage.ends[1 - end], &over));
            let heard = scope.spawn(|| listen(host, &over, &open));
            self.wait(lasts / 2);
            self.let_restart(daemon, |daemon| match fault.seed % 2 {
                0 => daemon.kill(),
                _ => daemon.restart(Launch::default()),
            });
            self.wait(lasts / 2);
            // Without a knock that is let in, the others prove nothing.
            self.wait_until(PATIENCE, || open.load(Ordering::Relaxed) > 0);
            over.stop();
            let knocks = knocks.join().map_err(|_| SystemError("a witness panicked".to_owned()))?;
            knocks.and(heard.join().map_err(|_| SystemError("a witness panicked".to_owned()))?)
        })?;
        load_rules(host, "delete table inet bench\n")?;
        if chain_follows() {
            load_rules(host, "delete table netdev bench\n")?;
        }
        let [by_rule, by_chain] = arrived;
        if by_rule + by_chain > 0 {
            daemon.report(vec![format!(
                "{by_rule} and {by_chain} datagrams came through a rule by name and a chain on the interface"
            )]);
        }
        if open.into_inner() == 0 && !self.is_stopped() {
            daemon.report(vec!["no datagram came to a port without a rule".to_owned()]);
        }
        Ok(())
    }
}

/// Chains on an interface go by its name since Linux 6.16; before, `link up` refuses them.
fn chain_follows() -> bool {
    version::is_at_least(6, 16)
}

fn rules(interface: &str) -> String {
    let [by_rule, by_chain] = DROPPED;
    let hook = "type filter hook";
    let rule = format!(
        "table inet bench {{\n chain c {{ {hook} input priority 0;\n iifname \"{interface}\" udp dport {by_rule} drop\n }}\n}}\n"
    );
    let chain = format!(
        "table netdev bench {{\n chain c {{ {hook} ingress device {interface} priority 0;\n udp dport {by_chain} drop\n }}\n}}\n"
    );
    if chain_follows() { rule + &chain } else { rule }
}

fn load_rules(host: &Namespace, rules: &str) -> Result<(), SystemError> {
    let failed = |error: std::io::Error| SystemError(format!("nft: {error}"));
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    host.prepare(&mut command)?;
    let mut nft = command.spawn().map_err(failed)?;
    // Dropped at once, it ends what nft reads.
    nft.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(rules.as_bytes())).map_err(failed)?;
    let output = nft.wait_with_output().map_err(failed)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(SystemError(format!("nft: {}", String::from_utf8_lossy(&output.stderr).trim()))),
    }
}

fn ports() -> [u16; 3] {
    [DROPPED[0], DROPPED[1], OPEN]
}

fn socket(port: u16) -> Result<UdpSocket, SystemError> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).and_then(|socket| {
        socket.set_broadcast(true)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    socket.map_err(|error| SystemError(format!("a socket for datagrams: {error}")))
}

fn knock(from: &Namespace, over: &StopFlag) -> Result<(), SystemError> {
    from.enter()?;
    let socket = socket(0)?;
    while !over.is_stopped() {
        for port in ports() {
            // One that cannot be sent is a knock less.
            let _ = socket.send_to(b"knock", SocketAddr::new(stage::everyone(), port));
        }
        std::thread::sleep(KNOCK_EVERY);
    }
    Ok(())
}

/// Counts the datagrams that came to each port; those to the one without a rule while they come.
fn listen(at: &Namespace, over: &StopFlag, open: &AtomicU64) -> Result<[u64; 2], SystemError> {
    at.enter()?;
    let [by_rule, by_chain, without] = ports().map(socket);
    let sockets = [by_rule?, by_chain?, without?];
    let arrived = [&AtomicU64::new(0), &AtomicU64::new(0), open];
    while !over.is_stopped() {
        for (socket, arrived) in sockets.iter().zip(arrived) {
            while socket.recv(&mut [0; 16]).is_ok() {
                arrived.fetch_add(1, Ordering::Relaxed);
            }
        }
        std::thread::sleep(KNOCK_EVERY);
    }
    let [by_rule, by_chain, _] = arrived.map(|arrived| arrived.load(Ordering::Relaxed));
    Ok([by_rule, if chain_follows() { by_chain } else { 0 }])
}
