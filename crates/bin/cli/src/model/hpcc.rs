//! `hitless model hpcc`.

use results::model::{HpccAnswer, HpccQuestion, hpcc_text};
use units::{Bytes, Span};
use wire::int::IntWord;

use crate::args::HpccArgs;
use crate::output::{CommandResult, Failure, print};

/// Longest round trip that is accepted.
const LONGEST: Span = Span::from_ms(1_000);

pub(super) fn run(args: &HpccArgs, json: bool) -> CommandResult {
    let question = question(args)?;
    let answer = HpccAnswer::from(&question);
    print(json, &answer, || hpcc_text(&question, &answer))
}

fn question(args: &HpccArgs) -> Result<HpccQuestion, Failure> {
    let wrong = |what: String| Err(Failure::Usage(what));
    let HpccArgs { rate, rtt, flows, hops, w_ai, buffer, fan_in, ports, alpha, .. } = *args;
    let (eta, load) = (args.eta.get(), args.load.get());
    let mtu = super::check_mtu(args.mtu)?;
    if !IntWord::names(rate) {
        return wrong(format!("--rate {rate}: expected 10G, 25G, 40G, 50G, 100G, 200G, 400G or 800G"));
    }
    if rtt > LONGEST || rate.bytes_in(rtt) == Bytes::ZERO {
        return wrong(format!("--rtt {rtt}: expected 1ns to 1s, such as 13us"));
    }
    if !(eta > 0.0 && eta < 1.0) {
        return wrong(format!("--eta {eta}: expected more than 0 and less than 1, such as 0.95"));
    }
    let w_init = rate.bytes_in(rtt);
    if let Some(step) = w_ai.filter(|step| !(Bytes::new(1)..=w_init).contains(step)) {
        return wrong(format!("--w-ai {step}: expected 1 byte to the {w_init} of a round trip"));
    }
    if load <= 0.0 {
        return wrong(format!("--load {load}: expected more than 0 and at most 1"));
    }
    if buffer == Bytes::ZERO {
        return wrong("--buffer 0: expected at least one byte, such as 32MB".into());
    }
    if ports > fan_in {
        return wrong(format!("--ports {ports}: expected 1 to {fan_in}, a port for each flow of --fan-in"));
    }
    if !(alpha > 0.0 && alpha.is_finite()) {
        return wrong(format!("--alpha {alpha}: expected more than 0, such as 0.125"));
    }
    let w_ai = w_ai.map(|step| step.get() as f64);
    Ok(HpccQuestion { rate, rtt, flows, mtu, hops, eta, w_ai, load, fan_in, ports, buffer, alpha })
}
