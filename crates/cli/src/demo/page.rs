//! The story as a page.

use live::demo::{Plan, Story};

pub fn page(story: &Story, plan: &Plan) -> String {
    super::story::text(story, plan)
}
