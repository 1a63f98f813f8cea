"""Compare the numbers of the pages with the measured files that they come from.

    python scripts/docs_numbers.py          what does not agree, and what names no source
    python scripts/docs_numbers.py --list   besides: where every number without a file comes from

A comment after a paragraph, list item or table names the source of its numbers, in their order:

    W is 52.0, 100.1 % of upper's 51.9.
    <!-- figures: table1-best[FB15k-237 transe dicgrl].whole; 100 * table1-best[FB15k-237 transe
    dicgrl].whole / table1-best[FB15k-237 transe upper].whole; table1-best[FB15k-237 transe
    upper].whole -->

- `table1-best[words].whole` is a row of docs/results/reproduce-table1-best.json (or of
  docs/results/table1-best.json): the only one that has all the words among its labels or in the
  title of its table; of several the one with most of them as whole labels. What follows the dot
  leads to the value; of seeds it is the mean, unless `.std`, `.least`, `.most` or `.paper` follows.
  `parts.1:` is a list; a blank in a key is `_`.
- Numbers are compared with the digits that the page shows. Expressions may use + - * /, least,
  most, mean and count.
- Each decimal number of the block needs its entry; `_` is one that is not measured here (the
  paper's, a setting). `#` before an entry means a whole number, the next one that agrees.
- `<!-- figures of A | B: ... -->` after a table says the same of each of its rows, with A, then B
  in place of `{}`.
- `<!-- figures: none -->` is a block in which nothing is measured.

A block without such a comment has to stand in a section that names a command or a page of the
archive.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "results"
_GENERATED = ("results.md", "leaderboard.md", "settings.md")  # compared as a whole by other tests

_MARK = re.compile(r"<!--\s*figures(?: of (?P<rows>[^:]*))?:(?P<entries>.*?)-->", re.DOTALL)
_REFERENCE = re.compile(r"([\w-]+)\[([^\]]*)\]((?:\.[\w@:%]+)+)")
_NUMBER = re.compile(r"(?<![\w.\d])[-+]?\d[\d,]*(?:\.\d+)?(?!(?!x\b)\w|\.\d)")
_CODE = re.compile(r"```\w*\n(.*?)```|`([^`]+)`", re.DOTALL)
_COMMAND = re.compile(
    r"\s*(?:\w+=\S+ )*(?:/usr/bin/)?(?:time (?:-v )?)?(?:dicgrl|python|make|\$ dicgrl)\b"
)
_STORED = re.compile(r"dicgrl reproduce ([\w-]+)$")
_ARCHIVE = re.compile(r"\]\((?:\.\./)*(?:docs/)?archive/[^)]*\)|no\s+command\s+was\s+kept")


class WrongNumberError(Exception):
    """A number and its source do not agree."""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, list item or table, and what is said of its numbers.

    Attributes:
        line: Where it begins, counted from 1.
        text: It, without code and the targets of links.
        mark: What names its sources; None without one.
        section: All of the section that it stands in.
    """

    line: int
    text: str
    mark: re.Match[str] | None
    section: str

    def numbers(self, text: str | None = None) -> list[str]:
        """The numbers in it."""
        return _NUMBER.findall(self.text if text is None else text)

    @property
    def measured(self) -> list[str]:
        """Those with a decimal point."""
        return [number for number in self.numbers() if "." in number]

    @property
    def command(self) -> str:
        """What its section says of where its numbers come from; empty for nothing.

        A command whose results are stored is no such thing: the file is to be named.
        """
        codes = (fenced or code for fenced, code in _CODE.findall(self.section))
        commands = (" ".join(code.split()) for code in codes if _COMMAND.match(code))
        found = next((command for command in commands if not _is_stored(command)), "")
        archive = _ARCHIVE.search(self.section)
        return found or (archive[0] if archive else "")


def _is_stored(command: str) -> bool:
    target = _STORED.fullmatch(re.sub(r" --(?:seeds|recipe|jobs) \S+", "", command))
    return bool(target and any(FOLDER.glob(f"reproduce-{target[1]}-*.json")))


def pages() -> list[Path]:
    """The pages whose numbers are compared: all but the generated ones and the archive."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = [path for path in found if path.name not in _GENERATED]
    return [*found, *sorted(FOLDER.glob("*.md"))]


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page with their marks."""
    for begin, section in _sections(text):
        found: list[tuple[int, str, re.Match[str] | None]] = []
        place = begin
        for piece in re.split(r"(<!--.*?-->)", section, flags=re.DOTALL):
            if piece.startswith("<!--"):
                mark = _MARK.fullmatch(piece.strip())
                if mark and found:
                    found[-1] = (*found[-1][:2], mark)
            else:
                found += [(place + at, block, None) for at, block in _pieces(piece)]
            place += piece.count("\n")
        for line, block, mark in found:
            yield Block(line, block, mark, section)


def _sections(text: str) -> Iterator[tuple[int, str]]:
    """Sections and the lines that they begin with; a sign in a fence begins none."""
    lines, begin, fenced = text.split("\n"), 0, False
    for number, line in enumerate(lines):
        fenced ^= line.lstrip().startswith("```")
        if number and not fenced and re.match(r"#+ ", line):
            yield begin + 1, "\n".join(lines[begin:number])
            begin = number
    yield begin + 1, "\n".join(lines[begin:])


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, list items and tables of a text, without code, headings and link targets."""
    fences = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
    plain = re.sub(r"`[^`]*`", lambda m: "\n" * m[0].count("\n"), fences)
    plain = re.sub(r"\]\([^)]*\)", "]", plain)
    block: list[str] = []
    begin = 0
    for number, line in enumerate([*plain.split("\n"), ""]):
        ends = not line.strip() or re.match(r"\s*([-*]|\d+\.) |#+ ", line)
        if ends and block:
            yield begin, "\n".join(block)
            block = []
        if line.strip() and not line.startswith("#"):
            begin = begin if block else number
            block.append(line)


@cache
def _tables(name: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Rows of a measured file, each with the title of its table."""
    for path in (FOLDER / f"reproduce-{name}.json", FOLDER / f"{name}.json"):
        if path.is_file():
            data = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(data, list):
                return [("", row) for row in data]
            if "tables" in data:
                return [(t["title"], row) for t in data["tables"] for row in t["rows"]]
            return [("", row) for row in data.get("rows", data.get("trials", ()))]
    lines = FOLDER / f"{name}.jsonl"
    if lines.is_file():
        return [("", json.loads(line)) for line in lines.read_text(encoding="utf-8").splitlines()]
    raise WrongNumberError(f"there is no docs/results/reproduce-{name}.json")


def _labels(title: str, row: Mapping[str, Any]) -> set[str]:
    values = [str(value) for value in row.values() if isinstance(value, str | int)]
    words = [word for text in (title, *values) for word in re.split(r"[\s,:]+", text)]
    return {word.lower() for word in [*values, *words]}


def looked_up(name: str, words: str, path: str) -> Any:
    """The value that a reference leads to.

    Args:
        name: The file, without `reproduce-` and ending.
        words: What tells its row.
        path: Keys from the row to the value.
    """
    wanted = {word.lower() for word in words.split()}
    found = [row for title, row in _tables(name) if wanted <= _labels(title, row)]
    if len(found) > 1:  # `dicgrl` is the row of that name, not that of `dicgrl, K=1`
        whole = [len(wanted & {str(value).lower() for value in row.values()}) for row in found]
        found = [row for row, count in zip(found, whole, strict=True) if count == max(whole)]
    if len(found) != 1:
        raise WrongNumberError(f"{name}[{words}]: {len(found)} rows")
    value: Any = found[0]
    for key in path.strip(".").split("."):
        value = _step(value, key.strip())
    return _mean(value)


def _step(value: Any, key: str) -> Any:
    seeds = isinstance(value, Mapping) and "values" in value
    if seeds and key in ("least", "most"):
        return (min if key == "least" else max)(value["values"])
    try:
        if isinstance(value, Sequence):
            begin, colon, end = key.partition(":")
            if colon:
                return value[int(begin or 0) : int(end) if end else None]
            return value[int(key)]
        return next(v for k, v in value.items() if k.replace(" ", "_") == key)
    except (LookupError, AttributeError, StopIteration, TypeError, ValueError) as error:
        raise WrongNumberError(f"no {key!r} in the row") from error


def _mean(value: Any) -> Any:
    if isinstance(value, Mapping) and "mean" in value:
        return value["mean"]
    if isinstance(value, str):  # such as 94.0 to 95.5
        return [float(number) for number in _NUMBER.findall(value)]
    return [_mean(each) for each in value] if isinstance(value, list) else value


def _flat(values: Sequence[Any]) -> list[float]:
    return [x for each in values for x in (each if isinstance(each, list) else [each])]


_CALLS: dict[str, Callable[[Sequence[Any]], float]] = {
    "least": lambda values: min(_flat(values)),
    "most": lambda values: max(_flat(values)),
    "mean": lambda values: statistics.fmean(_flat(values)),
    "sum": lambda values: sum(_flat(values)),
    "count": lambda values: len(_flat(values)),
}
_SIGNS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


def value_of(entry: str) -> float:
    """The value of an entry: references, numbers, signs and calls.

    Args:
        entry: Such as `100 * a[x].whole / a[y].whole`.
    """
    values: list[Any] = []

    def named(match: re.Match[str]) -> str:
        values.append(looked_up(*match.groups()))
        return f"v{len(values) - 1}"

    def evaluated(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name) if re.fullmatch(r"v\d+", name):
                return values[int(name[1:])]
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
                return _SIGNS[type(sign)](evaluated(left), evaluated(right))
            case ast.Call(func=ast.Name(id=name), args=given) if name in _CALLS:
                return _CALLS[name]([evaluated(each) for each in given])
        raise WrongNumberError(
            f"{entry!r}: expected references, numbers, + - * / and {', '.join(_CALLS)}"
        )

    text = _REFERENCE.sub(named, " ".join(entry.split()))
    try:
        found: float = evaluated(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as error:
        raise WrongNumberError(f"{entry!r}: no entry ({text})") from error
    return found


def shown_as(value: float, number: str) -> str:
    """A value with the sign, commas and digits of a number on a page."""
    digits = len(number.partition(".")[2])
    sign = "+" if number.startswith("+") else ""
    comma = "," if "," in number else ""
    return f"{value:{sign}{comma}.{digits}f}"


def compare(block: Block) -> list[str]:
    """What is wrong with the numbers of a marked block."""
    assert block.mark is not None
    entries = [each.strip() for each in block.mark["entries"].split(";") if each.strip()]
    if entries == ["none"]:
        return []
    try:
        if block.mark["rows"] is None:
            return _compare_text(block.numbers(), entries)
        keys = [" ".join(key.split()) for key in block.mark["rows"].split("|")]
        rows = [line for line in block.text.split("\n") if line.strip().startswith("|")][2:]
        if len(keys) != len(rows):
            return [f"{len(keys)} rows are named, the table has {len(rows)}"]
        return [
            f"{key}: {wrong}"
            for key, row in zip(keys, rows, strict=True)
            for wrong in _compare_text(block.numbers(row), [_of_row(e, key) for e in entries])
        ]
    except WrongNumberError as error:
        return [str(error)]


def _of_row(entry: str, key: str) -> str:
    """An entry with the row in place of `{}`."""
    return entry.replace("{}", key)


def _compare_text(numbers: Sequence[str], entries: Sequence[str]) -> list[str]:
    """Go through the numbers of a text and its entries side by side."""
    wrong, left = [], list(numbers)
    for entry in entries:
        if entry.startswith("#"):
            value = value_of(entry[1:])
            at = next((i for i, n in enumerate(left) if shown_as(value, n) == n), None)
            if at is None or any("." in n for n in left[:at]):
                wrong.append(f"{entry[1:].strip()} is {value:,.0f}, which is not there")
                continue
        else:
            at = next((i for i, n in enumerate(left) if "." in n), None)
            if at is None:
                return [*wrong, f"{entry}: no number is left for it"]
            if entry != "_":
                value = value_of(entry)
                if shown_as(value, left[at]) != left[at]:
                    wrong.append(f"{left[at]} stands where {entry} is {value:.4f}")
        del left[: at + 1]
    rest = [number for number in left if "." in number]
    return wrong + ([f"no source for {', '.join(rest)}"] if rest else [])


def wrong_numbers() -> Iterator[str]:
    """What does not agree with its source, and what has none."""
    for path in pages():
        place = path.relative_to(ROOT)
        for block in blocks(path.read_text(encoding="utf-8")):
            if block.mark is not None:
                for words in compare(block):
                    yield f"{place}:{block.line}: {words}"
            elif block.measured and not block.command:
                few = ", ".join(block.measured[:4])
                yield f"{place}:{block.line}: {few}: no source; see scripts/docs_numbers.py"


def unmarked() -> Iterator[tuple[str, Block]]:
    """Numbers that no file holds, whose section names a command."""
    for path in pages():
        for block in blocks(path.read_text(encoding="utf-8")):
            if block.mark is None and block.measured:
                yield str(path.relative_to(ROOT)), block


def main() -> None:
    """Say what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="also numbers that no file holds")
    if parser.parse_args().list:
        for place, block in unmarked():
            print(f"{place}:{block.line}: {len(block.measured)} numbers: {block.command[:90]}")
    wrong = list(wrong_numbers())
    print("\n".join(wrong) or "all numbers agree with their sources")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
