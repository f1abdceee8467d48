"""Reading einsum's subscripts: one letter an axis, none twice in one operand."""

from string import ascii_letters


def plan(subscripts, tensors):
    """-> (term of every operand, output, sizes of identity matrices to append, size of every letter).

    "..." becomes letters of its own, and a letter that stands twice in one term (a diagonal) becomes
    two letters joined by an identity matrix; so every gradient is an ordinary einsum.
    Raises ValueError where subscripts and operands disagree.
    """
    left, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise ValueError(f"einsum: {subscripts!r} names {len(terms)} operands, got {len(tensors)}")
    spare = iter(letter for letter in ascii_letters if letter not in subscripts)
    dots = _dots(terms, tensors, subscripts, spare)
    terms = [_spell_out(term, x, dots, subscripts) for term, x in zip(terms, tensors)]
    if not arrow:
        letters = "".join(terms)
        output = dots + "".join(sorted(c for c in set(letters) - set(dots) if letters.count(c) == 1))
    output = output.replace("...", dots)
    sizes = _letter_sizes(terms, tensors, subscripts)
    extra = []
    for i, term in enumerate(terms):
        terms[i], joints = _without_repeats(term, spare)
        terms += joints
        extra += [sizes[joint[0]] for joint in joints]
        sizes.update({joint[1]: sizes[joint[0]] for joint in joints})
    return terms, output, extra, sizes


def _dots(terms, tensors, subscripts, spare):
    """Letters for the axes that "..." stands for, as many as the operand with the most has."""
    most = 0
    for term, x in zip(terms, tensors):
        if "..." in term:
            most = max(most, x.ndim - len(term.replace("...", "")))
    return "".join(next(spare) for _ in range(most))


def _spell_out(term, x, dots, subscripts):
    named = len(term.replace("...", ""))
    if "..." in term:
        if x.ndim < named:
            raise ValueError(f"einsum: {term!r} of {subscripts!r} needs {named} axes or more, got {x.shape}")
        return term.replace("...", dots[len(dots) - (x.ndim - named):])
    if x.ndim != named:
        raise ValueError(f"einsum: {term!r} of {subscripts!r} names {named} axes, the operand is {x.shape}")
    return term


def _letter_sizes(terms, tensors, subscripts):
    sizes = {}
    for term, x in zip(terms, tensors):
        for letter, n in zip(term, x.shape):
            if sizes.get(letter, 1) == 1:
                sizes[letter] = n
            elif n not in (1, sizes[letter]):
                raise ValueError(f"einsum: {letter!r} of {subscripts!r} is {sizes[letter]} in one operand, "
                                 f"{n} in another")
    return sizes


def _without_repeats(term, spare):
    """"iij" -> ("iaj", ["ia"])."""
    out, joints = "", []
    for letter in term:
        if letter in out:
            twin = next(spare)
            joints.append(letter + twin)
            letter = twin
        out += letter
    return out, joints
