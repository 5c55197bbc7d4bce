//! Commands of the shell in backticks. None is run: the few that scripts use are read, and what they set is kept.
//!
//! `defaults.sh`, which most scripts of packetdrill call first, stands for the settings of that file.

/// Queue through which packets leave the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunQueue {
    /// A queue in order of at most this many packets; 0 drops them all.
    Fifo(u32),
    /// Paced, flow by flow.
    Fair,
}

/// A setting that a command makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// A sysctl by its path below `/proc/sys`, such as `net/ipv4/tcp_sack`.
    Sysctl {
        path: String,
        value: String,
        /// A kernel that does not have it is as good.
        optional: bool,
    },
    Queue(TunQueue),
    /// Makes super-packets, or not.
    Offloads(bool),
    /// A parameter of a kernel module.
    ModuleParameter {
        path: String,
        value: String,
    },
}

const DEFAULTS: [(&str, &str); 22] = [
    ("tcp_rmem", "4096 540000 15728640"),
    ("tcp_wmem", "4096 262144 4194304"),
    ("tcp_timestamps", "1"),
    ("tcp_syn_retries", "5"),
    ("tcp_synack_retries", "5"),
    ("tcp_frto", "2"),
    ("tcp_sack", "1"),
    ("tcp_dsack", "1"),
    ("tcp_fack", "0"),
    ("tcp_reordering", "3"),
    ("tcp_congestion_control", "cubic"),
    ("tcp_slow_start_after_idle", "0"),
    ("tcp_early_retrans", "4"),
    ("tcp_recovery", "1"),
    ("tcp_tso_win_divisor", "3"),
    ("tcp_ecn", "0"),
    ("tcp_ecn_option", "2"),
    ("tcp_pacing_ss_ratio", "200"),
    ("tcp_pacing_ca_ratio", "120"),
    ("tcp_notsent_lowat", "4294967295"),
    ("tcp_fastopen", "0x70403"),
    ("tcp_syncookies", "1"),
];
/// Default length of a queue in the kernel.
const PACKETS: u32 = 500;

/// Settings of `defaults.sh`.
pub(crate) fn default_settings() -> Vec<Setting> {
    let sysctl = |(name, value): &(&str, &str)| sysctl(&format!("net/ipv4/{name}"), value, true);
    DEFAULTS.iter().map(sysctl).chain([Setting::Queue(TunQueue::Fifo(PACKETS))]).collect()
}

/// All that the commands set, in their order.
pub(super) fn settings(text: &str) -> Result<Vec<Setting>, String> {
    let text = text.replace("\\\n", " ");
    let mut settings = Vec::new();
    for line in text.lines() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        for command in line.split(';').map(str::trim).filter(|command| !command.is_empty() && !command.starts_with('#'))
        {
            one(command, &mut settings).ok_or_else(|| format!("a command that is not understood: {command}"))?;
        }
    }
    Ok(settings)
}

fn one(command: &str, settings: &mut Vec<Setting>) -> Option<()> {
    let words = words(command)?;
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.contains("/dev/null")).collect();
    let (program, arguments) = words.split_first()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    match (name, arguments) {
        ("defaults.sh", []) => settings.extend(default_settings()),
        // It puts back what `set_sysctls.py` changed; every script has a network of its own here.
        ("sysctl_restore_${PPID}.sh", []) => {}
        ("ip", ["tcp_metrics", "flush", "all"]) => {}
        ("sysctl" | "set_sysctls.py", arguments) => {
            let values = arguments.iter().filter(|argument| !argument.starts_with('-'));
            for value in values {
                let (key, value) = value.split_once('=')?;
                let key = key.trim_start_matches("/proc/sys/").replace('.', "/");
                key.starts_with("net/").then(|| settings.push(sysctl(&key, value, false)))?;
            }
        }
        ("tc", ["qdisc", "add" | "replace" | "change", "dev", "tun0", "root", rest @ ..]) => {
            settings.push(Setting::Queue(queue(rest)?));
        }
        ("tc", ["qdisc", "del" | "delete", "dev", "tun0", "root"]) => {
            settings.push(Setting::Queue(TunQueue::Fifo(PACKETS)));
        }
        ("ethtool", ["-K", "tun0", features @ ..]) if !features.is_empty() => {
            let off = features.chunks(2).all(|pair| matches!(pair, ["tso" | "gso", "off"]));
            off.then(|| settings.push(Setting::Offloads(false)))?;
        }
        ("echo", [value, ">", path]) => {
            let path = path.strip_prefix("/sys/module/")?;
            settings.push(Setting::ModuleParameter { path: path.to_owned(), value: (*value).to_owned() });
        }
        _ => return None,
    }
    Some(())
}

fn sysctl(path: &str, value: &str, optional: bool) -> Setting {
    Setting::Sysctl { path: path.to_owned(), value: value.to_owned(), optional }
}

fn queue(words: &[&str]) -> Option<TunQueue> {
    match words {
        ["pfifo"] => Some(TunQueue::Fifo(PACKETS)),
        ["pfifo", "limit", packets] => packets.parse().ok().map(TunQueue::Fifo),
        ["fq"] => Some(TunQueue::Fair),
        _ => None,
    }
}

/// Separated by blanks outside of quotes; anything that the shell would replace is refused, but for the name of the file
/// that undoes changes.
fn words(command: &str) -> Option<Vec<String>> {
    let expands = command.contains(['$', '`', '|', '&', '*', '(']) && !command.contains("${PPID}");
    if expands {
        return None;
    }
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for letter in command.chars().chain([' ']) {
        match letter {
            '"' => quoted = !quoted,
            letter if letter.is_whitespace() && !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            letter => word.push(letter),
        }
    }
    (!quoted).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysctls(text: &str) -> Vec<(String, String)> {
        let pair = |setting| match setting {
            Setting::Sysctl { path, value, .. } => (path, value),
            other => panic!("{other:?}"),
        };
        settings(text).unwrap().into_iter().map(pair).collect()
    }

    #[test]
    fn sysctls_are_found_however_they_are_written() {
        let own = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(sysctls("sysctl -q net.ipv4.tcp_sack=0 # off"), own(&[("net/ipv4/tcp_sack", "0")]));
        assert_eq!(
            sysctls("sysctl -e -q net/ipv4/a=1 \\\n  net.ipv4.b=\"4096 7 9\"\nsysctl -q net.core.c=2"),
            own(&[("net/ipv4/a", "1"), ("net/ipv4/b", "4096 7 9"), ("net/core/c", "2")])
        );
        assert_eq!(sysctls("../common/set_sysctls.py /proc/sys/net/ipv4/x=3"), own(&[("net/ipv4/x", "3")]));
    }

    #[test]
    fn nothing_is_taken_for_what_it_is_not() {
        for text in [
            "ls",
            "sysctl -q kernel.panic=1",
            "tc qdisc add dev eth0 root pfifo",
            "echo 1 > /etc/x",
            "sysctl net.x=$(id)",
        ] {
            assert!(settings(text).is_err(), "{text}");
        }
    }

    #[test]
    fn queues_and_offloads() {
        let text = "tc qdisc delete dev tun0 root 2>/dev/null ; tc qdisc add dev tun0 root pfifo limit 0\n\
                    ethtool -K tun0 tso off gso off";
        let expected =
            [Setting::Queue(TunQueue::Fifo(500)), Setting::Queue(TunQueue::Fifo(0)), Setting::Offloads(false)];
        assert_eq!(settings(text).unwrap(), expected);
    }

    #[test]
    fn the_defaults_are_those_of_the_file() {
        let settings = settings("../common/defaults.sh\n/tmp/sysctl_restore_${PPID}.sh").unwrap();
        assert_eq!(settings.len(), DEFAULTS.len() + 1);
        assert!(settings.contains(&sysctl("net/ipv4/tcp_early_retrans", "4", true)));
    }
}
