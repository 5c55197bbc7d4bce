//! How many ticks this kernel waits for a retransmission timer of two: `late-timers TICK_MS ROUNDS`.
//!
//! A lone segment is never acknowledged, with an RTO of at least 1 ms. With the round trip of the handshake that is two
//! ticks, and the wheel rounds up once more: the copy should leave with the third tick. On some processors a part of them
//! leaves with the fourth. Pin it to a processor: `taskset -c 1 …`.

use drill::batch::{DrillVerdict, ScriptText, once_on_kernel};

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u32>().ok());
    let (Some(tick), Some(rounds)) = (numbers.next(), numbers.next()) else {
        eprintln!("expected the length of a tick in ms (1000 / CONFIG_HZ) and a number of rounds");
        std::process::exit(2);
    };
    let mut counts = [0_u32; 3];
    for _ in 0..rounds {
        // The same number of rounds for each window of one tick, so that shares are of rounds.
        for (ticks, count) in (2..).zip(&mut counts) {
            let row = once_on_kernel(&script(ticks * tick, (ticks + 1) * tick));
            if row.result == DrillVerdict::NotApplicable {
                eprintln!("{}", row.why.unwrap_or_default());
                std::process::exit(1);
            }
            *count += u32::from(row.result == DrillVerdict::Passed);
        }
    }
    for (ticks, count) in (2..).zip(counts) {
        println!("after {ticks} to {} ticks: {:.1} %", ticks + 1, 100.0 * f64::from(count) / f64::from(rounds));
    }
}

/// The copy leaves between these times, in ms.
fn script(from: u32, to: u32) -> ScriptText {
    let seconds = |ms: u32| format!("{}.{:03}", ms / 1_000, ms % 1_000);
    let text = format!(
        "--tolerance_usecs=400\n\
         `sysctl -q net.ipv4.tcp_rto_min_us=1000`\n\
         0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
         +0 bind(3, ..., ...) = 0\n\
         +0 listen(3, 4) = 0\n\
         +0 < S 0:0(0) win 60000 <mss 1000,sackOK,nop,nop,nop,wscale 6>\n\
         +0 > S. 0:0(0) ack 1 <...>\n\
         +0 < . 1:1(0) ack 1 win 900\n\
         +0 accept(3, ..., ...) = 4\n\
         +0.01 write(4, ..., 100) = 100\n\
         +0 > P. 1:101(100) ack 1\n\
         +{}~+{} > P. 1:101(100) ack 1\n",
        seconds(from),
        seconds(to)
    );
    ScriptText { file: "late-timers.pkt".into(), text }
}
