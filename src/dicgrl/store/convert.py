"""Convert runs of earlier formats; old files are deleted once the new store is complete."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from dicgrl.common.atomic import hidden_name, sync
from dicgrl.store.database import as_text, create, opened
from dicgrl.store.records import StoredRun, insert_content, insert_names, insert_version
from dicgrl.store.released import ReleasedRun, files_of
from dicgrl.store.writer import insert_model, prune, remove_garbage, write_tensor_files


def convert(folder: Path, target: Path) -> None:
    """Write the database of a run of an earlier format, and the tensors beside it.

    The run is of the earlier format until the last step, which gives the database its name.

    Args:
        folder: The run's folder, which nobody else writes to.
        target: The database.

    Raises:
        DataError: The run is damaged.
    """
    run = ReleasedRun(folder)
    temporary = hidden_name(target)
    create(temporary, run.config)
    with opened(temporary, write=True) as database:
        stored = StoredRun(database)
        remove_garbage(stored.folder, [])
        versions = run.versions()
        parent = 0
        for version in versions:
            model = run.model(version.number)
            files = []
            if model is not None:
                files = write_tensor_files(stored, model, version.number, parent)
            with database.transaction():
                insert_content(database, version.number, run.content(version))
                insert_version(database, version)
                if model is not None:
                    insert_model(
                        database, version.number, version.number, model.configuration, files
                    )
                    parent = version.number
        with database.transaction():
            insert_names(database, len(versions), run.names(len(versions)))
            for number, epochs in run.trace().items():
                database.insert("trace", version=number, epochs=as_text(epochs))
            database.change_config(versions=len(versions))
            prune(stored, "all")
    sync(temporary)
    temporary.rename(target)
    sync(folder)


def remove_released(folder: Path) -> None:
    """Remove the files of an earlier format, which a store has replaced."""
    for path in files_of(folder):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            with suppress(FileNotFoundError):
                path.unlink()
