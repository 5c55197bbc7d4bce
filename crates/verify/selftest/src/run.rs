//! One run: two hosts, a wire, both applications; what passed and what the kernel counted.

use std::thread;
use std::time::Duration;

use capture::pcapng::{EnhancedPacket, PcapngWriter};
use linux::SystemError;
use units::StopFlag;

use crate::ends::{AppPlan, EndTally, Meeting, run_end};
use crate::script::{WireRule, WireScript};
use crate::stage::{HostSetting, SNAP, TestHost};
use crate::wire::{RandomLoss, TestWire, WireDelay, WireRecord};

/// IP without anything before it, among link types.
const RAW_IP: u16 = 101;

/// Plan of a run on a stage.
#[derive(Debug)]
pub(crate) struct StagePlan<'a> {
    pub delay: WireDelay,
    /// One connection after another, by end.
    pub connections: [&'a [AppPlan]; 2],
    pub rules: Vec<WireRule>,
    pub settings: &'a [Vec<HostSetting>; 2],
    pub loss: Option<RandomLoss>,
    /// Time for which both ends wait before they close.
    pub settle: Duration,
}

#[derive(Debug)]
pub(crate) struct TestRunRecord {
    pub wire: WireRecord,
    pub ends: [EndTally; 2],
}

/// Plays the plan in namespaces of its own.
pub(crate) fn play(plan: StagePlan<'_>) -> Result<TestRunRecord, SystemError> {
    let StagePlan { delay, connections, rules, settings, loss, settle } = plan;
    let hosts = [TestHost::new(0, &settings[0])?, TestHost::new(1, &settings[1])?];
    let [client, server] = hosts;
    let wire = TestWire::new([client.plug, server.plug], delay, WireScript::new(rules), loss);
    let (stop, meeting) = (StopFlag::new(), Meeting::new(2));
    let namespaces = [client.namespace, server.namespace];
    thread::scope(|scope| {
        let _stop = stop.stop_on_drop();
        let wire = scope.spawn(|| wire.run(&stop));
        let ends: Vec<_> = (0..2)
            .map(|end| {
                let (namespace, meeting) = (&namespaces[end], &meeting);
                scope.spawn(move || run_end(end, namespace, connections[end], settle, meeting))
            })
            .collect();
        let ended: Result<Vec<EndTally>, SystemError> = ends.into_iter().map(joined).collect();
        stop.stop();
        let wire = joined(wire).map_err(|error| SystemError(format!("the wire: {error}")));
        match (ended?[..].try_into(), wire?) {
            (Ok(ends), wire) => Ok(TestRunRecord { wire, ends }),
            (Err(_), _) => unreachable!("two ends were started"),
        }
    })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

impl TestRunRecord {
    /// Capture of this end, as a file.
    pub(crate) fn capture(&self, end: usize) -> Vec<u8> {
        let mut packets: Vec<_> = self.wire.seen[end].iter().collect();
        packets.sort_by_key(|packet| packet.at);
        let write = || {
            let mut writer = PcapngWriter::new(Vec::new())?;
            writer.interface(RAW_IP, SNAP as u32, Some(["client", "server"][end]))?;
            for packet in packets {
                let (at, len) = (packet.at.as_nanos() as u64, packet.len);
                writer.packet(&EnhancedPacket { at, len, bytes: &packet.bytes, ..EnhancedPacket::default() })?;
            }
            std::io::Result::Ok(writer.into_inner())
        };
        write().unwrap_or_default()
    }
}
