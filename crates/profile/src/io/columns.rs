//! Every table's columns, listed once: the schema, the writer and the reader all walk
//! this list. `docs/format.md` explains the columns.
use super::cell::{IndexedTable, ParquetCell};
use crate::ids::PageNo;
use crate::tables::{
    AllocationPath, FirstTouchLine, LineUse, Object, ObjectMember, ObjectRange, ObjectThread,
    PageFirstTouch, PageMove, PageUse, PairComm, Region, Slice, SourceSite, SourceText, Thread,
    ThreadMove,
};

/// What else a number must satisfy, so that arithmetic on it cannot overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnRule {
    /// Nothing: addresses, names, indices (checked through [`ParquetCell::REFERS`]).
    Free,
    /// Each value stays below [`MAX_NUMBER`]: times, sizes.
    Each,
    /// The column's sum stays below [`MAX_NUMBER`]: counts.
    Sum,
    /// The column's sum stays below [`MAX_PAGES`]: pages that are gone through one by one.
    Pages,
}

/// A table of pages stands for fewer single pages: 256 GiB of memory that a thousand threads use.
pub(crate) const MAX_PAGES: u64 = 1 << 36;

/// Two of these can be added.
pub(crate) const MAX_NUMBER: u64 = 1 << 62;

/// Something that walks a table's columns.
pub(crate) trait ColumnVisitor<R> {
    type Error;
    fn column<C: ParquetCell>(
        &mut self,
        name: &'static str,
        rule: ColumnRule,
        get: impl Fn(&R) -> &C,
        get_mut: impl Fn(&mut R) -> &mut C,
    ) -> Result<(), Self::Error>;
}

/// A kind of row.
pub(crate) trait TableRow: Clone + Default + PartialEq {
    const NAME: &'static str;
    /// More rows than any run makes: beyond it the file is damaged or hostile.
    const MAX_ROWS: usize;
    /// Columns that older profiles lack.
    const LATER: &'static [&'static str] = &[];
    /// What row numbers of this table are the index of.
    const DEFINES: Option<IndexedTable> = None;
    /// Rows are written in this order; `()` keeps the order, as it must be where row
    /// numbers mean something.
    type SortKey: Ord;
    fn key(&self) -> Self::SortKey;
    fn visit<V: ColumnVisitor<Self>>(v: &mut V) -> Result<(), V::Error>;
    /// What must hold between the columns of a row.
    fn check(&self) -> Result<(), (&'static str, String)> {
        Ok(())
    }

    fn file() -> String {
        format!("{}.parquet", Self::NAME)
    }
}

const MILLION: usize = 1_000_000;

macro_rules! table {
    ($row:ident = $name:literal, at most $max:expr, $(index of $defines:ident,)?
     sorted by |$s:tt| $key:expr => $keytype:ty,
     { $($column:literal = $($field:tt).+ $([$at:literal])?: $rule:ident,)* } $($extra:item)*) => {
        impl TableRow for $row {
            const NAME: &'static str = $name;
            const MAX_ROWS: usize = $max;
            $(const DEFINES: Option<IndexedTable> = Some(IndexedTable::$defines);)?
            type SortKey = $keytype;
            fn key(&self) -> Self::SortKey {
                let key = |$s: &Self| $key;
                key(self)
            }
            fn visit<V: ColumnVisitor<Self>>(v: &mut V) -> Result<(), V::Error> {
                $(v.column($column, ColumnRule::$rule, |r| &r.$($field).+$([$at])?, |r| &mut r.$($field).+$([$at])?)?;)*
                Ok(())
            }
            $($extra)*
        }
    };
}

// A matrix of this many threads takes 2 GiB; the tracer knows fewer.
table!(Thread = "threads", at most 16384, index of Threads, sorted by |_| () => (), {
    "process" = process: Free,
    "tid" = tid: Free,
    "name" = name: Free,
    "creator" = creator: Free,
    "start" = start: Each,
    "end" = end: Each,
    "instructions" = instructions: Sum,
    "reads" = reads: Sum,
    "writes" = writes: Sum,
    "role" = role: Free,
}
    const LATER: &'static [&'static str] = &["role"];
);

table!(Slice = "slices", at most 20 * MILLION, index of Slices, sorted by |_| () => (), {
    "start" = start: Each,
    "length" = length: Each,
    "accesses" = accesses: Sum,
    "amount" = amount: Free,
    "heterogeneity" = heterogeneity: Free,
    "threads" = threads: Free,
    "pthread_barriers" = sync[0]: Sum,
    "omp_barriers" = sync[1]: Sum,
    "omp_parallels" = sync[2]: Sum,
    "mpi_barriers" = sync[3]: Sum,
    "traced" = traced: Free,
    "paused" = paused: Sum,
}
    const LATER: &'static [&'static str] = &["paused"];
);

table!(PairComm = "comm", at most 200 * MILLION, sorted by |r| (r.slice.0, r.i.0, r.j.0) => (u32, u32, u32), {
    "slice" = slice: Free,
    "i" = i: Free,
    "j" = j: Free,
    "events" = events: Sum,
    "coherence" = coherence: Sum,
}
    const LATER: &'static [&'static str] = &["coherence"];
    fn check(&self) -> Result<(), (&'static str, String)> {
        if self.coherence > self.events {
            let why = format!("{} are more than all events, {}", self.coherence, self.events);
            return Err(("coherence", why));
        }
        if self.i < self.j {
            return Ok(());
        }
        Err(("j", format!("thread {} is not above i = {}", self.j, self.i)))
    }
);

table!(PageUse = "pages", at most 200 * MILLION,
    sorted by |r| (r.slice.0, r.region.0, r.page.0, r.thread.0) => (u32, u32, u32, u32), {
    "slice" = slice: Free,
    "region" = region: Free,
    "page" = page: Free,
    "following" = following: Pages,
    "thread" = thread: Free,
    "reads" = reads: Sum,
    "writes" = writes: Sum,
    "fetches" = fetches: Sum,
}
    const LATER: &'static [&'static str] = &["fetches", "following"];
    fn check(&self) -> Result<(), (&'static str, String)> {
        check_following(self.page, self.following)
    }
);

table!(PageFirstTouch = "first_touch", at most 200 * MILLION,
    sorted by |r| (r.region.0, r.page.0) => (u32, u32), {
    "region" = region: Free,
    "page" = page: Free,
    "following" = following: Pages,
    "thread" = thread: Free,
    "slice" = slice: Free,
}
    const LATER: &'static [&'static str] = &["following"];
    fn check(&self) -> Result<(), (&'static str, String)> {
        check_following(self.page, self.following)
    }
);

table!(Region = "regions", at most 10 * MILLION, index of Regions, sorted by |_| () => (), {
    "kind" = kind: Free,
    "process" = process: Free,
    "thread" = thread: Free,
    "ordinal" = ordinal: Free,
    "size" = size: Each,
    "file" = file: Free,
    "file_offset" = file_offset: Free,
    "address" = address: Free,
});

table!(Object = "objects", at most 10 * MILLION, index of Objects, sorted by |_| () => (), {
    "name" = name: Free,
    "type" = type_name: Free,
    "kind" = kind: Free,
    "size" = size: Each,
    "count" = count: Each,
    "allocated" = allocated: Each,
    "smallest" = smallest: Each,
    "largest" = largest: Each,
    "file" = file: Free,
    "line" = line: Free,
    "function" = function: Free,
    "process" = process: Free,
    "owner" = owner: Free,
    "reads" = reads: Sum,
    "writes" = writes: Sum,
    "fetches" = fetches: Sum,
    "estimated" = estimated: Free,
}
    const LATER: &'static [&'static str] = &["allocated", "smallest", "largest", "fetches"];
);

table!(AllocationPath = "allocation_paths", at most 10 * MILLION, sorted by |_| () => (), {
    "object" = object: Free,
    "path" = path: Free,
    "count" = count: Each,
    "size" = size: Each,
    "allocated" = allocated: Each,
    "smallest" = smallest: Each,
    "largest" = largest: Each,
    "reads" = reads: Sum,
    "writes" = writes: Sum,
    "fetches" = fetches: Sum,
}
    const LATER: &'static [&'static str] = &["fetches"];
);

table!(ObjectRange = "object_ranges", at most 200 * MILLION,
    sorted by |r| (r.object.0, r.region.0, r.offset) => (u32, u32, u64), {
    "object" = object: Free,
    "region" = region: Free,
    "offset" = offset: Each,
    "length" = length: Each,
});

table!(ObjectMember = "members", at most 10 * MILLION, sorted by |_| () => (), {
    "object" = object: Free,
    "name" = name: Free,
    "type" = type_name: Free,
    "offset" = offset: Each,
    "size" = size: Each,
});

table!(SourceSite = "sites", at most 10 * MILLION, sorted by |_| () => (), {
    "object" = object: Free,
    "file" = file: Free,
    "line" = line: Free,
    "function" = function: Free,
    "callee" = callee: Free,
    "reads" = reads: Sum,
    "writes" = writes: Sum,
    "fetches" = fetches: Sum,
}
    const LATER: &'static [&'static str] = &["callee", "fetches"];
);

table!(FirstTouchLine = "first_touch_lines", at most 10 * MILLION, sorted by |_| () => (), {
    "object" = object: Free,
    "thread" = thread: Free,
    "file" = file: Free,
    "line" = line: Free,
    "function" = function: Free,
    "path" = path: Free,
    "in_parallel" = in_parallel: Free,
    "pages" = pages: Sum,
}
    const LATER: &'static [&'static str] = &["path", "in_parallel"];
);

table!(ObjectThread = "object_threads", at most 100 * MILLION,
    sorted by |r| (r.object.0, r.thread.0) => (u32, u32), {
    "object" = object: Free,
    "thread" = thread: Free,
});

table!(SourceText = "source_text", at most MILLION, sorted by |r| (r.file.clone(), r.line) => (String, u32), {
    "file" = file: Free,
    "line" = line: Free,
    "text" = text: Free,
});

table!(LineUse = "lines", at most 10 * MILLION,
    sorted by |r| (r.region.0, r.offset, r.thread.0) => (u32, u64, u32), {
    "region" = region: Free,
    "offset" = offset: Each,
    "thread" = thread: Free,
    "seen" = seen: Sum,
    "read_mask" = read_mask: Free,
    "write_mask" = write_mask: Free,
    "accesses" = accesses: Sum,
    "writes" = writes: Sum,
}
    const LATER: &'static [&'static str] = &["writes"];
);

table!(ThreadMove = "thread_moves", at most 10 * MILLION, sorted by |r| (r.at, r.thread.0) => (u64, u32), {
    "at" = at: Each,
    "thread" = thread: Free,
    "pu" = pu: Free,
    "node" = node: Free,
});

table!(PageMove = "page_moves", at most 200 * MILLION,
    sorted by |r| (r.at, r.region.0, r.page.0) => (u64, u32, u32), {
    "at" = at: Each,
    "region" = region: Free,
    "page" = page: Free,
    "node" = node: Free,
});

/// The last page of a row has a number too.
fn check_following(page: PageNo, following: u32) -> Result<(), (&'static str, String)> {
    match page.0.checked_add(following) {
        Some(_) => Ok(()),
        None => Err((
            "following",
            format!("no {following} pages follow page {}", page.0),
        )),
    }
}

/// The other tables that `T` points into.
pub(crate) fn referenced_tables<T: TableRow>() -> Vec<IndexedTable> {
    struct ReferenceCollector(Vec<IndexedTable>);
    impl<R> ColumnVisitor<R> for ReferenceCollector {
        type Error = std::convert::Infallible;
        fn column<C: ParquetCell>(
            &mut self,
            _: &'static str,
            _: ColumnRule,
            _: impl Fn(&R) -> &C,
            _: impl Fn(&mut R) -> &mut C,
        ) -> Result<(), Self::Error> {
            self.0.extend(C::REFERS);
            Ok(())
        }
    }
    let mut collect = ReferenceCollector(Vec::new());
    let Ok(()) = T::visit(&mut collect);
    collect.0.retain(|t| Some(*t) != T::DEFINES);
    collect.0
}

#[cfg(test)]
mod tests {
    use super::super::cell::IndexedTable;
    use super::super::decode::decode_table;
    use super::super::encode::encode_table;
    use super::*;
    use crate::ids::ObjectIx;
    use std::path::Path;

    /// A source line as the first profiles had it.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct EarlySite {
        object: Option<ObjectIx>,
        file: String,
        line: u32,
        function: String,
        reads: u64,
        writes: u64,
    }

    table!(EarlySite = "sites", at most 10, sorted by |_| () => (), {
        "object" = object: Free,
        "file" = file: Free,
        "line" = line: Free,
        "function" = function: Free,
        "reads" = reads: Sum,
        "writes" = writes: Sum,
    });

    #[test]
    fn columns_that_older_profiles_lack_are_empty() {
        let early = EarlySite {
            line: 7,
            reads: 5,
            ..EarlySite::default()
        };
        let mut file = tempfile::tempfile().unwrap();
        encode_table(&vec![early], &mut file).unwrap();
        let mut counts = [Some(0); IndexedTable::COUNT];
        let read = decode_table::<Vec<SourceSite>>(file, Path::new("sites"), 1, &mut counts);
        let expected = SourceSite {
            line: 7,
            reads: 5,
            ..SourceSite::default()
        };
        assert_eq!(read.unwrap(), [expected]);
    }
}
