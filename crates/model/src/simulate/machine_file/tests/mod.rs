use super::{
    build_machine, shipped_machine_file, BuiltMachine, MachineFileError, MachineFileText, FILES,
};
use crate::topology::{select_machine, shipped_machines, MachineRestrictions, SelectedMachine};

mod errors;
mod hand;
mod rules;

fn selected(topology: &str) -> SelectedMachine {
    select_machine(Some(topology), &MachineRestrictions::default()).unwrap()
}

/// A topology with the file shipped for it.
fn made(topology: &str) -> BuiltMachine {
    let made = build_machine(&selected(topology), Some(topology), None);
    made.unwrap_or_else(|e| panic!("{topology}: {e}"))
}

/// A topology with a file of the user's.
fn with(topology: &str, text: &str) -> Result<BuiltMachine, MachineFileError> {
    let user = MachineFileText {
        name: "mine.toml",
        text,
    };
    build_machine(&selected(topology), Some(topology), Some(user))
}

fn text(file: &str) -> &'static str {
    FILES.iter().find(|f| f.0 == file).unwrap().1
}
