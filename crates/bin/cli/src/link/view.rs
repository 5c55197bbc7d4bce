//! `hitless link watch`: a view of one link that refreshes.

use std::collections::VecDeque;

use link::status::LinkStatus;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Sparkline};

use super::{describe, status};
use crate::args::WatchArgs;
use crate::output::{CommandResult, print};
use crate::refresh::{has_screen, refresh};

/// Looks that the charts remember.
const REMEMBERED: usize = 240;

struct View {
    status: LinkStatus,
    /// Megabits per second over the wire, both ways together.
    throughput: VecDeque<u64>,
    /// Frames recovered between two looks.
    recovered: VecDeque<u64>,
}

pub(super) fn run(args: &WatchArgs, json: bool) -> CommandResult {
    let first = status(args.name.as_deref())?;
    if !has_screen(json) {
        return print(json, &first, || describe(&first));
    }
    let name = first.name.clone();
    let mut view = View { status: first, throughput: VecDeque::new(), recovered: VecDeque::new() };
    refresh(args.every, &mut view, View::draw, |view| {
        view.update(status(Some(&name))?);
        Ok(())
    })
}

impl View {
    fn update(&mut self, status: LinkStatus) {
        let both = (status.tx_bits_per_second + status.rx_bits_per_second) / 1e6;
        remember(&mut self.throughput, both as u64);
        remember(&mut self.recovered, status.recovered.saturating_sub(self.status.recovered));
        self.status = status;
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let rows = [Constraint::Length(13), Constraint::Min(4), Constraint::Min(4), Constraint::Length(1)];
        let [facts, throughput, recovered, help] = Layout::vertical(rows).areas(frame.area());
        let colour = match (self.status.is_active(), &self.status.problem) {
            (true, None) => Color::Green,
            (_, Some(_)) => Color::Red,
            (false, None) => Color::Yellow,
        };
        let lines: Vec<Line<'_>> =
            describe(&self.status).lines().skip(1).map(|line| Line::from(line.to_owned())).collect();
        let title = format!(" {} for {}: {} ", self.status.name, self.status.interface, self.status.state);
        let block = Block::bordered().title(title.bold()).border_style(Style::new().fg(colour));
        frame.render_widget(Paragraph::new(lines).block(block), facts);
        let now = self.throughput.back().copied().unwrap_or(0);
        chart(frame, throughput, &self.throughput, format!(" {now} Mbit/s over the wire, both ways "), Color::Blue);
        let now = self.recovered.back().copied().unwrap_or(0);
        chart(
            frame,
            recovered,
            &self.recovered,
            format!(" {now} frames recovered since the last look "),
            Color::Magenta,
        );
        frame.render_widget(Line::from(" q to leave").dim(), help);
    }
}

fn remember(values: &mut VecDeque<u64>, value: u64) {
    values.push_back(value);
    if values.len() > REMEMBERED {
        values.pop_front();
    }
}

fn chart(frame: &mut Frame<'_>, area: ratatui::layout::Rect, values: &VecDeque<u64>, title: String, colour: Color) {
    let shown = usize::from(area.width.saturating_sub(2));
    let latest = values.iter().copied().skip(values.len().saturating_sub(shown));
    let line = Sparkline::default().data(latest).style(Style::new().fg(colour)).block(Block::bordered().title(title));
    frame.render_widget(line, area);
}
