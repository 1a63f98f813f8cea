"""Information networks: nodes with features and classes, and edges, that arrive in parts."""

from dicgrl.graph.network.graph import NetworkGraph, Scope
from dicgrl.graph.network.part import NetworkPart
from dicgrl.graph.network.stream import NetworkStream, NetworkStreamBuilder

__all__ = ["NetworkGraph", "NetworkPart", "NetworkStream", "NetworkStreamBuilder", "Scope"]
