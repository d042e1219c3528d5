//! Files and folders beside others' programs: opened so that nobody can put something else in
//! their place between a look and the use, and never a pipe or device by mistake.
mod folder;
mod place;
mod regular;
mod trust;

pub(crate) use folder::{age, Folder, CHANCE_LETTERS, TEMPORARY_PREFIX};
pub use place::{output_folder, parent_of, OutputPlace};
pub use regular::open_regular_file;
pub use trust::check_output_path;
