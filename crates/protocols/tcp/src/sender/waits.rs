//! Waits of a sender with something to do: the kernel's chronographs (`tcp_chrono_start`), which `TCP_INFO` reports as
//! busy, receive-window-limited and send-buffer-limited time.

use units::{Span, Time};

/// Wait to which the time until the next change is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SendWait {
    /// All written data is acknowledged.
    #[default]
    Idle,
    Busy,
    ReceiveWindow,
    SendBuffer,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendClocks {
    wait: SendWait,
    since: Time,
    busy: Span,
    receive_window: Span,
    send_buffer: Span,
}

impl SendClocks {
    /// Sets what the sender waits for from now on.
    pub(super) fn set(&mut self, now: Time, wait: SendWait) {
        if wait != self.wait {
            *self = Self { wait, since: now, ..self.until(now) };
        }
    }

    fn until(&self, now: Time) -> Self {
        let mut clocks = *self;
        let passed = now.since(self.since);
        match self.wait {
            SendWait::Idle => {}
            SendWait::Busy => clocks.busy += passed,
            SendWait::ReceiveWindow => clocks.receive_window += passed,
            SendWait::SendBuffer => clocks.send_buffer += passed,
        }
        clocks
    }

    /// Busy in total, of that limited by the peer's window, and by the send buffer.
    pub(super) fn read(&self, now: Time) -> (Span, Span, Span) {
        let clocks = self.until(now);
        (clocks.busy + clocks.receive_window + clocks.send_buffer, clocks.receive_window, clocks.send_buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_has_its_clock_and_all_are_busy() {
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        let mut clocks = SendClocks::default();
        clocks.set(at(10), SendWait::ReceiveWindow);
        clocks.set(at(40), SendWait::Busy);
        clocks.set(at(60), SendWait::SendBuffer);
        clocks.set(at(65), SendWait::Idle);
        assert_eq!(clocks.read(at(100)), (Span::from_ms(55), Span::from_ms(30), Span::from_ms(5)));
    }
}
