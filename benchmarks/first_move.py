"""How long a player waits for the first move, from the start of the program on, kernels compiled before.

python benchmarks/first_move.py --model bot.onnx [--base 5] [--simulations 400] [--repeats 5]

`lifeline gtp`: from its start to the answer to genmove. `lifeline serve`: from its start to the answer to the first
/api/move, the page's own requests before it. Seconds, the median and the range; the first start is not counted.
"""

import argparse
import contextlib
import json
import re
import statistics
import subprocess
import sys
import time
import urllib.request

from machine import headline

GTP = [sys.executable, "-m", "lifeline.cli", "gtp"]
SERVE = [sys.executable, "-m", "lifeline.cli", "serve", "--port", "0"]


def gtp(arguments):
    """Seconds until the answer to genmove."""
    began = time.perf_counter()
    options = ["--model", arguments.model, "--base", str(arguments.base), "--simulations", str(arguments.simulations)]
    done = subprocess.run([*GTP, *options], input="genmove b\nquit\n", capture_output=True, text=True, check=True)
    if not re.match(r"= [a-z]\d", done.stdout):
        sys.exit(f"first_move.py: no move but {done.stdout[:200]!r}")
    return time.perf_counter() - began


def ask(address, path, query=None):
    """The answer of the server, as JSON."""
    data = None if query is None else json.dumps(query).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())


def serve(arguments):
    """Seconds until the answer to the first /api/move."""
    began = time.perf_counter()
    command = [*SERVE, "--model", arguments.model, "--simulations", str(arguments.simulations)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in server.stdout:
            if found := re.search(r"http://[\w.:]+", line):
                break
        else:
            sys.exit("first_move.py: the server ended")
        address = found[0].rstrip("/")
        bot = ask(address, "/api/info")["bots"][0]["id"]
        ask(address, f"/api/board/{arguments.base}")
        game = {"base": arguments.base, "moves": []}
        ask(address, "/api/game", game)
        ask(address, "/api/move", {**game, "model": bot, "level": "full", "seed": 1})
        return time.perf_counter() - began
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(10)


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--base", type=int, default=5)
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    print(headline())
    for name, measure in (("gtp", gtp), ("serve", serve)):
        times = [measure(arguments) for _ in range(arguments.repeats + 1)][1:]
        median, low, high = statistics.median(times), min(times), max(times)
        asked = f"base {arguments.base}, {arguments.simulations} simulations"
        print(f"{name:6} {asked}: {median:.2f} s ({low:.2f}-{high:.2f})")


if __name__ == "__main__":
    main()
