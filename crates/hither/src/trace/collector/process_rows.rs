//! The rows that processes have in the tables of a profile. In a run of thousands of commands one that does
//! the same as an earlier one, which has ended, goes on in its row: what it uses counts together with that.
use std::collections::HashMap;

/// Process images in turn that have a row each.
pub const OWN_ROWS: usize = 512;

/// Processes that can share a row: what they execute, the row of their parent, and whether they are a fork of it.
type Family = (String, u32, bool);

#[derive(Default)]
pub struct ProcessRows {
    /// By process slot: the slot of the first process in its row.
    rows: HashMap<u32, u32>,
    /// By the first process of a row.
    families: HashMap<u32, Family>,
    /// Rows of which no process runs any more.
    free: HashMap<Family, Vec<u32>>,
    /// Processes in the row of another.
    pub shared: u32,
}

impl ProcessRows {
    /// A process has started; returns its row.
    pub fn enter(&mut self, process: u32, executable: &str, parent: u32, forked: bool) -> u32 {
        if let Some(&row) = self.rows.get(&process) {
            return row;
        }
        let family = (executable.to_owned(), self.row_of(parent), forked);
        let free = self.free.get_mut(&family).and_then(Vec::pop);
        let row = free.unwrap_or(process);
        self.shared += u32::from(row != process);
        self.rows.insert(process, row);
        if row == process {
            self.families.insert(process, family);
        }
        row
    }

    pub fn is_known(&self, process: u32) -> bool {
        self.rows.contains_key(&process)
    }

    /// A thread of a process was seen, of which nothing was reported: it has a row of its own.
    pub fn enter_unknown(&mut self, process: u32) {
        self.rows.entry(process).or_insert(process);
    }

    pub fn row_of(&self, process: u32) -> u32 {
        self.rows.get(&process).copied().unwrap_or(process)
    }

    /// A process has ended, and all that it did has been read.
    pub fn leave(&mut self, process: u32) {
        let row = self.row_of(process);
        let many = self.families.len() > OWN_ROWS;
        if let (true, Some(family)) = (many, self.families.get(&row)) {
            self.free.entry(family.clone()).or_default().push(row);
        }
    }

    /// Whether some processes share rows.
    pub fn are_shared(&self) -> bool {
        self.shared > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_goes_on_in_the_row_of_one_like_it_that_has_ended() {
        let mut rows = ProcessRows::default();
        let others = 10..10 + OWN_ROWS as u32;
        others.for_each(|other| assert_eq!(rows.enter(other, "/bin/other", 1, false), other));
        for process in [2, 3] {
            assert_eq!(rows.enter(process, "/bin/true", 1, false), process);
        }
        rows.leave(2);
        assert_eq!(rows.enter(4, "/bin/false", 1, false), 4);
        assert_eq!(rows.enter(5, "/bin/true", 1, true), 5, "a fork");
        assert_eq!(rows.enter(6, "/bin/true", 3, false), 6, "another parent");
        assert_eq!(rows.enter(7, "/bin/true", 1, false), 2);
        assert_eq!(rows.enter(8, "/bin/true", 1, false), 8, "2 is in use");
        assert_eq!(rows.enter(9, "/bin/x", 7, false), 9);
        rows.leave(9);
        rows.leave(7);
        assert_eq!(rows.enter(600, "/bin/x", 2, false), 9, "parents in one row");
        assert_eq!((rows.row_of(7), rows.shared), (2, 2));
    }

    #[test]
    fn few_processes_have_a_row_each() {
        let mut rows = ProcessRows::default();
        rows.enter(1, "/bin/true", 0, false);
        rows.leave(1);
        assert_eq!(rows.enter(2, "/bin/true", 0, false), 2);
        assert!(!rows.are_shared());
    }
}
