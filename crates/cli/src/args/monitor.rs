//! What can be asked of the monitor.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use monitor::config::{PortWish, Wishes, Written};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MonitorArgs {
    #[command(subcommand)]
    pub command: Option<MonitorCommand>,

    /// Ports to watch, with * for anything; all that are physical if not given.
    pub ports: Vec<String>,

    /// Look once, print a table and end: exit code 0 if all ports are healthy, 1 if any is corrupting, 3 if nothing could be
    /// judged.
    ///
    /// Polls twice, an interval apart, and tells counts since boot where that says too little; a file of samples is
    /// replayed whole.
    #[arg(long)]
    pub once: bool,

    /// Print what the file and the command line come to, and end: exit code 2 if anything in it is wrong.
    #[arg(long, conflicts_with = "once")]
    pub check: bool,

    /// A TOML file with any of the options, by the same names; what is given here goes before it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The name by which other hosts know this one; what the kernel says if not given.
    #[arg(long)]
    pub host: Option<String>,

    /// Between two polls [default: 1s].
    #[arg(long, value_name = "TIME")]
    pub interval: Option<String>,

    /// Where counters come from: kernel, sysfs, links or a file, FIFO or - with samples; several times if need be
    /// [default: kernel].
    #[arg(long, value_name = "SOURCE")]
    pub source: Vec<String>,

    /// Counters from a directory that looks like /sys/class/net, as `hitless wire --counters` writes one.
    #[arg(long, value_name = "DIR")]
    pub sysfs: Option<PathBuf>,

    /// Leave these ports alone, with * and ? for anything; several times if need be.
    #[arg(long, value_name = "PORT")]
    pub exclude: Vec<String>,

    /// Keep what is read, to be replayed with --source FILE.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Where hosts tell each other: `local`, or `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, with TLS `rediss://…`; local if not
    /// given.
    #[arg(long, value_name = "URL")]
    pub bus: Option<String>,

    /// The certificate authority of a rediss:// bus, in PEM; those of the system if not given.
    #[arg(long, value_name = "FILE")]
    pub bus_ca: Option<PathBuf>,

    /// Obey only orders that are signed with this key, as `hitless fleet watch --order-key` does: a file with 32 hexadecimal
    /// digits.
    #[arg(long, value_name = "FILE")]
    pub order_key: Option<PathBuf>,

    /// Ports of this host that may be switched off by orders at a time [default: 1].
    #[arg(long, value_name = "N")]
    pub most_off: Option<u32>,

    /// none: observe and tell; protect: activate the links of corrupting ports, and end that when they are healthy
    /// again [default: none].
    #[arg(long)]
    pub action: Option<String>,

    /// Loss above which a port is corrupting [default: 1e-8].
    #[arg(long, value_name = "LOSS")]
    pub threshold: Option<String>,

    /// Bad polls before an alarm [default: 2].
    #[arg(long, value_name = "N")]
    pub raise_after: Option<u32>,

    /// Clean polls before it ends [default: 3].
    #[arg(long, value_name = "N")]
    pub clear_after: Option<u32>,

    /// The window ends after so many frames [default: 100M].
    #[arg(long, value_name = "FRAMES")]
    pub window_frames: Option<String>,

    /// ... or after so long [default: 1h].
    #[arg(long, value_name = "TIME")]
    pub window: Option<String>,

    /// An alarm also ends after so long without a bad frame, if enough frames came; or never [default: 1h].
    #[arg(long, value_name = "TIME")]
    pub quiet: Option<String>,

    /// The other end of a port's cable, such as eth1=leaf3/eth7; several times if need be.
    #[arg(long, value_name = "PORT=HOST/PORT", value_parser = pair)]
    pub peer: Vec<(String, String)>,

    /// The protected link of a port, such as eth1=hit0, where its interface does not tell; several times if need be.
    #[arg(long, value_name = "PORT=NAME", value_parser = pair)]
    pub link: Vec<(String, String)>,

    /// Serve metrics for Prometheus and /healthz here; a port alone means this machine only.
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<String>,

    /// Append what happens to this file, a line of JSON each; standard output if it is no terminal.
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,

    /// When ended, end the protection that it began as well.
    #[arg(long)]
    pub unprotect_on_exit: bool,
}

#[derive(Debug, Subcommand)]
pub enum MonitorCommand {
    /// Tell the running monitor that a port is repaired, though it flapped too often to be believed.
    Clear {
        /// The port.
        port: String,
    },
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((port, other)) if !port.is_empty() && !other.is_empty() => Ok((port.to_owned(), other.to_owned())),
        _ => Err("expected PORT=OTHER, such as eth1=leaf3/eth7".to_owned()),
    }
}

impl MonitorArgs {
    /// What the command line says, without the file.
    pub fn wishes(&self) -> Wishes {
        let some = |texts: &[String]| (!texts.is_empty()).then(|| texts.to_vec());
        let written = |text: &Option<String>| text.clone().map(Written);
        let wish = |name: &String, peer: Option<&String>, link: Option<&String>| PortWish {
            name: name.clone(),
            peer: peer.cloned(),
            link: link.cloned(),
        };
        let mut port: Vec<PortWish> = self.peer.iter().map(|(name, peer)| wish(name, Some(peer), None)).collect();
        for (name, link) in &self.link {
            match port.iter_mut().find(|wish| wish.name == *name && wish.link.is_none()) {
                Some(wish) => wish.link = Some(link.clone()),
                None => port.push(wish(name, None, Some(link))),
            }
        }
        Wishes {
            host: self.host.clone(),
            source: some(&self.source),
            sysfs: self.sysfs.clone(),
            interval: written(&self.interval),
            ports: some(&self.ports),
            exclude: some(&self.exclude),
            threshold: written(&self.threshold),
            window_frames: written(&self.window_frames),
            window: written(&self.window),
            raise_after: self.raise_after,
            clear_after: self.clear_after,
            quiet: written(&self.quiet),
            bus: self.bus.clone(),
            bus_ca: self.bus_ca.clone(),
            order_key: self.order_key.clone(),
            most_off: self.most_off,
            action: self.action.clone(),
            unprotect_on_exit: self.unprotect_on_exit.then_some(true),
            metrics: written(&self.metrics),
            journal: self.journal.clone(),
            record: self.record.clone(),
            port,
            ..Wishes::default()
        }
    }
}
