//! Shared by all data policies: the node that accesses come from, and placing pages on nodes until
//! these are full.
use super::{DataProblem, PlaceablePage};
use hither_profile::{NodeIx, ThreadIx};
use std::cmp::Reverse;

/// Nodes of a machine as pages see them.
pub(super) struct PageNodes {
    /// The node of each thread.
    of_thread: Vec<usize>,
    /// `rank[h][n]`: 0 for n = h, then the nodes with usable units by distance from h, then
    /// those without, which are slower memory or not for this process.
    rank: Vec<Vec<usize>>,
    /// Nodes on which pages are placed by choice: those with memory and usable units; if there are
    /// none, all with memory.
    pub serving: Vec<usize>,
}

impl PageNodes {
    fn new(problem: &DataProblem) -> PageNodes {
        let tree = problem.tree;
        let all = 0..tree.nodes.len();
        let of_thread = problem.threads.iter();
        let of_thread = of_thread.map(|&u| tree.units[u as usize].node.at());
        let with_memory = |n: &usize| problem.capacity[*n] > 0;
        let with_units = |n: &usize| !tree.nodes[*n].units.is_empty();
        let mut serving: Vec<usize> = all
            .clone()
            .filter(|n| with_memory(n) && with_units(n))
            .collect();
        if serving.is_empty() {
            serving = all.clone().filter(with_memory).collect();
        }
        let rank_from = |home: usize| {
            let mut order: Vec<usize> = all.clone().collect();
            order.sort_by_key(|&n| {
                let distance = node_distance(problem, home, n);
                (n != home, !with_units(&n), distance, n)
            });
            let mut rank = vec![0; order.len()];
            for (at, &n) in order.iter().enumerate() {
                rank[n] = at;
            }
            rank
        };
        PageNodes {
            of_thread: of_thread.collect(),
            rank: all.clone().map(rank_from).collect(),
            serving,
        }
    }

    pub fn of_thread(&self, thread: ThreadIx) -> Option<usize> {
        self.of_thread.get(thread.at()).copied()
    }
}

/// Distance between nodes; the largest if unknown.
fn node_distance(problem: &DataProblem, from: usize, to: usize) -> u32 {
    let nodes = &problem.tree.nodes;
    if let Some(matrix) = problem.cost.node_matrix() {
        return matrix[from * nodes.len() + to];
    }
    match (nodes[from].units.first(), nodes[to].units.first()) {
        (Some(&a), Some(&b)) => problem.cost.distance(problem.tree, a as usize, b as usize),
        _ => u32::MAX,
    }
}

/// MemAcc\[p\]\[n\] (OPT eq. 5): the accesses to one page from each node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeAccesses(pub Vec<u64>);

impl NodeAccesses {
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }

    /// max(NV) and max2(NV) (kMAF eq. 6).
    pub fn two_highest(&self) -> (u64, u64) {
        self.0.iter().fold((0, 0), |(first, second), &n| {
            if n > first {
                (n, first)
            } else {
                (first, second.max(n))
            }
        })
    }

    /// Accesses that become remote when the page may not be on its best node.
    pub fn remote_penalty(&self) -> u64 {
        let (first, second) = self.two_highest();
        first - second
    }
}

/// Pages being put on nodes.
pub(super) struct PagePlacer<'a> {
    pub problem: &'a DataProblem<'a>,
    pub nodes: PageNodes,
    /// Bytes left on each node.
    free_bytes: Vec<u64>,
    /// Accesses to the pages that each node holds so far, where they are counted.
    pub load: Vec<u64>,
    counts_load: bool,
    place: Vec<Option<NodeIx>>,
}

impl<'a> PagePlacer<'a> {
    /// Nothing placed but the pages that are fixed.
    ///
    /// # Errors
    /// When the pages do not fit, or a fixed one does not.
    pub fn new(problem: &'a DataProblem<'a>) -> Result<PagePlacer<'a>, String> {
        PagePlacer::start(problem, false)
    }

    /// The same for policies that look at the load of nodes.
    ///
    /// # Errors
    /// As [`PagePlacer::new`].
    pub fn with_load(problem: &'a DataProblem<'a>) -> Result<PagePlacer<'a>, String> {
        PagePlacer::start(problem, true)
    }

    fn start(problem: &'a DataProblem<'a>, counts_load: bool) -> Result<PagePlacer<'a>, String> {
        let pages = problem.pages;
        let mut fill = PagePlacer {
            problem,
            nodes: PageNodes::new(problem),
            free_bytes: problem.capacity.to_vec(),
            load: vec![0; problem.capacity.len()],
            counts_load,
            place: vec![None; pages.len()],
        };
        let needed: u128 = (0..pages.len())
            .map(|p| u128::from(pages.page(p).bytes()))
            .sum();
        let there: u128 = problem.capacity.iter().map(|&c| u128::from(c)).sum();
        if needed > there {
            return Err(format!(
                "the pages need {needed} bytes and the nodes can take {there}: allow more memory per node, or more nodes"
            ));
        }
        for (page, node) in problem.fixed.iter().enumerate() {
            if let Some(node) = node {
                let node = fill.best_node(page, |n| (n == node.at()).then_some(()))?;
                fill.place_page(page, node);
            }
        }
        Ok(fill)
    }

    pub fn page(&self, page: usize) -> &PlaceablePage {
        self.problem.pages.page(page)
    }

    pub fn accesses(&self, page: usize) -> NodeAccesses {
        let mut per_node = NodeAccesses(vec![0; self.free_bytes.len()]);
        for u in self.problem.pages.uses(page) {
            if let Some(n) = self.nodes.of_thread(u.thread) {
                per_node.0[n] = per_node.0[n].saturating_add(u.accesses);
            }
        }
        per_node
    }

    /// Where a page is if it is not placed: where it is now, else with its first toucher,
    /// else with its most frequent user, else on the first node.
    pub fn default_node(&self, page: usize) -> usize {
        self.current_node(page)
            .unwrap_or_else(|| self.first_touch_node(page))
    }

    /// Where a page is, if that is known.
    pub fn current_node(&self, page: usize) -> Option<usize> {
        let now = self.problem.current.get(page).copied().flatten();
        now.map(NodeIx::at)
    }

    /// Accesses to all pages, and an even share of them for each serving node.
    pub fn total_and_average(&self) -> (f64, f64) {
        let pages = 0..self.problem.pages.len();
        let accesses = pages.map(|p| u128::from(self.accesses(p).total()));
        let total = accesses.sum::<u128>() as f64;
        (total, total / self.nodes.serving.len().max(1) as f64)
    }

    /// The node of the first toucher, or the best guess at it.
    pub fn first_touch_node(&self, page: usize) -> usize {
        let touch = self.page(page).touch;
        let guess = || {
            let per_node = self.accesses(page).0;
            let best = (0..per_node.len()).rev().max_by_key(|&n| per_node[n]);
            best.filter(|&n| per_node[n] > 0)
        };
        touch
            .and_then(|t| self.nodes.of_thread(t.thread))
            .or_else(guess)
            .or(self.nodes.serving.first().copied())
            .unwrap_or(0)
    }

    /// Pages without a node, large ones first so that they find room, then those with most
    /// of `weight`.
    fn unplaced_pages<K: Ord>(&self, weight: impl Fn(&PagePlacer<'a>, usize) -> K) -> Vec<usize> {
        let free = (0..self.place.len()).filter(|&p| self.place[p].is_none());
        let mut order: Vec<(Reverse<u64>, Reverse<K>, usize)> = free
            .map(|p| {
                let bytes = self.page(p).bytes();
                (Reverse(bytes), Reverse(weight(self, p)), p)
            })
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, _, p)| p).collect()
    }

    /// Pages come first that lose most where they are not on their best node.
    pub fn by_penalty(fill: &PagePlacer, page: usize) -> (u64, u64) {
        let per_node = fill.accesses(page);
        (per_node.remote_penalty(), per_node.total())
    }

    /// How near a node is to `home`, as a replacement for it: higher is nearer.
    pub fn nearness(&self, home: usize, node: usize) -> Reverse<usize> {
        Reverse(self.nodes.rank[home][node])
    }

    /// The node with the highest `merit` among those that have one, and room for the page.
    ///
    /// # Errors
    /// When there is none.
    pub fn best_node<K: Ord>(
        &self,
        page: usize,
        merit: impl Fn(usize) -> Option<K>,
    ) -> Result<usize, String> {
        self.best_node_if_any(page, merit).ok_or_else(|| {
            let bytes = self.page(page).bytes();
            format!("no node has room for one more page of {bytes} bytes: allow more memory per node, or smaller pages")
        })
    }

    /// As [`PagePlacer::best_node`], but `None` if there is none.
    pub fn best_node_if_any<K: Ord>(
        &self,
        page: usize,
        merit: impl Fn(usize) -> Option<K>,
    ) -> Option<usize> {
        let bytes = self.page(page).bytes();
        let with_room = (0..self.free_bytes.len()).filter(|&n| self.free_bytes[n] >= bytes);
        let merits = with_room.filter_map(|n| merit(n).map(|m| (m, Reverse(n))));
        merits.max().map(|(_, Reverse(node))| node)
    }

    /// Of the nodes with room for a page the one that accesses it most; of equals the nearest to it.
    pub fn most_access_node(&self, page: usize) -> Result<usize, String> {
        let (per_node, home) = (self.accesses(page).0, self.default_node(page));
        self.best_node(page, |n| Some((per_node[n], self.nearness(home, n))))
    }

    /// The node nearest to `home` that has room for a page.
    pub fn nearest_node(&self, page: usize, home: usize) -> Result<usize, String> {
        self.best_node(page, |n| Some(self.nearness(home, n)))
    }

    /// Puts a page on a node that has room for it.
    pub fn place_page(&mut self, page: usize, node: usize) {
        self.free_bytes[node] -= self.page(page).bytes();
        if self.counts_load {
            let accesses = self.accesses(page).total();
            self.load[node] = self.load[node].saturating_add(accesses);
        }
        self.place[page] = Some(NodeIx(node as u32));
    }

    /// Whether a node has room for this many bytes.
    pub fn has_room(&self, node: usize, bytes: u64) -> bool {
        self.free_bytes[node] >= bytes
    }

    /// The node of every page that has one so far.
    pub fn nodes_so_far(&self) -> &[Option<NodeIx>] {
        &self.place
    }

    /// Places each page without a node where `choose` says, in the order of
    /// [`PagePlacer::unplaced_pages`], and gives the node of every page.
    ///
    /// # Errors
    /// Those of `choose`.
    pub fn place_each<K: Ord>(
        mut self,
        weight: impl Fn(&PagePlacer<'a>, usize) -> K,
        choose: impl Fn(&PagePlacer<'a>, usize) -> Result<usize, String>,
    ) -> Result<Vec<NodeIx>, String> {
        for page in self.unplaced_pages(weight) {
            let node = choose(&self, page)?;
            self.place_page(page, node);
        }
        let all: Option<Vec<NodeIx>> = self.place.into_iter().collect();
        all.ok_or_else(|| "the data policy left a page without a node".to_owned())
    }

    /// The same where `choose` looks at nothing of other pages but the room that they leave: while there
    /// is room everywhere the order makes no difference, and of millions of pages it costs more than
    /// to place them.
    ///
    /// # Errors
    /// Those of `choose`.
    pub fn place_each_alone<K: Ord>(
        mut self,
        weight: impl Fn(&PagePlacer<'a>, usize) -> K,
        choose: impl Fn(&PagePlacer<'a>, usize) -> Result<usize, String>,
    ) -> Result<Vec<NodeIx>, String> {
        let (free_bytes, fixed) = (self.free_bytes.clone(), self.problem.fixed);
        let is_free = |page: usize| fixed.get(page).copied().flatten().is_none();
        for page in (0..self.place.len()).filter(|&page| is_free(page)) {
            let Ok(node) = choose(&self, page) else { break };
            self.place_page(page, node);
        }
        if self.place.iter().all(Option::is_some) && self.had_room_everywhere(&free_bytes) {
            return Ok(self.place.into_iter().flatten().collect());
        }
        for page in (0..self.place.len()).filter(|&page| is_free(page)) {
            self.place[page] = None;
        }
        self.free_bytes = free_bytes;
        self.place_each(weight, choose)
    }

    /// Whether every node that had room for a page at first has room for one more in the end.
    fn had_room_everywhere(&self, at_first: &[u64]) -> bool {
        let sizes = || (0..self.place.len()).map(|page| self.page(page).bytes());
        let (least, most) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
        let mut nodes = self.free_bytes.iter().zip(at_first);
        nodes.all(|(&now, &first)| now >= most || first < least)
    }
}
