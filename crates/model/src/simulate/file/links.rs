//! The interconnect: which places there are, which links join them and the ways between all.
//!
//! Endpoints are the nodes, then a place for each package that has no node of its own, then,
//! where the file says so, one for each last cache. Ways are the fastest, found once.
use super::caches::Caches;
use super::check::{count, Checked};
use super::format::{Between, Shape};
use super::sites::{Node, Sites, Unit};
use super::Error;
use crate::simulate::machine::{Link, Links};
use std::collections::BTreeMap;

/// Most endpoints; the routes grow with their square.
const MOST: usize = 512;

#[derive(Default)]
pub struct Built {
    pub links: Links,
    /// By unit, its endpoint.
    pub at: Vec<u32>,
    pub package_of_node: Vec<u32>,
    pub static_w: Vec<f64>,
    pub byte_nj: Vec<f64>,
}

/// Two endpoints with a link between them.
struct Edge {
    a: u32,
    b: u32,
    between: Between,
    /// Links that share the bandwidth which the file gives.
    parts: u32,
}

/// # Errors
/// When there are too many places, or the file's links are none.
pub fn build(file: &Checked, sites: &Sites, caches: &Caches) -> Result<Built, Error> {
    let mut built = Built::default();
    let mut edges = Vec::new();
    // What a package hangs on: its nodes, else a place of its own.
    let mut places: Vec<Vec<u32>> = vec![Vec::new(); sites.packages as usize];
    for (at, node) in (0..).zip(&sites.nodes) {
        if let (Some(package), false) = (node.package, node.units.is_empty()) {
            places[package as usize].push(at);
        }
    }
    let mut next = sites.nodes.len() as u32;
    for place in places.iter_mut().filter(|p| p.is_empty()) {
        place.push(next);
        next += 1;
    }
    for place in &places {
        join(place.len(), shape(file, Between::Nodes), |a, b| {
            edges.push(edge(place[a], place[b], Between::Nodes, 1));
        });
    }
    join(places.len(), shape(file, Between::Packages), |a, b| {
        let (a, b) = (&places[a], &places[b]);
        let parts = a.len().max(b.len());
        for k in 0..parts {
            let ends = (a[k % a.len()], b[k % b.len()]);
            edges.push(edge(ends.0, ends.1, Between::Packages, parts as u32));
        }
    });
    memories(sites, &places, &mut edges, &mut built);
    built.at = sites
        .units
        .iter()
        .map(|u| home(u, sites, &places))
        .collect();
    if file.own_link(Between::Caches).is_some() {
        complexes(caches, &mut built.at, &mut next, &mut edges);
    }
    if next as usize > MOST {
        let what = format!("the interconnect has {next} endpoints, of which {MOST} can be simulated; simulate a part with --pus");
        return Err(file.source.error(0..0, what));
    }
    built.add(file, &edges, next as usize)?;
    Ok(built)
}

fn edge(a: u32, b: u32, between: Between, parts: u32) -> Edge {
    Edge {
        a,
        b,
        between,
        parts,
    }
}

fn shape(file: &Checked, between: Between) -> Shape {
    file.link(between).map(|l| l.shape).unwrap_or_default()
}

/// Calls `link` for each pair of `n` that the shape joins.
fn join(n: usize, shape: Shape, mut link: impl FnMut(usize, usize)) {
    for b in 1..n {
        for a in 0..b {
            let beside = b == a + 1;
            let closes = shape == Shape::Ring && a == 0 && b + 1 == n;
            if shape == Shape::Mesh || beside || closes {
                link(a, b);
            }
        }
    }
}

/// Links to memory that is no package's own, and to memory without units.
fn memories(sites: &Sites, places: &[Vec<u32>], edges: &mut Vec<Edge>, built: &mut Built) {
    let mut alone = 0;
    for (at, node) in (0..).zip(&sites.nodes) {
        let own = node.package.is_some() && !node.units.is_empty();
        let mut users: Vec<u32> = node
            .units
            .iter()
            .map(|u| sites.units[*u as usize].package)
            .collect();
        users.sort_unstable();
        users.dedup();
        if node.units.is_empty() {
            // Nothing says where it hangs: one package after the other.
            users = vec![node.package.unwrap_or(alone % sites.packages)];
            alone += u32::from(node.package.is_none());
        }
        built
            .package_of_node
            .push(node.package.or(users.first().copied()).unwrap_or(0));
        if !own {
            for user in users {
                edges.push(edge(places[user as usize][0], at, Between::Memory, 1));
            }
        }
    }
}

/// Where a unit hangs: on its memory where that is its package's, else on its package.
fn home(unit: &Unit, sites: &Sites, places: &[Vec<u32>]) -> u32 {
    match sites.nodes[unit.node as usize].package {
        Some(package) if package == unit.package => unit.node,
        _ => places[unit.package as usize][0],
    }
}

/// Gives each last cache a place of its own where several hang on one.
fn complexes(caches: &Caches, at: &mut [u32], next: &mut u32, edges: &mut Vec<Edge>) {
    let mut last: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let cache_of = |unit: usize| caches.of_unit[unit].last().copied().unwrap_or(0);
    for (unit, place) in at.iter().enumerate() {
        let here = last.entry(*place).or_default();
        if !here.contains(&cache_of(unit)) {
            here.push(cache_of(unit));
        }
    }
    let mut moved: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for (place, caches) in last.iter().filter(|l| l.1.len() > 1) {
        for cache in caches {
            moved.insert((*place, *cache), *next);
            edges.push(edge(*next, *place, Between::Caches, 1));
            *next += 1;
        }
    }
    for (unit, place) in at.iter_mut().enumerate() {
        if let Some(own) = moved.get(&(*place, cache_of(unit))) {
            *place = *own;
        }
    }
}

impl Built {
    fn add(&mut self, file: &Checked, edges: &[Edge], endpoints: usize) -> Result<(), Error> {
        let coherence = &file.file.coherence;
        let inside = (&coherence.inside_ns, &coherence.inside_cycles);
        self.links.inside = file.time(inside, "inside")?.0.round() as u32;
        self.links.data_bytes = count(&coherence.data_bytes);
        self.links.control_bytes = count(&coherence.control_bytes);
        for edge in edges {
            let Some(kind) = file.link(edge.between) else {
                continue;
            };
            let time = (&kind.latency_ns, &kind.latency_cycles);
            let (latency, _) = file.time(time, "latency")?;
            let parts = f64::from(edge.parts);
            for (from, to) in [(edge.a, edge.b), (edge.b, edge.a)] {
                self.links.links.push(Link {
                    from,
                    to,
                    latency,
                    bandwidth: kind.bandwidth_gbs.get_ref() / file.frequency() / parts,
                    between_packages: matches!(edge.between, Between::Packages | Between::Memory),
                });
                self.static_w.push(kind.static_w.get_ref() / parts);
                self.byte_nj.push(*kind.byte_nj.get_ref());
            }
        }
        let mut out = vec![Vec::new(); endpoints];
        for (number, link) in (0..).zip(&self.links.links) {
            out[link.from as usize].push(number);
        }
        self.links.routes = (0..endpoints).map(|from| self.ways(from, &out)).collect();
        Ok(())
    }

    /// The fastest ways from an endpoint to all; among equals those of the fewest links, then
    /// of the lowest numbers. `out` is the links out of each endpoint.
    fn ways(&self, from: usize, out: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let endpoints = out.len();
        let mut best: Vec<Option<(f64, Vec<u32>)>> = vec![None; endpoints];
        best[from] = Some((0.0, Vec::new()));
        let mut done = vec![false; endpoints];
        while let Some(at) = nearest(&best, &done) {
            done[at] = true;
            let Some((time, way)) = best[at].clone() else {
                continue;
            };
            for &number in &out[at] {
                let link = &self.links.links[number as usize];
                let new = (time + link.latency, way.len() + 1);
                let to = &mut best[link.to as usize];
                if to.as_ref().is_none_or(|(t, w)| new < (*t, w.len())) {
                    let mut way = way.clone();
                    way.push(number);
                    *to = Some((new.0, way));
                }
            }
        }
        best.into_iter()
            .map(|b| b.map_or_else(Vec::new, |b| b.1))
            .collect()
    }

    /// Cycles from the units of a node to its memory and back; of memory without units, from the
    /// place that it hangs on.
    pub fn way_to(&self, node: usize, site: &Node) -> f64 {
        let routes = &self.links.routes;
        let from = match site.units.first() {
            Some(unit) => self.at[*unit as usize] as usize,
            None => {
                let mut into = self.links.links.iter().filter(|l| l.to as usize == node);
                into.next().map_or(node, |l| l.from as usize)
            }
        };
        let time = |way: &[u32]| -> f64 {
            way.iter()
                .map(|l| self.links.links[*l as usize].latency)
                .sum()
        };
        time(&routes[from][node]) + time(&routes[node][from])
    }
}

/// The endpoint with the shortest way that is not done.
fn nearest(best: &[Option<(f64, Vec<u32>)>], done: &[bool]) -> Option<usize> {
    let open = best.iter().enumerate().filter(|(at, _)| !done[*at]);
    let known = open.filter_map(|(at, b)| b.as_ref().map(|b| (b.0, b.1.len(), at)));
    let first = known.min_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    first.map(|f| f.2)
}
