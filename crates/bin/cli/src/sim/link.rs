//! `hitless sim link`.

use faults::{FaultSchedule, LossModel};
use guard::reorder::ReorderBuild;
use sim::link::{FrameSizes, HardwareProfile, LinkSimConfig, OfferedLoad};
use wire::Seq;

use crate::args::{LinkArgs, ProfileArg, ReorderArg};
use crate::output::{CommandResult, Failure, print};
use crate::terminal::TerminalProgress;
use crate::wire::corruption;

pub(super) fn run(args: &LinkArgs, json: bool) -> CommandResult {
    let config = config(args)?;
    let terminal = TerminalProgress::of_frames(config.frames.saturating_mul(u64::from(config.links)));
    let outcome = sim::link::run(&config, &terminal);
    terminal.finish();
    let mut outcome = outcome.map_err(|error| Failure::Usage(error.to_string()))?;
    outcome.wall_seconds = terminal.elapsed().as_secs_f64();
    print(json, &outcome, || {
        let ended = if outcome.interrupted { "\ninterrupted: this is what was known by then\n" } else { "\n" };
        format!("{}{ended}{}", describe(args, &config), results::outcome::table(&outcome))
    })?;
    if outcome.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

fn config(args: &LinkArgs) -> Result<LinkSimConfig, Failure> {
    let (forward, reverse) = schedules(args)?;
    let load = match args.load {
        None => OfferedLoad::Saturated,
        Some(share) => OfferedLoad::Poisson(share.get()),
    };
    Ok(LinkSimConfig {
        rate: args.rate,
        delay: args.delay,
        profile: match args.profile {
            ProfileArg::Tofino => HardwareProfile::Tofino,
            ProfileArg::Ideal => HardwareProfile::Ideal,
        },
        mode: args.mode.0,
        sizes: args.size.0.clone(),
        frames: args.frames.0,
        load,
        reverse_load: args.reverse_load.get(),
        protect_reverse: args.protect_reverse,
        forward,
        reverse,
        target: args.target_loss,
        copies: args.copies,
        control_copies: args.control_copies,
        dummy_copies: args.dummy_copies,
        asks: args.asks,
        backpressure: !args.no_backpressure,
        paper_acks: args.paper_acks,
        endless_dummies: args.endless_dummies,
        max_consecutive: args.max_consecutive,
        reorder: args.reorder.map(|reorder| match reorder {
            ReorderArg::Sorted => ReorderBuild::Sorted,
            ReorderArg::Rotating => ReorderBuild::TOFINO,
        }),
        first_seq: Seq::new(args.first_seq, false),
        links: args.links,
        shared_reorder: args.shared_reorder,
        exact: args.exact,
        seed: args.seed,
        ..LinkSimConfig::default()
    })
}

fn schedules(args: &LinkArgs) -> Result<(FaultSchedule, FaultSchedule), Failure> {
    if let Some(path) = &args.faults {
        let file = corruption::file(path)?;
        return Ok((file.forward, file.reverse));
    }
    let forward = corruption::model(args.loss, args.burst, args.bit_errors)?;
    let reverse = if args.reverse_loss.is_zero() {
        FaultSchedule::default()
    } else {
        FaultSchedule::always(LossModel::PerFrame(args.reverse_loss))
    };
    Ok((FaultSchedule::always(forward), reverse))
}

fn describe(args: &LinkArgs, config: &LinkSimConfig) -> String {
    let profile = match args.profile {
        ProfileArg::Tofino => "tofino",
        ProfileArg::Ideal => "ideal",
    };
    let loss = match (&args.faults, args.bit_errors, args.burst) {
        (Some(path), ..) => format!("faults of {}", path.display()),
        (None, Some(rate), _) => format!("bit errors {rate}"),
        (None, None, Some(length)) => format!("loss {} in bursts of {length}", args.loss),
        (None, None, None) => format!("loss {}", args.loss),
    };
    let size = match &config.sizes {
        FrameSizes::Fixed(len) => format!("{len} B frames"),
        FrameSizes::Mix(_) => "mixed frames".into(),
    };
    let load = match config.load {
        OfferedLoad::Saturated => "at line rate".into(),
        OfferedLoad::Poisson(share) => format!("at random, filling {:.0} %", share * 100.0),
        OfferedLoad::Periodic(share) => format!("by a timer, filling {:.0} %", share * 100.0),
    };
    format!("{}, {size} {load}, {loss}, {}, {profile} profile, seed {}", config.rate, config.mode.name(), config.seed)
}
