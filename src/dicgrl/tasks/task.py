"""The base class of tasks: it knows which graph, model, questions and measures belong together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dicgrl.common.registry import register
from dicgrl.errors import SetupError, UserError, unknown_name
from dicgrl.graph import Graph, Part
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.change import Change

if TYPE_CHECKING:
    import torch

    from dicgrl.ask.asking import Asking
    from dicgrl.ask.names import Names
    from dicgrl.common.options import Section, Sections
    from dicgrl.readers import Reading
    from dicgrl.readers.sources import SourceFile
    from dicgrl.trainers import Trainer

DEFAULT_STRATEGY = "fresh"


class Task(ABC):
    """A kind of problem. A subclass with a name that is not taken yet is registered under it.

    Attributes:
        name: What it is called in results, such as link-prediction.
        part_type: What arrives at one time.
        default_model: The model of a graph of one's own, unless another is asked for.
        published_model: The one of datasets that the package knows; None for the default.
        graph_is: What its graphs are called in messages.
        does: What its models do, for messages: "predicts links".
        examples: What is learned from, in the plural.
        judged_by: The validation metric, as a progress bar shows it.
        has_rows: Whether what arrives has rows of its own in the model.
        asks_entities: Whether it ranks entities, so that protocol snapshot has a meaning.
        recipe: Which default recipe it has: `default.NAME.toml`.
    """

    registry: ClassVar[dict[str, type[Task]]] = {}
    name: ClassVar[str]
    part_type: ClassVar[type[Part]]
    default_model: ClassVar[str]
    published_model: ClassVar[str | None] = None
    graph_is: ClassVar[str]
    does: ClassVar[str]
    examples: ClassVar[str]
    judged_by: ClassVar[str]
    has_rows: ClassVar[bool] = True
    asks_entities: ClassVar[bool] = False
    recipe: ClassVar[str]

    def __init_subclass__(cls, name: str | None = None) -> None:
        super().__init_subclass__()
        if name is not None:
            register(Task.registry, "task", name, cls)
            cls.name = name

    @abstractmethod
    def models(self) -> Mapping[str, type[Section]]:
        """The models of the task by name, each with its own settings."""

    @abstractmethod
    def sections(self) -> tuple[type[Section], ...]:
        """Sections of settings, besides those of the model, the `choices` and the strategy."""

    def usual_model(self, dataset: str = "") -> str:
        """The model that is used unless another is asked for.

        Args:
            dataset: Name of a known dataset; empty for a graph of one's own.

        Example:
            >>> task_named("link-prediction").usual_model("FB15k-237")
            'transe'
        """
        return (dataset and self.published_model) or self.default_model

    def choices(self) -> Mapping[str, Mapping[str, type[Section]]]:
        """Settings that name a component, and the settings of each component by its name."""
        return {}

    def suited(self, model: str) -> Mapping[str, Any]:
        """Values that a model begins with instead of the usual defaults, by name."""
        del model
        return {}

    def check(self, settings: Sections) -> None:
        """Refuse settings that are sound one by one, but not together with the model.

        Raises:
            UserError: They are not.
        """
        del settings

    @abstractmethod
    def trainer_type(self) -> type[Trainer]:
        """The class that holds a graph and a model of the task."""

    def trainer(self, settings: Sections, seed: int, device: torch.device) -> Trainer:
        """A trainer that knows nothing yet.

        Raises:
            SetupError: There are several processes, which do not learn this together.
        """
        from dicgrl.parallel.group import current

        if current() is not None:
            raise SetupError(
                f"several processes learn a knowledge graph; a {self.graph_is} is learned by one"
            )
        return self.trainer_type()(settings, seed, device)

    @property
    def metric(self) -> str:
        """The main metric of the task."""
        return self.trainer_type().metric

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def asking(self, trainer: Trainer, names: Names) -> Asking:
        """Answers questions about what a trainer has learned."""

    @abstractmethod
    def facts(self, given: Any, graph: Graph | None) -> Part:
        """Turn labelled facts into a part; files are read elsewhere.

        Raises:
            UserError: It is nothing that this task learns.
        """

    def known_facts(
        self, given: Any, graph: Graph, reading: Reading | None = None
    ) -> tuple[dict[str, IntArray], int] | None:
        """Those of some facts that are known, and how many; None if they make an ordinary part.

        See `Graph.known_in`. What is to be forgotten need not be as complete as what is learned.
        """
        del given, graph, reading
        return None

    def revision(self, given: Any, graph: Graph) -> Change:
        """The change that gives known nodes of a network other classes or features.

        Raises:
            UserError: It is nothing of this task, does not fit, or changes nothing.
        """
        del given, graph
        raise self._not_revised()

    def read_revision(self, file: SourceFile) -> Any:
        """What `revision` is given, from a file.

        Raises:
            UserError: As of `revision`.
        """
        del file
        raise self._not_revised()

    def _not_revised(self) -> UserError:
        return UserError(f"a {self.graph_is} has no nodes to revise: replace its facts")

    @abstractmethod
    def empty_model(
        self, configuration: dict[str, Any], tensors: Mapping[str, torch.Tensor], device: Any
    ) -> Any:
        """A model that is ready to take stored tensors.

        Args:
            configuration: What its `configuration` gave.
            tensors: The tensors, by name.
            device: Where it will live.
        """

    def read(
        self, path: str | Path, graph: Graph | None, reading: Reading | None = None
    ) -> tuple[Part, Mapping[str, str]]:
        """Read the files at a path, and the readable names beside them.

        Args:
            path: Where they lie.
            graph: The graph so far, if there is one.
            reading: How they are to be read, where they do not say it themselves.
        """
        from dicgrl.readers import read_part

        return read_part(path, graph, reading)

    def check_model(self, model: str, stream: str) -> None:
        """Refuse a model of another task.

        Args:
            model: Name of the model.
            stream: Name of the stream that it is to learn.

        Raises:
            UserError: It is of another task.
        """
        other = task_of_model(model)
        if other.name != self.name:
            raise UserError(
                f"{model} {other.does}, but {stream} is a {self.graph_is}: use "
                + " or ".join(sorted(self.models()))
            )


def task_named(name: str) -> Task:
    """The task of that name.

    Example:
        >>> task_named("node-classification").default_model
        'gat'
    """
    if name not in Task.registry:
        raise unknown_name("task", name, Task.registry)
    return Task.registry[name]()


def task_of_model(model: str) -> Task:
    """The task that a model is for.

    Example:
        >>> task_of_model("gat").name
        'node-classification'
    """
    for task in Task.registry.values():
        if model in task().models():
            return task()
    raise unknown_name("model", model, known_models())


def known_models() -> list[str]:
    """Names of all models."""
    return [model for task in Task.registry.values() for model in task().models()]
