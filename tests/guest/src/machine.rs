//! The shape of the machine: processors, nodes, distances; checked, and as arguments of QEMU.
use crate::GuestError;

/// Which of Debian's kernels is booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebianKernel {
    /// Bookworm's own.
    V6_1,
    /// Trixie's, in bookworm-security.
    V6_12,
}

impl DebianKernel {
    pub fn name(self) -> &'static str {
        match self {
            DebianKernel::V6_1 => "6.1",
            DebianKernel::V6_12 => "6.12",
        }
    }
}

#[derive(Clone, Debug)]
pub struct GuestMachine {
    /// Nodes with processors.
    pub nodes: usize,
    /// Processing units in all.
    pub cpus: usize,
    /// One per node if not said.
    pub sockets: Option<usize>,
    /// Dies per socket; each has its own L3.
    pub dies: usize,
    /// Processing units per core.
    pub threads: usize,
    /// Nodes with memory alone, numbered after the others.
    pub memory_only: usize,
    /// Row by row, 10 on the diagonal; a hypercube if not said.
    pub distances: Option<Vec<Vec<u8>>>,
    /// Of each node.
    pub memory_mib: usize,
}

impl Default for GuestMachine {
    /// Four sockets, each a node with two cores, in a ring.
    fn default() -> Self {
        GuestMachine {
            nodes: 4,
            cpus: 8,
            sockets: None,
            dies: 1,
            threads: 1,
            memory_only: 0,
            distances: None,
            memory_mib: 512,
        }
    }
}

/// The distance of a node to itself, by definition of ACPI.
const LOCAL: u8 = 10;

impl GuestMachine {
    fn all_nodes(&self) -> usize {
        self.nodes + self.memory_only
    }

    /// The distance between two nodes where none is given: as if each link of a
    /// hypercube cost 10, so 21 to a neighbour and 31 to the far corner of four nodes.
    fn default_distance(a: usize, b: usize) -> u8 {
        let hops = (a ^ b).count_ones() as u8;
        if hops == 0 {
            LOCAL
        } else {
            11 + 10 * hops
        }
    }

    fn distance(&self, a: usize, b: usize) -> u8 {
        match &self.distances {
            Some(rows) => rows[a][b],
            None => GuestMachine::default_distance(a, b),
        }
    }

    /// What QEMU could not build, in a sentence that names the option.
    fn check(&self) -> Result<(), GuestError> {
        let nodes = self.all_nodes();
        let cores = self.sockets() * self.dies * self.threads;
        let refusal = if self.nodes == 0 || cores == 0 || self.cpus == 0 {
            "nodes, cpus, sockets, dies and threads must each be at least 1".to_string()
        } else if !self.cpus.is_multiple_of(cores) {
            format!(
                "{} cpus cannot be shared equally among {} sockets of {} dies with {} threads \
                 per core; choose a multiple of {cores}",
                self.cpus,
                self.sockets(),
                self.dies,
                self.threads
            )
        } else if !self.cpus.is_multiple_of(self.nodes) {
            let (cpus, nodes) = (self.cpus, self.nodes);
            format!("{cpus} cpus cannot be shared equally among {nodes} nodes; choose a multiple")
        } else if self.memory_mib < 128 {
            let mib = self.memory_mib;
            format!("{mib} MiB per node are too few to boot; give at least 128")
        } else if !self.distances_fit() {
            format!(
                "distances must be {nodes} rows of {nodes} values, {LOCAL} on the diagonal and \
                 11 to 254 elsewhere"
            )
        } else {
            return Ok(());
        };
        Err(GuestError::Shape(refusal))
    }

    fn distances_fit(&self) -> bool {
        let nodes = self.all_nodes();
        let Some(rows) = &self.distances else {
            return true;
        };
        let fits = |a: usize, b: usize, d: u8| {
            if a == b {
                d == LOCAL
            } else {
                (11..255).contains(&d)
            }
        };
        let row_fits = |(a, row): (usize, &Vec<u8>)| {
            row.len() == nodes && row.iter().enumerate().all(|(b, d)| fits(a, b, *d))
        };
        rows.len() == nodes && rows.iter().enumerate().all(row_fits)
    }

    fn sockets(&self) -> usize {
        self.sockets.unwrap_or(self.nodes)
    }

    /// The arguments that make QEMU build it.
    pub fn arguments(&self) -> Result<Vec<String>, GuestError> {
        self.check()?;
        let (sockets, dies, threads) = (self.sockets(), self.dies, self.threads);
        let cores = self.cpus / (sockets * dies * threads);
        let mut arguments = vec![
            "-smp".into(),
            format!(
                "{},sockets={sockets},dies={dies},cores={cores},threads={threads}",
                self.cpus
            ),
            "-m".into(),
            format!("{}M", self.memory_mib * self.all_nodes()),
        ];
        let share = self.cpus / self.nodes;
        for node in 0..self.all_nodes() {
            let memory = self.memory_mib;
            arguments.push("-object".into());
            arguments.push(format!("memory-backend-ram,id=m{node},size={memory}M"));
            let mut numa = format!("node,nodeid={node},memdev=m{node}");
            if node < self.nodes {
                let first = node * share;
                numa += &format!(",cpus={first}-{}", first + share - 1);
            }
            arguments.extend(["-numa".into(), numa]);
        }
        for (a, b) in self.pairs() {
            let distance = self.distance(a, b);
            arguments.push("-numa".into());
            arguments.push(format!("dist,src={a},dst={b},val={distance}"));
        }
        Ok(arguments)
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let nodes = self.all_nodes();
        let all = (0..nodes).flat_map(move |a| (0..nodes).map(move |b| (a, b)));
        all.filter(|(a, b)| a != b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(machine: &GuestMachine, option: &str) -> Vec<String> {
        let arguments = machine.arguments().unwrap();
        let pairs = arguments.chunks(2).filter(|pair| pair[0] == option);
        pairs.map(|pair| pair[1].clone()).collect()
    }

    #[test]
    fn the_default_is_a_ring_of_four_sockets() {
        let machine = GuestMachine::default();
        let smp = values(&machine, "-smp");
        assert_eq!(smp, ["8,sockets=4,dies=1,cores=2,threads=1"]);
        let numa = values(&machine, "-numa");
        assert_eq!(numa.len(), 4 + 12);
        assert_eq!(numa[3], "node,nodeid=3,memdev=m3,cpus=6-7");
        assert!(numa.contains(&"dist,src=0,dst=3,val=31".to_string()));
        assert!(numa.contains(&"dist,src=3,dst=1,val=21".to_string()));
    }

    #[test]
    fn a_node_with_memory_alone_has_no_processors() {
        let machine = GuestMachine {
            nodes: 1,
            memory_only: 1,
            distances: Some(vec![vec![10, 20], vec![20, 10]]),
            ..GuestMachine::default()
        };
        let expected = [
            "node,nodeid=0,memdev=m0,cpus=0-7",
            "node,nodeid=1,memdev=m1",
            "dist,src=0,dst=1,val=20",
            "dist,src=1,dst=0,val=20",
        ];
        assert_eq!(values(&machine, "-numa"), expected);
        assert_eq!(values(&machine, "-m"), ["1024M"]);
    }

    #[test]
    fn what_cannot_be_built_is_refused_with_the_option_named() {
        let base = GuestMachine::default;
        let bad = |change: &dyn Fn(&mut GuestMachine)| {
            let mut machine = base();
            change(&mut machine);
            machine.arguments().unwrap_err().to_string()
        };
        let cases: [(String, &str); 6] = [
            (bad(&|m| m.cpus = 9), "cpus"),
            (bad(&|m| m.threads = 3), "threads"),
            (bad(&|m| m.nodes = 0), "nodes"),
            (bad(&|m| m.memory_mib = 4), "MiB"),
            (bad(&|m| m.distances = Some(vec![vec![10]])), "distances"),
            (
                bad(&|m| m.distances = Some(vec![vec![10; 4]; 4])),
                "distances",
            ),
        ];
        for (message, word) in cases {
            assert!(message.contains(word), "{message}");
        }
    }
}
