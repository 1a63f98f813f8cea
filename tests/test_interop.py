from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from dicgrl import DataWarning, KnowledgeStream, NetworkStream, UserError
from dicgrl.graph import SPLITS
from dicgrl.interop import from_pyg, from_pykeen, to_pyg, to_pykeen
from tests.streams import (
    KnowledgeLists,
    NetworkLists,
    Node,
    knowledge_lists,
    knowledge_stream,
    labelled,
    network_lists,
    network_stream,
)

torch = pytest.importorskip("torch")
TRIPLES = [[("a", "r", "b"), ("b", "q", "c")], [("d", "r", "a")]]


class TestPykeen:
    triples = pytest.importorskip("pykeen.triples")

    @given(knowledge_lists(max_parts=2, min_train=1))
    @settings(max_examples=20)
    def test_round_trip(self, parts: KnowledgeLists) -> None:
        stream = knowledge_stream(parts)
        again = from_pykeen(*to_pykeen(stream), name="again")
        assert again.name == "again" and len(again) == 1
        whole = stream.merged()
        assert again.entities == whole.entities and again.relations == whole.relations
        assert labelled(again) == labelled(whole)

    def test_to_pykeen_keeps_labels_and_ids(self) -> None:
        stream = KnowledgeStream.from_labels("s", TRIPLES)
        training, validation, testing = to_pykeen(stream)
        assert training.entity_to_id == {"a": 0, "b": 1, "c": 2, "d": 3}
        assert training.relation_to_id == {"r": 0, "q": 1}
        assert training.mapped_triples.tolist() == [[0, 0, 1], [1, 1, 2], [3, 0, 0]]
        assert validation.num_triples == testing.num_triples == 0
        assert validation.entity_to_id == training.entity_to_id

    def test_a_prefix_knows_nothing_of_later_parts(self) -> None:
        training, *_ = to_pykeen(KnowledgeStream.from_labels("s", TRIPLES)[:1])
        assert set(training.entity_to_id) == {"a", "b", "c"}
        assert training.num_triples == 2

    def test_from_labelled_triples_and_split(self) -> None:
        rows = np.array([(f"e{i % 10}", f"r{i % 2}", f"e{i * i % 7}") for i in range(40)])
        factory = self.triples.TriplesFactory.from_labeled_triples(rows)
        training, testing = factory.split(0.7, random_state=0)
        stream = from_pykeen(training, testing=testing)
        assert list(stream.entities) == [factory.entity_id_to_label[i] for i in range(10)]
        found = labelled(stream)[0]
        assert found["valid"] == []
        assert set(found["train"] + found["test"]) == set(map(tuple, rows.tolist()))
        assert len(found["test"]) == testing.num_triples

    def test_factories_with_ids_of_their_own_are_refused(self) -> None:
        def factory(*rows: tuple[str, str, str]) -> Any:
            return self.triples.TriplesFactory.from_labeled_triples(np.array(rows))

        with pytest.raises(UserError, match="different ids"):
            from_pykeen(factory(("a", "r", "b"), ("c", "r", "a")), factory(("c", "r", "b")))

    @pytest.mark.parametrize(
        ("entities", "relations", "message"),
        [
            ({"a": 0, "b": 7}, {"r": 0}, "entity 'b' has id 7; the ids of 2 labels must be 0 to 1"),
            ({"a": 0, "b": 1}, {"r": 1}, "relation 'r' has id 1"),
            ({"a": -1, "b": 0}, {"r": 0}, "entity 'a' has id -1"),
            ({"a": 0, "b": 0}, {"r": 0}, "entity 'b' has id 0"),
        ],
    )
    def test_ids_with_gaps_are_refused(
        self, entities: dict[str, int], relations: dict[str, int], message: str
    ) -> None:
        rows = torch.tensor([[0, 0, entities["b"]]])
        factory = SimpleNamespace(
            entity_to_id=entities, relation_to_id=relations, mapped_triples=rows
        )
        with pytest.raises(UserError, match=message):
            from_pykeen(factory)

    def test_a_triple_beyond_the_labels_is_refused(self) -> None:
        training, _, testing = to_pykeen(KnowledgeStream.from_labels("s", TRIPLES))
        testing.mapped_triples = torch.tensor([[0, 0, 1], [0, 0, 4]])
        with pytest.raises(UserError, match=r"test triples of part 0: row 1 has entity id 4"):
            from_pykeen(training, testing=testing)


class TestPyg:
    data = pytest.importorskip("torch_geometric.data")

    def tiny(self, **fields: Any) -> Any:
        """Path 0 - 1 - 2, node 3 alone."""
        content = {
            "x": torch.arange(8.0).reshape(4, 2),
            "edge_index": torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
            "y": torch.tensor([1, 0, 1, 2]),
            **fields,
        }
        return self.data.Data(**{k: v for k, v in content.items() if v is not None})

    @given(network_lists(max_parts=3, min_nodes=1))
    @settings(max_examples=30)
    def test_round_trip(self, lists: NetworkLists) -> None:
        stream = network_stream(lists)
        again = from_pyg(to_pyg(stream))
        assert list(again.nodes) == list(stream.nodes)
        classes = [*stream.classes, ""]
        for one, other in zip(stream, again, strict=True):
            assert one.new_nodes == other.new_nodes
            np.testing.assert_array_equal(one.features, other.features)
            for split in SPLITS:
                assert sorted(getattr(one, split)) == sorted(getattr(other, split))
            names = [again.classes.labels([c])[0] if c >= 0 else "-1" for c in other.labels]
            assert [classes[int(name)] for name in names] == [classes[c] for c in one.labels]
        pairs = {frozenset(e) for part in stream for e in part.edges.tolist() if e[0] != e[1]}
        found = [frozenset(e) for part in again for e in part.edges.tolist()]
        assert len(found) == len(set(found)) and set(found) == pairs

    def test_to_pyg(self) -> None:
        nodes = [
            [Node("a", "x", 0, (1.0, 2.0)), Node("b", "y", 1, (3.0, 4.0))],
            [Node("c", "", -1, (5.0, 6.0)), Node("d", "x", 2, (7.0, 8.0))],
        ]
        edges = [[("a", "b"), ("b", "a"), ("a", "a")], [("d", "a")]]
        data = to_pyg(network_stream(NetworkLists(nodes, edges)))
        data.validate()
        assert data.num_nodes == 4 and data.node_labels == list("abcd")
        assert data.y.tolist() == [0, 1, -1, 0]
        assert data.part.tolist() == [0, 0, 1, 1]
        assert data.x.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
        directed = set(map(tuple, data.edge_index.T.tolist()))
        assert directed == {(0, 1), (1, 0), (0, 3), (3, 0)}
        assert data.num_edges == 4 and data.is_undirected() and not data.has_self_loops()
        assert data.train_mask.tolist() == [True, False, False, False]
        assert data.val_mask.tolist() == [False, True, False, False]
        assert data.test_mask.tolist() == [False, False, False, True]

    def test_a_prefix_knows_nothing_of_later_parts(self) -> None:
        nodes = [[Node("a", "x", 0, (1.0, 2.0))], [Node("b", "y", 0, (1.0, 2.0))]]
        data = to_pyg(network_stream(NetworkLists(nodes, [[], [("a", "b")]]))[:1])
        assert data.node_labels == ["a"] and data.num_nodes == 1 and data.num_edges == 0
        assert list(from_pyg(data).nodes) == ["a"]

    def test_undirected_edges_come_once_and_directed_ones_as_given(self) -> None:
        assert from_pyg(self.tiny())[0].edges.tolist() == [[0, 1], [1, 2]]
        directed = self.tiny(edge_index=torch.tensor([[2, 1], [0, 2]]))
        assert from_pyg(directed)[0].edges.tolist() == [[2, 0], [1, 2]]

    def test_masks(self) -> None:
        def mask(*nodes: int) -> Any:
            found = torch.zeros(4, dtype=torch.bool)
            found[list(nodes)] = True
            return found

        part = from_pyg(self.tiny(train_mask=mask(0), val_mask=mask(3), test_mask=mask(2)))[0]
        assert [getattr(part, s).tolist() for s in SPLITS] == [[0], [3], [2]]
        as_numbers = mask(0, 2).long()
        assert from_pyg(self.tiny(train_mask=as_numbers))[0].train.tolist() == [0, 2]
        part = from_pyg(self.tiny(test_mask=mask(1, 2)))[0]
        assert [getattr(part, s).tolist() for s in SPLITS] == [[], [], [1, 2]]

    def test_without_masks_nodes_are_divided(self) -> None:
        data = self.tiny(x=torch.zeros(40, 1), y=torch.arange(40) % 2)
        stream = from_pyg(data, valid=0.1, test=0.2, seed=1)
        assert [len(getattr(stream[0], s)) for s in SPLITS] == [28, 4, 8]
        other = from_pyg(data, valid=0.1, test=0.2, seed=2)
        assert stream[0].test.tolist() != other[0].test.tolist()

    def test_sets_without_a_mask_are_set_aside(self) -> None:
        x, y = torch.zeros(40, 1), torch.arange(40) % 2
        data = self.tiny(x=x, y=y, train_mask=torch.arange(40) < 30)
        assert [len(getattr(from_pyg(data)[0], s)) for s in SPLITS] == [30, 0, 0]
        part = from_pyg(data, valid=0.1, test=0.2, seed=1)[0]
        assert [len(getattr(part, s)) for s in SPLITS] == [21, 3, 6]
        assert sorted(np.concatenate([getattr(part, s) for s in SPLITS])) == [*range(30)]
        data.test_mask = torch.arange(40) >= 30
        with pytest.warns(DataWarning, match=r"Data: test=0\.2 sets nothing aside"):
            part = from_pyg(data, valid=0.1, test=0.2, seed=1)[0]
        assert [len(getattr(part, s)) for s in SPLITS] == [27, 3, 10]
        assert part.test.tolist() == [*range(30, 40)]

    def test_parts_labels_and_unknown_classes(self) -> None:
        data = self.tiny(
            part=torch.tensor([1, 0, 0, 1]),
            y=torch.tensor([3, -1, 10, 9]),
            node_labels=["a", "b", "c", 4],
        )
        stream = from_pyg(data, name="mine")
        assert isinstance(stream, NetworkStream) and stream.name == "mine"
        assert list(stream.nodes) == ["b", "c", "a", "4"]
        assert list(stream.classes) == ["10", "3", "9"]
        assert stream[0].labels.tolist() == [-1, 0]
        assert stream[1].labels.tolist() == [1, 2]
        assert stream[0].edges.tolist() == [[0, 1]]  # b - c
        assert stream[1].edges.tolist() == [[2, 0]]  # a - b

    @pytest.mark.parametrize("field", ["x", "edge_index", "y"])
    def test_missing_field(self, field: str) -> None:
        data = self.tiny(**{field: None})
        with pytest.raises(UserError, match=f"Data has no {field}"):
            from_pyg(data)

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"part": torch.tensor([0, 0, 2, 2])}, r"parts must be 0, 1, 2.*\[0, 2\]"),
            ({"y": torch.tensor([0, 1])}, "classes has 2 rows; expected one for each of 4"),
            ({"y": torch.tensor([[0], [1], [1], [0]])}, r"y has shape \[4, 1\]; expected"),
            ({"train_mask": torch.ones(4, 3, dtype=torch.bool)}, r"train_mask has shape \[4, 3\]"),
            (
                {"train_mask": torch.ones(4, dtype=torch.bool), "y": torch.tensor([0, 1, -1, 0])},
                "node '2' has split 0 and class ''",
            ),
            ({"node_labels": ["a", "b", "a", "c"]}, "duplicate node 'a'"),
            ({"x": torch.zeros(4, 1, dtype=torch.cfloat)}, r"Data\.x: features must be numbers"),
            ({"x": torch.full((4, 1), float("nan"))}, "feature 0 of node '0' is nan"),
            ({"edge_index": torch.tensor([[0.5], [1]])}, "edges must be whole numbers"),
            ({"part": torch.tensor([0, 0.5, 1, 1])}, "part must be whole numbers.*row 1 is 0.5"),
            ({"edge_index": torch.tensor([[0], [7]])}, r"edge 0 \[0, 7\] mentions an unknown node"),
        ],
    )
    def test_fields_that_do_not_fit(self, fields: dict[str, Any], message: str) -> None:
        with pytest.raises(UserError, match=message):
            from_pyg(self.tiny(**fields))


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pykeen.triples", None)
    with pytest.raises(UserError, match=r"to_pykeen needs pykeen: pip install 'dicgrl\[bench"):
        to_pykeen(KnowledgeStream.from_labels("s", TRIPLES))
