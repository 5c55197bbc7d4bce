//! `hitless radar acl`.

use std::fs;
use std::path::Path;

use radar::acl::report::{AclAnswer, LostFlows};
use radar::acl::{AclAction, RuleTable};

use crate::args::{AclArgs, OtherwiseArg};
use crate::output::{CommandResult, Failure, print};

pub(super) fn run(args: &AclArgs, json: bool) -> CommandResult {
    let otherwise = match args.otherwise {
        OtherwiseArg::Accept => AclAction::Accept,
        OtherwiseArg::Deny => AclAction::Deny,
    };
    let wrong = |path: &Path, error: &dyn std::fmt::Display| Failure::Usage(format!("{}: {error}", path.display()));
    let list = RuleTable::parse(&read(&args.rules)?, otherwise).map_err(|error| wrong(&args.rules, &error))?;
    let lost = LostFlows::parse(&read(&args.losses)?, args.all).map_err(|error| wrong(&args.losses, &error))?;
    let answer = AclAnswer::new(&list, &lost);
    print(json, &answer, || answer.text())
}

fn read(path: &Path) -> Result<String, Failure> {
    let text =
        if path == Path::new("-") { std::io::read_to_string(std::io::stdin()) } else { fs::read_to_string(path) };
    text.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}
