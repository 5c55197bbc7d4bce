//! Networks and traffic that controllers are compared with, as scenarios.

use std::fmt::Write as _;

use super::{CongestionSettings, choose};

/// Mix of traffic, and the network that it is sent through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficMix {
    Incast,
    LongShort,
    Mice,
    Joining,
    WebSearch,
    Hadoop,
}

/// Scenario text of a mix of traffic.
struct MixText {
    about: &'static str,
    topology: &'static str,
    /// The link that corrupts packets, in the direction in which it does.
    corrupted: [&'static str; 2],
    /// Name and work of each traffic.
    traffic: &'static [(&'static str, &'static str)],
}

const RACK_100G: &str = "kind = \"single-switch\"\nhosts = 17\nrate = \"100G\"\ndelay = \"1us\"";
const RACK_25G: &str = "kind = \"single-switch\"\nhosts = 5\nrate = \"25G\"\ndelay = \"1us\"";
const LEAF_SPINE: &str = "kind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 16\nrate = \"100G\"\nfabric = \"400G\"\n\
                          delay = \"1us\"";

const INCAST: MixText = MixText {
    about: "16 hosts send 500 KB each to one host at the same time: one switch, 100G, links of 1 µs",
    topology: RACK_100G,
    corrupted: ["sw0", "h16"],
    traffic: &[("incast", "work = \"bulk\"\nfrom = \"h0..h15\"\nto = \"h16\"\nsize = \"500KB\"")],
};

const LONG_SHORT: MixText = MixText {
    about: "1 MB joins a flow of 30 MB after 2 ms: one switch, 25G, links of 1 µs",
    topology: RACK_25G,
    corrupted: ["sw0", "h4"],
    traffic: &[
        ("long", "work = \"bulk\"\nfrom = \"h0\"\nto = \"h4\"\nsize = \"30MB\""),
        ("short", "work = \"bulk\"\nfrom = \"h1\"\nto = \"h4\"\nsize = \"1MB\"\nstart = \"2ms\""),
    ],
};

const MICE: MixText = MixText {
    about: "1 KB messages, one after the other, beside two flows of 50 MB: one switch, 25G, links of 1 µs",
    topology: RACK_25G,
    corrupted: ["sw0", "h4"],
    traffic: &[
        ("elephants", "work = \"bulk\"\nfrom = [\"h0\", \"h1\"]\nto = \"h4\"\nsize = \"50MB\""),
        ("mice", "work = \"series\"\nfrom = \"h2\"\nto = \"h4\"\nsize = \"1KB\"\ncount = 500\ngap = \"20us\""),
    ],
};

const JOINING: MixText = MixText {
    about: "a flow joins every 5 ms, up to four, and leaves when it is complete: one switch, 25G, links of 1 µs",
    topology: RACK_25G,
    corrupted: ["sw0", "h4"],
    traffic: &[
        ("first", "work = \"bulk\"\nfrom = \"h0\"\nto = \"h4\"\nsize = \"30MB\""),
        ("second", "work = \"bulk\"\nfrom = \"h1\"\nto = \"h4\"\nsize = \"20MB\"\nstart = \"5ms\""),
        ("third", "work = \"bulk\"\nfrom = \"h2\"\nto = \"h4\"\nsize = \"20MB\"\nstart = \"10ms\""),
        ("fourth", "work = \"bulk\"\nfrom = \"h3\"\nto = \"h4\"\nsize = \"30MB\"\nstart = \"15ms\""),
    ],
};

const WEB_SEARCH: MixText = MixText {
    about: "WebSearch for 1 ms at 50 % load: 64 hosts of 100G, leaves and spines of 400G, links of 1 µs",
    topology: LEAF_SPINE,
    corrupted: ["leaf0", "spine0"],
    traffic: &[("websearch", "work = \"poisson\"\nsize = \"web-search\"\nload = 0.5\nstop = \"1ms\"")],
};

const HADOOP: MixText = MixText {
    about: "FB_Hadoop for 1 ms at 50 % load: 64 hosts of 100G, leaves and spines of 400G, links of 1 µs",
    topology: LEAF_SPINE,
    corrupted: ["leaf0", "spine0"],
    traffic: &[("hadoop", "work = \"poisson\"\nsize = \"fb-hadoop\"\nload = 0.5\nstop = \"1ms\"")],
};

impl TrafficMix {
    const ALL: [(&'static str, Self); 6] = [
        ("incast", Self::Incast),
        ("long-short", Self::LongShort),
        ("mice", Self::Mice),
        ("joining", Self::Joining),
        ("websearch", Self::WebSearch),
        ("hadoop", Self::Hadoop),
    ];

    /// The mix of this name.
    pub fn named(name: &str) -> Result<Self, String> {
        choose(name, Self::ALL)
    }

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mix)| *mix == self).map_or("", |(name, _)| name)
    }

    /// One sentence for people.
    pub fn about(self) -> &'static str {
        self.says().about
    }

    /// The port whose queue is measured, by its nodes; all switch ports if there is no bottleneck that is known beforehand.
    pub(super) fn bottleneck(self) -> Option<[&'static str; 2]> {
        (!self.is_open()).then_some(self.says().corrupted)
    }

    /// True if flows arrive at random.
    pub(super) fn is_open(self) -> bool {
        matches!(self, Self::WebSearch | Self::Hadoop)
    }

    /// The traffic whose flows are measured, by its number; all traffic if not given.
    pub(super) fn measured(self) -> Option<u16> {
        (self == Self::Mice).then_some(1)
    }

    fn says(self) -> &'static MixText {
        match self {
            Self::Incast => &INCAST,
            Self::LongShort => &LONG_SHORT,
            Self::Mice => &MICE,
            Self::Joining => &JOINING,
            Self::WebSearch => &WEB_SEARCH,
            Self::Hadoop => &HADOOP,
        }
    }
}

/// Keys of a scenario's switches for a controller.
fn support(controller: &str) -> &'static str {
    match controller {
        "hpcc" => "int = true\n",
        "dcqcn" => "ecn = { min = \"100KB\", max = \"400KB\", probability = 0.2, at = \"departure\", per = \"25G\" }\n",
        "dctcp" => "ecn = { min = \"30KB\", max = \"30KB\", at = \"departure\", per = \"10G\" }\n",
        _ => "",
    }
}

/// Keys of a scenario's traffic for its controller: HPCC's step is that of the thesis.
fn tuning(controller: &str, plus_window: bool) -> &'static str {
    match controller {
        "hpcc" => "hpcc = { w_ai = 80 }\n",
        "dcqcn" | "timely" if plus_window => "plus_window = true\n",
        _ => "",
    }
}

/// Timeouts as those who proposed a recovery have them; go-back-N has that of a NIC.
fn timeout(recovery: &str) -> &'static str {
    match recovery {
        "irn" => "timeout = \"320us\"\n",
        "melo" => "timeout = \"1ms\"\n",
        _ => "",
    }
}

/// The scenario of a controller.
pub(super) fn text(settings: &CongestionSettings, controller: &str) -> String {
    let CongestionSettings { traffic, recovery, pfc, loss, protect, plus_window, seed, .. } = settings;
    let mix = traffic.says();
    let pfc = if *pfc { "pfc = { per_rate = true, headroom = \"auto\" }\n" } else { "" };
    let mut out = format!("# {}.\n# Run it: hitless sim run FILE\n", mix.about);
    // Writing to a string cannot fail.
    let _ = write!(out, "name = \"{} with {controller}\"\n\n[topology]\n{}\n\n", traffic.name(), mix.topology);
    let _ = write!(out, "[switch]\nlatency = \"0ns\"\nbuffer = \"32MB\"\n{}{pfc}\n", support(controller));
    if loss.get() > 0.0 || protect != "none" {
        let [from, to] = mix.corrupted;
        let _ =
            write!(out, "[[link]]\nbetween = [\"{from}\", \"{to}\"]\nloss = \"{loss}\"\nprotect = \"{protect}\"\n\n");
    }
    let tuning = tuning(controller, *plus_window);
    for (name, work) in mix.traffic {
        let _ = write!(
            out,
            "[[traffic]]\nname = \"{name}\"\ntransport = \"rdma\"\ncongestion = \"{controller}\"\n{tuning}"
        );
        let _ = write!(out, "recovery = \"{recovery}\"\n{}{work}\n\n", timeout(recovery));
    }
    let _ = write!(out, "[run]\nuntil = \"1s\"\nseeds = {seed}\n\n[measure]\nrtt = true\nqueues = true\n");
    out
}
