//! The wire of a stage as a thread of this program, for faults that the kernel does not know.

use std::io::{self, PipeWriter};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use units::{Bytes, Span};

use super::queue_of;
use emulator::{DirectionConfig, DirectionCounters, Medium, MediumConfig};
use linux::SystemError;
use linux::net::Namespace;
use linux::packet::{PacketSocket, PacketSocketOptions};
use standin::wire_socket;

/// Longest time that somebody who asks for the counters waits.
const LOOK_EVERY: Span = Span::from_ms(10);
/// A medium on a machine that is busy may be late.
const PATIENCE: Duration = Duration::from_secs(5);

/// Counts of a medium so far.
#[derive(Debug, Default)]
pub(crate) struct CarrierCounts {
    last: Mutex<CarrierSnapshot>,
    looked: Condvar,
}

#[derive(Debug, Default)]
struct CarrierSnapshot {
    lanes: [DirectionCounters; 2],
    number: u64,
    running: bool,
}

impl CarrierCounts {
    fn publish(&self, lanes: [DirectionCounters; 2], running: bool) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = CarrierSnapshot { lanes, number: last.number + 1, running };
        self.looked.notify_all();
    }

    /// Returns the counters as of now: waits for the medium's next look.
    pub(crate) fn lanes(&self) -> [DirectionCounters; 2] {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.number;
        let stale = |look: &mut CarrierSnapshot| look.running && look.number == before;
        let looked = self.looked.wait_timeout_while(last, PATIENCE, stale);
        looked.unwrap_or_else(PoisonError::into_inner).0.lanes
    }
}

/// A medium at work. It ends when dropped, once nothing is on its way.
#[derive(Debug)]
pub struct EmulatedWire<'scope> {
    stopper: Option<PipeWriter>,
    thread: ScopedJoinHandle<'scope, Result<(), SystemError>>,
}

impl EmulatedWire<'_> {
    /// False if it failed; [`EmulatedWire::stop`] returns why.
    pub(crate) fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }

    pub fn stop(mut self) -> Result<(), SystemError> {
        drop(self.stopper.take());
        self.thread.join().unwrap_or_else(|_| Err(SystemError("the wire panicked".to_owned())))
    }
}

pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    between: &'scope Namespace,
    ends: [u32; 2],
    mtu: u32,
    carried: &'scope CarrierCounts,
    lanes: [DirectionConfig; 2],
    seed: u64,
) -> Result<EmulatedWire<'scope>, SystemError> {
    let config = MediumConfig {
        names: ["x0", "x1"].map(str::to_owned),
        queue: lanes[0].rate.map_or(Bytes::ZERO, queue_of),
        lanes,
        seed,
        flip: false,
        log: None,
        counters: None,
    };
    let (stop, stopper) = io::pipe().map_err(failed)?;
    let (ready, is_ready) = mpsc::channel();
    let thread = scope.spawn(move || {
        let mut medium = match between.enter().map_err(SystemError::from).and_then(|()| open(config, ends, mtu)) {
            Ok(medium) => medium,
            Err(trouble) => {
                let _ = ready.send(Err(trouble.clone()));
                return Err(trouble);
            }
        };
        carried.publish(medium.lane_counters(), true);
        let _ = ready.send(Ok(()));
        let ended = medium.run(&stop, None, &mut |lanes| carried.publish(*lanes, true));
        carried.publish(medium.lane_counters(), false);
        ended.map(drop).map_err(failed)
    });
    match is_ready.recv() {
        Ok(Ok(())) => Ok(EmulatedWire { stopper: Some(stopper), thread }),
        Ok(Err(trouble)) => Err(trouble),
        Err(_) => Err(SystemError("the wire ended before it began".to_owned())),
    }
}

/// Opens a medium in the namespace of the calling thread.
fn open(config: MediumConfig, ends: [u32; 2], mtu: u32) -> Result<Medium, SystemError> {
    let socket = PacketSocketOptions { send_buffer: 4 << 20, ..wire_socket(mtu, 4_096) };
    let open = |index| PacketSocket::open(index, &socket).map_err(failed);
    let medium = Medium::new(config, [open(ends[0])?, open(ends[1])?], mtu as usize + 18);
    Ok(medium.map_err(failed)?.look_every(LOOK_EVERY))
}

fn failed(error: io::Error) -> SystemError {
    SystemError(format!("the wire: {error}"))
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};

    use faults::{FaultSchedule, LossModel};

    use super::*;
    use crate::stage::{Stage, WireCount, address, plug};
    use linux::net::Namespace;

    #[test]
    fn a_medium_on_a_stage_loses_what_it_should_and_counts_it() {
        let Some(_) = testkit::permitted(Namespace::new()) else { return };
        let stage = Stage::unjoined(1_500).expect("a stage");
        let faults = FaultSchedule::always(LossModel::Script(vec![0, 3, 4]));
        std::thread::scope(|scope| {
            let wire =
                stage.carry(scope, &DirectionConfig { faults, ..DirectionConfig::default() }, 1).expect("a wire");
            let open = |end: usize| {
                stage.address(end, plug(end)).expect("an address");
                let open = || UdpSocket::bind(SocketAddr::new(address(end), 7_000));
                stage.ends[end].with(open).expect("a namespace").expect("a socket")
            };
            let [left, right] = [open(0), open(1)];
            right.set_read_timeout(Some(PATIENCE)).expect("a limit");
            (0..8_u8).for_each(|number| _ = left.send_to(&[number], (address(1), 7_000)).expect("room"));
            let mut number = [0];
            for expected in [1, 2, 5, 6, 7] {
                right.recv(&mut number).expect("a datagram");
                assert_eq!(number, [expected]);
            }
            assert_eq!(stage.count().expect("counters"), WireCount { offered: 8, dropped: 3 });
            assert!(wire.is_running());
            wire.stop().expect("a quiet end");
        });
        assert_eq!(stage.count().expect("counters"), WireCount { offered: 8, dropped: 3 });
        assert_eq!(stage.overflowed().expect("counters"), 0);
    }
}
