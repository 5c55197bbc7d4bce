//! The example of this crate, and what it prints. The other one, `measure-protection`, takes minutes.

#[path = "../examples/plan-repairs.rs"]
mod plan_repairs;

#[test]
fn the_worse_links_go_and_the_other_is_protected() {
    let plan = plan_repairs::repairs().unwrap();
    let names = |links: Vec<&String>| links.into_iter().cloned().collect::<Vec<_>>();
    let going = names(plan.disable.iter().map(|link| &link.link).collect());
    assert_eq!(going, ["leaf5--spine2", "leaf6--spine1"]);
    assert_eq!(names(plan.protect.iter().map(|link| &link.link).collect()), ["leaf5--spine0"]);
    plan_repairs::main().unwrap();
}
