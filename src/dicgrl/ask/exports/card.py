"""safetensors with a model card, in the layout that the Hugging Face hub expects.

`README.md` begins with what the hub reads: YAML, in which every value is written as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from dicgrl.ask.exports.arrays import held_arrays, write_labels
from dicgrl.ask.exports.format import VectorFormat
from dicgrl.ask.exports.takeout import Takeout
from dicgrl.common.atomic import as_json
from dicgrl.common.tensors import write_tensors

_METRICS = {"mrr": "MRR", "hits@1": "Hits@1", "hits@3": "Hits@3", "hits@10": "Hits@10",
            "accuracy": "accuracy"}  # fmt: skip


class Safetensors(VectorFormat, name="safetensors"):
    """`vectors.safetensors`, labels as `.tsv`, `README.md` and `config.json`."""

    heeds = ("license",)

    @override
    def write(self, takeout: Takeout, folder: Path) -> None:
        write_tensors(held_arrays(takeout), folder / "vectors.safetensors", {"format": "pt"})
        write_labels(takeout, folder)
        (folder / "config.json").write_text(as_json(dict(takeout.about)), encoding="utf-8")
        (folder / "README.md").write_text(model_card(takeout), encoding="utf-8")


def model_card(takeout: Takeout) -> str:
    """The card: what it is, data, protocol, numbers, licence, and how to read the files."""
    about = takeout.about
    dataset = about.get("dataset") or "data of one's own"
    title = f"{about.get('model', 'vectors')} of {dataset}"
    sections = [
        f"---\n{_header(about, title)}---",
        f"# {title}",
        _what(takeout),
        "## Data\n\n" + _data(about),
        "## Protocol\n\n" + _bullets(about.get("protocol", {})),
        "## Numbers\n\n" + _numbers(about),
        "## Licence\n\n" + _licence(about),
        "## Files\n\n" + _files(takeout),
    ]
    return "\n\n".join(sections) + "\n"


def _header(about: Mapping[str, Any], title: str) -> str:
    fields: dict[str, Any] = {
        "library_name": "dicgrl",
        "pipeline_tag": "graph-ml",
        "tags": [
            word for word in ("graph-embedding", about.get("task"), about.get("model")) if word
        ],
    }
    if about.get("license"):
        fields["license"] = about["license"]
    if tests := _whole(about):
        metrics = [{"type": key, "name": _METRICS[key], "value": tests[key]} for key in tests]
        task = {"type": about.get("task", "graph-ml")}
        dataset = {"type": "graph", "name": str(about.get("dataset") or "own data")}
        results = [{"task": task, "dataset": dataset, "metrics": metrics}]
        fields["model-index"] = [{"name": title, "results": results}]
    return "".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in fields.items()
    )


def _what(takeout: Takeout) -> str:
    about = takeout.about
    counts = ", ".join(f"{count:,} {kind}" for kind, count in about.get("counts", {}).items())
    told = f"Vectors of {counts}" if counts else "Vectors"
    if about.get("strategy"):
        told += (
            f", learned by the strategy `{about['strategy']}` in {about.get('parts', 1):,} parts "
            f"as they arrived (seed {about.get('seed', 0)})"
        )
    told += (
        f". Made by [dicgrl](https://pypi.org/project/dicgrl/) {about.get('dicgrl', '')}".rstrip()
        + "."
    )
    if takeout.changed:
        told += " These are only the rows that changed since an earlier version."
    return told


def _data(about: Mapping[str, Any]) -> str:
    told = {key: about[key] for key in ("dataset", "task", "recipe", "version") if about.get(key)}
    return _bullets(told)


def _numbers(about: Mapping[str, Any]) -> str:
    tests = _whole(about)
    if not tests:
        return "Nothing was measured: there is no test set, or none was asked about."
    evaluation = about["evaluation"]
    average = evaluation["average"]
    count = sum(test["count"] for test in evaluation["tests"])
    lines = [
        f"All {count:,} test examples of all parts so far (whole), and the mean of the parts:",
        "",
        "| metric | whole | mean of parts |",
        "|---|---|---|",
        *(f"| {_METRICS[key]} | {tests[key]:.4f} | {average[key]:.4f} |" for key in tests),
    ]
    if evaluation.get("forgetting") is not None:
        lines += ["", f"Forgetting: {evaluation['forgetting']:.4f}."]
    sampled = [test["sampled"] for test in evaluation["tests"] if "sampled" in test]
    if sampled:
        lines += ["", f"Measured on a sample; of {len(sampled):,} parts not all was asked."]
    return "\n".join(lines)


def _whole(about: Mapping[str, Any]) -> dict[str, float]:
    """Metrics of all test examples that have a name here; empty where none was measured."""
    whole = (about.get("evaluation") or {}).get("whole") or {}
    return {key: float(whole[key]) for key in _METRICS if key in whole}


def _licence(about: Mapping[str, Any]) -> str:
    if about.get("license"):
        return f"`{about['license']}`, as whoever exported the vectors says."
    return (
        "Not said by whoever exported the vectors. They are made from the data above; what its "
        "licence asks holds for them, too."
    )


def _files(takeout: Takeout) -> str:
    named = [f"`{name}` {list(array.shape)}" for name, array in takeout.arrays.items()]
    return (
        f"`vectors.safetensors` holds {', '.join(named)}. Row i belongs to line i + 1 of the "
        "`.tsv` of that name"
        + (" (id, label, name)" if takeout.changed else " (label, name)")
        + ".\n\n```python\nfrom safetensors.numpy import load_file\n\n"
        'arrays = load_file("vectors.safetensors")\n```\n\n'
        "`config.json` has the settings."
    )


def _bullets(told: Mapping[str, Any]) -> str:
    return "\n".join(f"- {key}: {value}" for key, value in told.items()) or "- not said"
