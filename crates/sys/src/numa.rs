//! Where the pages of a process lie, and moving them: move_pages(2).
use crate::errno::check;
use nix::unistd::Pid;
use std::io;

/// linux/mempolicy.h, which the libc crate leaves out: move pages that no other process maps.
const MPOL_MF_MOVE: i32 = 1 << 1;

/// Where pages of process `pid` lie: for each address its node, or `None` where there is no
/// memory (never touched, swapped out, not mapped).
///
/// # Errors
/// As move_pages(2): no such process, or not ours to look into.
pub fn page_nodes(pid: Pid, addresses: &[u64]) -> io::Result<Vec<Option<u32>>> {
    let status = call_move_pages(pid, addresses, None)?;
    Ok(status.into_iter().map(|s| u32::try_from(s).ok()).collect())
}

/// Moves pages of process `pid` to nodes. Returns for each address the node it is on now;
/// `None` where there is no memory or it cannot be moved.
///
/// # Errors
/// As move_pages(2): no such process or node, or not ours to move.
///
/// # Panics
/// When there are not as many nodes as addresses.
pub fn move_pages(pid: Pid, addresses: &[u64], nodes: &[u32]) -> io::Result<Vec<Option<u32>>> {
    assert_eq!(addresses.len(), nodes.len(), "a node for each page");
    let nodes: Result<Vec<i32>, _> = nodes.iter().map(|n| i32::try_from(*n)).collect();
    let nodes = nodes.map_err(io::Error::other)?;
    let status = call_move_pages(pid, addresses, Some(&nodes))?;
    Ok(status.into_iter().map(|s| u32::try_from(s).ok()).collect())
}

/// Has all processors put the pages that they were the first to touch on the kernel's lists:
/// each keeps the last few back (15 to 31), for good if it touches no more, and what is on no
/// list can neither be paged out nor moved. It is what moving pages begins with, even none.
///
/// # Errors
/// As move_pages(2): ENOSYS without NUMA in the kernel, EPERM in some containers.
pub fn drain_lru_lists() -> io::Result<()> {
    call_move_pages(Pid::from_raw(0), &[], Some(&[])).map(drop)
}

/// A node or negative error number for each address.
fn call_move_pages(pid: Pid, addresses: &[u64], nodes: Option<&[i32]>) -> io::Result<Vec<i32>> {
    let mut status = vec![-libc::ENOENT; addresses.len()];
    let to = nodes.map_or(std::ptr::null(), <[i32]>::as_ptr);
    // SAFETY: the three arrays have `addresses.len()` elements each (or `to` is null: only
    // look), and the kernel writes to the last alone. The addresses are of the other process
    // and are never followed here; a page that moves keeps its address and contents.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            pid.as_raw(),
            addresses.len(),
            addresses.as_ptr(),
            to,
            status.as_mut_ptr(),
            MPOL_MF_MOVE,
        )
    };
    // A result above 0 is the number of pages that were not moved; `status` says which.
    check(result)?;
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a container the call may be.
    fn forbidden(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS))
    }

    #[test]
    fn pages_with_and_without_memory() {
        const PAGE: usize = 4096;
        let pages = vec![1u8; 4 * PAGE];
        let first = (pages.as_ptr().addr().next_multiple_of(PAGE)) as u64;
        let found = page_nodes(Pid::this(), &[first, first + PAGE as u64, 0]);
        match found {
            Ok(found) => {
                assert!(found[0].is_some() && found[1].is_some(), "{found:?}");
                assert_eq!(found[2], None);
                let node = found[0].expect("a node");
                let moved = move_pages(Pid::this(), &[first], &[node]).expect("move");
                assert_eq!(moved, [Some(node)]);
            }
            Err(error) => assert!(forbidden(&error), "{error}"),
        }
        assert!(page_nodes(Pid::from_raw(i32::MAX - 1), &[first]).is_err());
        drop(pages);
    }
}
