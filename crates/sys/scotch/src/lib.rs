//! Graph mapping by libscotch (Pellegrini and Roman, "Scotch: a software package for static
//! mapping by dual recursive bipartitioning", 1996).
//!
//! The few functions used are declared here, after scotch.h of libscotch 7.0 with 32-bit
//! numbers. Every structure is allocated by the library, so that its size is not our affair.
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null;
use std::sync::Mutex;

/// A machine for libscotch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScotchArch {
    /// A regular tree: children of each level's vertices from the root down, and the distance
    /// of two places that part there.
    Tleaf {
        sizes: Vec<i32>,
        distances: Vec<i32>,
    },
    /// A decomposition-defined architecture, in the text of libscotch's architecture files.
    ArchFile(String),
}

/// A symmetric graph without loops; the row of vertex v is `start[v]..start[v + 1]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScotchGraph {
    pub start: Vec<i32>,
    pub to: Vec<i32>,
    pub weight: Vec<i32>,
}

#[link(name = "scotch")]
#[link(name = "scotcherr")]
extern "C" {
    fn SCOTCH_archAlloc() -> *mut c_void;
    fn SCOTCH_archInit(arch: *mut c_void) -> c_int;
    fn SCOTCH_archExit(arch: *mut c_void);
    fn SCOTCH_archLoad(arch: *mut c_void, file: *mut libc::FILE) -> c_int;
    fn SCOTCH_archTleaf(
        arch: *mut c_void,
        levels: i32,
        sizes: *const i32,
        links: *const i32,
    ) -> c_int;
    fn SCOTCH_graphAlloc() -> *mut c_void;
    fn SCOTCH_graphInit(graph: *mut c_void) -> c_int;
    fn SCOTCH_graphExit(graph: *mut c_void);
    fn SCOTCH_graphBuild(
        graph: *mut c_void,
        base: i32,
        vertices: i32,
        start: *const i32,
        end: *const i32,
        loads: *const i32,
        labels: *const i32,
        edges: i32,
        to: *const i32,
        weight: *const i32,
    ) -> c_int;
    fn SCOTCH_graphMap(
        graph: *mut c_void,
        arch: *const c_void,
        strategy: *mut c_void,
        result: *mut i32,
    ) -> c_int;
    fn SCOTCH_contextAlloc() -> *mut c_void;
    fn SCOTCH_contextInit(context: *mut c_void) -> c_int;
    fn SCOTCH_contextExit(context: *mut c_void);
    fn SCOTCH_contextThreadSpawn(
        context: *mut c_void,
        threads: c_int,
        cores: *const c_int,
    ) -> c_int;
    fn SCOTCH_contextBindGraph(
        context: *mut c_void,
        graph: *const c_void,
        bound: *mut c_void,
    ) -> c_int;
    fn SCOTCH_stratAlloc() -> *mut c_void;
    fn SCOTCH_stratInit(strategy: *mut c_void) -> c_int;
    fn SCOTCH_stratExit(strategy: *mut c_void);
    fn SCOTCH_memFree(memory: *mut c_void);
    fn SCOTCH_randomReset();
}

/// The generator of random numbers is one for the whole process.
static SCOTCH_LOCK: Mutex<()> = Mutex::new(());

// SAFETY: only a type; takes nothing and returns memory or null.
type ScotchAllocFn = unsafe extern "C" fn() -> *mut c_void;
// SAFETY: only a type; its argument comes from the Alloc of the same structure.
type ScotchInitFn = unsafe extern "C" fn(*mut c_void) -> c_int;
// SAFETY: only a type; its argument was initialised by the Init of the same structure.
type ScotchExitFn = unsafe extern "C" fn(*mut c_void);

/// An allocated and initialised structure of the library.
struct ScotchHandle {
    at: *mut c_void,
    exit: ScotchExitFn,
}

impl ScotchHandle {
    /// `None` when memory ran out.
    fn new(alloc: ScotchAllocFn, init: ScotchInitFn, exit: ScotchExitFn) -> Option<ScotchHandle> {
        // SAFETY: the three belong to one kind of structure; a fresh allocation may be
        // initialised, and freed when that failed.
        unsafe {
            let at = alloc();
            if at.is_null() {
                return None;
            }
            if init(at) != 0 {
                SCOTCH_memFree(at);
                return None;
            }
            Some(ScotchHandle { at, exit })
        }
    }
}

impl Drop for ScotchHandle {
    fn drop(&mut self) {
        // SAFETY: `at` was allocated and initialised in `new`, and nothing else frees it.
        unsafe {
            (self.exit)(self.at);
            SCOTCH_memFree(self.at);
        }
    }
}

/// The place of each vertex, by libscotch's default strategy, always from the same random
/// numbers and in one thread: with several, results vary from run to run. `None` when it refuses the graph or the machine; it says why on stderr.
#[must_use]
pub fn map_graph(source: &ScotchGraph, target: &ScotchArch) -> Option<Vec<i32>> {
    let vertices = i32::try_from(source.start.len().checked_sub(1)?).ok()?;
    let edges = i32::try_from(source.to.len()).ok()?;
    if source.weight.len() != source.to.len() || !is_valid_csr(source) {
        return None;
    }
    let _alone = SCOTCH_LOCK.lock().unwrap_or_else(|e| e.into_inner());
    let arch = build_arch(target)?;
    let graph = ScotchHandle::new(SCOTCH_graphAlloc, SCOTCH_graphInit, SCOTCH_graphExit)?;
    let context = ScotchHandle::new(SCOTCH_contextAlloc, SCOTCH_contextInit, SCOTCH_contextExit)?;
    let bound = ScotchHandle::new(SCOTCH_graphAlloc, SCOTCH_graphInit, SCOTCH_graphExit)?;
    let strategy = ScotchHandle::new(SCOTCH_stratAlloc, SCOTCH_stratInit, SCOTCH_stratExit)?;
    let mut result = vec![0i32; vertices as usize];
    // SAFETY: the rows lie within `to` and `weight`, which have one length, as checked above;
    // they and `result`, one entry per vertex, outlive `graph`; the library only reads the
    // source. It keeps its random state to itself, and the lock keeps others out.
    let status = unsafe {
        SCOTCH_randomReset();
        let built = SCOTCH_graphBuild(
            graph.at,
            0,
            vertices,
            source.start.as_ptr(),
            null(),
            null(),
            null(),
            edges,
            source.to.as_ptr(),
            source.weight.as_ptr(),
        );
        let ready = built == 0
            && SCOTCH_contextThreadSpawn(context.at, 1, null()) == 0
            && SCOTCH_contextBindGraph(context.at, graph.at, bound.at) == 0;
        if ready {
            SCOTCH_graphMap(bound.at, arch.at, strategy.at, result.as_mut_ptr())
        } else {
            1
        }
    };
    // The bound graph refers to the context and to the other graph.
    drop(bound);
    drop(graph);
    (status == 0).then_some(result)
}

fn is_valid_csr(source: &ScotchGraph) -> bool {
    let vertices = source.start.len() as i32 - 1;
    source.start.first() == Some(&0)
        && source.start.last().map(|&e| e as usize) == Some(source.to.len())
        && source.start.windows(2).all(|w| w[0] <= w[1])
        && source.to.iter().all(|v| (0..vertices).contains(v))
}

fn build_arch(target: &ScotchArch) -> Option<ScotchHandle> {
    let arch = ScotchHandle::new(SCOTCH_archAlloc, SCOTCH_archInit, SCOTCH_archExit)?;
    let status = match target {
        ScotchArch::Tleaf { sizes, distances } => {
            if sizes.is_empty() || sizes.len() != distances.len() {
                return None;
            }
            // SAFETY: both lists have as many entries as is said, and are copied.
            unsafe {
                SCOTCH_archTleaf(
                    arch.at,
                    sizes.len() as i32,
                    sizes.as_ptr(),
                    distances.as_ptr(),
                )
            }
        }
        ScotchArch::ArchFile(text) => load_arch(&arch, text)?,
    };
    (status == 0).then_some(arch)
}

fn load_arch(arch: &ScotchHandle, text: &str) -> Option<c_int> {
    // SAFETY: the stream only reads, from memory that outlives it, and is closed here.
    unsafe {
        let memory = text.as_ptr().cast_mut().cast::<c_void>();
        let file = libc::fmemopen(memory, text.len(), c"r".as_ptr().cast::<c_char>());
        if file.is_null() {
            return None;
        }
        let status = SCOTCH_archLoad(arch.at, file);
        libc::fclose(file);
        Some(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(n: i32) -> ScotchGraph {
        let row = |v: i32| [(v + n - 1) % n, (v + 1) % n];
        ScotchGraph {
            start: (0..=n).map(|v| 2 * v).collect(),
            to: (0..n).flat_map(row).collect(),
            weight: vec![1; 2 * n as usize],
        }
    }

    #[test]
    fn a_ring_is_laid_out_one_vertex_to_a_place_and_always_the_same_way() {
        let target = ScotchArch::Tleaf {
            sizes: vec![2, 4],
            distances: vec![4, 2],
        };
        let first = map_graph(&ring(8), &target).unwrap();
        let mut places = first.clone();
        places.sort_unstable();
        assert_eq!(places, (0..8).collect::<Vec<_>>());
        // Two links of a ring cross a cut in two, no fewer.
        let far = |v: usize| first[v] / 4 != first[(v + 1) % 8] / 4;
        assert_eq!((0..8).filter(|&v| far(v)).count(), 2);
        assert_eq!(map_graph(&ring(8), &target), Some(first));
    }

    #[test]
    fn a_machine_without_regularity_is_a_table() {
        // Two places near each other and a third.
        let text = "deco 0\n3 5\n0 1 4\n1 1 5\n2 1 3\n1\n4 4\n";
        let mut pair = ScotchGraph {
            start: vec![0, 1, 1, 2],
            to: vec![2, 0],
            weight: vec![1, 1],
        };
        let places = map_graph(&pair, &ScotchArch::ArchFile(text.into())).unwrap();
        assert!(places[1] == 2, "{places:?}");
        pair.to[0] = 7;
        assert_eq!(map_graph(&pair, &ScotchArch::ArchFile(text.into())), None);
    }
}
