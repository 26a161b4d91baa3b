"""Many clients, few threads: turns are fair, questions go together, and nothing waits for ever."""

import threading

import numpy as np
import pytest

from lifeline import ModelError, Position, Rules
from lifeline.errors import BusyError
from lifeline.play.engine import Engine, EngineSettings
from lifeline.play.levels import LEVELS
from lifeline.play.server_bots import Bot
from lifeline.play.server_pool import Client, Limits, Pool, Question
from lifeline.search.evaluator import UniformEvaluator

RULES = Rules(3)
START = Position.start(RULES)


class Gate(UniformEvaluator):
    """Thinks nothing, but not before it is let; remembers how many positions it has been asked about at once."""

    def __init__(self, error=None):
        self.entered, self.opened, self.sizes, self.error = threading.Event(), threading.Event(), [], error

    def evaluate(self, leaves):
        self.entered.set()
        assert self.opened.wait(60)
        self.sizes.append(leaves.batch_size)
        if self.error:
            raise self.error
        return super().evaluate(leaves)


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def pool(gate):
    pool = Pool([bot_of(gate)], limits=Limits(waiting=20, of_address=10, of_page=4))
    yield pool
    gate.opened.set()
    pool.close()


def bot_of(evaluator):
    return Bot("b", "a bot", (), False, lambda rules: evaluator)


def question(base=3, kind="analyse", seed=0, **more):
    rules = Rules(base)
    return Question("b", rules, kind, (Position.start(rules),), seed=seed, simulations=0, **more)


def occupy(pool, gate):
    """Keep the pool's thread busy until the gate opens."""
    busy = pool.ask(Client("first"), question())
    assert gate.entered.wait(60)
    return busy


def test_addresses_take_turns_however_much_one_asks(pool, gate):
    order = []
    occupy(pool, gate)
    # Of different rules, so that they are not answered together.
    asked = [(Client("greedy", str(n // 4)), 3 + n) for n in range(8)] + [(Client("modest"), 11)]
    answers = [pool.ask(client, question(base)) for client, base in asked]
    for (client, base), answer in zip(asked, answers, strict=True):
        answer.add_done_callback(lambda _, told=(client.address, base): order.append(told))
    gate.opened.set()
    for answer in answers:
        answer.result(60)
    assert order.index(("modest", 11)) == 1
    # The pages of the greedy one take turns too.
    assert [base for address, base in order if address == "greedy"] == [3, 7, 4, 8, 5, 9, 6, 10]


def test_alike_questions_are_answered_together_and_as_alone(pool, gate):
    occupy(pool, gate)
    answers = [pool.ask(Client("a", str(n)), question(seed=n)) for n in range(5)]
    other = pool.ask(Client("b"), question(base=4))
    gate.opened.set()
    found = [answer.result(60)[0] for answer in answers]
    assert other.result(60)[0].position.rules.base == 4
    assert 5 in gate.sizes
    engine = Engine(RULES, UniformEvaluator())
    for n, analysis in enumerate(found):
        assert np.array_equal(analysis.policy, engine.analyse(START, n, 0).policy)


def test_moves_of_one_level_are_chosen_together_and_as_alone():
    pool = Pool([bot_of(UniformEvaluator())])
    try:
        level = LEVELS[3]
        position = START.play("a1,e3")
        answers = [
            pool.ask(Client("a", str(n)), Question("b", RULES, "choose", (position,), n, 16, level)) for n in range(6)
        ]
        engine = Engine(RULES, UniformEvaluator(), EngineSettings(simulations=16, level=level.name))
        for n, answer in enumerate(answers):
            assert answer.result(60) == [engine.choose(position, n).action]
    finally:
        pool.close()


def test_what_is_taken_back_is_not_thought_about(pool, gate):
    occupy(pool, gate)
    kept, dropped = pool.ask(Client("a"), question(base=4)), pool.ask(Client("a"), question(base=5))
    assert dropped.cancel()
    gate.opened.set()
    kept.result(60)
    assert pool.waiting == 0 or pool.ask(Client("a"), question()).result(60)
    assert len(gate.sizes) <= 3


def test_too_much_of_a_page_an_address_and_all_is_refused(pool, gate):
    occupy(pool, gate)
    for _ in range(4):
        pool.ask(Client("a", "1"), question())
    with pytest.raises(BusyError, match="of this page"):
        pool.ask(Client("a", "1"), question())
    for n in range(6):
        pool.ask(Client("a", str(10 + n)), question())
    with pytest.raises(BusyError, match="busy"):
        pool.ask(Client("a", "99"), question())
    for n in range(10):
        pool.ask(Client(str(n)), question())
    with pytest.raises(BusyError, match="busy"):
        pool.ask(Client("z"), question())


def test_what_waits_too_long_is_answered_so(gate):
    pool = Pool([bot_of(gate)], limits=Limits(seconds=0.05))
    busy = occupy(pool, gate)
    late = pool.ask(Client("a"), question(base=4))
    threading.Event().wait(0.1)
    gate.opened.set()
    busy.result(60)
    with pytest.raises(BusyError, match="too long"):
        late.result(60)
    pool.close()


def test_a_bot_that_fails_harms_no_later_question():
    gate = Gate(ModelError("broken"))
    gate.opened.set()
    pool = Pool([bot_of(gate)])
    with pytest.raises(ModelError, match="broken"):
        pool.ask(Client("a"), question()).result(60)
    gate.error = None
    assert pool.ask(Client("a"), question()).result(60)
    pool.close()


def test_a_pool_that_is_closed_takes_no_questions():
    pool = Pool([bot_of(UniformEvaluator())], threads=2)
    pool.close()
    with pytest.raises(BusyError):
        pool.ask(Client("a"), question())
