"""A cluster as links and routes, and how to describe one: `describe("dragonfly,nodes=64")`."""

from comm.topology.build import describe
from comm.topology.describe import KEYS, KINDS, PRESETS
from comm.topology.links import LINKS, read_link, say_links
from comm.topology.network import NONE, Topology

__all__ = ["KEYS", "KINDS", "LINKS", "NONE", "PRESETS", "Topology", "describe", "read_link", "say_links"]
