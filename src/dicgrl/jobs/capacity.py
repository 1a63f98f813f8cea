"""What a graph of some size takes: memory, time and devices, before anything is built.

Memory is counted from the settings, for facts that are read from files and learned by one run.
Times are those of short measurements on this machine, scaled by the number of positives, triples or
entities; nothing is said of machines that were not measured.
"""

from __future__ import annotations

import math
import os
import time
from bisect import bisect_right
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from dicgrl.common.devices import device_name, free_memory
from dicgrl.common.memory import free_on_host
from dicgrl.common.room import SPILL_VARIABLE, spills
from dicgrl.errors import UserError, unknown_name
from dicgrl.evaluation import Ranker
from dicgrl.evaluation.ranks import BESIDE_SCORE, MEMORY_BOUND
from dicgrl.graph import KnowledgeGraph, KnowledgePart, Vocabulary
from dicgrl.graph.knowledge.keys import MAX_ENTITIES, MAX_TRIPLES, NARROW_ENTITIES
from dicgrl.models import KnowledgeModel
from dicgrl.models.division import VectorSettings
from dicgrl.models.queries.ranks import MatrixCounts
from dicgrl.parallel.trainer import check_shared
from dicgrl.settings import Settings
from dicgrl.strategies.effort import usual_of
from dicgrl.trainers.from_settings import model_of, objective_of
from dicgrl.training import Schedule, TrainingSet, all_entities, fit
from dicgrl.training.adam import is_rowwise, numbers_beside, state_bytes, will_be_sparse
from dicgrl.training.objective import step_bytes
from dicgrl.training.settings import LinkSchedule, LinkTraining

# Bytes on the host, by `benchmarks/intake.py`: what is held, and what besides while it is taken in.
_TRIPLE, _ENTITY, _ARRIVING = 60, 250, 60
_READ_TRIPLE, _READ_ENTITY = 12, 120  # of the stream that was read, which lasts as long as the run
# By `benchmarks/peak.py`: of a process that learned a few facts; of pyarrow, which reads Parquet.
_PROCESS, _ARROW = 375 << 20, 110 << 20
# Of arrays that were freed and not given back to the system, per triple; large ones all are.
_KEPT, _MOST_KEPT = 120, 345_000_000
_LONGEST = 8  # of a triple, in the arrays of a graph
_WIDE = 8  # more of a triple where the ids of one need two numbers
# Bytes on the device of a triple that is learned: itself, its weight, a shuffle, and its place
# among the known answers to its two questions. Sorting these takes some more, for a while.
_LEARNED, _ANSWERS, _SORTED = 24 + 4 + 8, 2 * 24, 40
_KNOWN, _SORTING = "triples and known answers", "while these are sorted"
_STEP, _RANKING = "a step", "ranking, at most"
_COPIES = 3  # of rows that several processes send: themselves, gradients, and those that return
_RELATIONS = 1000
_TESTED = 1000
_LARGEST_PROBE = 1 << 28  # bytes of rows that speed is measured with, on a CPU
_HISTORY, _TAKEN_IN = "history and index", "while they are taken in"
_ROWS, _COPY = "rows", "a copy of rows and state, to return to or to save"
# Of rankings by matrices on a CPU: questions at a time, and bytes of a question and a candidate.
QUESTIONS, _MATRIX_PAIR = 64, 12
_EXAMINED = 115_000_000  # bytes, at most, of the scores that probabilities are fitted on
SOURCES = ("parquet", "text")
_COMPARED = 1 << 14  # entities that a triple is compared with where that is all of them


@dataclass(frozen=True, slots=True)
class Size:
    """A graph to plan for.

    Attributes:
        entities: How many entities it has.
        triples: How many training triples.
        part: How many triples an update brings.
        ranks: How many processes learn it together, each on a device of its own.
        source: What it is read from: parquet, or text, which takes less memory.
    """

    entities: int
    triples: int
    part: int
    ranks: int = 1
    source: str = "parquet"

    def __post_init__(self) -> None:
        if min(self.entities, self.triples, self.part, self.ranks) < 1:
            raise UserError("entities, triples, part and ranks: expected at least 1 of each")
        if self.source not in SOURCES:
            raise unknown_name("source", self.source, SOURCES)
        if self.entities < self.ranks:
            raise UserError(f"{self.entities} entities are too few for {self.ranks} processes")


@dataclass(frozen=True, slots=True)
class Rates:
    """What this machine did in short measurements.

    Attributes:
        positives: Positives per second of training.
        indexed: Triples per second that a graph takes in.
        ranked: Pairs of a question and a candidate per second.
        rows: Entities of the model that it was measured with.
    """

    positives: float
    indexed: float
    ranked: float
    rows: int


def plan_capacity(
    size: Size, settings: Settings, device: torch.device, *, measured: bool = True
) -> dict[str, Any]:
    """What the graph takes on a device; times only where speed is measured.

    Args:
        size: How large it is.
        settings: Of link prediction.
        device: Where it would be learned.
        measured: Whether to measure how fast that is.

    Raises:
        UserError: Several processes cannot learn what the settings say.
    """
    if size.ranks > 1:
        check_shared(settings)
    on_device, on_host = memory_of(size, settings, device)
    free = free_memory(device)
    on_disk = _spilled(size, on_host)
    needed = _needed(on_device, on_host, device, spilled=on_disk > 0)
    devices = None if not free else math.ceil(needed / free)
    rates = measure_rates(size, settings, device) if measured else None
    return {
        **asdict(size),
        "model": settings.model,
        "dim": settings.of(VectorSettings).dim,
        "device": device_name(device),
        "memory": {"device": on_device, "host": on_host},
        "spilled_bytes": on_disk,
        "needed_bytes": needed,
        "free_bytes": free,
        "host_free_bytes": free_on_host(),
        "fits": free is None or needed <= free,
        "devices": devices,
        "store_bytes": _stored(size, settings),
        "rates": None if rates is None else asdict(rates),
        "seconds": None if rates is None else seconds_of(size, settings, device, rates),
        "sent_bytes": sent_in_epoch(size, settings),
        "advice": advice(size, settings, device, needed, free),
    }


def memory_of(
    size: Size, settings: Settings, device: torch.device
) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes on the device, and on the host, by what they are for; of several ranks on each."""
    vectors, schedule = settings.of(VectorSettings), settings.of(LinkSchedule)
    table = model_of(settings.model, settings, device=device).entities
    rows = size.entities * vectors.length // table.width
    number = 2 if vectors.precision == "bfloat16" else 4
    rule = schedule.optimizer
    if rule == "auto":  # goes by the whole table
        rule = "rowwise" if is_rowwise(table, rule, rows) else "adam"
    rows = math.ceil(rows / size.ranks)
    every = state_bytes(table, rule, vectors.precision, rows)
    on_device = {
        _ROWS: rows * table.width * number,
        "gradients and optimizer": round(rows * table.width * (every - number)),
        _COPY: _copied(size, settings, rows, device),
        _STEP: _step_bytes(size, settings, rows, device),
        _KNOWN: round(size.triples * (_LEARNED + _ANSWERS / size.ranks)),
        _SORTING: size.triples * _SORTED,
        _RANKING: _ranking_bytes(size, settings, device),
    }
    on_host = {
        "Python and PyTorch": _PROCESS,
        **({"pyarrow": _ARROW} if size.source == "parquet" else {}),
        "facts as they were read": size.triples * _READ_TRIPLE + size.entities * _READ_ENTITY,
        _HISTORY: size.triples * (_TRIPLE + _WIDE * (size.entities > NARROW_ENTITIES)),
        "labels": size.entities * _ENTITY,
        _TAKEN_IN: size.triples * _ARRIVING,
        "freed, but not given back": min(size.triples * _KEPT, _MOST_KEPT),
    }
    if size.ranks > 1:
        on_host["the whole model, to load or commit it"] = _model_bytes(size, settings)
    return on_device, on_host


def _needed(
    on_device: dict[str, int], on_host: dict[str, int], device: torch.device, *, spilled: bool
) -> int:
    """The most bytes that have to fit at one time where the device has its memory.

    Known answers are sorted, then steps are taken, then test triples are ranked: of these only what
    takes most is counted.
    """
    passing = {name: on_device[name] for name in (_SORTING, _COPY, _STEP, _RANKING)}
    learning = sum(on_device.values()) - sum(passing.values())
    learning += max(passing[_SORTING], passing[_COPY] + passing[_STEP], passing[_RANKING])
    if device.type != "cpu":
        return learning
    held = sum(on_host.values()) - on_host[_TAKEN_IN]
    if spilled:
        return held - on_host[_HISTORY] + learning
    return held + max(learning, on_host[_TAKEN_IN])


def _spilled(size: Size, on_host: dict[str, int]) -> int:
    """Bytes that are on a disk instead of in the host's memory, as the environment says."""
    return on_host[_HISTORY] + on_host[_TAKEN_IN] if spills(_LONGEST * size.triples) else 0


def _step_bytes(size: Size, settings: Settings, rows: int, device: torch.device) -> int:
    """Bytes of a step of each rank, which has so many rows, besides these and their state."""
    vectors, own = settings.of(VectorSettings), settings.of(LinkTraining)
    batch = min(settings.of(LinkSchedule).fitted(size.triples).batch, size.triples)
    batch = math.ceil(batch / size.ranks)
    if not own.negatives:
        on_gpu = device.type == "cuda"
        return all_entities.step_bytes(batch, size.entities, vectors.length, on_gpu=on_gpu)
    model = model_of(settings.model, settings, device=device)
    sparse = will_be_sparse(model.entities, vectors.precision, rows)
    share = own.share or 1
    if size.ranks == 1:
        return step_bytes(model, batch, own.negatives, share, sparse=sparse)
    # Several ranks work on copies of the entities of a step, all of which have gradients.
    copied = min(batch * (own.negatives + 2), 2 * batch + math.ceil(size.entities / size.ranks))
    copies = 4 * vectors.length * copied * (_COPIES + sparse)
    return step_bytes(model, batch, own.negatives, share, sparse=False) + copies


def _ranking_bytes(size: Size, settings: Settings, device: torch.device) -> int:
    """Bytes that scores of test triples take at a time, at most."""
    model = model_of(settings.model, settings, device=device)
    path = model.fast_counts()
    if isinstance(path, MatrixCounts) and device.type == "cpu":
        among = math.ceil(size.entities / size.ranks)
        fitting = max(8 * MEMORY_BOUND // (path.pair_bits * among), 1)  # by the bound of `Ranker`
        ranked = min(QUESTIONS, fitting) * among * _MATRIX_PAIR
        return max(ranked, min(_TESTED * among * _MATRIX_PAIR, _EXAMINED))
    bits = 8 * (model.pair_bytes() + BESIDE_SCORE) if path is None else path.pair_bits
    return min(MEMORY_BOUND, _TESTED * math.ceil(size.entities / size.ranks) * bits // 8)


def _copied(size: Size, settings: Settings, rows: int, device: torch.device) -> int:
    """Bytes of a copy of rows and state: of a large table on a GPU there is none without room."""
    table = model_of(settings.model, settings, device=device).entities
    number = 2 if settings.of(VectorSettings).precision == "bfloat16" else 4
    if device.type == "cuda" and rows * table.width * number > table.dense_bytes:
        return 0
    return math.ceil(_model_bytes(size, settings) / size.ranks)


def _stored(size: Size, settings: Settings) -> int:
    """Bytes of a run folder with one version: rows, state, triples and labels."""
    return _model_bytes(size, settings) + 24 * size.triples + 12 * size.entities


def sent_in_epoch(size: Size, settings: Settings) -> int:
    """Bytes that each rank sends in an epoch, at most: repeated heads and tails are sent once.

    Of each, its id is asked for, its vector comes and its gradient goes back; a ring sends the
    gradients of a batch's relations twice.
    """
    vectors, others = settings.of(VectorSettings), (size.ranks - 1) / size.ranks
    batch = settings.of(LinkSchedule).fitted(size.triples).batch
    number = 2 if vectors.precision == "bfloat16" else 4
    ends = 2 * size.triples / size.ranks * (8 + (4 + number) * vectors.length)
    steps, relations = math.ceil(size.triples / batch), min(_RELATIONS, batch)
    return round(others * (ends + steps * 2 * 4 * relations * vectors.length))


def _model_bytes(size: Size, settings: Settings) -> int:
    """Bytes of all rows of entities with their state."""
    vectors = settings.of(VectorSettings)
    rule = settings.of(LinkSchedule).optimizer
    table = model_of(settings.model, settings).entities
    rows = size.entities * vectors.length // table.width
    number = 2 if vectors.precision == "bfloat16" else 4
    state = 4 * numbers_beside(table, rule, rows)
    return round(rows * table.width * (number + state))


def seconds_of(
    size: Size, settings: Settings, device: torch.device, rates: Rates
) -> dict[str, float]:
    """How long it takes, by what was measured; of several ranks without what they exchange."""
    schedule = settings.of(LinkSchedule).fitted(size.triples)
    positives = rates.positives * size.ranks
    if not settings.of(LinkTraining).negatives:  # each is compared with all entities
        positives *= rates.rows / size.entities
    epoch = size.triples / positives
    update = usual_of(device.type, size.part, size.triples, schedule.epochs)
    return {
        "taken in": size.triples / rates.indexed,
        "epoch": epoch,
        "epochs": schedule.epochs,
        "training": epoch * schedule.epochs,
        "update": update / positives + size.part / rates.indexed,
        f"ranking of {_TESTED:,} triples": 2 * _TESTED * size.entities / rates.ranked / size.ranks,
    }


def advice(
    size: Size, settings: Settings, device: torch.device, needed: int, free: int | None
) -> list[str]:
    """What to do, in sentences; nothing where all is well."""
    found = []
    for count, most, what in (
        (size.entities, MAX_ENTITIES, "entities"),
        (size.triples, MAX_TRIPLES, "triples to learn from"),
    ):
        if count > most:
            found.append(f"a graph holds at most {most:,} {what}")
    if free is None or needed <= free:
        return found
    if device.type == "cpu" and not os.environ.get(SPILL_VARIABLE):
        on_host = memory_of(size, settings, device)[1]
        mapped = on_host[_HISTORY] + on_host[_TAKEN_IN]
        if spills(_LONGEST * size.triples, "a folder"):
            found.append(
                f"{SPILL_VARIABLE}=FOLDER keeps {mapped / 1e9:,.1f} GB of triples and index on a "
                "disk instead"
            )

    def needed_with(changes: dict[str, Any]) -> int:
        on_device, on_host = memory_of(size, settings.changed(changes), device)
        return _needed(on_device, on_host, device, spilled=_spilled(size, on_host) > 0)

    smaller: dict[str, Any] = {"optimizer": "rowwise"}
    for more in ({}, {"precision": "bfloat16"}):
        smaller |= more
        less = needed_with(smaller)
        if less < needed:
            said = " ".join(f"--set {name}={value}" for name, value in smaller.items())
            fits = "which fits" if less <= free else "which does not fit either"
            found.append(f"{said} takes {less / 1e9:,.1f} GB, {fits}")
        if less <= free:
            return found
    fours = range(settings.of(VectorSettings).dim // 4 + 1)
    dim = 4 * (
        bisect_right(fours, free, lo=1, key=lambda n: needed_with(smaller | {"dim": 4 * n})) - 1
    )
    found.append(
        f"with these, --set dim={dim} fits"
        if dim
        else "the triples alone do not fit: learn them in parts on a machine with more memory"
    )
    return found


def measure_rates(size: Size, settings: Settings, device: torch.device) -> Rates:
    """Short measurements with a random graph, as large as a few seconds and the memory allow."""
    model = model_of(settings.model, settings, device=device)
    free = free_memory(device)
    most = _LARGEST_PROBE if device.type == "cpu" else 1 << 34
    most = min(most, most if free is None else free // 8)
    rows = max(min(size.entities, most // (4 * model.length)), 2)
    if not settings.of(LinkTraining).negatives:  # a step looks at all of them
        rows = min(rows, _COMPARED)
    few = min(max(size.triples // max(size.entities // rows, 1), 16), 200_000)
    random = np.random.default_rng(0)
    triples = np.stack([random.integers(0, most, few) for most in (rows, 100, rows)], axis=1)
    model.grow(rows, 100)
    known = torch.from_numpy(triples).to(device)
    pairs = min(few, 64)
    ranker = Ranker(known, 100)
    ranker.rank(model, known[:1], range(rows))
    started = time.perf_counter()
    ranker.rank(model, known[:pairs], range(rows)).realistic.sum().item()
    ranked = 2 * pairs * rows / (time.perf_counter() - started)
    return Rates(_positives(settings, model, known), _indexed(triples, rows), ranked, rows)


def _positives(settings: Settings, model: KnowledgeModel, known: torch.Tensor) -> float:
    """Positives per second of the best of some short epochs."""
    device, seconds = known.device, 0.0
    generator = torch.Generator(device).manual_seed(0)
    every, relations = range(model.num_entities), model.num_relations
    objective = objective_of(settings, every, relations, known, generator)
    batch = settings.of(LinkSchedule).fitted(len(known)).batch
    some = known[: (64 if device.type == "cuda" else 2) * batch]
    lesson = TrainingSet(lambda rows, weight: objective(model, rows, weight), some)
    best = 0.0
    while seconds < 1.5:
        schedule = Schedule(epochs=3, batch=batch, optimizer=settings.of(LinkSchedule).optimizer)
        report = fit(model, lesson, schedule, generator)
        seconds += report.seconds
        best = max([best, *(epoch.rate for epoch in report.history[1:])])
    return best


def _indexed(triples: np.ndarray[Any, Any], entities: int) -> float:
    """Triples per second that a graph takes in."""
    labels, kinds = (Vocabulary(map(str, range(count))) for count in (entities, 100))
    none = triples[:0]
    part = KnowledgePart(0, labels, kinds, range(entities), range(100), triples, none, none)
    started = time.perf_counter()
    KnowledgeGraph().add(part)
    return len(triples) / (time.perf_counter() - started)
