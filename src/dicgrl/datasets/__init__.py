"""Datasets by name: two built in, the paper's five, and the user's own by path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

from dicgrl.datasets.locate import DATA_VARIABLE, cache_folder, find_dataset, find_names
from dicgrl.datasets.paper import PAPER_DATASETS, PaperDataset
from dicgrl.errors import UserError, unknown_name
from dicgrl.graph import KnowledgeStream, NetworkStream, Stream
from dicgrl.graph.holdout import check_shares
from dicgrl.readers import read_stream
from dicgrl.readers.names_file import read_names_file

__all__ = ["Dataset", "check_there", "datasets", "load_stream", "paper_dataset", "registered"]

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
    """

    name: str
    task: str
    about: str
    place: Path | None
    built_in: bool


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
    for name, dataset in PAPER_DATASETS.items():
        known.append(
            Dataset(name, dataset.task, "of the paper", find_dataset(name), built_in=False)
        )
    return known


def paper_dataset(name: str) -> PaperDataset:
    """One of the paper's datasets by name."""
    if name in _BUILT_IN:
        raise UserError(f"{name} comes with the package; there is nothing to fetch")
    if name not in PAPER_DATASETS:
        raise unknown_name("dataset", name, PAPER_DATASETS)
    return PAPER_DATASETS[name]


def registered(source: str | Path) -> str:
    """The name of the dataset that a source means; empty for a path, whatever it is called.

    Recipes of a dataset, and the numbers that were published for it, are for no other data.

    Example:
        >>> registered("films"), registered("./films"), registered(Path("films"))
        ('films', '', '')
    """
    known = isinstance(source, str) and (source in _BUILT_IN or source in PAPER_DATASETS)
    return str(source) if known else ""


def load_stream(
    source: str | Path | Sequence[str | Path],
    *,
    valid: float = 0.0,
    test: float = 0.0,
    seed: int = 0,
    labels: str | Path | None = None,
) -> Stream:
    """Load a stream by the name of a dataset or from the user's own data.

    Args:
        source: A name (`films`, `FB15k-237`, ...), a path, or a list of files (one part each); a
            name counts before a folder of that name in the working directory, which can be given as
            `./name`.
        valid: Share to hold out for validation in parts that bring no such set.
        test: Share to hold out for testing likewise.
        seed: Seed of that division.
        labels: File of readable names (id TAB name), instead of `labels.tsv` beside the data.

    Example:
        >>> len(load_stream("films"))
        5
    """
    check_shares(valid, test)
    read = partial(read_stream, valid=valid, test=test, seed=seed, labels=labels)
    if not isinstance(source, str | Path):
        return read(source)
    name = registered(source)
    if name in _BUILT_IN:
        with as_file(files("dicgrl.datasets") / "builtin" / _BUILT_IN[name][0]) as path:
            return read(path, name=name)
    if name:
        stream = read(_place_of(name), name=name)
        names = find_names(name) if labels is None else None
        return replace(stream, names=read_names_file(names)) if names else stream
    if str(source) and Path(source).exists():  # "" would be the working directory
        return read(source)
    if _looks_like_path(source):
        raise UserError(f"{source}: no such file or folder")
    raise unknown_name("dataset", str(source), [*_BUILT_IN, *PAPER_DATASETS])


def check_there(source: str | Path) -> None:
    """Refuse a dataset of the paper that was not fetched.

    Raises:
        UserError: It is not on this machine; the message says how to get it.
    """
    name = registered(source)
    if name in PAPER_DATASETS:
        _place_of(name)


def _place_of(name: str) -> Path:
    place = find_dataset(name)
    if place is None:
        raise UserError(
            f"{name} is not on this machine: run `dicgrl datasets fetch {name}`, or set "
            f"{DATA_VARIABLE} to a folder that holds {name}/ or {name}.tar.gz "
            f"(looked in {cache_folder()} too)"
        )
    return place


def _looks_like_path(source: str | Path) -> bool:
    return isinstance(source, Path) or any(sign in str(source) for sign in "/\\.")
