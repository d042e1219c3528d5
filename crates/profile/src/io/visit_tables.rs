//! All tables of a profile, one after the other.
use super::columns::TableRow;
use super::encode::TableRows;
use crate::Profile;

/// Room in `profile.json` for the sentences about tables that did not fit.
pub(super) const JSON_RESERVE: usize = 4096;

/// What is done with each table.
pub(super) trait TableVisitor {
    fn add<T: TableRow>(&mut self, rows: &dyn TableRows<T>);
}

/// In the order of their worth.
pub(super) fn visit_tables(profile: &Profile, folder: &mut impl TableVisitor) {
    folder.add(&profile.threads);
    folder.add(&profile.slices);
    folder.add(&profile.comm);
    folder.add(&profile.regions);
    folder.add(&profile.objects);
    folder.add(&profile.sites);
    folder.add(&profile.first_touch_lines);
    folder.add(&profile.object_threads);
    folder.add(&profile.allocation_paths);
    folder.add(&profile.first_touch);
    folder.add(&profile.pages);
    folder.add(&profile.object_ranges);
    folder.add(&profile.members);
    folder.add(&profile.lines);
    folder.add(&profile.source_text);
    if profile.meta.online.is_some() {
        folder.add(&profile.thread_moves);
        folder.add(&profile.page_moves);
    }
}
