"""Trainers: each holds a growing graph and its model, and is all that a strategy may see."""

from dicgrl.trainers.links import LinkTrainer
from dicgrl.trainers.nodes import NodeTrainer
from dicgrl.trainers.trainer import ExampleGroup, Trainer

__all__ = ["ExampleGroup", "LinkTrainer", "NodeTrainer", "Trainer"]
