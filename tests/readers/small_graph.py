"""A small knowledge graph, written to files as a user might have them."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path

from dicgrl import KnowledgeStream, read_stream
from tests.streams import KnowledgeLists

PARTS: KnowledgeLists = [
    {
        "train": [("Alien", "genre", "horror"), ("Brazil", "genre", "satire, dark")],
        "valid": [("Alien", "year", "1979")],
        "test": [("Brazil", "year", "1985"), ("Brazil", "cast", 'De Niro "Bob"')],
    },
    {
        "train": [("Aliens", "sequel of", "Alien"), ("Zoë", "cast", "Aliens")],
        "valid": [("Aliens", "genre", "horror")],
        "test": [("Aliens", "year", "1986")],
    },
]


ONLY_TRAIN: KnowledgeLists = [{"train": p["train"], "valid": [], "test": []} for p in PARTS]


HEADERS = ["head{0}relation{0}tail", "Subject{0}Predicate{0}Object", "h{0}r{0}t"]


def lines(triples: list[tuple[str, str, str]], ending: str, header: str = "") -> str:
    if ending == ".csv":
        rows = [",".join('"' + f.replace('"', '""') + '"' for f in t) for t in triples]
    else:
        rows = ["\t".join(triple) for triple in triples]
    if header:
        rows.insert(0, header.format("," if ending == ".csv" else "\t"))
    return "\n".join(rows)


def put(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def read_knowledge(path: Path | list[Path], **options: float) -> KnowledgeStream:
    stream = read_stream(path, **options)
    assert isinstance(stream, KnowledgeStream)
    return stream


def pack(folder: Path, ending: str) -> Path:
    path = folder.with_name(folder.name + ending)
    with tarfile.open(path, {".tar": "w", ".tar.xz": "w:xz"}.get(ending, "w:gz")) as archive:
        archive.add(folder, folder.name)
    return path


DECORATIONS: dict[str, Callable[[str], bytes]] = {
    "as it is": lambda s: s.encode(),
    "last line ended": lambda s: (s + "\n").encode(),
    "blank lines at the end": lambda s: (s + "\n\n\n").encode(),
    "CRLF": lambda s: (s + "\n").replace("\n", "\r\n").encode(),
    "byte order mark": lambda s: s.encode("utf-8-sig"),
}


def authors(root: Path) -> Path:
    """The authors' layout, with entities that no triple of their part mentions."""
    listed = [["x", "Alien", "horror", "Brazil", "satire, dark"], ["Aliens", "y", "Zoë"]]
    known: list[str] = []
    relations = ["sequel of", "genre", "cast"]
    for i, (part, new) in enumerate(zip(PARTS, listed, strict=True)):
        known += new
        put(root / str(i) / "entity2id.txt", "".join(f"{e}\t{n}\n" for n, e in enumerate(known)))
        put(
            root / str(i) / "relation2id.txt",
            "".join(f"{r}\t{n}\n" for n, r in enumerate(relations)),
        )
        put(root / str(i) / "train.txt", lines(part["train"], ".txt"))
    return root
