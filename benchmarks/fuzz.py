"""Parsers under damaged input: valid texts mutated at random must be read or be refused by an error of this project.

    python benchmarks/fuzz.py --cases 1000000 [--seed 0] [--target config]

Prints the cases, seconds, errors by parser and type, the peak of memory at start and end, and the slowest case. Exits
with 1 at the first case that raises anything else, takes more than ten seconds, or has an error of more than a line;
the case is printed, and comes again with the same seed.
"""

from __future__ import annotations

import argparse
import gzip
import io
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from machine import headline

from lifeline import LifelineError, Position, Rules
from lifeline.game_record import GameRecord, PlayerInfo
from lifeline.movelist import import_moves
from lifeline.notation import action_text
from lifeline.record_json import format_record
from lifeline.records import read_records
from training.config import build_config, dump_config, load_config

LIMIT_SECONDS = 10
LONGEST = 20_000

ALL_RULES = [
    Rules(3),
    Rules(4),
    Rules(3, "weak_pie"),
    Rules(4, "weak_pie", adjacent_setup="forbidden"),
    Rules(3, "komi_pie", 3),
    Rules(12, "komi_pie", 99),
]

# What parsers have stumbled over elsewhere.
NASTY = [
    *(
        t.encode()
        for t in ("", "0", "-0", "-1", "00", "1e999", "NaN", "Infinity", "9" * 30, "9" * 5000, "0x" + "f" * 5000)
    ),
    *(
        t.encode()
        for t in ("null", "true", "[]", "{}", '""', "[" * 3000, '{"a":' * 3000, "\\ud800", "\u212a", "\u0663", "\ufeff")
    ),
    *(
        t.encode()
        for t in ("swap", "komi", "SWAP", "a1,b4", "c3", "a1,", "z99", "1.", "s", "b", "w", "/", " ", "\t", "\r\n")
    ),
    *(
        t.encode()
        for t in ("&a ", "*a", "<<: ", "!!int ''", "!!python/name:os", "? ", ": ", "- ", "|", ">", "1:1:1.0", "=")
    ),
    *(
        t.encode()
        for t in ('"version": 1, ', '"start": "", ', "2001-99-99", "1" + ":1" * 2000 + ".0", ".inf", ".nan", "#", "%")
    ),
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"\n" * 50,
    b"\x1f\x8b\x08",
]


def mutate(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Damage a text in one to four places, with pieces of itself, of another and of the nasty ones."""
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(200))
    for _ in range(rng.randint(1, 4)):
        a, b = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
        b = min(b, a + rng.choice((1, 4, 30, LONGEST)))
        match rng.randrange(8):
            case 0:
                data = data[:a] + data[b:]
            case 1:
                data = data[:a]
            case 2:
                data = data[:a] + data[a:b] * rng.choice((2, 3, 50)) + data[b:]
            case 3:
                data = data[:a] + bytes([rng.randrange(256)]) + data[a + 1 :]
            case 4:
                data = data[:a] + rng.choice(NASTY) + data[a:]
            case 5:
                data = data[:a] + rng.choice(NASTY) + data[b:]
            case 6:
                at = rng.randint(0, len(other))
                data = data[:a] + other[at : at + rng.choice((1, 8, 100))] + data[a:]
            case _:
                data = data[:a] + bytes([data[a] ^ 1 << rng.randrange(8)]) + data[a + 1 :] if a < len(data) else data
        data = data[:LONGEST]
    return data


@dataclass(frozen=True)
class Target:
    """A parser: what reads a case, and valid ones to begin with."""

    read: Callable[[bytes, random.Random], object]
    corpus: list[bytes]


def games(rng: random.Random) -> list[tuple[Rules, list[Position], list[str]]]:
    """Some random games; of the largest board only their beginnings, which the plain rules are slow to play."""
    found = []
    for rules in ALL_RULES * 4:
        positions, moves = [Position.start(rules)], []
        longest = rng.choice((3, 12, 1000)) if rules.base < 12 else 8
        while len(moves) < longest and not positions[-1].is_over:
            action = rng.randrange(rules.num_actions)
            if positions[-1].is_legal(action):
                moves.append(action_text(action, rules.board))
                positions.append(positions[-1].play(action))
        found.append((rules, positions, moves))
    return found


def targets(rng: random.Random, folder: Path) -> dict[str, Target]:
    """All parsers by name."""
    played = games(rng)
    positions = [p for _, some, _ in played for p in some]
    lines = [
        format_record(
            GameRecord(
                rules,
                tuple(moves),
                start=rng.choice((None, some[0].text())),
                players=(PlayerInfo("a", {"simulations": 64}), PlayerInfo()),
                values=tuple(round(rng.uniform(-1, 1), 2) for _ in moves),
                seconds_left=(1.5,) * len(moves),
                date="2026-11-30",
                seed=5,
                extra={"a": [1, {"b": None}]},
                replay=False,
            )
        )
        for rules, some, moves in played
    ]
    # Some are over and have no result: they are refused as they stand, and as good to begin with as any.
    files = [("\n".join(rng.sample(lines, 2)) + "\n").encode() for _ in range(40)]
    config, packed = folder / "config.yaml", folder / "games.jsonl.gz"
    plain = folder / "plain.yaml"
    plain.write_text("seed: 1\n")
    examples = [path.read_bytes() for path in sorted((Path(__file__).parents[1] / "configs").glob("*.yaml"))]

    def read_file(data: bytes, rng: random.Random) -> object:
        on_error = rng.choice((None, lambda error: None))
        return list(read_records(io.BytesIO(data), on_error=on_error))

    def read_packed(data: bytes, rng: random.Random) -> object:
        packed.write_bytes(data)
        return list(read_records(packed))

    def read_config(data: bytes, rng: random.Random) -> object:
        config.write_bytes(data)
        return dump_config(load_config(config))

    def rules_like(data: bytes, rng: random.Random) -> Rules:
        rows = data.count(b"/") + 1
        return rng.choice([rules for rules in ALL_RULES if 2 * rules.base - 1 == rows] or ALL_RULES)

    def text(data: bytes) -> str:
        return data.decode(errors="surrogateescape")

    return {
        "position": Target(
            lambda data, rng: Position.parse(text(data), rules_like(data, rng)), [p.text().encode() for p in positions]
        ),
        "move": Target(
            lambda data, rng: rng.choice(positions).play(text(data)), [b"a1", b"c4,e2", b"swap", b"komi", b" C3 , A2 "]
        ),
        "record": Target(read_file, files),
        "compressed": Target(read_packed, [gzip.compress(f, mtime=0) for f in files]),
        "moves": Target(
            lambda data, rng: import_moves(io.BytesIO(data), rng.choice(ALL_RULES)),
            [rng.choice((" ", "\n", " 1. ")).join(moves).encode() for _, _, moves in played],
        ),
        "config": Target(read_config, [*examples, dump_config(build_config(None, "")).encode(), b"seed: 3\n"]),
        "override": Target(
            lambda data, rng: load_config(plain, (text(data),)),
            [b"search.num_simulations=64", b"game={base: 4}", b"evaluation.opponents=[random]", b"minutes=0.5"],
        ),
    }


def peak_mb() -> float:
    """The most memory this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


class TooSlow(BaseException):
    """A case that ran into the limit. Not an Exception, which a parser might catch."""


def give_up(number: int, frame: object) -> None:
    """Signal handler: end the case."""
    raise TooSlow


def run(chosen: dict[str, Target], cases: int, rng: random.Random) -> None:
    """Run all cases and print what came out; SystemExit at the first that fails."""
    outcomes: Counter[tuple[str, str]] = Counter()
    slowest, slowest_case = 0.0, ("none", b"")
    names = sorted(chosen)
    began, start_mb = time.perf_counter(), 0.0
    for case in range(cases):
        if case == min(2000, cases // 10):
            start_mb = peak_mb()  # all parsers have run: caches are filled, and the longest cases have been met
        name = names[case % len(names)]
        target = chosen[name]
        data = mutate(rng.choice(target.corpus), rng.choice(target.corpus), rng)
        at = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, LIMIT_SECONDS)
        try:
            target.read(data, rng)
            outcome = "read"
        except LifelineError as error:
            outcome = type(error).__name__
            if not str(error).isprintable() or len(str(error)) > 1500:
                sys.exit(f"case {case}, {name}: an error of more than a line: {str(error)!r}\n{data[:500]!r}")
        except (Exception, TooSlow) as error:
            sys.exit(f"case {case}, {name}: {type(error).__name__}: {error}\n{data[:500]!r}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        seconds = time.perf_counter() - at
        outcomes[name, outcome] += 1
        if seconds > slowest:
            slowest, slowest_case = seconds, (name, data)
    seconds = time.perf_counter() - began
    print(f"{cases} cases in {seconds:.1f} s, {cases / seconds:.0f} a second")
    for (name, outcome), count in sorted(outcomes.items()):
        print(f"{name:>12} {outcome:<18} {count:>9}")
    print(f"peak memory {start_mb:.1f} MB at the start, {peak_mb():.1f} MB at the end")
    name, data = slowest_case
    print(f"slowest case {slowest:.3f} s, {name}, {len(data)} bytes: {data[:60]!r}")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", help="one parser only; may be repeated")
    arguments = parser.parse_args()
    signal.signal(signal.SIGALRM, give_up)
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        found = targets(rng, Path(folder))
        unknown = set(arguments.target or ()) - set(found)
        if unknown:
            parser.error(f"targets are {', '.join(found)}")
        print(headline())
        run({name: t for name, t in found.items() if name in (arguments.target or found)}, arguments.cases, rng)


if __name__ == "__main__":
    main()
