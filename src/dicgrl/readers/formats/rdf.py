"""RDF: N-Triples, N-Quads, Turtle, TriG, RDF/XML, JSON-LD; and answers of SPARQL queries.

How terms become labels and names:

- An IRI is a label as it stands; a blank node becomes `_:name`.
- A literal whose predicate is rdfs:label, skos:prefLabel or schema:name is the readable name of its
  subject. If there are several, the English one is taken.
- Other literals are left out and counted. With `literals=keep` they become entities, named by their
  text; white space is folded, and language and type are dropped.
- If a thing has no name, but its IRI begins with a prefix of the file, it is called `prefix:local`.
- The graph of a quad is ignored.

pyoxigraph is optional: `pip install 'dicgrl[rdf]'`.
"""

from __future__ import annotations

import codecs
import contextlib
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from typing_extensions import override

from dicgrl.common.optional import needed
from dicgrl.errors import DataError, DataWarning, FailureError, shown
from dicgrl.graph.labels import FORBIDDEN
from dicgrl.readers.formats import Format, Triple
from dicgrl.readers.reading import find_columns
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import Rows

LABELS = (
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
)
_BATCH = 1 << 16  # triples at a time
_OURS = "urn:dicgrl:n"  # IRIs of labels that are none, as we write them
_ESCAPE = re.compile(r"[^A-Za-z0-9]")
_ESCAPED = re.compile(r"_([0-9a-f]+)_")
_BLANK = re.compile(r"_:[A-Za-z0-9]+")
_ENDS = 1 << 14  # bytes of a file's beginning and end that are looked at
_TAG = re.compile(rb"<([^\s?!<>/]+)")
_CLOSED = re.compile(rb"</([^\s<>/]+)\s*>\s*$")
_REMARKS = re.compile(rb"<!--.*?-->|<\?.*?\?>", re.DOTALL)
_NAMED = re.compile(r"[/#:][A-Za-z_][A-Za-z0-9_.-]*$")
_FORMATS = {
    ".nt": "N_TRIPLES",
    ".nq": "N_QUADS",
    ".ttl": "TURTLE",
    ".trig": "TRIG",
    ".rdf": "RDF_XML",
    ".owl": "RDF_XML",
    ".jsonld": "JSON_LD",
}
_RESULTS = {".srj": "JSON", ".srx": "XML"}


class Rdf(Format):
    """Statements of a file; labels of things are read as names, not as facts."""

    endings: ClassVar = tuple(_FORMATS)
    heeds: ClassVar = ("literals",)

    @override
    def rows(self, file: SourceFile, width: int, exact: bool) -> Iterator[Rows]:
        rdf = _library()
        if width != 3:
            raise DataError(file.label, f"RDF has {'no times' if width > 3 else 'relations'}")
        terms = _Terms(rdf, file)
        kind = getattr(rdf.RdfFormat, _FORMATS[_ending(file)])
        with file.open() as opened:
            stream = _Ends(opened)
            statements = _parse(file, lambda: rdf.parse(stream, kind))
            for block in _blocks(statements, file):
                found = [triple for triple in map(terms.triple, block) if triple is not None]
                if found:
                    yield Rows(terms.first, [list(column) for column in zip(*found, strict=True)])
                    terms.first += len(found)
            names = terms.all_names(statements.prefixes)
        if kind == rdf.RdfFormat.RDF_XML and not stream.closes_root():
            raise DataError(file.label, "the file is cut off: its first tag is not closed")
        if terms.first == 1:
            raise DataError(file.label, f"the file holds no facts{terms.dropped_note()}")
        yield Rows(terms.first, [[], [], []], names)
        terms.warn()

    @override
    def write(self, path: Path, triples: Iterable[Sequence[Triple]]) -> None:
        rdf = _library()
        kind = getattr(rdf.RdfFormat, _FORMATS[path.suffix])
        with path.open("wb") as file:
            rdf.serialize(
                (
                    rdf.Triple(_node(rdf, h), _node(rdf, r, named=True), _node(rdf, t))
                    for block in triples
                    for h, r, t in block
                ),
                file,
                kind,
            )


class _Ends:
    """A stream that remembers its beginning and end, to notice XML that is cut off.

    The XML parser does not report that. A byte order mark at the beginning is skipped.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._first = self._last = b""

    def read(self, size: int = -1) -> bytes:
        block = self._stream.read(size)
        if not self._first and block.startswith(codecs.BOM_UTF8):
            block = block.removeprefix(codecs.BOM_UTF8) or self._stream.read(size)
        if len(self._first) < _ENDS:
            self._first += block[:_ENDS]
        self._last = (self._last + block)[-_ENDS:]
        return block

    def closes_root(self) -> bool:
        """Whether the last tag closes the first one, as far as these can be seen."""
        root = _TAG.search(self._first)
        closed = _CLOSED.search(_REMARKS.sub(b"", self._last))
        return root is None or (closed is not None and closed[1] == root[1])


class QueryResults(Format):
    """Answers of a SPARQL query (SELECT) with variables for head, relation and tail."""

    endings: ClassVar = tuple(_RESULTS)
    heeds: ClassVar = ("columns", "literals")

    @override
    def rows(self, file: SourceFile, width: int, exact: bool) -> Iterator[Rows]:
        rdf = _library()
        terms = _Terms(rdf, file)
        with file.open() as stream:
            kind = getattr(rdf.QueryResultsFormat, _RESULTS[_ending(file)])
            answers = _parse(file, lambda: rdf.parse_query_results(stream, kind))
            variables = [each.value for each in getattr(answers, "variables", ())]
            if not variables:
                raise DataError(file.label, "the query's answer is not a table (ASK?)")
            chosen = find_columns(file.label, variables, file.reading, width)
            for block in _blocks(iter(answers), file):
                rows = [row for row in (_answer(terms, each, chosen) for each in block) if row]
                if rows:
                    yield Rows(terms.first, [list(column) for column in zip(*rows, strict=True)])
                    terms.first += len(rows)
        if terms.first == 1:
            raise DataError(file.label, f"the file holds no facts{terms.dropped_note()}")
        terms.warn()


class _Terms:
    """Turns terms into labels, and collects readable names."""

    def __init__(self, rdf: Any, file: SourceFile) -> None:
        self.first = 1  # number of the next fact
        self._rdf, self._file = rdf, file
        self._keep = file.reading.literals == "keep"
        self._dropped = 0
        self._names: dict[str, tuple[int, str]] = {}  # how good a name is, and the name
        self._iris: dict[str, None] = {}

    def triple(self, statement: Any) -> Triple | None:
        """Labels of a statement; None if it is not a fact."""
        subject, predicate, target = statement.subject, statement.predicate, statement.object
        if isinstance(target, self._rdf.Literal) and predicate.value in LABELS:
            self._called(self.label(subject), target)
            return None
        if isinstance(target, self._rdf.Literal) and not self._keep:
            self._dropped += 1
            return None
        return self.label(subject), self.label(predicate), self.label(target)

    def label(self, term: Any) -> str:
        """The label of a term."""
        if isinstance(term, self._rdf.NamedNode):
            iri: str = term.value
            if iri.startswith(_OURS):
                return self._checked(term, _unescaped(iri))
            self._iris[iri] = None
            return iri
        if isinstance(term, self._rdf.BlankNode):
            return f"_:{term.value}"
        if isinstance(term, self._rdf.Literal):
            return self._checked(term, " ".join(term.value.split()))
        raise DataError(self._file.label, f"a statement about a statement is not read: {term}")

    def _checked(self, term: Any, label: str) -> str:
        if not label or FORBIDDEN.search(label):
            raise DataError(self._file.label, f"cannot be a label: {shown(str(term))}")
        return label

    def literal_is_dropped(self, term: Any) -> bool:
        """Whether a literal is left out, in which case it is counted."""
        left_out = isinstance(term, self._rdf.Literal) and not self._keep
        self._dropped += left_out
        return left_out

    def _called(self, label: str, literal: Any) -> None:
        language = (literal.language or "").lower()
        worth = 2 if language.split("-")[0] == "en" else 1 if not language else 0
        name = " ".join(literal.value.split())
        if name and worth > self._names.get(label, (-1, ""))[0]:
            self._names[label] = worth, name

    def all_names(self, prefixes: Mapping[str, str]) -> dict[str, str]:
        """Readable names: what the file says, and short forms of IRIs."""
        names = {}
        spaces = sorted(((iri, name) for name, iri in prefixes.items() if iri), reverse=True)
        for iri in self._iris:
            space = next(((s, name) for s, name in spaces if iri.startswith(s)), None)
            if space and len(iri) > len(space[0]):
                names[iri] = f"{space[1]}:{iri[len(space[0]) :]}"
        return names | {label: name for label, (_, name) in self._names.items()}

    def dropped_note(self) -> str:
        """The note about literals that were left out."""
        if not self._dropped:
            return ""
        some = f"{self._dropped:,} literal" + ("s" if self._dropped > 1 else "")
        return f"; {some} left out, which --literals keep makes entities"

    def warn(self) -> None:
        """Tell how many literals were left out."""
        if note := self.dropped_note():
            warnings.warn(DataWarning(self._file.label, note.removeprefix("; ")), stacklevel=2)


def _answer(terms: _Terms, solution: Any, chosen: list[int]) -> list[str] | None:
    """The labels of an answer; None where its tail is a literal that is left out."""
    values = [solution[at] for at in chosen]
    if None in values:
        told = ", ".join("nothing" if value is None else str(value) for value in values)
        raise DataError(terms._file.label, f"an answer lacks a value: {shown(told)}")
    if terms.literal_is_dropped(values[min(2, len(values) - 1)]):  # the tail
        return None
    return [terms.label(value) for value in values]


def _library() -> Any:
    return needed("pyoxigraph", "rdf", "RDF")


def _unescaped(iri: str) -> str:
    """The label that one of our IRIs stands for; empty where it stands for none."""
    try:
        return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), iri[len(_OURS) :])
    except (OverflowError, ValueError):
        return ""


def _ending(file: SourceFile) -> str:
    return f".{file.reading.format}" if file.reading.format else file.ending


def _blocks(statements: Iterator[Any], file: SourceFile) -> Iterator[list[Any]]:
    while True:
        block: list[Any] = []
        _parse(file, lambda into=block: _take(statements, into))
        if not block:
            return
        yield block


def _take(statements: Iterator[Any], into: list[Any]) -> None:
    for statement in statements:
        into.append(statement)
        if len(into) == _BATCH:
            return


def _parse(file: SourceFile, act: Any) -> Any:
    try:
        return act()
    except SyntaxError as error:
        said = " ".join((error.msg or "not well formed").split())
        if "LoadDocumentCallback" in said:
            said = "its @context lies elsewhere and is not fetched; write it into the file"
        if file.is_answer:
            raise FailureError(
                f"{file.label}: the endpoint sent what is not well formed: {said}"
            ) from None
        raise DataError(file.label, said, error.lineno) from None
    except (OSError, ValueError) as error:
        raise DataError(file.label, f"cannot be read ({error})") from error


def _node(rdf: Any, label: str, named: bool = False) -> Any:
    """The term of a label; one that is no IRI gets one of ours.

    Args:
        rdf: The library.
        label: The label.
        named: Whether it must be an IRI that ends in a name, as RDF/XML needs of predicates.
    """
    if not named and _BLANK.fullmatch(label):
        return rdf.BlankNode(label[2:])
    if not label.startswith(_OURS) and (not named or _NAMED.search(label)):
        with contextlib.suppress(ValueError):
            return rdf.NamedNode(label)
    return rdf.NamedNode(_OURS + _ESCAPE.sub(lambda found: f"_{ord(found[0]):x}_", label))
