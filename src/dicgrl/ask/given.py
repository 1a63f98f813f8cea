"""The answers that a learner returns: lists that also know their questions.

`to_frame` converts them to data frames; a notebook shows them as tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dicgrl.ask.asking import Prediction
from dicgrl.common.frames import as_frame
from dicgrl.common.html import html_table

Asked = Mapping[str, str | None]
"""A question by its fields, with None for what is asked for."""

_TOLD = ("label", "name", "score", "probability", "known", "held_out")


class Answers(list[Prediction]):
    """The answers to a question, best first.

    Attributes:
        question: The question.

    Example:
        >>> found = Answers({"node": "Alien"}, [Prediction("horror", "horror", 0.9, True)])
        >>> found.to_frame("pandas").columns.tolist()[:4]
        ['node', 'rank', 'label', 'name']
    """

    def __init__(self, question: Asked, answers: Iterable[Prediction]) -> None:
        super().__init__(answers)
        self.question = question

    def to_frame(self, library: str = "pandas") -> Any:
        """A row for each answer; see `ManyAnswers.to_frame`."""
        return ManyAnswers([self]).to_frame(library)

    def _repr_html_(self) -> str:
        asked = " -- ".join("?" if text is None else text for text in self.question.values())
        rows = [
            (rank, *(getattr(answer, name) for name in _TOLD))
            for rank, answer in enumerate(self, 1)
        ]
        return html_table(asked, ("", *_TOLD), rows)


class ManyAnswers(list[list[Prediction]]):
    """The answers to many questions, in their order."""

    def __init__(self, answers: Iterable[Answers]) -> None:
        super().__init__(answers)

    def to_frame(self, library: str = "pandas") -> Any:
        """A row for each answer, as a data frame.

        Its columns are the fields of the questions, with the answer in place of what was asked for
        (`asked` says which that is); then rank, label, name, score, probability, known, held_out.

        Args:
            library: pandas, polars or pyarrow.

        Raises:
            UserError: It is not installed.
        """
        fields = list(dict.fromkeys(name for given in self._each() for name in given.question))
        asks = any(None in given.question.values() for given in self._each())
        names = [*fields, *(["asked"] if asks else []), "rank", *_TOLD]
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for given in self._each():
            for rank, answer in enumerate(given, start=1):
                for name in fields:
                    text = given.question.get(name)
                    columns[name].append(answer.label if text is None else text)
                if asks:
                    asked = next((n for n, text in given.question.items() if text is None), None)
                    columns["asked"].append(asked)
                columns["rank"].append(rank)
                for name in _TOLD:
                    columns[name].append(getattr(answer, name))
        return as_frame(columns, library)

    def _repr_html_(self) -> str:
        return "".join(given._repr_html_() for given in self._each())

    def _each(self) -> Iterable[Answers]:
        return (given for given in self if isinstance(given, Answers))
