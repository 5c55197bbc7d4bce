//! The commands that make a rack of the stage: its switch, its hosts, and a protected link under one of them.

use std::ffi::OsString;

use linux::SystemError;
use units::StopFlag;

use super::daemons::{DaemonCommand, RackDaemon};
use super::{LOSSY, RackSoakPlan};
use crate::soak::Workshop;
use crate::stage::{RackStage, inner, plug};

/// MTU of all cables: a protected frame with its mark fits.
pub(super) const WIRE_MTU: u32 = 1_600;
/// MTU of a protected link: a frame of the stand-in with its mark.
const LINK_MTU: &str = "1544";
const MTU: &str = "1500";
/// The stand-in of a protected link: on the host, and at the switch.
const LINK_NAMES: [&str; 2] = ["cable0", "cable1"];
/// The stand-in of a host.
const STAND_IN: &str = "rack0";
const SWITCH: &str = "switch0";
const INGRESS_SHARE: &str = "20%";

/// The two ends of the protected link under host 2, if there is one.
#[derive(Debug)]
pub(super) struct LinkCommands<'a> {
    ends: Vec<DaemonCommand<'a>>,
}

impl<'a> LinkCommands<'a> {
    /// `port` is where the lossy wire ends at the switch.
    pub(super) fn new(plan: &RackSoakPlan, stage: &'a RackStage, shop: &Workshop, port: Option<&str>) -> Self {
        let ends = match port.filter(|_| plan.protect) {
            None => Vec::new(),
            Some(port) => [(stage.host(LOSSY), plug(LOSSY)), (stage.middle(), port)]
                .into_iter()
                .zip(LINK_NAMES)
                .map(|((namespace, interface), name)| {
                    let mut words = vec!["link", "up", interface, "--name", name, "--mtu", LINK_MTU];
                    words.extend((name == LINK_NAMES[0]).then_some("--take-over"));
                    let arguments = words.into_iter().map(OsString::from).collect();
                    let folder = shop.path().join(name);
                    DaemonCommand { program: plan.program.clone(), arguments, namespace, folder, name: name.to_owned() }
                })
                .collect(),
        };
        Self { ends }
    }

    /// Starts them, and waits until frames are protected.
    pub(super) fn start(&'a self, stop: &StopFlag) -> Result<Vec<RackDaemon<'a>>, SystemError> {
        let mut running = Vec::new();
        for end in &self.ends {
            running.push(end.start()?);
        }
        for (daemon, end) in running.iter_mut().zip(&self.ends) {
            daemon.wait_until(|| end.link_is_active(), stop)?;
        }
        Ok(running)
    }

    fn is_none(&self) -> bool {
        self.ends.is_empty()
    }
}

/// The switch and the hosts.
#[derive(Debug)]
pub(super) struct RackCommands<'a> {
    pub switch: DaemonCommand<'a>,
    pub hosts: Vec<DaemonCommand<'a>>,
}

impl<'a> RackCommands<'a> {
    pub(super) fn new(
        plan: &RackSoakPlan,
        stage: &'a RackStage,
        shop: &Workshop,
        links: &LinkCommands<'_>,
        port: Option<&str>,
    ) -> Self {
        let (rate, scheduler) = (plan.rate.to_string().replace(' ', ""), plan.scheduler.name());
        let command = |namespace, words: Vec<&str>, name: &str, folder: String| DaemonCommand {
            program: plan.program.clone(),
            arguments: words.into_iter().map(OsString::from).collect(),
            namespace,
            folder: shop.path().join(folder),
            name: name.to_owned(),
        };
        let ports: Vec<String> = (0..plan.hosts)
            .map(|host| match port.filter(|_| host == LOSSY) {
                Some(port) if links.is_none() => port.to_owned(),
                Some(_) => LINK_NAMES[1].to_owned(),
                None => inner(host),
            })
            .collect();
        let buffer = plan.buffer.get().to_string();
        let mut words = vec!["rack", "switch"];
        words.extend(ports.iter().map(String::as_str));
        words.extend(["--rate", &rate, "--buffer", &buffer, "--scheduler", scheduler, "--name", SWITCH]);
        // A host without a daemon does not reserve; it is to have its share, and no more.
        words.extend(
            (plan.kills > 0 || plan.joins > 0).then_some(["--ingress-share", INGRESS_SHARE]).into_iter().flatten(),
        );
        let switch = command(stage.middle(), words, SWITCH, SWITCH.to_owned());
        let join = |host| {
            let interface = if host == LOSSY && !links.is_none() { LINK_NAMES[0] } else { plug(host) };
            let words = vec!["rack", "join", interface, "--name", STAND_IN, "--rate", &rate, "--mtu", MTU];
            let words = [words, vec!["--scheduler", scheduler, "--take-over"]].concat();
            command(stage.host(host), words, STAND_IN, format!("host-{host}"))
        };
        let hosts = (0..plan.hosts).map(join).collect();
        Self { switch, hosts }
    }
}
