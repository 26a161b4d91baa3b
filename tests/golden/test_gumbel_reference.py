"""Gumbel search finds, simulation for simulation, what the reference implementation found."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from lifeline.search.gumbel import GumbelConstants, GumbelPolicy
from lifeline.search.search import BatchSearch
from table_game import TableEnv, TableEvaluator

DATA = json.loads(gzip.decompress((Path(__file__).parent / "gumbel_mctx.json.gz").read_bytes()))


class GivenNoise(GumbelPolicy):
    """With the noise that the reference drew."""

    def __init__(self, constants, noise):
        super().__init__(constants)
        self._given = noise

    def begin(self, tree, keys, num_simulations):
        super().begin(tree, keys, num_simulations)
        self._noise[:] = self._given


@pytest.mark.parametrize("number", range(len(DATA["cases"])))
def test_visits_values_policy_and_choice_are_those_of_mctx(number):
    case = DATA["cases"][number]
    game = case["game"]
    legal = np.array(game["child"][0]) >= 0
    for told in case["searches"]:
        policy = GivenNoise(GumbelConstants(told["considered"], 50.0, 0.2), np.array(told["noise"]))
        search = BatchSearch(lambda game=game: TableEnv(game), TableEvaluator(game), policy, told["simulations"])
        result = search.run(TableEnv(game), np.ones(1, np.uint64))
        assert result.visit_counts[0].tolist() == told["visits"]
        assert result.actions[0] == told["action"]
        assert result.policy_target[0] == pytest.approx(told["policy"], abs=2e-5)
        visited = np.array(told["visits"]) > 0
        assert result.action_values[0][visited] == pytest.approx(np.array(told["values"])[visited], abs=2e-5)
        assert legal.sum() > 0
