"""Datasets by name: two built in, the paper's five, LKGE's four, one derived; others by path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

from dicgrl.datasets.growth import DERIVED_DATASETS, LKGE_DATASETS
from dicgrl.datasets.locate import DATA_VARIABLE, cache_folder, find_dataset, find_names
from dicgrl.datasets.paper import PAPER_DATASETS
from dicgrl.datasets.published import Published
from dicgrl.errors import UserError, unknown_name
from dicgrl.graph import SPLITS, KnowledgeStream, NetworkStream, Stream
from dicgrl.graph.holdout import check_shares
from dicgrl.graph.labelled import Triples
from dicgrl.readers import Reading, read_stream
from dicgrl.readers.names_file import read_names_file
from dicgrl.readers.remote import is_url

__all__ = [
    "Dataset",
    "check_there",
    "datasets",
    "load_stream",
    "published_dataset",
    "registered",
    "sizes_of",
]

_BUILT_IN = {  # name: (file or folder of the package, task)
    "films": ("films", KnowledgeStream.task),
    "film-genres": ("film-genres.npz", NetworkStream.task),
}


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that is known by name.

    Attributes:
        name: Its name.
        task: Name of what it is for.
        about: What it is, in a few words.
        place: Where it lies; None if it has to be fetched first.
        built_in: Whether it comes with the package.
        parts: Number of parts; 0 where the stream itself has to be asked.
        sizes: What it holds in all, such as entities and triples, where that is known.
        get: How to get it.
    """

    name: str
    task: str
    about: str
    place: Path | None
    built_in: bool
    parts: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)
    get: str = ""


def sizes_of(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """What parts hold together, given what is counted in each.

    Example:
        >>> sizes_of([{"entities": 2, "train": 5, "valid": 1, "test": 1}])
        {'entities': 2, 'triples': 7}
    """
    every = list(parts)
    found = {
        key: sum(part[key] for part in every)
        for key in ("entities", "nodes", "edges")
        if key in every[0]
    }
    if "entities" in found:
        found["triples"] = sum(part[split] for part in every for split in SPLITS)
    return found


def _published(counts: Mapping[str, tuple[int, ...]]) -> tuple[int, dict[str, int]]:
    """How many parts there are and what they hold together, by counts of one value per part."""
    columns = zip(*counts.values(), strict=True)
    parts = [dict(zip(counts, column, strict=True)) for column in columns]
    return len(parts), sizes_of(parts)


def datasets() -> list[Dataset]:
    """All datasets known by name and where they are.

    Example:
        >>> [dataset.name for dataset in datasets() if dataset.built_in]
        ['films', 'film-genres']
    """
    about = {
        "films": "facts about films of Wikidata, by release period",
        "film-genres": "films linked by shared people, genre as class",
    }
    package = Path(str(files("dicgrl.datasets") / "builtin"))
    known = [
        Dataset(name, task, about[name], package / place, built_in=True)
        for name, (place, task) in _BUILT_IN.items()
    ]
    task = KnowledgeStream.task
    for name, dataset in PAPER_DATASETS.items():
        parts, sizes = _published(dataset.counts)
        place, get = find_dataset(name), f"dicgrl datasets fetch {name}"
        known.append(Dataset(name, dataset.task, "of the paper", place, False, parts, sizes, get))
    for name, lkge in LKGE_DATASETS.items():
        parts, sizes = _published(lkge.counts)
        get = f"dicgrl datasets fetch {name}"
        known.append(Dataset(name, task, lkge.about, find_dataset(name), False, parts, sizes, get))
    for name, derived in DERIVED_DATASETS.items():
        (source,) = (each for each in known if each.name == derived.source)
        known.append(replace(source, name=name, about=derived.about, parts=derived.parts))
    return known


def _names() -> list[str]:
    return [*_BUILT_IN, *PAPER_DATASETS, *LKGE_DATASETS, *DERIVED_DATASETS]


def published_dataset(name: str) -> Published:
    """What can be fetched under a name: the paper's datasets, and LKGE's."""
    if name in _BUILT_IN:
        raise UserError(f"{name} comes with the package; there is nothing to fetch")
    if name in DERIVED_DATASETS:
        source = DERIVED_DATASETS[name].source
        raise UserError(f"{name} is made of {source}: run `dicgrl datasets fetch {source}`")
    known: dict[str, Published] = {**PAPER_DATASETS, **LKGE_DATASETS}
    if name not in known:
        raise unknown_name("dataset", name, known)
    return known[name]


def registered(source: str | Path) -> str:
    """The name of the dataset that a source means; empty for a path, whatever it is called.

    Recipes of a dataset, and the numbers that were published for it, are for no other data.

    Example:
        >>> registered("films"), registered("./films"), registered(Path("films"))
        ('films', '', '')
    """
    return source if isinstance(source, str) and source in _names() else ""


def load_stream(
    source: str | Path | Sequence[str | Path] | Triples,
    *,
    valid: float = 0.0,
    test: float = 0.0,
    seed: int = 0,
    labels: str | Path | None = None,
    reading: Reading | None = None,
) -> Stream:
    """Load a stream by the name of a dataset or from the user's own data.

    Args:
        source: A name (`films`, `FB15k-237`, ...), a path, a list of files (one part each), or
            facts, as a list or a data frame. A name counts before a folder of that name in the
            working directory, which can be given as `./name`.
        valid: Share to hold out for validation in parts that bring no such set.
        test: Share to hold out for testing likewise.
        seed: Seed of that division.
        labels: File of readable names (id TAB name), instead of `labels.tsv` beside the data.
        reading: How files of triples of one's own are to be read.

    Example:
        >>> len(load_stream("films"))
        5
    """
    check_shares(valid, test)
    read = partial(read_stream, valid=valid, test=test, seed=seed, labels=labels)
    if not isinstance(source, str | Path):
        return read(source, reading=reading)
    name = registered(source)
    if name and reading not in (None, Reading()):
        raise UserError(f"{name} is a known dataset: leave out the options for reading files")
    if name in _BUILT_IN:
        with as_file(files("dicgrl.datasets") / "builtin" / _BUILT_IN[name][0]) as path:
            return read(path, name=name)
    if name in DERIVED_DATASETS:
        derived = DERIVED_DATASETS[name]
        made = load_stream(derived.source, valid=valid, test=test, seed=seed, labels=labels)
        return replace(derived.make(made), name=name)
    if name:
        stream = read(_place_of(name), name=name)
        if name in LKGE_DATASETS:
            LKGE_DATASETS[name].check(stream)
        names = find_names(name) if labels is None else None
        return replace(stream, names=read_names_file(names)) if names else stream
    if is_url(source) or (
        str(source) and Path(source).exists()
    ):  # "" would be the working directory
        return read(source, reading=reading)
    if str(source) == "-":
        raise UserError("-: a stream is read from a file or folder, not from standard input")
    if _looks_like_path(source):
        raise UserError(f"{source}: no such file or folder")
    raise unknown_name("dataset", str(source), _names())


def check_there(source: str | Path) -> None:
    """Refuse a known dataset that is not on this machine.

    Raises:
        UserError: It is not on this machine; the message says how to get it.
    """
    name = registered(source)
    if name in DERIVED_DATASETS:
        name = DERIVED_DATASETS[name].source
    if name and name not in _BUILT_IN:
        _place_of(name)


def _place_of(name: str) -> Path:
    place = find_dataset(name)
    if place is not None:
        return place
    raise UserError(
        f"{name} is not on this machine: run `dicgrl datasets fetch {name}`, or {_set_to(name)}"
    )


def _set_to(name: str) -> str:
    return (
        f"set {DATA_VARIABLE} to a folder that holds {name}/ or {name}.tar.gz "
        f"(looked in {cache_folder()} too)"
    )


def _looks_like_path(source: str | Path) -> bool:
    return isinstance(source, Path) or any(sign in str(source) for sign in "/\\.")
