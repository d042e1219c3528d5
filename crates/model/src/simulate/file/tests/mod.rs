use super::{machine, shipped, Error, Made, Source, FILES};
use crate::topology::{named, select, Restrictions, Selected};

mod errors;
mod hand;
mod rules;

fn selected(topology: &str) -> Selected {
    select(Some(topology), &Restrictions::default()).unwrap()
}

/// A topology with the file shipped for it.
fn made(topology: &str) -> Made {
    let made = machine(&selected(topology), Some(topology), None);
    made.unwrap_or_else(|e| panic!("{topology}: {e}"))
}

/// A topology with a file of the user's.
fn with(topology: &str, text: &str) -> Result<Made, Error> {
    let user = Source {
        name: "mine.toml",
        text,
    };
    machine(&selected(topology), Some(topology), Some(user))
}

fn text(file: &str) -> &'static str {
    FILES.iter().find(|f| f.0 == file).unwrap().1
}
