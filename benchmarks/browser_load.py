"""Many browser games at once, asked for as the page asks: errors, waiting times, memory of the server.

python benchmarks/browser_load.py --games 50 --minutes 5 --base 5 [--model bot.onnx] [--seed 1]

Each game is a page of its own that plays person against bot: it fetches the position, places a random legal stone,
fetches again, and asks the bot for its move; from time to time it asks for an analysis, takes moves back, loads its own
record, reloads, or vanishes in the middle of a question. The server is another process of this machine.
"""

import argparse
import asyncio
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import httpx
from machine import headline

# What a person takes for a move, in seconds.
THINKING = (0.5, 2.5)


class Page:
    """A page and its game."""

    def __init__(self, client, number, base, model, seed):
        self.client, self.base, self.model = client, base, model
        self.rng = random.Random(seed * 1000 + number)
        self.headers = {"X-Lifeline-Page": f"load-{number}"}
        self.level = ("beginner", "casual", "strong", "expert")[number % 4]
        self.times, self.codes, self.games, self.errors = defaultdict(list), Counter(), 0, []

    async def ask(self, path, query=None, timeout=60.0):
        """A question, asked again while the server is busy; None where it is lost or refused."""
        while True:
            began = time.perf_counter()
            try:
                if query is None:
                    response = await self.client.get(path, headers=self.headers, timeout=timeout)
                else:
                    response = await self.client.post(path, json=query, headers=self.headers, timeout=timeout)
            except httpx.TimeoutException:
                if timeout < 1:
                    self.codes["left"] += 1
                else:
                    self.errors.append(f"{path}: no answer within {timeout:.0f} s")
                return None
            except httpx.HTTPError as error:
                self.errors.append(f"{path}: {error!r}")
                return None
            self.codes[response.status_code] += 1
            if response.status_code in (429, 503):
                await asyncio.sleep(float(response.headers["retry-after"]))
                continue
            self.times[path].append(time.perf_counter() - began)
            if response.status_code != 200:
                self.errors.append(f"{path}: {response.status_code} {response.text[:200]}")
                return None
            return response.json() if path.startswith("/api/") else response.text

    async def open(self):
        for path in ("/", "/web/main.js", "/web/style.css", "/api/info", f"/api/board/{self.base}"):
            await self.ask(path)

    async def run(self, until):
        await self.open()
        while time.monotonic() < until:
            await self.game(until)
            self.games += 1

    async def game(self, until):
        person, seed, moves = self.rng.randrange(2), self.rng.randrange(2**48), []
        while time.monotonic() < until:
            game = {"base": self.base, "moves": moves}
            view = await self.ask("/api/game", game)
            if view is None or view["result"]:
                return
            if view["to_play"]["seat"] != person:
                found = await self.ask("/api/move", {**game, "model": self.model, "level": self.level, "seed": seed})
                if found is not None:
                    moves = [*moves, found["move"]]
                continue
            await asyncio.sleep(self.rng.uniform(*THINKING))
            event = self.rng.random()
            query = {**game, "model": self.model, "seed": seed}
            if event < 0.08:
                await self.ask("/api/analyse", query)
            elif event < 0.12:
                await self.ask("/api/values", {**game, "model": self.model, "plies": list(range(len(moves) + 1))[-32:]})
            elif event < 0.15:
                await self.ask("/api/analyse", query, timeout=0.05)  # and is gone
            elif event < 0.18 and moves:
                moves = moves[: self.rng.randrange(len(moves))]
                continue
            elif event < 0.20:
                await self.open()
            elif event < 0.22:
                saved = await self.ask("/api/export", {**game, "players": ["person", "bot"]})
                if saved is not None:
                    loaded = await self.ask("/api/import", {"base": self.base, "text": saved["record"]})
                    if loaded is not None and loaded["moves"] != moves:
                        self.errors.append("a record came back as another game")
            moves = [*moves, self.rng.choice(view["legal"] + ["swap"] * view["may_swap"])]


def memory(pid):
    """Resident bytes of a process."""
    return int(re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024


async def load(address, arguments, model, pid):
    sizes = []
    limits = httpx.Limits(max_connections=4 * arguments.games, max_keepalive_connections=arguments.games)
    async with httpx.AsyncClient(base_url=address, limits=limits) as client:
        pages = [Page(client, n, arguments.base, model, arguments.seed) for n in range(arguments.games)]
        until = time.monotonic() + 60 * arguments.minutes
        running = [asyncio.ensure_future(page.run(until)) for page in pages]
        while time.monotonic() < until:
            await asyncio.sleep(min(5.0, max(0.1, until - time.monotonic())))
            sizes.append(memory(pid))
        await asyncio.gather(*running)
    return pages, sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--base", type=int, default=5)
    parser.add_argument("--model", help="an exported model; if not given, the bot that plays by random games")
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(headline())
    command = [sys.executable, "-m", "lifeline.cli", "serve", "--port", "0", "--threads", str(arguments.threads)]
    command += ["--simulations", str(arguments.simulations)]
    command += ["--model", arguments.model] if arguments.model else []
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        line = server.stdout.readline()
        address = re.search(r"http://[^/]+", line)[0]
        model = httpx.get(f"{address}/api/info").json()["bots"][0]["id"]
        httpx.post(f"{address}/api/move", json={"base": arguments.base, "model": model}, timeout=300)
        first = memory(server.pid)
        pages, sizes = asyncio.run(load(address, arguments, model, server.pid))
        last = memory(server.pid)
    finally:
        server.terminate()
        server.wait()
    times, codes = defaultdict(list), Counter()
    for page in pages:
        codes.update(page.codes)
        for path, found in page.times.items():
            times[path].extend(found)
    games, errors = sum(page.games for page in pages), [error for page in pages for error in page.errors]
    print(f"{arguments.games} pages for {arguments.minutes} min, base {arguments.base}, {model}: {games} games ended")
    print(f"answers {sum(n for code, n in codes.items() if code != 'left')}: {dict(codes)}; errors {len(errors)}")
    for error in errors[:10]:
        print("  ", error)
    for path, found in sorted(times.items()):
        cuts = statistics.quantiles(found, n=100) if len(found) > 1 else found * 99
        print(f"{path:16} {len(found):6d}  median {1e3 * cuts[49]:7.1f} ms  95 % {1e3 * cuts[94]:7.1f} ms  "
              f"99 % {1e3 * cuts[98]:7.1f} ms  most {1e3 * max(found):7.1f} ms")  # fmt: skip
    half = sizes[len(sizes) // 2] if sizes else last
    print(f"memory {first / 1e6:.0f} MB before, {half / 1e6:.0f} half-way, {last / 1e6:.0f} MB at the end")
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
