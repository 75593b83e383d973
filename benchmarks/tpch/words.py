"""The lists of values that the specification gives, and a pool of text for the comments."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np

from benchmarks.tpch.draws import Draws


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3),
    ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0),
    ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3),
    ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
"""Names, and the numbers of their regions."""
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
TYPES = tuple(
    " ".join(parts)
    for parts in product(
        ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
        ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
        ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
    )
)
CONTAINERS = tuple(
    " ".join(parts)
    for parts in product(("SM", "MED", "LG", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"))
)
BRANDS = tuple(f"Brand#{maker}{brand}" for maker, brand in product(range(1, 6), range(1, 6)))
COLOURS = _words(
    """almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon
    chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro ghost
    goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic
    midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple red rose
    rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat
    white yellow"""
)
_ADVERBS = _words("sometimes always never furiously slyly carefully blithely quickly fluffily quietly ruthlessly closely finally")
_ADJECTIVES = _words("special pending unusual express furious sly careful blithe quick fluffy slow quiet ruthless final regular")
_NOUNS = _words(
    """packages requests accounts deposits foxes ideas theodolites pinto-beans instructions dependencies excuses platelets
    asymptotes courts dolphins multipliers sauternes warthogs frets dinos attainments"""
)
_VERBS = _words("sleep wake are cajole haggle nag use boost affix detect integrate maintain nod was lose sublate solve thrash")
_SENTENCES = 20_000


@lru_cache(maxsize=1)
def text_pool() -> bytes:
    """About a megabyte of sentences, the same in every run; comments are pieces of it."""
    draws = Draws("pool", np.arange(_SENTENCES))
    words = [
        draws.words(str(at), kind).to_pylist()
        for at, kind in enumerate((_ADVERBS, _ADJECTIVES, _NOUNS, _VERBS, _ADJECTIVES, _NOUNS))
    ]
    return " ".join(f"{a} {b} {c} {d} about the {e} {f}." for a, b, c, d, e, f in zip(*words, strict=True)).encode("ascii")
