//! The terminal's other screen: entered, drawn on, and left on every way out.
use std::io::{stderr, BufWriter, Stderr, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Once;

use nix::sys::termios::{tcgetattr, tcsetattr, LocalFlags, SetArg, Termios};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    size, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen,
};
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};

/// The other screen is shown now, so that a panic knows what to undo.
static SHOWN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

type ScreenBackend = CrosstermBackend<BufWriter<Stderr>>;

/// The terminal while it shows the view.
pub struct TopScreen {
    terminal: Terminal<ScreenBackend>,
    /// Columns and rows.
    window: (u16, u16),
    before: Option<Termios>,
}

impl TopScreen {
    /// Shows the other screen, without echo of what is typed.
    ///
    /// # Errors
    /// When the terminal cannot be written to.
    pub fn enter() -> std::io::Result<TopScreen> {
        HOOK.call_once(|| {
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                hook(panic);
            }));
        });
        let before = tcgetattr(stderr().as_fd()).ok();
        if let Some(before) = &before {
            let mut quiet = before.clone();
            quiet.local_flags.remove(LocalFlags::ECHO);
            // Echo would only spoil the picture.
            let _ = tcsetattr(stderr().as_fd(), SetArg::TCSANOW, &quiet);
        }
        SHOWN.store(true, Ordering::Relaxed);
        let window = window();
        let mut screen = TopScreen {
            terminal: terminal(window)?,
            window,
            before,
        };
        execute!(
            screen.terminal.backend_mut(),
            EnterAlternateScreen,
            Hide,
            Clear(ClearType::All)
        )?;
        Ok(screen)
    }

    /// Draws a frame. Errors are ignored: the terminal is gone.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame)) {
        let _ = self.fit();
        let _ = self.terminal.draw(picture);
    }

    fn fit(&mut self) -> std::io::Result<()> {
        let window = window();
        if window != self.window {
            self.terminal = terminal(window)?;
            self.window = window;
            execute!(self.terminal.backend_mut(), Clear(ClearType::All))?;
        }
        Ok(())
    }
}

/// Columns and rows, of the usual terminal where it does not tell.
fn window() -> (u16, u16) {
    let told = size().ok().filter(|(columns, rows)| columns.min(rows) > &0);
    told.unwrap_or((80, 24))
}

/// Of a fixed size, for ratatui asks a terminal that it is to clear or fit where its cursor
/// is, and would read the answer off what the user types for the program.
fn terminal((columns, rows): (u16, u16)) -> std::io::Result<Terminal<ScreenBackend>> {
    let backend = CrosstermBackend::new(BufWriter::new(stderr()));
    let viewport = Viewport::Fixed(Rect::new(0, 0, columns, rows));
    Terminal::with_options(backend, TerminalOptions { viewport })
}

impl Drop for TopScreen {
    fn drop(&mut self) {
        leave();
        if let Some(before) = &self.before {
            let _ = tcsetattr(stderr().as_fd(), SetArg::TCSANOW, before);
        }
    }
}

fn leave() {
    if SHOWN.swap(false, Ordering::Relaxed) {
        let _ = execute!(stderr(), LeaveAlternateScreen, Show);
        let _ = stderr().flush();
    }
}
