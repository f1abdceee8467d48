"""How several ranks train one model."""
