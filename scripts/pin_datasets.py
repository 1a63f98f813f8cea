"""Write the digests and sizes of published datasets that `dicgrl datasets fetch` compares with.

Run `DICGRL_DATA=FOLDER python scripts/pin_datasets.py`; the folder holds the datasets as the
authors publish them, in folders or archives.
"""

from __future__ import annotations

import io
from pathlib import Path

from dicgrl.datasets.growth import LKGE_DATASETS
from dicgrl.datasets.locate import find_dataset
from dicgrl.datasets.paper import PAPER_DATASETS
from dicgrl.datasets.pins import PINS_FILE, digest_of
from dicgrl.datasets.published import Published
from dicgrl.readers.sources import Folder, open_folder

TARGET = Path(__file__).resolve().parents[1] / "src" / "dicgrl" / "datasets" / PINS_FILE


def pins_text() -> str:
    """The lines of the list: digest, size, dataset and file."""
    every: list[Published] = [*PAPER_DATASETS.values(), *LKGE_DATASETS.values()]
    return "".join(line for dataset in every for line in lines_of(dataset))


def lines_of(dataset: Published) -> list[str]:
    """The lines of one dataset."""
    place = find_dataset(dataset.name)
    if place is None:
        raise SystemExit(f"{dataset.name} is not here; set DICGRL_DATA to the folder that holds it")
    lines = []
    for path in dataset.files:
        content = content_of(open_folder(place), path)
        digest = digest_of(io.BytesIO(content))
        lines.append(f"{digest}\t{len(content)}\t{dataset.name}/{path}\n")
    return lines


def content_of(folder: Folder | None, path: str) -> bytes:
    """The content of a file in a folder or the folders in it."""
    *above, name = path.split("/")
    for inner in above:
        folder = folder.folder(inner) if folder else None
    file = folder.file(name) if folder else None
    if file is None:
        raise SystemExit(f"{path} is missing")
    return file.read()


if __name__ == "__main__":
    TARGET.write_text(pins_text(), encoding="utf-8")
    print(f"{TARGET.name}: {sum(1 for _ in TARGET.open(encoding='utf-8'))} files")
