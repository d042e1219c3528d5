//! Numbers of the kernel: threads, processes, processing units, NUMA nodes.
use serde::{Deserialize, Serialize};

/// A thread id of the kernel.
pub type Tid = i32;
/// A process id of the kernel.
pub type Pid = i32;

/// A processing unit by the kernel's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cpu(pub u32);

/// A NUMA node by the kernel's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Node(pub u32);
