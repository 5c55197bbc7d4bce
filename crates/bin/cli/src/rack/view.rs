//! `hitless rack watch`: a view of one switch, or of one host that has joined, that refreshes.

use ratatui::Frame;
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};

use super::describe;
use super::members::{MemberStatus, status};
use crate::args::WatchArgs;
use crate::output::{CommandResult, print};
use crate::refresh::{has_screen, refresh};

pub(super) fn run(args: &WatchArgs, json: bool) -> CommandResult {
    let mut shown = status(args.name.as_deref())?;
    if !has_screen(json) {
        return print(json, &shown, || describe(&shown));
    }
    let name = shown.name().to_owned();
    refresh(args.every, &mut shown, draw, |shown| {
        *shown = status(Some(&name))?;
        Ok(())
    })
}

fn draw(status: &MemberStatus, frame: &mut Frame<'_>) {
    let lines: Vec<Line<'_>> = describe(status).lines().map(|line| Line::from(line.to_owned())).collect();
    let block = Block::bordered().title(format!(" {}; q to leave ", status.name()).bold());
    frame.render_widget(Paragraph::new(lines).block(block), frame.area());
}
