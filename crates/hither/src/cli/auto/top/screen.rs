//! The terminal's other screen: entered, drawn on, and left on every way out.
use std::io::{stderr, BufWriter, Stderr, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Once;

use nix::sys::termios::{tcgetattr, tcsetattr, LocalFlags, SetArg, Termios};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::{Frame, Terminal};

/// The other screen is shown now, so that a panic knows what to undo.
static SHOWN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The terminal while it shows the view.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    before: Option<Termios>,
}

impl Screen {
    /// Shows the other screen, without echo of what is typed.
    ///
    /// # Errors
    /// When the terminal cannot be written to.
    pub fn enter() -> std::io::Result<Screen> {
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
        let mut screen = Screen {
            terminal: Terminal::new(CrosstermBackend::new(BufWriter::new(stderr())))?,
            before,
        };
        execute!(screen.terminal.backend_mut(), EnterAlternateScreen, Hide)?;
        screen.terminal.clear()?;
        Ok(screen)
    }

    /// A picture. What a terminal that is gone does not take is nobody's loss.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame)) {
        let _ = self.terminal.draw(picture);
    }
}

impl Drop for Screen {
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
