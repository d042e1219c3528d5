//! Memory policies and where pages lie: what mbind(2), set_mempolicy(2) and move_pages(2)
//! want to hear. libnuma is not needed for that.
use nix::unistd::Pid;
use std::io;

/// Bits of a word of a node mask.
const WORD_BITS: u32 = 64;
/// linux/mempolicy.h, which the libc crate leaves out: move pages that nobody else maps.
const MPOL_MF_MOVE: i32 = 1 << 1;

/// A set of NUMA nodes by the kernel's numbers, as the kernel reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMask(Vec<u64>);

impl NodeMask {
    #[must_use]
    pub fn new(nodes: &[u32]) -> NodeMask {
        let words = nodes.iter().max().map_or(0, |n| n / WORD_BITS + 1);
        let mut mask = vec![0u64; words as usize];
        for node in nodes {
            mask[(node / WORD_BITS) as usize] |= 1 << (node % WORD_BITS);
        }
        NodeMask(mask)
    }

    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// The kernel looks at one bit less than it is told there are.
    fn bits(&self) -> u64 {
        match self.0.len() as u64 {
            0 => 0,
            words => words * u64::from(WORD_BITS) + 1,
        }
    }
}

/// What a memory policy does with its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Whatever holds for the process; no nodes.
    Default,
    /// The first of the nodes, others where it is full.
    Preferred,
    /// These nodes only.
    Bind,
    /// Page by page in turn.
    Interleave,
    /// Where the thread that touches a page first runs; no nodes.
    Local,
}

impl Policy {
    fn mode(self) -> i32 {
        match self {
            Policy::Default => libc::MPOL_DEFAULT,
            Policy::Preferred => libc::MPOL_PREFERRED,
            Policy::Bind => libc::MPOL_BIND,
            Policy::Interleave => libc::MPOL_INTERLEAVE,
            Policy::Local => libc::MPOL_LOCAL,
        }
    }
}

/// A system call for a stopped process to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub number: i64,
    pub arguments: [u64; 6],
}

/// The mbind(2) that binds `length` bytes from `start` on, both in whole pages. The words of
/// `nodes` lie at `mask_at` in the memory of the process that makes the call. With `moves`,
/// pages that have memory already go where they belong.
#[must_use]
pub fn mbind(
    (start, length): (u64, u64),
    policy: Policy,
    nodes: &NodeMask,
    mask_at: u64,
    moves: bool,
) -> Call {
    let mode = u64::from(policy.mode().unsigned_abs());
    let flags = match moves {
        true => u64::from(MPOL_MF_MOVE.unsigned_abs()),
        false => 0,
    };
    let mask = if nodes.0.is_empty() { 0 } else { mask_at };
    Call {
        number: libc::SYS_mbind,
        arguments: [start, length, mode, mask, nodes.bits(), flags],
    }
}

/// Sets the memory policy of this process. Allocates nothing: it may be called between
/// fork and exec.
///
/// # Errors
/// As set_mempolicy(2): a node that does not exist or is not allowed, or a kernel without
/// NUMA.
pub fn set_policy(policy: Policy, nodes: &NodeMask) -> io::Result<()> {
    let mask = match nodes.0.is_empty() {
        true => std::ptr::null(),
        false => nodes.0.as_ptr(),
    };
    // SAFETY: the kernel reads as many bits of the mask as it is told, and one less than
    // `bits` is what the vector has.
    let result =
        unsafe { libc::syscall(libc::SYS_set_mempolicy, policy.mode(), mask, nodes.bits()) };
    check(result)
}

/// Where pages of process `pid` lie: for each address its node, or `None` where there is no
/// memory (never touched, swapped out, not mapped).
///
/// # Errors
/// As move_pages(2): no such process, or not ours to look into.
pub fn nodes_of(pid: Pid, addresses: &[u64]) -> io::Result<Vec<Option<u32>>> {
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
pub fn move_to(pid: Pid, addresses: &[u64], nodes: &[u32]) -> io::Result<Vec<Option<u32>>> {
    assert_eq!(addresses.len(), nodes.len(), "a node for each page");
    let nodes: Result<Vec<i32>, _> = nodes.iter().map(|n| i32::try_from(*n)).collect();
    let nodes = nodes.map_err(io::Error::other)?;
    let status = call_move_pages(pid, addresses, Some(&nodes))?;
    Ok(status.into_iter().map(|s| u32::try_from(s).ok()).collect())
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
    // More than 0: so many could not be moved, which their status tells.
    check(result.min(0))?;
    Ok(status)
}

fn check(result: libc::c_long) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        let check = |nodes: &[u32], words: &[u64], bits| {
            let mask = NodeMask::new(nodes);
            assert_eq!((mask.words(), mask.bits()), (words, bits));
        };
        check(&[], &[], 0);
        check(&[0], &[1], 65);
        check(&[3, 1], &[0b1010], 65);
        check(&[63], &[1 << 63], 65);
        check(&[64, 2], &[4, 1], 129);
    }

    #[test]
    fn a_call_in_numbers() {
        // asm/unistd_64.h and linux/mempolicy.h: mbind 237, PREFERRED 1, BIND 2, MF_MOVE 2.
        let nodes = NodeMask::new(&[2]);
        let call = mbind((0x1000, 0x3000), Policy::Preferred, &nodes, 0x7000, false);
        assert_eq!(call.number, 237);
        assert_eq!(call.arguments, [0x1000, 0x3000, 1, 0x7000, 65, 0]);
        let call = mbind((0x1000, 0x1000), Policy::Bind, &nodes, 0x7000, true);
        assert_eq!(call.arguments, [0x1000, 0x1000, 2, 0x7000, 65, 2]);
        let call = mbind((0, 0x1000), Policy::Default, &NodeMask::default(), 9, false);
        assert_eq!(call.arguments, [0, 0x1000, 0, 0, 0, 0]);
    }

    /// Node 0 exists everywhere; in a container mempolicy calls may be forbidden.
    fn forbidden(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS))
    }

    #[test]
    fn pages_with_and_without_memory() {
        const PAGE: usize = 4096;
        let pages = vec![1u8; 4 * PAGE];
        let first = (pages.as_ptr().addr().next_multiple_of(PAGE)) as u64;
        let found = nodes_of(Pid::this(), &[first, first + PAGE as u64, 0]);
        match found {
            Ok(found) => {
                assert!(found[0].is_some() && found[1].is_some(), "{found:?}");
                assert_eq!(found[2], None);
                let node = found[0].expect("a node");
                let moved = move_to(Pid::this(), &[first], &[node]).expect("move");
                assert_eq!(moved, [Some(node)]);
            }
            Err(error) => assert!(forbidden(&error), "{error}"),
        }
        assert!(nodes_of(Pid::from_raw(i32::MAX - 1), &[first]).is_err());
        drop(pages);
    }

    #[test]
    fn a_policy_is_set_and_a_wrong_node_refused() {
        // In a thread of its own: a memory policy belongs to its thread.
        let set = std::thread::spawn(|| {
            let set = |policy, nodes: &[u32]| set_policy(policy, &NodeMask::new(nodes));
            let wrong = set(Policy::Bind, &[1023]);
            assert!(wrong.is_err());
            set(Policy::Preferred, &[0]).and_then(|()| set(Policy::Default, &[]))
        });
        if let Err(error) = set.join().expect("thread") {
            assert!(forbidden(&error), "{error}");
        }
    }
}
