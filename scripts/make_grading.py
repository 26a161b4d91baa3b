"""Make solved positions to grade models by, as training/data holds them.

    python scripts/make_grading.py --base 3 --count 3000 --out training/data/graded-base3.jsonl.gz
    python scripts/make_grading.py --base 4 --count 500 --from-turn 14 --nodes 1000000 --seed 1 --out part.jsonl.gz
    python scripts/make_grading.py --base 4 --count 1000 --from-turn 14 --nodes 1000000 --join part.jsonl.gz --out ...
    python scripts/make_grading.py --base 3 --openings --out training/data/openings-base3.json

Each position comes from a game of its own: after random first turns every move is random or, with the chance of
`--perfect`, one that the solver finds to win within 20 000 nodes. Games stop at a random turn. Kept are running
positions that differ under all symmetries, of won and lost ones equally many, solved within `--nodes`; those that were
not are counted. Limits are nodes, not seconds, so the same command makes the same file on any machine. Parts made with
several seeds, at once on several cores, are joined by naming them with `--join`, which keeps what differs.

With `--openings` it is written instead who wins after each first turn of Black if nobody swaps: what swaps are judged
by.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path

import numpy as np

from lifeline import Position, Rules
from lifeline.files import write_atomic
from lifeline.solver import Solver
from training.grading import canonical_text, line_of

# Spent on a perfect move at most, about a twentieth of a second.
_PERFECT_NODES = 20_000


def reach(rules: Rules, solver: Solver, from_turn: int, perfect: float, rng: np.random.Generator) -> Position | None:
    """A position after a random number of turns, or None if the game ended before."""
    position, stop = Position.start(rules), int(rng.integers(from_turn, rules.num_cells + 5))
    while not position.is_over and position.turn < stop:
        legal = [a for a in position.legal_actions() if a < rules.num_cells]
        if position.turn >= from_turn and rng.random() < perfect:
            legal = list(solver.solve(position, max_nodes=_PERFECT_NODES).known_winning) or legal
        position = position.play(int(rng.choice(legal)))
    return None if position.is_over else position


def main() -> None:
    """Make them and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=int, default=3)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--from-turn", type=int, default=2, help="turns that are over by then")
    parser.add_argument("--perfect", type=float, default=0.5, help="share of perfect moves")
    parser.add_argument("--nodes", type=int, help="to solve one position; no limit if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--join", type=Path, nargs="*", default=(), help="files to take positions from first")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--openings", action="store_true", help="who wins after each first turn")
    arguments = parser.parse_args()
    if arguments.openings:
        winners = Solver(Rules(arguments.base), table_bits=23).solve_first_turns().winners
        write_atomic(arguments.out, (json.dumps(winners, indent=0) + "\n").encode())
        print(f"{arguments.out}: {len(winners)} openings")
        return
    rules, rng = Rules(arguments.base), np.random.default_rng(arguments.seed)
    solver = Solver(rules, table_bits=23)
    found: dict[str, str] = {}
    quota = {True: arguments.count // 2, False: arguments.count - arguments.count // 2}
    for line in (line for path in arguments.join for line in gzip.decompress(path.read_bytes()).decode().splitlines()):
        entry = json.loads(line)
        key, won = canonical_text(Position.parse(entry["position"], rules)), bool(entry["winning"])
        if key not in found and quota[won]:
            quota[won] -= 1
            found[key] = line
    undecided, began, told = 0, time.monotonic(), 0.0
    try:
        while any(quota.values()):
            position = reach(rules, solver, arguments.from_turn, arguments.perfect, rng)
            if position is None or (key := canonical_text(position)) in found:
                continue
            solution = solver.solve(position, max_nodes=arguments.nodes)
            if solution.undecided:
                undecided += 1
                continue
            won = bool(solution.known_winning)
            if quota[won]:
                quota[won] -= 1
                found[key] = line_of(position, solution.known_winning)
            if time.monotonic() > told + 10:
                told = time.monotonic()
                print(f"{len(found)} of {arguments.count}, {undecided} undecided, {told - began:.0f} s", flush=True)
    except KeyboardInterrupt:
        print("stopped: what was found is written")
    lines = [found[key] for key in sorted(found)]
    write_atomic(arguments.out, gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    print(f"{arguments.out}: {len(lines)} positions, {undecided} left out as undecided")


if __name__ == "__main__":
    main()
