//! What `--policy` names: an order of PUs for threads, a memory policy for pages.
use std::collections::BTreeSet;
use std::str::FromStr;

use anyhow::{anyhow, bail, Result};

use crate::app::policy_pair;
use crate::run::request::MemoryPolicy;
use hither_model::map::data;
use hither_model::map::threads::{self, ThreadPolicy};
use hither_model::map::{CommGraph, PuDistances, ThreadProblem};
use hither_model::topology::{PuList, TopologyTree};
use hither_sys::{Cpu, Node};

/// What the policies given ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPolicies {
    pub threads: Option<PuOrder>,
    pub memory: Option<MemoryPolicyArg>,
    /// As they were given.
    names: (String, String),
}

impl RunPolicies {
    /// # Errors
    /// Where pages are to be placed as Linux does it for no program, though its name says that of
    /// threads too.
    pub fn check_pair(text: &str) -> Result<()> {
        if text.contains("+random") {
            bail!("--policy {text} places pages at random, for which Linux has no memory policy, so it works in `hither map`: hither map PROFILE --policy {text}, then hither run -p");
        }
        Ok(())
    }

    /// Takes one more; the one it contradicts.
    pub fn add_policy(&mut self, name: &str, part: RunPolicy) -> Option<&str> {
        let name = name.to_owned();
        match part {
            RunPolicy::Threads(_) if self.threads.is_some() => Some(&self.names.0),
            RunPolicy::Memory(_) if self.memory.is_some() => Some(&self.names.1),
            RunPolicy::Threads(order) => {
                (self.threads, self.names.0) = (Some(order), name);
                None
            }
            RunPolicy::Memory(memory) => {
                (self.memory, self.names.1) = (Some(memory), name);
                None
            }
        }
    }
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunPolicy {
    Threads(PuOrder),
    Memory(MemoryPolicyArg),
}

/// In which order threads take PUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PuOrder {
    Compact,
    Cores,
    Scatter,
    /// Drawn from this seed.
    Random(u64),
    /// The system's.
    Os,
}

/// A memory policy whose nodes are not checked against the machine yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPolicyArg {
    Interleave(Option<PuList>),
    Local,
    Preferred(PuList),
    Bind(PuList),
}

impl FromStr for RunPolicy {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<RunPolicy> {
        let (name, nodes) = match text.split_once(':') {
            Some((name, nodes)) => (name, Some(nodes)),
            None => (text, None),
        };
        if let Some(seed) = nodes.filter(|_| name == "random") {
            let seed = seed.parse::<u64>();
            let seed = seed.map_err(|_| anyhow!("--policy {text}: write the seed as random:7"))?;
            return Ok(RunPolicy::Threads(PuOrder::Random(seed)));
        }
        let list = nodes.filter(|_| !is_of_map(text)).map(|nodes| {
            let list = nodes.parse::<PuList>();
            list.map_err(|_| anyhow!("--policy {text}: write the nodes as 0-3 or 0,2"))
        });
        Ok(match (name, list.transpose()?) {
            ("compact", None) => RunPolicy::Threads(PuOrder::Compact),
            ("cores", None) => RunPolicy::Threads(PuOrder::Cores),
            ("scatter", None) => RunPolicy::Threads(PuOrder::Scatter),
            ("random", None) => RunPolicy::Threads(PuOrder::Random(0)),
            ("os", None) => RunPolicy::Threads(PuOrder::Os),
            ("interleave", nodes) => RunPolicy::Memory(MemoryPolicyArg::Interleave(nodes)),
            ("local" | "first-touch", None) => RunPolicy::Memory(MemoryPolicyArg::Local),
            ("preferred", Some(node)) => RunPolicy::Memory(MemoryPolicyArg::Preferred(node)),
            ("bind", Some(nodes)) => RunPolicy::Memory(MemoryPolicyArg::Bind(nodes)),
            ("preferred" | "bind", None) => bail!("--policy {name} needs nodes, as {name}:0"),
            ("compact" | "cores" | "scatter" | "os" | "local" | "first-touch", Some(_)) => {
                bail!("--policy {name} takes no nodes; leave out what follows the colon")
            }
            ("next-touch" | "joint", None) => bail!("--policy {name} works in `hither sim` alone, which says what it would do"),
            _ if is_of_map(text) => bail!("--policy {text} places the threads and pages of a profile, so it works in `hither map`: hither map PROFILE --policy {text}, then hither run -p"),
            _ => bail!("there is no policy {text}; it is compact, cores, scatter, random or os for threads, interleave, local, preferred:NODE or bind:NODES for pages (others: `hither map`)"),
        })
    }
}

/// A policy for a profile, or for its pages alone.
fn is_of_map(text: &str) -> bool {
    text == "best" || policy_pair::parse(text).is_ok() || data::data_policy_by_name(text).is_ok()
}

impl PuOrder {
    pub fn name(self) -> &'static str {
        match self {
            PuOrder::Compact => "compact",
            PuOrder::Cores => "cores",
            PuOrder::Scatter => "scatter",
            PuOrder::Random(_) => "random",
            PuOrder::Os => "os",
        }
    }

    /// The units of the tree in the order in which threads take them, each once.
    pub fn units(self, tree: &TopologyTree) -> Result<Vec<Cpu>> {
        let places: Vec<u32> = match self {
            PuOrder::Compact => by_policy("compact", tree, 0)?,
            PuOrder::Scatter => by_policy("scatter", tree, 0)?,
            PuOrder::Random(seed) => by_policy("random", tree, seed)?,
            PuOrder::Cores => by_core(tree),
            PuOrder::Os => Vec::new(),
        };
        let cpu = |at: &u32| Cpu(tree.units[*at as usize].os);
        Ok(places.iter().map(cpu).collect())
    }
}

/// Where the policy of that name puts as many threads as there are units.
fn by_policy(name: &str, tree: &TopologyTree, seed: u64) -> Result<Vec<u32>> {
    let units = tree.units.len();
    let policy: Option<&&dyn ThreadPolicy> =
        threads::THREAD_POLICIES.iter().find(|p| p.name() == name);
    let policy = policy.ok_or_else(|| anyhow!("there is no policy {name}"))?;
    let problem = ThreadProblem {
        tree,
        cost: &PuDistances::from_hops(tree),
        comm: &CommGraph::new(units, std::iter::empty()),
        load: &vec![1; units],
        capacity: 1,
        siblings: true,
        current: None,
        seed,
    };
    policy.place(&problem).map_err(|why| anyhow!(why))
}

/// First units of all cores, second units, and so on.
fn by_core(tree: &TopologyTree) -> Vec<u32> {
    let mut seen = vec![0u32; tree.core_count()];
    let mut places: Vec<(u32, u32)> = Vec::new();
    for (at, unit) in (0..).zip(&tree.units) {
        let rank = &mut seen[unit.core as usize];
        places.push((*rank, at));
        *rank += 1;
    }
    places.sort_unstable();
    places.into_iter().map(|(_, at)| at).collect()
}

/// The PUs of a list in its order, each once.
pub fn listed(list: &PuList) -> Vec<Cpu> {
    let mut seen = BTreeSet::new();
    let new = list.iter().filter(|os| seen.insert(*os));
    new.map(Cpu).collect()
}

impl MemoryPolicyArg {
    /// The policy for the kernel.
    ///
    /// # Errors
    /// When it names a node without memory that may be used; `usable` are those with.
    pub fn resolve(&self, usable: &[u32]) -> Result<MemoryPolicy> {
        let all = || usable.iter().copied().map(Node).collect();
        Ok(match self {
            MemoryPolicyArg::Interleave(None) => MemoryPolicy::Interleave(all()),
            MemoryPolicyArg::Interleave(Some(list)) => {
                MemoryPolicy::Interleave(nodes(list, usable)?)
            }
            MemoryPolicyArg::Local => MemoryPolicy::Local,
            MemoryPolicyArg::Bind(list) => MemoryPolicy::Bind(nodes(list, usable)?),
            MemoryPolicyArg::Preferred(list) => match nodes(list, usable)?[..] {
                [node] => MemoryPolicy::Preferred(node),
                _ => bail!("--policy preferred:{list} names several nodes; choose one"),
            },
        })
    }
}

fn nodes(list: &PuList, usable: &[u32]) -> Result<Vec<Node>> {
    let mut nodes = BTreeSet::new();
    for node in list.iter() {
        if !usable.contains(&node) {
            let usable = PuList::from_numbers(usable.iter().copied());
            bail!("node {node} does not exist or has no memory that may be used here; --policy may name the nodes {usable}");
        }
        nodes.insert(node);
    }
    Ok(nodes.into_iter().map(Node).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_model::topology::load;

    #[test]
    fn policies_are_read() {
        let check = |text: &str, expected: Option<RunPolicy>| {
            assert_eq!(text.parse::<RunPolicy>().ok(), expected, "{text}");
        };
        let list = |text: &str| text.parse::<PuList>().expect("a list");
        check("compact", Some(RunPolicy::Threads(PuOrder::Compact)));
        check(
            "interleave",
            Some(RunPolicy::Memory(MemoryPolicyArg::Interleave(None))),
        );
        check(
            "interleave:0-1",
            Some(RunPolicy::Memory(MemoryPolicyArg::Interleave(Some(list(
                "0-1",
            ))))),
        );
        check(
            "bind:0,2",
            Some(RunPolicy::Memory(MemoryPolicyArg::Bind(list("0,2")))),
        );
        check(
            "preferred:1",
            Some(RunPolicy::Memory(MemoryPolicyArg::Preferred(list("1")))),
        );
        check("local", Some(RunPolicy::Memory(MemoryPolicyArg::Local)));
        check("random", Some(RunPolicy::Threads(PuOrder::Random(0))));
        check("random:7", Some(RunPolicy::Threads(PuOrder::Random(7))));
        for wrong in [
            "",
            "random:",
            "random:x",
            "kmaf",
            "compact:0",
            "local:1",
            "bind",
            "bind:",
            "bind:x",
            "preferred",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn orders_by_hand() {
        // Units 0 and 1 are core 0, 2 and 3 core 1 of node 0, and so on.
        let topology = load("node:2 core:2 pu:2").expect("a topology");
        let tree = TopologyTree::new(&topology, |_| true).expect("units");
        let check = |order: PuOrder, expected: [u32; 8]| {
            let units = order.units(&tree).expect("an order");
            assert_eq!(units, expected.map(Cpu));
        };
        check(PuOrder::Compact, [0, 1, 2, 3, 4, 5, 6, 7]);
        check(PuOrder::Cores, [0, 2, 4, 6, 1, 3, 5, 7]);
        check(PuOrder::Scatter, [0, 4, 2, 6, 1, 5, 3, 7]);
        let drawn = |seed: u64| PuOrder::Random(seed).units(&tree).expect("an order");
        assert_ne!(drawn(0), drawn(1));
        let mut all = drawn(1);
        all.sort_unstable_by_key(|cpu| cpu.0);
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7].map(Cpu));
        assert_eq!(
            listed(&"6,1-2,2".parse().expect("a list")),
            [6, 1, 2].map(Cpu)
        );
    }

    #[test]
    fn nodes_are_looked_for() {
        let check = |text: &str, expected: Option<MemoryPolicy>| {
            let Ok(RunPolicy::Memory(memory)) = text.parse::<RunPolicy>() else {
                panic!("{text} is no memory policy");
            };
            assert_eq!(memory.resolve(&[0, 2]).ok(), expected, "{text}");
        };
        let both = || vec![Node(0), Node(2)];
        check("interleave", Some(MemoryPolicy::Interleave(both())));
        check(
            "interleave:2",
            Some(MemoryPolicy::Interleave(vec![Node(2)])),
        );
        check("bind:2,0", Some(MemoryPolicy::Bind(both())));
        check("bind:0-2", None);
        check("preferred:0,2", None);
        check("preferred:2", Some(MemoryPolicy::Preferred(Node(2))));
        check("local", Some(MemoryPolicy::Local));
    }
}
