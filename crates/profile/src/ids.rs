//! Newtypes for every index that crosses an interface.
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$m:meta])* $name:ident($int:ty)) => {
        $(#[$m])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $int);
        impl $name {
            /// The index as a position in a slice.
            #[must_use]
            pub fn at(self) -> usize {
                self.0 as usize
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(/// A thread of the run, 0.. in order of creation over all processes.
    ThreadIx(u32));
id!(/// A process image of the run, 0.. in order of appearance; an exec starts a new one.
    ProcessIx(u32));
id!(/// A slice of time, 0.. in order.
    SliceIx(u32));
id!(/// A region of an address space, an index into the `regions` table.
    RegionIx(u32));
id!(/// A 4 KiB page, counted from the start of its region.
    PageNo(u32));
id!(/// A data structure, an index into the `objects` table.
    ObjectIx(u32));
id!(/// A processing unit, hwloc's logical index.
    PuIx(u32));
id!(/// A NUMA node, hwloc's logical index.
    NodeIx(u32));
