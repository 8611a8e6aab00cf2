"""What a text looks like to a reader: signs that resemble plain ones read as those, invisible ones gone."""

from __future__ import annotations

import unicodedata

_ALIKE = str.maketrans({
    **dict.fromkeys("∕⁄⧸╱⟋／", "/"), **dict.fromkeys("∖＼⧵", "\\"), **dict.fromkeys("․․．｡。", "."),
    "‥": "..", "…": "...", **dict.fromkeys("∼～˜⁓〜", "~"), **dict.fromkeys("‐‑‒–—―−﹣－⁃˗", "-"),
    **dict.fromkeys("＿", "_"),
    **dict(zip("аеорсухіјѕԁһԛԝкмтгнвАВЕКМНОРСТХ", "aeopcyxijsdhqwkmtrhbABEKMHOPCTX", strict=True)),
    **dict(zip("αοινυρτκεσ", "aoivuptkes", strict=True)), **dict(zip("ıɑɡ", "iag", strict=True)),
})  # fmt: skip


def fold_confusables(text: str) -> str:
    """The text as it looks: full-width letters are plain, signs without width are gone, an en dash is a hyphen."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", text.translate(_ALIKE)).translate(_ALIKE)
    return "".join(char for char in folded if unicodedata.category(char) not in ("Cf", "Mn"))
