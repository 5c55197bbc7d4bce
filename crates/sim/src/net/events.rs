//! What can happen.

/// Plain values of twelve bytes: the queue copies them.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A packet has arrived at the node that its last hop led to.
    Arrive {
        packet: u32,
    },
    /// A port may be free, or has been told to look again.
    Look {
        port: u32,
    },
    /// A host's processor is told of what its interface has received; it has dealt with it.
    HostTold {
        host: u32,
    },
    HostReceives {
        host: u32,
    },
    /// A packet comes out of the pipeline of a host's interface.
    PipeEnds {
        host: u32,
        packet: u32,
    },
    /// An end that paces may send again.
    EndWakes {
        end: u32,
    },
    EndTimer {
        end: u32,
        slot: u8,
    },
    /// A frame of a link protocol arrives that left by this port, or is acted upon if the hardware is slow about it.
    LinkArrive {
        port: u32,
        frame: u32,
    },
    LinkActs {
        port: u32,
        frame: u32,
    },
    LinkTimer {
        port: u32,
        slot: u8,
    },
    /// A link's protocol is switched on.
    Activate {
        link: u32,
    },
    /// A pause or its end arrives at the port that is to obey it.
    Pause {
        port: u32,
        class: u8,
        hold: bool,
    },
    /// The next flow of a workload begins.
    FlowStarts {
        traffic: u32,
    },
    /// A handshake that has not been answered is tried again.
    Shake {
        place: u32,
    },
    /// Time to look at everything that is watched.
    Sample,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_twelve_bytes() {
        assert_eq!(size_of::<Event>(), 12);
    }
}
