//! Traffic that other hosts send to the client's host meanwhile.

use std::net::{SocketAddr, UdpSocket};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use linux::SystemError;
use units::{Bytes, Rate, StopFlag};

use super::measure::CLIENT;
use super::rows::{RackBackground, RackCase};
use crate::stage::{PORT, RackStage, address};
use load::{self, Bulk, BulkThroughput, KernelCongestion, WitnessReport, witness};

/// Hosts from this one on send.
const FIRST_SENDER: usize = 2;
/// Payload of a datagram that fills a frame.
const DATAGRAM: usize = 1_472;
const FULL_FRAME: u64 = 1_538;
/// Niceness of senders, so that they give way to daemons.
const SENDER_NICE: u8 = 10;
/// Port for the datagrams of the first sender; those of the next go to the next port.
const FIRST_PORT: u16 = 7_800;

/// Totals of the background traffic.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BackgroundTotals {
    pub bits_per_second: f64,
    /// Datagrams that would have been sent with a processor for each sender.
    pub planned: u64,
    pub sent: u64,
    pub delivered: u64,
    pub duplicates: u64,
    pub reordered: u64,
}

impl BackgroundTotals {
    fn add_flow(&mut self, flow: &BulkThroughput) {
        self.bits_per_second += flow.bits_per_second() as f64;
    }

    fn add_datagrams(&mut self, sent: u64, report: &WitnessReport, lasted: Duration) {
        self.bits_per_second += (report.received * DATAGRAM as u64 * 8) as f64 / lasted.as_secs_f64();
        self.sent += sent;
        self.delivered += report.received;
        self.duplicates += report.duplicates;
        self.reordered += report.out_of_order;
    }
}

type SenderThread<'scope, T> = ScopedJoinHandle<'scope, Result<T, SystemError>>;

/// Senders at work, and those who count what arrives.
pub(super) struct RunningBackground<'scope> {
    flows: Vec<SenderThread<'scope, BulkThroughput>>,
    datagrams: Vec<DatagramThreads<'scope>>,
}

/// Flags that end a background.
#[derive(Debug, Default)]
pub(super) struct BackgroundEnd {
    pub sending: StopFlag,
    pub receiving: StopFlag,
}

/// Plan of the background traffic.
#[derive(Clone, Copy, Debug)]
pub(super) struct BackgroundPlan {
    pub case: RackCase,
    /// Rate of every port.
    pub rate: Rate,
    /// Time before the measurement of TCP flows begins.
    pub warmup: Duration,
    pub measure: Duration,
    /// Senders yield to their hosts' daemons; on real hosts those have their own processors or a higher priority.
    pub give_way: bool,
}

impl<'scope> RunningBackground<'scope> {
    pub(super) fn start(
        scope: &'scope Scope<'scope, '_>,
        stage: &'scope RackStage,
        plan: BackgroundPlan,
        end: &'scope BackgroundEnd,
    ) -> Result<Self, SystemError> {
        let mut started = Self { flows: Vec::new(), datagrams: Vec::new() };
        for number in 0..plan.case.senders {
            match plan.case.background {
                RackBackground::None => {}
                RackBackground::Tcp => started.flows.push(scope.spawn(move || {
                    plan.give_way();
                    let BackgroundPlan { measure: duration, warmup, .. } = plan;
                    let bulk = Bulk { duration, warmup, congestion: KernelCongestion::Cubic };
                    let to = SocketAddr::new(address(CLIENT), PORT);
                    let host = stage.host(FIRST_SENDER + number);
                    host.with(|| load::bulk::run(to, &bulk, &end.sending))?.map_err(failed)
                })),
                RackBackground::Udp => started.datagrams.push(plan.datagrams(scope, stage, number, end)?),
            }
        }
        Ok(started)
    }

    /// Waits for the senders and receivers, after both flags of an end are set. `lasted` is how long datagrams were
    /// sent.
    pub(super) fn join(self, lasted: Duration, rate: Rate) -> Result<BackgroundTotals, SystemError> {
        let mut totals = BackgroundTotals::default();
        for flow in self.flows {
            totals.add_flow(&joined(flow)?);
        }
        for (number, (sender, receiver)) in self.datagrams.into_iter().enumerate() {
            totals.planned += (datagrams_per_second(rate, number) as f64 * lasted.as_secs_f64()) as u64;
            totals.add_datagrams(joined(sender)?, &joined(receiver)?, lasted);
        }
        Ok(totals)
    }
}

fn joined<T>(thread: SenderThread<'_, T>) -> Result<T, SystemError> {
    thread.join().unwrap_or_else(|_| Err(SystemError("a load generator panicked".to_owned())))
}

fn failed(error: std::io::Error) -> SystemError {
    SystemError(error.to_string())
}

type DatagramThreads<'scope> = (SenderThread<'scope, u64>, SenderThread<'scope, WitnessReport>);

impl BackgroundPlan {
    /// Senders whose priority cannot be lowered compete as any other thread.
    fn give_way(&self) {
        if self.give_way {
            let _ = linux::poll::lower_priority(SENDER_NICE);
        }
    }

    fn datagrams<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        stage: &RackStage,
        number: usize,
        end: &'scope BackgroundEnd,
    ) -> Result<DatagramThreads<'scope>, SystemError> {
        let host = FIRST_SENDER + number;
        let to = SocketAddr::new(address(CLIENT), FIRST_PORT + number as u16);
        let receiver = stage.host(CLIENT).with(|| UdpSocket::bind(to))?.map_err(failed)?;
        let sender = stage.host(host).with(|| UdpSocket::bind((address(host), 0)))?.map_err(failed)?;
        let per_second = datagrams_per_second(self.rate, number);
        let sending = move || {
            self.give_way();
            witness::send(&sender, to, per_second as u32, DATAGRAM, &end.sending).map_err(failed)
        };
        let receiving = move || witness::receive_in_batches(&receiver, &end.receiving).map_err(failed);
        Ok((scope.spawn(sending), scope.spawn(receiving)))
    }
}

/// Sending rate of a port; a little apart, so that senders do not fall into step.
fn datagrams_per_second(rate: Rate, number: usize) -> u64 {
    rate.bits_per_second() / 8 / FULL_FRAME * (1_000 - 7 * number as u64) / 1_000
}

/// Time in which all that a switch and a host's queue hold when senders stop has arrived.
pub(super) fn time_to_drain(rate: Rate, held: Bytes) -> Duration {
    Duration::from_nanos(rate.span_of(held).as_ps() / 1_000) + Duration::from_millis(50)
}
