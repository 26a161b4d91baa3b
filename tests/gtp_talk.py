"""Conversations with a GTP engine in this process."""

import io

import numpy as np

from lifeline import Rules
from lifeline.play.gtp import GtpEngine, serve
from lifeline.play.gtp_commands import GtpSession
from lifeline.play.lines import LineReader
from lifeline.play.players import NetworkPlayer, make_player
from lifeline.search.evaluator import UniformEvaluator


class Hash:
    """An evaluator of firm and senseless opinions."""

    def evaluate(self, leaves):
        logits, values = UniformEvaluator().evaluate(leaves)
        for row, state in enumerate(leaves.gather()):
            rng = np.random.default_rng(state)
            logits[row], values[row] = rng.normal(size=leaves.num_actions), rng.uniform(-1, 1)
        return logits, values


def network(rules, simulations=16):
    """A network player without a network."""
    return NetworkPlayer(rules, Hash(), simulations)


def engine(rules=None, player="random", seed=1, **session):
    """An engine with a player, given by its text or by a function of the rules."""
    player_of = player if callable(player) else lambda of: make_player(player, of)
    return GtpEngine(GtpSession(rules or Rules(3), player_of, lambda: seed, **session))


def ask(of, line):
    """The answer to a line that is carried out, without the sign of success."""
    answer = of.handle(line)
    assert answer.ok, (line, answer.text, answer.fault)
    return answer.text


def refusal(of, line):
    """The answer to a line that is refused; nothing may have changed."""
    before = snapshot(of)
    answer = of.handle(line)
    assert not answer.ok, (line, answer.text)
    assert snapshot(of) == before
    return answer.text


def snapshot(of):
    """All that a command can change, but for the player's memory."""
    return {name: value for name, value in vars(of.session).items() if name != "_prepared"}


def play(of, *moves):
    """Play moves for whatever colour is due."""
    for move in moves:
        ask(of, f"play {of.session.game.position.colour} {move}")


def talk(of, data):
    """All that is answered to these bytes."""
    out = io.BytesIO()
    serve(of, LineReader(io.BytesIO(data).read), out)
    return out.getvalue().decode()
