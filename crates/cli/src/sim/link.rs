//! `hitless sim link`.

use faults::{Model, Schedule};
use guard::reorder::Build;
use sim::link::{Config, Load, Mode, Profile, Sizes};
use wire::Seq;

use crate::args::{LinkArgs, ModeArg, ProfileArg, ReorderArg};
use crate::output::{Done, Failure, print};
use crate::terminal::Terminal;
use crate::wire::corruption;

pub(super) fn run(args: &LinkArgs, json: bool) -> Done {
    let config = config(args)?;
    let terminal = Terminal::of_frames(config.frames.saturating_mul(u64::from(config.links)));
    let outcome = sim::link::run(&config, &terminal);
    terminal.finish();
    let mut outcome = outcome.map_err(|error| Failure::Usage(error.to_string()))?;
    outcome.wall_seconds = terminal.elapsed().as_secs_f64();
    print(json, &outcome, || {
        let ended = if outcome.interrupted { "\ninterrupted: this is what was known by then\n" } else { "\n" };
        format!("{}{ended}{}", describe(args, &config), report::outcome::table(&outcome))
    })?;
    if outcome.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
}

fn config(args: &LinkArgs) -> Result<Config, Failure> {
    let (forward, reverse) = schedules(args)?;
    let load = match args.load {
        None => Load::Saturated,
        Some(share) => Load::Poisson(share.get()),
    };
    Ok(Config {
        rate: args.rate,
        delay: args.delay,
        profile: match args.profile {
            ProfileArg::Tofino => Profile::Tofino,
            ProfileArg::Ideal => Profile::Ideal,
        },
        mode: match args.mode {
            ModeArg::Ordered => Mode::Ordered,
            ModeArg::Nonblocking => Mode::NonBlocking,
            ModeArg::Both => Mode::Both,
            ModeArg::Auto => Mode::Auto,
            ModeArg::UecLlr => Mode::UecLlr,
            ModeArg::None => Mode::None,
        },
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
            ReorderArg::Sorted => Build::Sorted,
            ReorderArg::Rotating => Build::TOFINO,
        }),
        first_seq: Seq::new(args.first_seq, false),
        links: args.links,
        shared_reorder: args.shared_reorder,
        exact: args.exact,
        seed: args.seed,
        ..Config::default()
    })
}

fn schedules(args: &LinkArgs) -> Result<(Schedule, Schedule), Failure> {
    if let Some(path) = &args.faults {
        let file = corruption::file(path)?;
        return Ok((file.forward, file.reverse));
    }
    let forward = corruption::model(args.loss, args.burst, args.bit_errors)?;
    let reverse = if args.reverse_loss.is_zero() {
        Schedule::default()
    } else {
        Schedule::always(Model::PerFrame(args.reverse_loss))
    };
    Ok((Schedule::always(forward), reverse))
}

fn describe(args: &LinkArgs, config: &Config) -> String {
    let mode =
        clap::ValueEnum::to_possible_value(&args.mode).map_or_else(String::new, |value| value.get_name().to_owned());
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
        Sizes::Fixed(len) => format!("{len} B frames"),
        Sizes::Mix(_) => "mixed frames".into(),
    };
    let load = match config.load {
        Load::Saturated => "at line rate".into(),
        Load::Poisson(share) => format!("at random, filling {:.0} %", share * 100.0),
    };
    format!("{}, {size} {load}, {loss}, {mode}, {profile} profile, seed {}", config.rate, config.seed)
}
