"""Maps of vectors in two dimensions, which stay as they are while vectors grow."""

from dicgrl.maps.layout import HOLD, NEIGHBOURS, layout
from dicgrl.maps.movement import Movement, movement, spread

__all__ = ["HOLD", "NEIGHBOURS", "Movement", "layout", "movement", "spread"]
