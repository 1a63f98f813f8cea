"""A learner's vectors for other programs, in formats that are known by name."""

from dicgrl.ask.exports import arrays, card, tables  # they register their formats
from dicgrl.ask.exports.format import DEFAULT, VectorFormat, chosen_formats, write_takeout
from dicgrl.ask.exports.takeout import Takeout

__all__ = [
    "DEFAULT",
    "Takeout",
    "VectorFormat",
    "arrays",
    "card",
    "chosen_formats",
    "tables",
    "write_takeout",
]
