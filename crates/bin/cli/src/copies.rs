//! `hitless copies`.

use serde::Serialize;

use crate::args::CopiesArgs;
use crate::output::{CommandResult, Failure, print};

#[derive(Serialize)]
struct CopiesResult {
    copies: u8,
    expected_effective_loss: f64,
}

pub(crate) fn run(args: &CopiesArgs, json: bool) -> CommandResult {
    let (copies, effective) = guard::copies_for(args.actual, args.target).ok_or_else(|| {
        Failure::Usage(format!(
            "--actual {}: expected a loss that at most {} copies bring down to --target {}",
            args.actual,
            guard::copies::MAX_COPIES,
            args.target
        ))
    })?;
    let answer = CopiesResult { copies, expected_effective_loss: effective.get() };
    print(json, &answer, || {
        let copies = if copies == 1 { "1 copy".into() } else { format!("{copies} copies") };
        format!("{copies} of each retransmission; expected effective loss {:e}", effective.get())
    })
}
