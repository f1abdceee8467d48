"""From scores to probabilities, and from probabilities to a loss.

    python examples/softmax_and_loss.py

Softmax turns any scores into positive shares of 1; a causal model sets what a word may not see to minus infinity
first. The loss of one prediction is -log of the share that the right answer got; of a batch, the mean. Where the
article's printed numbers cannot be right, this says why.
"""

import numpy as np

from autograd import Tensor, ops
from autograd.backend import to_host

SCORES = 0.3, 0.1, 0.8, 1.0, 0.6, 0.2, 0.4      # of one word for all seven, in the article's order
PLACE = 3                                       # the word is the fourth: a causal model sees four
LOGITS, PRINTED = (4.3, 2.1, -12), (0.541, 0.311, 0.00001)
SENTENCE = "the cat sat down and began to purr"


def softmax(scores, sees=None):
    """exp(s) / sum of exp(s) over the scores that are seen; zeros for the others."""
    scores = np.array(scores, np.float64)
    if sees is not None:
        scores[sees:] = -np.inf
    return Tensor(scores).softmax().numpy()


def temperature_that_gives(p, q, score_p, score_q):
    """The T at which softmax(scores / T) has the ratio p : q, from  p / q = exp((score_p - score_q) / T)."""
    return (score_p - score_q) / np.log(p / q)


def losses(probabilities, targets):
    """-log p(correct) of every row."""
    return -np.log(probabilities[np.arange(len(targets)), targets])


def next_token_pairs(words):
    """[(prefix, next word)]: a text of n words holds n - 1 predictions."""
    return [(words[:i], words[i]) for i in range(1, len(words))]


def gradients(weights, x, targets):
    """(mean of the gradients of every example alone, gradient of the mean loss) of scores x W."""
    leaf = Tensor(weights, requires_grad=True)
    one_by_one = []
    for i in range(len(x)):
        leaf.grad = None
        ops.cross_entropy(Tensor(x[i:i + 1]) @ leaf, targets[i:i + 1]).backward()
        one_by_one.append(to_host(leaf.grad))
    leaf.grad = None
    ops.cross_entropy(Tensor(x) @ leaf, targets).backward()
    return np.mean(one_by_one, axis=0), to_host(leaf.grad)


def row(values):
    return " ".join(f"{v:.4f}" for v in values)


def show_attention_scores():
    print("Softmax of seven scores", *SCORES)
    print(f"  all words are seen:     {row(softmax(SCORES))}")
    print(f"  only the first four:    {row(softmax(SCORES, PLACE + 1))}")
    print("  (A real model first divides scores by the square root of d_head, as sums of d_head products grow.)\n")


def show_logits():
    p = softmax(LOGITS)
    ratios = np.exp(np.array(LOGITS) - LOGITS[0])
    print("Logits", *LOGITS, "  ratios " + " : ".join(f"{r:.4g}" for r in ratios.round(9)))
    print(f"  among these three alone {p[0]:.4f} {p[1]:.4f} {p[2]:.1e}")
    first = temperature_that_gives(*PRINTED[:2], *LOGITS[:2])
    second = temperature_that_gives(*PRINTED[1:], *LOGITS[1:])
    print("  The article prints", *map("{:g}".format, PRINTED[:2]), f"{PRINTED[2]:.5f}", "which no softmax gives:")
    print("  other words may share the rest, but ratios depend on differences of logits and on the temperature only.")
    print(f"  {PRINTED[0]:g} : {PRINTED[1]:g} needs T = {first:.2f}, {PRINTED[1]:g} : {PRINTED[2]:.5f} needs "
          f"T = {second:.2f}: not one temperature.\n")


def show_loss():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]])
    targets = np.array([0, 2, 0])
    each = losses(p, targets)
    whole = ops.cross_entropy(Tensor(np.log(p)), targets).item()
    print("Cross-entropy: minus the logarithm of what the right answer got")
    for q, target, loss in zip(p, targets, each):
        print(f"  p = {row(q)}   right: {target}   loss -log {q[target]:.1f} = {loss:.4f}")
    print(f"  mean {each.mean():.4f}; ops.cross_entropy, which takes logits, gives {whole:.4f}")
    y, wanted = np.array([2.5, 0.0]), np.array([3.0, -1.0])
    print("  For numbers instead of classes the loss is the mean squared error: of 2.5, 0 against 3, -1 it is "
          f"{ops.mse(Tensor(y), Tensor(wanted)).item():.3f}\n")


def show_pairs():
    words = SENTENCE.split()
    pairs = next_token_pairs(words)
    print(f"A sentence of {len(words)} words holds {len(pairs)} predictions, all learnt from in one pass:")
    for prefix, word in pairs:
        print(f"  {' '.join(prefix):<28} -> {word}")


def show_batch_gradient():
    random = np.random.default_rng(1)
    weights, x, targets = random.normal(size=(4, 3)), random.normal(size=(20, 4)), random.integers(0, 3, 20)
    mean, whole = gradients(weights, x, targets)
    before, leaf = ops.cross_entropy(Tensor(x @ weights), targets).item(), weights - 0.1 * whole
    after = ops.cross_entropy(Tensor(x @ leaf), targets).item()
    uphill = ops.cross_entropy(Tensor(x @ (weights + 0.1 * whole)), targets).item()
    print("\nOne update for a batch of 20")
    print(f"  the mean of 20 gradients is the gradient of the mean loss, to {abs(mean - whole).max():.0e}")
    print(f"  the gradient points uphill: loss {before:.4f}, after a step of -0.1 gradient {after:.4f}, "
          f"after +0.1 gradient {uphill:.4f}")


def main():
    show_attention_scores()
    show_logits()
    show_loss()
    show_pairs()
    show_batch_gradient()


if __name__ == "__main__":
    main()
