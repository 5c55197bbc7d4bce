//! A screen that is drawn again and again until somebody leaves it. A build without the feature `tui` has none.

use std::io::IsTerminal;

#[cfg(feature = "tui")]
pub(crate) use screen::refresh;

#[cfg(not(feature = "tui"))]
use crate::output::{CommandResult, Failure};

/// True if there is a terminal to refresh.
pub(crate) fn has_screen(json: bool) -> bool {
    !json && std::io::stdout().is_terminal()
}

/// Refuses a screen, and names the command that prints the same once.
#[cfg(not(feature = "tui"))]
pub(crate) fn refuse_screen(json: bool, once: &str) -> CommandResult {
    let build = "cargo build --release --features tui";
    let refusal = || format!("this build has no screens: `hitless {once}` prints this once; or build it with: {build}");
    if has_screen(json) { Err(Failure::Usage(refusal())) } else { Ok(()) }
}

#[cfg(feature = "tui")]
mod screen {
    use std::time::Duration;

    use ratatui::Frame;
    use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
    use units::Span;

    use crate::output::{CommandResult, Failure};

    /// Draws what is shown, and updates it at this interval, until a key ends it or an update fails.
    pub(crate) fn refresh<V>(
        every: Span,
        shown: &mut V,
        draw: impl Fn(&V, &mut Frame<'_>),
        mut update: impl FnMut(&mut V) -> CommandResult,
    ) -> CommandResult {
        let every = Duration::from_nanos((every.as_ps() / 1_000).max(50_000_000));
        let outside = |error: std::io::Error| Failure::Outside(error.to_string());
        let mut terminal = ratatui::try_init().map_err(outside)?;
        let mut step = || -> Result<bool, Failure> {
            terminal.draw(|frame| draw(shown, frame)).map_err(outside)?;
            if wants_to_leave(every).map_err(outside)? {
                return Ok(false);
            }
            update(shown).map(|()| true)
        };
        let ended = loop {
            match step() {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(failure) => break Err(failure),
            }
        };
        ratatui::restore();
        ended
    }

    /// Waits for a key for as long as a look lasts.
    fn wants_to_leave(every: Duration) -> std::io::Result<bool> {
        if !event::poll(every)? {
            return Ok(false);
        }
        let Event::Key(key) = event::read()? else { return Ok(false) };
        let interrupted = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        Ok(interrupted || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
    }
}
