//! Progress of the reading of captures on a terminal, and the wish of the user to end it.

use std::cell::Cell;
use std::io::IsTerminal;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use units::{Progress, StopFlag};

use crate::terminal::{now, stop_on_ctrl_c};

const SILENT_FOR: Duration = Duration::from_secs(2);

/// Bytes that have been read, of all captures.
pub(crate) type BytesRead = Rc<Cell<u64>>;

#[derive(Debug)]
pub(crate) struct ReadProgress {
    stop: Arc<StopFlag>,
    bar: ProgressBar,
    begun: Instant,
    read: BytesRead,
}

impl ReadProgress {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{elapsed} {wide_bar} {bytes} of {total_bytes}, Ctrl-C ends it")
        {
            bar.set_style(style);
        }
        Self { stop: stop_on_ctrl_c(), bar, begun: now(), read: BytesRead::default() }
    }

    pub(crate) fn expect(&self, bytes: u64) {
        self.bar.set_length(bytes);
    }

    pub(crate) fn read(&self) -> BytesRead {
        Rc::clone(&self.read)
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for ReadProgress {
    /// Shows the bytes read of all captures; frames, which a comparison counts, have no known end.
    fn go_on(&self, _frames: u64) -> bool {
        if self.begun.elapsed() > SILENT_FOR && std::io::stderr().is_terminal() {
            if self.bar.is_hidden() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            self.bar.set_position(self.read.get());
        }
        !self.stop.is_stopped()
    }
}
