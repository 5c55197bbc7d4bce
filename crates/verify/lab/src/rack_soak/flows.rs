//! Numbered datagrams from several hosts to one, more of them than its port carries, and their account.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

use linux::SystemError;
use serde::Serialize;
use units::{Rate, StopFlag};

use crate::stage::{RackStage, address};
use load::WitnessReport;
use load::witness::{self, Departure};

/// The host whose port everybody sends to.
pub(super) const SINK: usize = 0;
/// Hosts from this one on send.
pub(super) const FIRST_SENDER: usize = 2;
const FIRST_PORT: u16 = 7_800;
/// Payload of a datagram that fills a frame.
const DATAGRAM: usize = 1_472;
const FULL_FRAME: u64 = 1_538;
/// All senders together offer this many percent of what the port carries.
const OFFERED_PERCENT: u64 = 120;

/// Fates of the datagrams of one host.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RackFlow {
    pub host: usize,
    pub sent: u64,
    /// Datagrams that the kernel did not take, because the interface was not there.
    pub not_taken: u64,
    pub delivered: u64,
    /// Frames that found no room in the host's own queues, as its daemons counted it.
    pub refused: u64,
    pub duplicates: u64,
    pub reordered: u64,
}

type FlowThread<'scope, T> = ScopedJoinHandle<'scope, Result<T, SystemError>>;

type FlowThreads<'scope> = (FlowThread<'scope, [u64; 2]>, FlowThread<'scope, WitnessReport>);

/// Flows that are under way.
pub(super) struct RunningFlows<'scope> {
    threads: Vec<FlowThreads<'scope>>,
}

/// Flags that end flows.
#[derive(Debug, Default)]
pub(super) struct FlowsEnd {
    pub sending: StopFlag,
    pub receiving: StopFlag,
}

impl<'scope> RunningFlows<'scope> {
    /// `arrived` counts what arrives, by sender.
    pub(super) fn start(
        scope: &'scope Scope<'scope, '_>,
        stage: &'scope RackStage,
        rate: Rate,
        arrived: &'scope [AtomicU64],
        end: &'scope FlowsEnd,
    ) -> Result<Self, SystemError> {
        let failed = |error: std::io::Error| SystemError(error.to_string());
        let per_second = rate.bits_per_second() / 8 / FULL_FRAME * OFFERED_PERCENT / 100 / arrived.len() as u64;
        let mut threads = Vec::new();
        for (number, count) in arrived.iter().enumerate() {
            let host = FIRST_SENDER + number;
            let to = SocketAddr::new(address(SINK), FIRST_PORT + number as u16);
            let receiver = stage.host(SINK).with(|| UdpSocket::bind(to))?.map_err(failed)?;
            // Bound to the address and not to an interface, so that it stays when the stand-in comes and goes.
            let sender = stage.host(host).with(|| UdpSocket::bind((address(host), 0)))?.map_err(failed)?;
            let sending = move || {
                let mut not_taken = 0;
                let each = |departure| not_taken += u64::from(departure == Departure::Refused);
                let sent = witness::send_each(&sender, to, per_second as u32, DATAGRAM, &end.sending, each);
                sent.map(|sent| [sent, not_taken]).map_err(failed)
            };
            let receiving = move || {
                let each = |_| _ = count.fetch_add(1, Ordering::Relaxed);
                witness::receive_each(&receiver, &end.receiving, each).map_err(failed)
            };
            threads.push((scope.spawn(sending), scope.spawn(receiving)));
        }
        Ok(Self { threads })
    }

    /// Waits for the flows, after both flags of their ends are set; `refused` is what each host's daemons refused.
    pub(super) fn join(self, refused: impl Fn(usize) -> u64) -> Result<Vec<RackFlow>, SystemError> {
        let flow = |(number, (sender, receiver)): (usize, FlowThreads<'_>)| {
            let ([sent, not_taken], report) = (joined(sender)?, joined(receiver)?);
            Ok(RackFlow {
                host: FIRST_SENDER + number,
                sent,
                not_taken,
                delivered: report.received,
                refused: refused(FIRST_SENDER + number),
                duplicates: report.duplicates,
                reordered: report.out_of_order,
            })
        };
        self.threads.into_iter().enumerate().map(flow).collect()
    }
}

fn joined<T>(thread: FlowThread<'_, T>) -> Result<T, SystemError> {
    thread.join().unwrap_or_else(|_| Err(SystemError("a load generator panicked".to_owned())))
}
