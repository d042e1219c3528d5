//! `hither completions SHELL` and, for `make install`, the hidden `hither man DIR`.
//! Both are derived from the command line itself, so they cannot go out of date.
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Command, ValueEnum};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

/// Print a completion script for a shell
///
/// For example: hither completions bash > ~/.local/share/bash-completion/completions/hither
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    shell: CompletionShell,
}

/// Write one man page per command
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Existing folder for hither.1, hither-trace.1, ...
    folder: PathBuf,
}

impl From<CompletionShell> for clap_complete::Shell {
    fn from(shell: CompletionShell) -> Self {
        match shell {
            CompletionShell::Bash => Self::Bash,
            CompletionShell::Zsh => Self::Zsh,
            CompletionShell::Fish => Self::Fish,
        }
    }
}

/// `command` is the whole command line, as clap knows it.
///
/// # Errors
/// When the script cannot be printed.
pub fn print_completions(args: &CompletionsArgs, mut command: Command) -> Result<ExitCode> {
    // Generated in memory: clap_complete panics when it cannot write.
    let mut script = Vec::new();
    let shell = clap_complete::Shell::from(args.shell);
    clap_complete::generate(shell, &mut command, "hither", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// # Errors
/// When the folder cannot be written to.
pub fn write_man_pages(args: &ManArgs, command: Command) -> Result<ExitCode> {
    super::man::write_pages(command, &args.folder).with_context(|| {
        format!(
            "cannot write man pages to {}: create the folder first, or choose another",
            args.folder.display()
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_man_folder_is_named() {
        let args = ManArgs {
            folder: "/nonexistent/man1".into(),
        };
        let error = write_man_pages(&args, Command::new("hither"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("/nonexistent/man1"), "{error}");
    }
}
