"""Look at a graph: print it, draw it, weigh what it keeps alive, find the first number that is none."""

from types import FunctionType, MethodType, ModuleType

from autograd.backend import is_array, xp
from autograd.debug import NonFinite, check_finite, debug
from autograd.tape import Node, Several, backpropagate
from autograd.tensor import Tensor


def nodes(*outputs):
    """Every node that feeds the outputs, earliest first; no recursion, so a deep graph is fine."""
    seen, stack = set(), [y.origin[0] for y in outputs if y.origin]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [parent[0] for parent in parents(node) if isinstance(parent, tuple)]
    return sorted(seen, key=lambda node: node.serial)


def parents(node):
    """Where the gradients of a node go: leaves and (node, output number), those in lists too."""
    found = []
    for entry in node.parents:
        if isinstance(entry, Several):
            found += [parent for parent in entry if parent is not None]
        elif entry is not None:
            found.append(entry)
    return found


def leaves(*outputs):
    """Every leaf that requires a gradient and feeds the outputs, in the order of its first use."""
    first = {y: None for y in outputs if y.requires_grad and y.origin is None}
    for node in nodes(*outputs):
        first.update((parent, None) for parent in parents(node) if isinstance(parent, Tensor))
    return list(first)


# ------------------------------------------------------------------------------------ print and draw

def text(output, names=None):
    """The graph of a Tensor as an indented tree, a line a node; what was shown above is only named again.

    names   {leaf: name}, or (name, leaf) pairs, for the leaves
    """
    if output.origin is None:
        return _of_leaf(output, _by_leaf(names)) + "\n"
    names, lines, shown = _by_leaf(names), [], set()
    stack = [(0, output.origin)]
    while stack:
        depth, entry = stack.pop()
        if isinstance(entry, Tensor):
            lines.append("  " * depth + _of_leaf(entry, names))
            continue
        node = entry[0]
        again = node in shown and bool(node.parents)
        lines.append("  " * depth + _of_node(node) + (" (above)" if again else ""))
        if not again:
            shown.add(node)
            stack += [(depth + 1, parent) for parent in reversed(parents(node))]
    return "\n".join(lines) + "\n"


def dot(output, names=None):
    """The graph of a Tensor in Graphviz's language: `dot -Tsvg`.  Edges run the way of forward."""
    names = _by_leaf(names)
    lines = ["digraph {", "  rankdir=BT; node [shape=box, fontname=monospace]"]
    for i, leaf in enumerate(leaves(output)):
        lines.append(f'  leaf{i} [label="{_escaped(_of_leaf(leaf, names))}", style=rounded]')
    numbers = {leaf: i for i, leaf in enumerate(leaves(output))}
    for node in nodes(output):
        lines.append(f'  n{node.serial} [label="{_escaped(_of_node(node))}"]')
        for parent in parents(node):
            source = f"leaf{numbers[parent]}" if isinstance(parent, Tensor) else f"n{parent[0].serial}"
            lines.append(f"  {source} -> n{node.serial}")
    return "\n".join([*lines, "}"]) + "\n"


def _by_leaf(names):
    if names is None:
        return {}
    return names if isinstance(names, dict) else {leaf: name for name, leaf in names}


def _of_node(node):
    shapes = " ".join(f"{shape} {dtype}" for shape, dtype in node.outputs)
    return f"{node.name} #{node.serial} {shapes}" + (" released" if node.backward is None else "")


def _of_leaf(leaf, names):
    return f"{names.get(leaf, getattr(leaf, 'name', '') or 'leaf')} {leaf.shape} {leaf.dtype}"


def _escaped(label):
    return label.replace("\\", "\\\\").replace('"', '\\"')


# ------------------------------------------------------------------------------------ weigh

def kept_bytes(*outputs):
    """Bytes of the arrays that the backward of these outputs keeps alive, leaves not counted.

    Views are counted as the memory behind them, and once.
    """
    return sum(kept_by_node(*outputs).values())


def kept_by_node(*outputs):
    """{node: bytes that it is the first to keep}, for the nodes that feed the outputs, earliest first."""
    counted = {id(_base(leaf.data)) for leaf in leaves(*outputs)}
    weights = {}
    for node in nodes(*outputs):
        weights[node] = 0
        for base in map(_base, _arrays(node.backward)):
            if id(base) not in counted:
                counted.add(id(base))
                weights[node] += base.nbytes
    return weights


def _base(array):
    """The array that owns the memory of a view."""
    while is_array(getattr(array, "base", None)):
        array = array.base
    return array


def _arrays(function):
    """Every array that a closure reaches, through functions, containers and small objects."""
    seen, stack, found = set(), [function], []
    while stack:
        x = stack.pop()
        if id(x) in seen or x is None or isinstance(x, (Node, ModuleType, int, float, str, type)):
            continue
        seen.add(id(x))
        if is_array(x):
            found.append(x)
        elif isinstance(x, Tensor):
            stack.append(x.data)
        elif isinstance(x, FunctionType):
            stack += [cell.cell_contents for cell in x.__closure__ or () if _is_filled(cell)]
            stack += x.__defaults__ or ()
        elif isinstance(x, MethodType):
            stack += [x.__self__, x.__func__]
        elif isinstance(x, (list, tuple, set, frozenset)):
            stack += x
        elif isinstance(x, dict):
            stack += x.values()
        else:
            stack += [getattr(x, name) for name in _slots(x) if hasattr(x, name)]
            stack += getattr(x, "__dict__", {}).values()
    return found


def _is_filled(cell):
    try:
        return cell.cell_contents is not cell
    except ValueError:                          # a variable that was never assigned
        return False


def _slots(x):
    slots = getattr(type(x), "__slots__", ())
    return [name for name in ((slots,) if isinstance(slots, str) else slots) if not name.startswith("__")]


# ------------------------------------------------------------------------------------ find

def find_nonfinite(function, *inputs):
    """Run function(*inputs) and its backward in debug mode -> the message about the first NaN or infinity, or None.

    The message names the op, the shapes of its inputs and the layer.  Outputs get ones as their gradients;
    no leaf's gradient changes.
    """
    try:
        with debug():
            results = function(*inputs)
            for y in results if isinstance(results, (tuple, list)) else (results,):
                if y.requires_grad:
                    backpropagate(y, xp.ones_like(y.data), retain_graph=True, sink=_look)
    except NonFinite as error:
        return str(error)
    return None


def _look(leaf, gradient):
    gradient = gradient() if callable(gradient) else gradient
    check_finite(f"the gradient of a leaf {leaf.shape}", (), (gradient,))


def describe(output, names=None):
    """The tree, and below it how many nodes there are and what they keep alive."""
    return (f"{text(output, names)}{len(nodes(output))} nodes keep {kept_bytes(output):,} bytes alive, "
            f"leaves hold {sum(leaf.data.nbytes for leaf in leaves(output)):,}\n")
