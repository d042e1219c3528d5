//! What verbs that only read and write files cannot do any more, whoever made these files.
use std::path::PathBuf;

use hither_profile::output_folder;
use hither_sys::sandbox;

/// Gives up, for good, all but reading files and writing in the folders of these. Where the kernel
/// refuses, hither works without.
pub fn to_folders_of(outputs: impl IntoIterator<Item = PathBuf>) {
    let folders: Vec<_> = outputs
        .into_iter()
        .map(|path| output_folder(&path))
        .collect();
    let _ = sandbox::confine_to_folders(&folders);
}
