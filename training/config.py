"""One run = one validated YAML file. Every default stands here once, with its meaning, unit and range."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lifeline.errors import ConfigError, RulesError
from lifeline.rules import Rules
from training.taps import ORDER, Equivariance

# Limits keep damaged or hostile files from asking for absurd amounts of work. The longest real one has 4 kB.
_MAX_FILE = 65_536
_MAX_NESTING = 32
_MAX_NUMBER = 2**63 - 1


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


class GameConfig(_Section):
    """What is played."""

    base: int = 3
    """Cells a side of the board, 3 to 12."""
    opening: Literal["strong_pie", "weak_pie", "komi_pie"] = "strong_pie"
    """The opening rule."""
    komi: int = 0
    """Points of komi, 0 to 99; komi_pie only."""
    adjacent_setup: Literal["allowed", "forbidden"] = "allowed"
    """Whether a second stone may touch the first; weak_pie and komi_pie only."""

    mix: dict[int, float] = {}
    """Several bases learnt together by one network, each with its share of the samples, such as {3: 1, 4: 1, 5: 2};
    `base`, one of them, is the one that ratings and matches are played on. Empty = `base` alone."""
    curriculum_steps: int = Field(default=0, ge=0)
    """Learner steps after which the next larger base of the mix joins those before it; 0 = all from the start."""

    def rules(self) -> Rules:
        """The rules of this section.

        Raises:
            RulesError: they do not exist.
        """
        return self._of(self.base)

    def _of(self, base: int) -> Rules:
        return Rules(base, self.opening, self.komi, self.adjacent_setup)

    def sizes(self) -> dict[Rules, float]:
        """The rules of each base that is learnt, smaller ones first, with its share of the samples.

        Raises:
            RulesError: they do not exist.
        """
        shares = self.mix or {self.base: 1.0}
        total = sum(shares.values())
        return {self._of(base): share / total for base, share in sorted(shares.items())}

    def joined(self, steps: int) -> int:
        """How many of the bases, from the smallest, are played after so many learner steps."""
        count = len(self.mix) or 1
        return min(count, 1 + steps // self.curriculum_steps) if self.curriculum_steps else count


class NetworkConfig(_Section):
    """Size of the network."""

    blocks: int = Field(default=4, ge=1, le=64)
    """Residual blocks of two hex convolutions each."""
    channels: int = Field(default=32, ge=4, le=1024)
    """Channels of the tower."""
    pool_every: int = Field(default=2, ge=1, le=64)
    """Every so many blocks one looks at the whole board by global pooling."""
    head_channels: int = Field(default=16, ge=1, le=1024)
    """Channels of the policy and of the value head."""
    value_hidden: int = Field(default=32, ge=1, le=4096)
    """Units of the value head's hidden layer."""
    tactical_planes: bool = True
    """Whether it sees what each placement would remove and which groups have a single link, or must find out."""
    region_planes: bool = False
    """Whether it sees how large regions and groups are, how many touch, and how much room is whose."""
    equivariance: Equivariance = "none"
    """Symmetries of the board that the network has by construction, sharing weights among them, so that it learns
    faster: the six turns, or all twelve. Channels, head_channels and value_hidden are then multiples of 6 or 12."""

    @model_validator(mode="after")
    def _whole_groups(self) -> NetworkConfig:
        order = ORDER[self.equivariance]
        for name in ("channels", "head_channels", "value_hidden"):
            if getattr(self, name) % order:
                raise ValueError(
                    f"{name} must be a multiple of {order} with equivariance: {self.equivariance}, "
                    f"not {getattr(self, name)}"
                )
        return self


class SearchConfig(_Section):
    """Search in self-play. Rating games and matches are searched by Gumbel's, without noise, whatever stands here."""

    policy: Literal["gumbel", "puct"] = "gumbel"
    """How moves are chosen. gumbel learns from few simulations; puct is AlphaZero's, and wants some hundreds."""
    num_simulations: int = Field(default=16, ge=2, le=100_000)
    """Leaves grown for each move. More: better targets, fewer games."""
    first_simulations: int = Field(default=0, ge=0, le=100_000)
    """Leaves grown for each move in the beginning, 2 to num_simulations; 0 = num_simulations from the start."""
    growth_steps: int = Field(default=10_000, ge=1)
    """Learner steps over which first_simulations grow to num_simulations, by equal amounts."""
    max_considered: int = Field(default=16, ge=2, le=399)
    """Gumbel: actions considered at the root; no use above num_simulations."""
    c_visit: float = Field(default=50.0, ge=0)
    """Gumbel: constant of the value transform, in visits."""
    c_scale: float = Field(default=0.2, gt=0)
    """Gumbel: scale of the value transform, for values in [0, 1]. Greater: the search trusts values more, the prior
    less."""
    c_puct: float = Field(default=1.25, gt=0, le=100)
    """PUCT: exploration, for values in [-1, 1]. Greater: the search trusts the prior more, values less."""
    c_log: float = Field(default=0.5, ge=0, le=100)
    """PUCT: what is added to c_puct each time that c_base and the visits together grow by a factor of e; 0 = none."""
    c_base: float = Field(default=500.0, gt=0)
    """PUCT: visits from which on exploration grows."""
    fpu_reduction: float = Field(default=0.25, ge=0, le=2)
    """PUCT: an unvisited action below the root counts as its parent less this, times the root of the visited prior."""
    fpu_value: float | None = Field(default=None, ge=-1, le=1)
    """PUCT: what an unvisited action counts as instead, at the root too; None = relative to its parent."""
    proves: bool = True
    """PUCT: whether won and lost games of the tree are taken for what they are, and moves that lead to them."""
    noise_share: float = Field(default=0.25, ge=0, lt=1)
    """PUCT: share of Dirichlet noise in the root's prior."""
    noise_total: float = Field(default=10.0, gt=0, le=1000)
    """PUCT: concentration of that noise, shared by all legal actions. Smaller: more on fewer actions."""


class SelfPlayConfig(_Section):
    """How games are made."""

    batch_size: int = Field(default=256, ge=1, le=65_536)
    """Games a worker plays at once; the batch of its evaluator. Memory grows with it."""
    groups: int | Literal["auto"] = Field(default="auto")
    """Groups that the games of a worker are searched in, 1 to batch_size: while the leaves of one are evaluated,
    another one selects. auto = 2 where a worker evaluates on a GPU, else 1. The games are the same. Of use where half a
    batch takes the device about half the time: with small batches more groups cost more than they save."""
    plies_per_iteration: int = Field(default=8, ge=1)
    """Plies of all its games that a worker plays between two reports. Fewer: fresher weights, more switching."""
    random_opening_share: float = Field(default=0.3, ge=0, le=1)
    """Share of games that start from random first turns, of Black alone or of both, and half of the former with a swap:
    so that the bot knows openings it would not choose, and what comes of swaps it would not make."""
    random_start_share: float = Field(default=0.0, ge=0, le=1)
    """Share of games that start at a random moment of a random game, so that it knows positions of all kinds."""
    branch_share: float = Field(default=0.0, ge=0, le=1)
    """Share of games that start with a random move in a position of an earlier game of the same worker, so that it
    knows how to answer moves it would not make. The three shares sum to 1 at most; the rest starts as the rules say."""
    stray_share: float = Field(default=0.0, ge=0, le=1)
    """Share of games, however they start, in which each move is, up to a random moment, half of the time random; all
    plies are searched and learnt, those before the last random move without the outcome."""
    ply_cap: int = Field(default=0, ge=0)
    """Plies after which a game is dropped with a warning; 0 = four times the number of cells, never met in practice."""
    full_search_share: float = Field(default=1.0, gt=0, le=1)
    """Share of plies searched in full. The others get cheap_simulations and no noise (PUCT's temperature stays),
    and teach the value but not the policy: more games for the same work. All games of a worker share the coin of a ply.
    1 = all."""
    cheap_simulations: int = Field(default=8, ge=2, le=100_000)
    """Leaves grown for each move at the other plies; below search.num_simulations."""
    temperature: float = Field(default=1.0, ge=0, le=100)
    """PUCT: early in a game moves are drawn by their visits to the power of 1 / temperature; 0 = the best move. See
    temperature_share."""
    temperature_share: float | None = Field(default=None, ge=0, le=10)
    """How long games are varied, in plies as a share of the number of cells: so long PUCT draws moves, and Gumbel
    search plays the move that its noise favours; then the best move is played. 10 = to the end. None = 0.3 for PUCT,
    and for Gumbel search to the end: its noise decides only between moves that are close."""
    final_temperature: float = Field(default=0.0, ge=0, le=100)
    """PUCT: temperature later on."""
    solve_nodes: int = Field(default=0, ge=0, le=1_000_000)
    """The last plies of each finished game are solved, from behind, as long as so many positions are enough for each;
    then the value target is the truth, what is known of the first of them takes the place of the outcome for those
    before, and the policy target of a won position has nothing on losing moves. 0 = none."""
    drills: int = Field(default=0, ge=0, le=1000)
    """For each finished game so many random ones are solved from behind, as far as solve_nodes go, and learnt as well:
    endings of all kinds, which cost no search. They are no games: only the samples count them. 0 = none."""
    resign_below: float = Field(default=-1.0, ge=-1, le=0)
    """Root value for the player to move below which it gives up after its move, a loss being -1; -1 = never."""
    resign_plies: int = Field(default=3, ge=1, le=1000)
    """Own plies in a row that its value must have been so low."""
    resign_play_on: float = Field(default=0.1, ge=0, le=1)
    """Share of games that are played on all the same. Among those that did not stray TensorBoard counts how
    often whoever would have given up has won: selfplay/resign_false_positives. Above a few hundredths, resign_below is
    too high."""


# What only PUCT heeds: set beside Gumbel search it would be ignored, and so is refused.
_PUCT_SEARCH = ("c_puct", "c_log", "c_base", "fpu_reduction", "fpu_value", "proves", "noise_share", "noise_total")
_PUCT_SELFPLAY = ("temperature", "final_temperature")


class StorageConfig(_Section):
    """Finished games on disk."""

    max_mb: float = Field(default=1000.0, gt=0)
    """Megabytes of finished games kept in the run directory; the oldest go first, but never those of the window."""


class ReplayConfig(_Section):
    """Which samples are learnt from."""

    capacity: int = Field(default=400_000, ge=1)
    """Samples kept at most; memory and checkpoints grow with it."""
    min_window: int = Field(default=20_000, ge=1)
    """The newest samples that are always drawn from."""
    window_growth: float = Field(default=0.5, ge=0, le=1)
    """Samples by which the window grows at first for each one made beyond that; 0 = it never grows."""
    window_exponent: float = Field(default=1.0, gt=0, le=1)
    """Of the power law by which it grows. 1 = a line; smaller: ever more slowly, so that a long run forgets its weak
    beginnings."""
    surprise_share: float = Field(default=0.0, ge=0, le=1)
    """Share of how often samples are drawn that goes, within each game, by how much the search surprised the network;
    the rest is even."""


class LearnerConfig(_Section):
    """How they are learnt from."""

    batch_size: int = Field(default=256, ge=1)
    """Samples in a step."""
    samples_per_sample: float = Field(default=4.0, gt=0)
    """Samples used for each sample made: the throttle between self-play and learner. A run that goes on with another
    number uses it for the samples it makes from then on."""
    min_samples: int = Field(default=4_000, ge=1)
    """Samples made before learning starts."""
    learning_rate: float = Field(default=2e-3, gt=0)
    """Of AdamW."""
    warmup_steps: int = Field(default=100, ge=0)
    """Steps over which the rate rises from zero."""
    weight_decay: float = Field(default=1e-4, ge=0)
    """Of AdamW, on weights but not on biases."""
    max_grad_norm: float = Field(default=5.0, gt=0)
    """Gradients are scaled down to this norm."""
    average_decay: float = Field(default=0.995, ge=0, lt=1)
    """Of the averaged weights, for each step; they are what plays."""
    value_weight: float = Field(default=1.0, gt=0)
    """Weight of the value loss beside the policy loss."""
    z_weight: float = Field(default=1e-4, ge=0, le=1)
    """Weight of the z-loss: the square of the logarithm of what a policy's exponentials add up to. A policy says the
    same when all its log-probabilities are shifted alike, and without this they may run off until float32 is too
    coarse for them, by which a run was lost."""
    root_value_share: float = Field(default=0.3, ge=0, le=1)
    """Share of the search's root value in the value target; the rest is the outcome."""
    anneal_share: float = Field(default=0.0, ge=0, le=1)
    """Last share of a session's minutes, or of max_iterations, in which the rate falls, evenly, to final_rate_share of
    itself; of no effect in a session without an end. Sessions that are to be gone on with should have 0."""
    final_rate_share: float = Field(default=0.1, ge=0, le=1)
    """See anneal_share."""
    horizon: int = Field(default=6, ge=1, le=100)
    """Plies ahead that later_weight and short_weight look."""
    reply_weight: float = Field(default=0.0, ge=0, le=100)
    """Weight of an auxiliary loss: the policy of the next ply. Auxiliary heads stand in the learner alone."""
    soft_weight: float = Field(default=0.0, ge=0, le=100)
    """The same: the policy target to the power of 1/4, which tells of all moves, not of the best alone."""
    later_weight: float = Field(default=0.0, ge=0, le=100)
    """The same: which cells both colours hold some plies later."""
    short_weight: float = Field(default=0.0, ge=0, le=100)
    """The same: the search's value some plies later."""
    left_weight: float = Field(default=0.0, ge=0, le=100)
    """The same: the plies left in the game, as a share of the cells."""

    @property
    def auxiliary(self) -> bool:
        """Whether there is any auxiliary loss."""
        return any((self.reply_weight, self.soft_weight, self.later_weight, self.short_weight, self.left_weight))


class CheckpointConfig(_Section):
    """What is saved, and when."""

    every: int = Field(default=20, ge=1)
    """Iterations between two checkpoints."""
    minutes: float = Field(default=5.0, gt=0)
    """One is also written as soon as so many have gone by since the last, however long iterations take."""
    keep_last: int = Field(default=2, ge=1)
    """Newest checkpoints kept whole, to go on from."""
    keep_every: int = Field(default=200, ge=1)
    """Of every so many iterations the weights are kept for ever; a multiple of `every`."""


class EvaluationConfig(_Section):
    """Ratings during a run, played beside training by the workers' cluster, and the match at its end."""

    share: float = Field(default=0.1, ge=0, le=1)
    """Share of the machine's time that rating games may take; 0 for none. Without workers there are none."""
    pairs: int = Field(default=10, ge=1, le=10_000)
    """Pairs of games in one rating match: one opening each, played with seats exchanged."""
    every_seconds: float = Field(default=30.0, gt=0)
    """Seconds between two models that enter the ratings."""
    games: int = Field(default=200, ge=0)
    """Games of the last match against each opponent, in pairs with seats exchanged: an even number; 0 for none."""
    num_simulations: int = Field(default=64, ge=2, le=100_000)
    """Leaves grown for each of the bot's moves."""
    opponents: tuple[str, ...] = ("random", "rollout:1000")
    """Players met in the last match and in the ratings: `random`, or `rollout:N`, UCT with N rollouts a move."""


class Config(_Section):
    """A whole run."""

    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """Of everything random in the run."""
    minutes: float | None = Field(default=None, gt=0)
    """Time after which training stops; None for no limit."""
    max_iterations: int | None = Field(default=None, ge=0)
    """Iterations after which training stops; None for no limit."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the learner runs, and the evaluator with it; auto takes CUDA where there is one."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Numbers that the learner and self-play multiply in; weights and sums are float32. auto = bfloat16 on CUDA and on
    processors that multiply it, several times as fast, else float32."""
    learner_devices: int | Literal["auto"] = Field(default="auto")
    """Devices that learn together, 1 to 1024: each takes its share of learner.batch_size, which must not be smaller.
    GPUs are taken from the last one down. auto = all GPUs; one where workers evaluate on GPUs; 1 on a CPU. On a CPU
    each is a process of one thread in place of `threads`: a way to try it, no way to go faster."""
    threads: int = Field(default=0, ge=0, le=1024)
    """CPU threads of the learner, and without workers of the evaluator; 0 = all cores, beside workers half of them.
    Results are bit-equal only for equal numbers."""
    workers: int | Literal["auto"] = Field(default="auto")
    """Self-play workers, each with games and threads of its own; auto = one a core. 0: everything in one process, and
    bit-equal from run to run."""
    worker_gpus: float = Field(default=0.0, ge=0, le=1)
    """Share of a GPU each worker evaluates on; 0 = on its CPU core. Workers get the GPUs that do not learn; all of
    them where none is left."""
    game: GameConfig = GameConfig()
    network: NetworkConfig = NetworkConfig()
    search: SearchConfig = SearchConfig()
    selfplay: SelfPlayConfig = SelfPlayConfig()
    replay: ReplayConfig = ReplayConfig()
    learner: LearnerConfig = LearnerConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    storage: StorageConfig = StorageConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _couplings(self) -> Config:
        mix = self.game.mix
        if any(share <= 0 for share in mix.values()):
            raise ValueError("the shares of game.mix must be above 0; leave a base out that is not to be learnt")
        try:
            self.game.rules()
            self.game.sizes()
        except RulesError as error:
            raise ValueError(f"game: {error}") from None
        if mix and self.game.base not in mix:
            raise ValueError(f"game.mix {sorted(mix)} must have game.base {self.game.base} in it")
        if self.game.curriculum_steps and len(mix) < 2:
            raise ValueError("game.curriculum_steps needs several bases in game.mix")
        if self.replay.min_window > self.replay.capacity:
            raise ValueError(
                f"replay.min_window {self.replay.min_window} exceeds replay.capacity {self.replay.capacity}"
            )
        if self.checkpoint.keep_every % self.checkpoint.every:
            raise ValueError(
                f"checkpoint.keep_every {self.checkpoint.keep_every} must be a multiple of "
                f"checkpoint.every {self.checkpoint.every}"
            )
        if self.workers != "auto" and not 0 <= self.workers <= 10_000:
            raise ValueError(f"workers must be auto or a number from 0 to 10000, not {self.workers}")
        if self.learner_devices != "auto":
            if not 1 <= self.learner_devices <= 1024:
                raise ValueError(f"learner_devices must be auto or a number from 1 to 1024, not {self.learner_devices}")
            if self.learner_devices > self.learner.batch_size:
                raise ValueError(
                    f"learner_devices {self.learner_devices} exceeds learner.batch_size {self.learner.batch_size}: "
                    "each device needs a sample"
                )
        self._search_couplings()
        if self.evaluation.games % 2:
            raise ValueError(f"evaluation.games must be even, games are played in pairs, not {self.evaluation.games}")
        return self

    def _search_couplings(self) -> None:
        search, selfplay = self.search, self.selfplay
        if search.first_simulations and not 2 <= search.first_simulations <= search.num_simulations:
            raise ValueError(
                f"search.first_simulations must be 0, or from 2 to search.num_simulations {search.num_simulations}, "
                f"not {search.first_simulations}"
            )
        starts = selfplay.random_opening_share + selfplay.random_start_share + selfplay.branch_share
        if starts > 1 + 1e-9:
            raise ValueError(
                "selfplay.random_opening_share, random_start_share and branch_share sum to "
                f"{starts:.3g}, more than all games"
            )
        if selfplay.drills and not selfplay.solve_nodes:
            raise ValueError("selfplay.drills needs selfplay.solve_nodes, the positions by which they are solved")
        if selfplay.groups != "auto" and not 1 <= selfplay.groups <= selfplay.batch_size:
            raise ValueError(
                f"selfplay.groups must be auto or a number from 1 to selfplay.batch_size {selfplay.batch_size}, "
                f"not {selfplay.groups}"
            )
        if selfplay.full_search_share < 1 and selfplay.cheap_simulations >= search.num_simulations:
            raise ValueError(
                f"selfplay.cheap_simulations {selfplay.cheap_simulations} must be below "
                f"search.num_simulations {search.num_simulations}"
            )
        if search.policy == "gumbel":
            for name, section, keys in (("search", search, _PUCT_SEARCH), ("selfplay", selfplay, _PUCT_SELFPLAY)):
                for key in keys:
                    if getattr(section, key) != type(section).model_fields[key].default:
                        raise ValueError(f"{name}.{key} is for search.policy puct only")


def _one_line(error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])[:100]
    key = key if key.isprintable() else repr(key)
    if first["type"] == "extra_forbidden":
        return f"unknown key {key}"
    message = str(first["msg"]).removeprefix("Value error, ")
    if not key:
        return message
    # Checks of a whole section say themselves what is wrong with it.
    return f"{key}: {message}" + ("" if first["type"] == "value_error" else f", not {str(first['input'])[:60]!r}")


def build_config(values: Any, source: str) -> Config:
    """Validate plain values.

    Raises:
        ConfigError: an unknown key, a value out of range or a violated coupling; the message names source and key.
    """
    if values is None:
        values = {}
    if not isinstance(values, dict):
        raise ConfigError(f"{source}: a run configuration is a mapping of keys to values")
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{source}: {_one_line(error)}") from None


class _PlainLoader(yaml.SafeLoader):
    """YAML without anchors and tags: a few lines of them can ask for more memory than there is.

    Nor with brackets nested without end, which take time in the square of their number.
    """

    def fetch_flow_collection_start(self, token_class: type[yaml.Token]) -> None:
        if self.flow_level >= _MAX_NESTING:
            raise yaml.MarkedYAMLError(None, None, "brackets nested too deep", self.get_mark())
        super().fetch_flow_collection_start(token_class)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) or getattr(event, "tag", None):
            raise yaml.MarkedYAMLError(None, None, "anchors and tags are not read here", event.start_mark)
        return super().compose_node(parent, index)

    def construct_number(self, node: yaml.ScalarNode) -> int:
        number = int(self.construct_yaml_int(node))
        if abs(number) > _MAX_NUMBER:
            raise yaml.MarkedYAMLError(None, None, "a number of more than 64 bits", node.start_mark)
        return number


_PlainLoader.add_constructor("tag:yaml.org,2002:int", _PlainLoader.construct_number)

# What reading YAML raises: an overflow by numbers of many parts in base 60.
_YAML_ERRORS = (yaml.YAMLError, RecursionError, ValueError, OverflowError)


def read_yaml(path: Path) -> Any:
    """The plain values of a YAML file.

    Raises:
        ConfigError: missing, unreadable or no YAML; the message says where.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    if len(data) > _MAX_FILE:
        raise ConfigError(f"{path}: larger than any run configuration")
    try:
        return yaml.load(data.decode(), _PlainLoader)
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text in UTF-8") from None
    except _YAML_ERRORS as error:
        # YAML's messages have lines, and pieces of the file with whatever stands in it.
        told = " ".join(str(error).split())[:200]
        raise ConfigError(f"{path}: not valid YAML: {told if told.isprintable() else ascii(told)}") from None


def load_config(path: Path, overrides: tuple[str, ...] = ()) -> Config:
    """Read a run's configuration.

    Args:
        path: the YAML file.
        overrides: settings such as "search.num_simulations=64", applied on top, later ones last.

    Raises:
        ConfigError: see `read_yaml` and `build_config`.
    """
    values = read_yaml(path)
    values = {} if values is None else values
    for override in overrides:
        _apply(values, override)
    return build_config(values, str(path))


def _apply(values: Any, override: str) -> None:
    key, equals, text = override.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise ConfigError(f"--set takes key=value, such as search.num_simulations=64, not {override[:60]!r}")
    try:
        value = yaml.load(text, _PlainLoader)
    except _YAML_ERRORS:
        raise ConfigError(f"--set {override[:60]!r}: the value is not valid YAML") from None
    at = values
    for part in parts[:-1]:
        if not isinstance(at, dict):
            raise ConfigError(f"--set {override[:60]!r}: {part} is not a section")
        at = at.setdefault(part, {})
    if not isinstance(at, dict):
        raise ConfigError(f"--set {override[:60]!r}: {'.'.join(parts[:-1])} is not a section")
    at[parts[-1]] = value


def dump_config(config: Config) -> str:
    """The resolved configuration as YAML, every field with its value; `load_config` reads it back equal."""
    return str(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))
