"""The colours of pictures: eight that stand 4.5 to 1 against white, so they serve for lines and for letters.

They come round again after eight chunks; so no picture tells chunks apart by colour alone.
"""

COLOURS = ("#0065a8", "#b34400", "#00744f", "#a0307a", "#7a5c00", "#5b3fa8", "#007080", "#9c1f2e")
MIXED = "#30363d"
"""Of a message of several chunks."""


def colour(chunks):
    """The colour of a message: its chunk's, if it has one only."""
    return COLOURS[chunks[0] % len(COLOURS)] if len(chunks) == 1 else MIXED
