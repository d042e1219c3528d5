"""Are policies what their papers define? Each is implemented here once more, short and slow, from the paper, and
compared on random communication, and in profile_policies.py on random use of pages and over time.

    policies.py HITHER [INSTANCES [SEED]]    a row per policy: instances compared, mismatches

exact               least sum of events times hops of all placements, tried one by one, also on parts of
                    machines, whose branches differ in height, and with more threads than cores or than PUs, which are
                    shared evenly first; threads on one PU have no hops between them
matching            SPCD: pairs by a perfect matching of most weight, then pairs of pairs (eq. 1)
eagermap            Locality and Balance's Locality: each group takes whom it communicates most with
distance            the same with each cell subtracted from the largest
balanced-locality   Locality and Balance 4: the same as eagermap, but a group that communicates more than the average
                    of its level takes who communicates least, and each begins with who communicates most
balance             Locality and Balance 4: the thread with most communication to the PU with least
load-balance        the same with the work of threads
scotch              dual recursive bipartitioning (Pellegrini and Roman 1996, which OPT and kMAF map with): halves with least
                    communication between them, tried one by one, then halves of these, of threads that are in groups; of
                    fewer threads than PUs how many each node gets, as libscotch is given no idle vertices
most-access         OPT eq. 8; `over time`: moved where another node accesses a page most, once in 10 s at most (OPT 6.3)
kmaf                kMAF eq. 6 and its ageing, from the first toucher's node; `over time`: when as well
balanced, locality-balance, interleave   hither's own: docs/policies.md
next-touch          Loef and Holmgren: from its mark on, at the beginning of each window, a page is where it is touched next;
                    reads of each node's memory from it and from others in a simulation without prefetchers
opt                 the five conditions of OPT 6.2.2 in each slice, with the phases of eq. 4: when threads move, and to which
                    node; the mapping itself is libscotch's, of `hither map --matrix --policy scotch`

Several placements may be equally good, so what is compared is what the policy decides: the weight
inside groups, level by level, or the amount on each PU. Ends with status 1 where one differs."""
import itertools
import json
import random
import subprocess
import sys
import tempfile

from profile_policies import FOUND_IN_PROFILES, compare_profile, example_made

MACHINE, SIZES = "pack:2 core:2 pu:2", (2, 2, 2)  # from the leaves up


def place(hither, policy, matrix, machine, load=None, only=None):
    """The PU of each thread, as hither places it, on the PUs `only`."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/m.csv"
        with open(file, "w", encoding="ascii") as out:
            out.writelines(",".join(map(str, row)) + "\n" for row in matrix)
        command = [hither, "map", "--matrix", file, "--topology", machine, "--policy", policy, "--json"]
        if only:
            command += ["--pus", ",".join(map(str, only))]
        if load:
            with open(f"{folder}/load", "w", encoding="ascii") as out:
                out.write(" ".join(map(str, load)))
            command += ["--load", f"{folder}/load"]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(told.stdout)["pus"]


def random_matrix(threads, draw):
    """Symmetric, nothing on the diagonal."""
    matrix = [[0] * threads for _ in range(threads)]
    for i, j in itertools.combinations(range(threads), 2):
        matrix[i][j] = matrix[j][i] = draw.choice((0, draw.randrange(1, 1000)))
    return matrix


def nested_matrix(draw):
    """Eight threads in pairs of pairs, in any order, which mostly share more the closer they are: libscotch finds the best
    halves of these, and of matrices without any order for seven of eight."""
    matrix, order = [[0] * 8 for _ in range(8)], draw.sample(range(8), 8)
    for i, j in itertools.combinations(range(8), 2):
        apart = (order[i] ^ order[j]).bit_length()
        matrix[i][j] = matrix[j][i] = draw.randrange(1, 1000) * 4 ** (3 - apart)
    return matrix


def between(matrix, a, b):
    """Events of two groups: SPCD eq. 1, for groups of any size."""
    return sum(matrix[i][j] for i in a for j in b)


def inside(matrix, groups):
    return sum(between(matrix, group, group) // 2 for group in groups)


def groups_of(pus, sizes):
    """Groups of threads per level, as a placement makes them."""
    step, levels = 1, []
    for size in sizes:
        step *= size
        level = {}
        for thread, pu in enumerate(pus):
            level.setdefault(pu // step, []).append(thread)
        levels.append(list(level.values()))
    return levels


def best_matching(matrix, groups):
    """A perfect matching of most weight, by trying all."""
    if not groups:
        return 0, []
    first, rest = groups[0], groups[1:]
    tries = []
    for at, other in enumerate(rest):
        weight, pairs = best_matching(matrix, rest[:at] + rest[at + 1:])
        tries.append((weight + between(matrix, first, other), [first + other] + pairs))
    return max(tries, key=lambda t: t[0])


def by_matching(matrix, sizes):
    groups, levels = [[t] for t in range(len(matrix))], []
    for _ in sizes:
        groups = best_matching(matrix, groups)[1]
        levels.append(groups)
    return levels


def by_eagermap(matrix, sizes):
    groups, levels = [[t] for t in range(len(matrix))], []
    for size in sizes:
        left, made = list(groups), []
        while left:
            group = left.pop(0)
            for _ in range(size - 1):
                nearest = max(left, key=lambda g, group=group: between(matrix, group, g))
                left.remove(nearest)
                group = group + nearest
            made.append(group)
        groups = made
        levels.append(groups)
    return levels


def by_balanced_locality(matrix, sizes):
    amounts = [sum(row) for row in matrix]
    groups, levels = [[t] for t in range(len(matrix))], []

    def amount(group):
        return sum(amounts[t] for t in group)

    for size in sizes:
        left, made, many = list(groups), [], len(groups) // size
        while left:
            group = max(left, key=amount)
            left.remove(group)
            for _ in range(size - 1):
                if amount(group) * many >= sum(amounts):
                    other = min(left, key=amount)
                else:
                    other = max(left, key=lambda g, group=group: between(matrix, group, g))
                left.remove(other)
                group = group + other
            made.append(group)
        groups = made
        levels.append(groups)
    return levels


def by_bipartitioning(matrix, sizes):
    levels = [[list(range(len(matrix)))]]
    for _ in sizes[1:]:
        made = []
        for first, *rest in levels[0]:
            halves = [([first, *some], [t for t in rest if t not in some])
                      for some in itertools.combinations(rest, len(rest) // 2)]
            made += min(halves, key=lambda both: between(matrix, *both))
        levels.insert(0, made)
    return levels


def shares(threads, nodes):
    """How many threads each of 2^n nodes gets where each half of the machine gets half of them."""
    if nodes == 1:
        return [threads]
    return sorted(shares(threads // 2, nodes // 2) + shares(threads - threads // 2, nodes // 2))


def seatings(seats):
    """All placements with as many threads on each PU."""
    return set(itertools.permutations(seats))


def shared_evenly(seats, usable):
    """Every package, core and PU has its share of the threads, give or take one, and no core none."""
    for size in (4, 2, 1):
        for group in {u // size for u in usable}:
            share = len(seats) * sum(u // size == group for u in usable) / len(usable)
            held = sum(p // size == group for p in seats)
            if abs(held - share) > 1 or size == 2 and held == 0:
                return False
    return True


def weights(matrix, levels):
    return [inside(matrix, groups) for groups in levels]


def inverted(matrix):
    most = max(map(max, matrix))
    return [[0 if i == j else most - cell for j, cell in enumerate(row)] for i, row in enumerate(matrix)]


def balanced(amounts, units):
    """The amount on each PU, in order; none takes more threads than there must be on one."""
    held, count = [0] * units, [0] * units
    most = -(-len(amounts) // units)
    for amount in sorted(amounts, reverse=True):
        unit = min((u for u in range(units) if count[u] < most), key=lambda u: held[u])
        held[unit] += amount
        count[unit] += 1
    return sorted(held)


def hops(a, b, usable):
    """Up and down in the tree of MACHINE, in which vertices with one usable branch are none."""
    def above(pu):
        """The groups of usable PUs that hold it, the PU first."""
        groups = []
        for size in (1, 2, 4, 8):
            group = frozenset(u for u in usable if u // size == pu // size)
            if group not in groups:
                groups.append(group)
        return groups
    return len(set(above(a)) ^ set(above(b)))


def objective(matrix, pus, usable):
    pairs = itertools.combinations(range(len(pus)), 2)
    return sum(matrix[i][j] * hops(pus[i], pus[j], usable) for i, j in pairs)


def compare(hither, policy, draw):
    """What hither decides, and what the paper does."""
    if policy == "exact":
        usable = sorted(draw.sample(range(8), draw.randrange(3, 9)))
        cores = {u // 2: u for u in reversed(usable)}.values()
        if draw.randrange(2):  # a thread for each core at most, any of its PUs
            matrix = random_matrix(draw.randrange(1, len(cores) + 1), draw)
            tries = itertools.permutations(cores, len(matrix))
            least = min(objective(matrix, pus, usable) for pus in tries)
            return objective(matrix, place(hither, policy, matrix, MACHINE, only=usable), usable), least
        # More threads than PUs, or than cores. Which take how many is decided first.
        if draw.randrange(2) or len(usable) < len(cores) + 2:
            usable = usable[:draw.randrange(2, 5)]
            matrix = random_matrix(draw.randrange(len(usable) + 1, min(7, 2 * len(usable)) + 1), draw)
        else:
            matrix = random_matrix(draw.randrange(len(cores) + 1, min(7, len(usable) - 1) + 1), draw)
        pus = place(hither, policy, matrix, MACHINE, only=usable)
        least = min(objective(matrix, seats, usable) for seats in seatings(pus))
        return (objective(matrix, pus, usable), shared_evenly(pus, usable)), (least, True)
    if policy.endswith("balance"):
        threads, units = draw.choice((8, 11)), 4
        matrix = random_matrix(threads, draw)
        load = [draw.randrange(1, 1000) for _ in range(threads)]
        amounts = load if policy == "load-balance" else [sum(row) for row in matrix]
        work = load if policy == "load-balance" else None
        pus = place(hither, policy, matrix, f"core:{units} pu:1", work)
        held = [0] * units
        for amount, pu in zip(amounts, pus):
            held[pu] += amount
        return sorted(held), balanced(amounts, units)
    if policy == "scotch" and draw.randrange(2):
        matrix = random_matrix(draw.randrange(2, 16), draw)
        on_node = [pu // 4 for pu in place(hither, policy, matrix, "node:4 core:4 pu:1")]
        return sorted(map(on_node.count, range(4))), shares(len(matrix), 4)
    matrix = nested_matrix(draw) if policy == "scotch" else random_matrix(8, draw)
    pus = place(hither, policy, matrix, MACHINE)
    if policy == "scotch":
        return weights(matrix, groups_of(pus, SIZES)), weights(matrix, by_bipartitioning(matrix, SIZES))
    if policy == "matching":
        return weights(matrix, groups_of(pus, SIZES))[:1], weights(matrix, by_matching(matrix, SIZES))[:1]
    if policy == "balanced-locality":
        return weights(matrix, groups_of(pus, SIZES)), weights(matrix, by_balanced_locality(matrix, SIZES))
    asked = inverted(matrix) if policy == "distance" else matrix
    return weights(asked, groups_of(pus, SIZES)), weights(asked, by_eagermap(asked, SIZES))


THREAD_POLICIES = ("exact", "matching", "eagermap", "distance", "balanced-locality", "balance", "load-balance",
                   "scotch")


def main():
    hither, instances, seed = (sys.argv[1:] + ["100", ""][len(sys.argv) - 2:])[:3]
    tools, wrong = (hither, example_made()), 0
    print(f"{'policy':<22} {'instances':>9} {'mismatches':>10}")
    for policy in THREAD_POLICIES + FOUND_IN_PROFILES:
        draw = random.Random(policy + seed)
        both = [compare_profile(tools, policy, draw) if policy in FOUND_IN_PROFILES else compare(hither, policy, draw)
                for _ in range(int(instances))]
        differ = sum(ours != papers for ours, papers in both)
        print(f"{policy:<22} {instances:>9} {differ:>10}", flush=True)
        wrong += differ
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
