//! Two captures of a made-up link, to compare.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use units::StopFlag;

const FLOWS: u64 = 10_000;
/// Captured bytes of each frame; on the wire it is longer.
const SNAP: usize = 64;
const LEN: u32 = 1_514;
/// 10 Gbit/s of such frames.
const GAP_NS: u64 = 1_230;
/// The way between the captures, the difference of their clocks and what packets wait at most, in nanoseconds.
const WAY_NS: u64 = 50_000;
const JITTER_NS: u64 = 20_000;
const STARTED_S: u64 = 1_700_000_000;

/// A frame's first bytes: TCP without an identification, of one flow among many.
pub(super) fn frame(number: u64) -> [u8; SNAP] {
    let mut frame = [0; SNAP];
    let flow = mixed(number) % FLOWS;
    let mut put = |at: usize, bytes: &[u8]| frame[at..at + bytes.len()].copy_from_slice(bytes);
    put(12, &[0x08, 0x00, 0x45, 0]);
    put(16, &1_500_u16.to_be_bytes());
    put(20, &[0x40, 0, 64, 6, 0, 0, 10, 0]);
    put(28, &(flow as u16 / 64).to_be_bytes());
    put(30, &[10, 1, 0, 9]);
    put(34, &(1_024 + flow as u16).to_be_bytes());
    put(36, &443_u16.to_be_bytes());
    put(38, &(number as u32).wrapping_mul(1_448).to_be_bytes());
    put(46, &[0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
    put(58, &((number >> 10) as u32).to_be_bytes());
    frame
}

/// A number that looks like chance.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 27).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number ^ number >> 31
}

/// A folder that is gone when this is.
#[derive(Debug)]
pub(super) struct BenchCaptures {
    folder: PathBuf,
    pub packets: u64,
}

impl Drop for BenchCaptures {
    fn drop(&mut self) {
        // The system cleans up its temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl BenchCaptures {
    /// `None` if somebody wanted it to end.
    pub(super) fn write(folder: &Path, packets: u64, loss: f64, stop: &StopFlag) -> io::Result<Option<Self>> {
        let folder = folder.join(format!("hitless-bench-radar-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let captures = Self { folder, packets };
        let [mut up, mut down] = [captures.create("up")?, captures.create("down")?];
        let lost_below = (loss * u64::MAX as f64) as u64;
        for number in 0..packets {
            if number % 65_536 == 0 && stop.is_stopped() {
                return Ok(None);
            }
            let (frame, at) = (frame(number), number * GAP_NS);
            record(&mut up, at, &frame)?;
            let chance = mixed(!number);
            // The first one arrives, so that there is something to compare however few there are.
            if chance >= lost_below || number == 0 {
                // In order: what waits makes those behind it wait.
                record(&mut down, at + WAY_NS + mixed(number / 64) % JITTER_NS, &frame)?;
            }
        }
        up.flush()?;
        down.flush()?;
        Ok(Some(captures))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.pcap"))
    }

    fn create(&self, name: &str) -> io::Result<BufWriter<File>> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(self.path(name))?);
        let header = [0xa1b2_3c4d, 2 | 4 << 16, 0, 0, SNAP as u32, 1];
        header.iter().try_for_each(|word: &u32| out.write_all(&word.to_le_bytes()))?;
        Ok(out)
    }

    pub(super) fn open(&self, name: &str) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(File::open(self.path(name))?))
    }
}

fn record(out: &mut impl Write, at: u64, frame: &[u8; SNAP]) -> io::Result<()> {
    let words = [(STARTED_S + at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, SNAP as u32, LEN];
    words.iter().try_for_each(|word| out.write_all(&word.to_le_bytes()))?;
    out.write_all(frame)
}
