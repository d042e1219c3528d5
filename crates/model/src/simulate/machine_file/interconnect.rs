//! The interconnect: its endpoints, the links that connect them and the routes between all.
//!
//! Endpoints are the nodes, then one for each package that has no node of its own, then, if the
//! file says so, one for each last-level cache. Routes are the fastest, found once.
use super::cache_levels::BuiltCaches;
use super::file_check::{checked_u32, CheckedMachineFile};
use super::toml_tables::{LinkScope, LinkShape};
use super::topology_sites::{NodeSite, PuSite, TopologySites};
use super::MachineFileError;
use crate::simulate::simulated_machine::{InterconnectParameters, LinkParameters};
use std::collections::BTreeMap;

/// Most endpoints; the routes grow with their square.
const MAX_ENDPOINTS: usize = 512;

#[derive(Default)]
pub struct BuiltInterconnect {
    pub links: InterconnectParameters,
    /// By unit, its endpoint.
    pub at: Vec<u32>,
    pub package_of_node: Vec<u32>,
    pub static_w: Vec<f64>,
    pub byte_nj: Vec<f64>,
}

/// Two endpoints with a link between them.
struct EndpointLink {
    a: u32,
    b: u32,
    between: LinkScope,
    /// Links that share the bandwidth which the file gives.
    parts: u32,
}

/// # Errors
/// When there are too many places, or the file's links are none.
pub fn build_interconnect(
    file: &CheckedMachineFile,
    sites: &TopologySites,
    caches: &BuiltCaches,
) -> Result<BuiltInterconnect, MachineFileError> {
    let mut built = BuiltInterconnect::default();
    let mut edges = Vec::new();
    // The endpoints of a package: its nodes, else one of its own.
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
        for_each_pair(place.len(), shape(file, LinkScope::Nodes), |a, b| {
            edges.push(edge(place[a], place[b], LinkScope::Nodes, 1));
        });
    }
    for_each_pair(places.len(), shape(file, LinkScope::Packages), |a, b| {
        let (a, b) = (&places[a], &places[b]);
        let parts = a.len().max(b.len());
        for k in 0..parts {
            let ends = (a[k % a.len()], b[k % b.len()]);
            edges.push(edge(ends.0, ends.1, LinkScope::Packages, parts as u32));
        }
    });
    memory_links(sites, &places, &mut edges, &mut built);
    built.at = sites
        .units
        .iter()
        .map(|u| unit_endpoint(u, sites, &places))
        .collect();
    if file.link_in_file(LinkScope::Caches).is_some() {
        core_complex_links(caches, &mut built.at, &mut next, &mut edges);
    }
    if next as usize > MAX_ENDPOINTS {
        let what = format!("the interconnect has {next} endpoints, of which {MAX_ENDPOINTS} can be simulated; simulate a part with --pus");
        return Err(file.source.error(0..0, what));
    }
    built.add_links(file, &edges, next as usize)?;
    Ok(built)
}

fn edge(a: u32, b: u32, between: LinkScope, parts: u32) -> EndpointLink {
    EndpointLink {
        a,
        b,
        between,
        parts,
    }
}

fn shape(file: &CheckedMachineFile, between: LinkScope) -> LinkShape {
    file.link(between).map(|l| l.shape).unwrap_or_default()
}

/// Calls `link` for each pair of `n` that the shape joins.
fn for_each_pair(n: usize, shape: LinkShape, mut link: impl FnMut(usize, usize)) {
    for b in 1..n {
        for a in 0..b {
            let beside = b == a + 1;
            let closes = shape == LinkShape::Ring && a == 0 && b + 1 == n;
            if shape == LinkShape::Mesh || beside || closes {
                link(a, b);
            }
        }
    }
}

/// Links to memory that is no package's own, and to memory without units.
fn memory_links(
    sites: &TopologySites,
    places: &[Vec<u32>],
    edges: &mut Vec<EndpointLink>,
    built: &mut BuiltInterconnect,
) {
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
            // Nothing says where it is attached: to one package after the other.
            users = vec![node.package.unwrap_or(alone % sites.packages)];
            alone += u32::from(node.package.is_none());
        }
        built
            .package_of_node
            .push(node.package.or(users.first().copied()).unwrap_or(0));
        if !own {
            for user in users {
                edges.push(edge(places[user as usize][0], at, LinkScope::Memory, 1));
            }
        }
    }
}

/// The endpoint of a unit: its memory if that is its package's, else its package.
fn unit_endpoint(unit: &PuSite, sites: &TopologySites, places: &[Vec<u32>]) -> u32 {
    match sites.nodes[unit.node as usize].package {
        Some(package) if package == unit.package => unit.node,
        _ => places[unit.package as usize][0],
    }
}

/// Gives each last-level cache an endpoint of its own if several share one.
fn core_complex_links(
    caches: &BuiltCaches,
    at: &mut [u32],
    next: &mut u32,
    edges: &mut Vec<EndpointLink>,
) {
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
            edges.push(edge(*next, *place, LinkScope::Caches, 1));
            *next += 1;
        }
    }
    for (unit, place) in at.iter_mut().enumerate() {
        if let Some(own) = moved.get(&(*place, cache_of(unit))) {
            *place = *own;
        }
    }
}

impl BuiltInterconnect {
    fn add_links(
        &mut self,
        file: &CheckedMachineFile,
        edges: &[EndpointLink],
        endpoints: usize,
    ) -> Result<(), MachineFileError> {
        let coherence = &file.file.coherence;
        let inside = (&coherence.inside_ns, &coherence.inside_cycles);
        self.links.inside = file.time_in_cycles(inside, "inside")?.0.round() as u32;
        self.links.data_bytes = checked_u32(&coherence.data_bytes);
        self.links.control_bytes = checked_u32(&coherence.control_bytes);
        for edge in edges {
            let Some(kind) = file.link(edge.between) else {
                continue;
            };
            let time = (&kind.latency_ns, &kind.latency_cycles);
            let (latency, _) = file.time_in_cycles(time, "latency")?;
            let parts = f64::from(edge.parts);
            for (from, to) in [(edge.a, edge.b), (edge.b, edge.a)] {
                self.links.links.push(LinkParameters {
                    from,
                    to,
                    latency,
                    bandwidth: kind.bandwidth_gbs.get_ref() / file.frequency() / parts,
                    between_packages: matches!(
                        edge.between,
                        LinkScope::Packages | LinkScope::Memory
                    ),
                });
                self.static_w.push(kind.static_w.get_ref() / parts);
                self.byte_nj.push(*kind.byte_nj.get_ref());
            }
        }
        let mut out = vec![Vec::new(); endpoints];
        for (number, link) in (0..).zip(&self.links.links) {
            out[link.from as usize].push(number);
        }
        self.links.routes = (0..endpoints)
            .map(|from| self.shortest_routes(from, &out))
            .collect();
        Ok(())
    }

    /// The fastest routes from an endpoint to all; among equals those of the fewest links, then of
    /// the lowest numbers. `out` is the links out of each endpoint.
    fn shortest_routes(&self, from: usize, out: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let endpoints = out.len();
        let mut best: Vec<Option<(f64, Vec<u32>)>> = vec![None; endpoints];
        best[from] = Some((0.0, Vec::new()));
        let mut done = vec![false; endpoints];
        while let Some(at) = nearest_open(&best, &done) {
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
    /// endpoint that it is attached to.
    pub fn round_trip_to(&self, node: usize, site: &NodeSite) -> f64 {
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

/// The endpoint with the shortest route that is not done.
fn nearest_open(best: &[Option<(f64, Vec<u32>)>], done: &[bool]) -> Option<usize> {
    let open = best.iter().enumerate().filter(|(at, _)| !done[*at]);
    let known = open.filter_map(|(at, b)| b.as_ref().map(|b| (b.0, b.1.len(), at)));
    let first = known.min_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    first.map(|f| f.2)
}
