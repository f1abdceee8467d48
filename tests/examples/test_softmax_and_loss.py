import numpy as np
import pytest

from examples import softmax_and_loss as example
from tests.examples.running import run


def test_fact_6_the_loss_of_a_one_hot_target_is_minus_log_p_of_the_right_answer():
    p, targets = np.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]), np.array([1, 2])
    onehot = np.eye(3)[targets]
    np.testing.assert_allclose(example.losses(p, targets), -(onehot * np.log(p)).sum(1))


def test_fact_7_softmax_of_seven_scores():
    np.testing.assert_allclose(example.softmax(example.SCORES),
                               [0.1131, 0.0926, 0.1865, 0.2278, 0.1527, 0.1023, 0.1250], atol=5e-5)


def test_fact_7_a_causal_model_sees_four():
    np.testing.assert_allclose(example.softmax(example.SCORES, 4),
                               [0.1824, 0.1494, 0.3008, 0.3674, 0, 0, 0], atol=5e-5)


def test_fact_7b_the_logits_alone():
    p = example.softmax(example.LOGITS)
    np.testing.assert_allclose(p, [0.9002, 0.0998, 7.5e-8], atol=5e-5, rtol=0)
    assert p[2] == pytest.approx(7.5e-8, rel=0.01)
    assert p[1] / p[0] == pytest.approx(0.1108, abs=5e-5) and p[2] / p[0] == pytest.approx(8.3e-8, rel=0.01)


def test_fact_7b_no_temperature_gives_what_the_article_prints():
    (a, b, c), (x, y, z) = example.PRINTED, example.LOGITS
    first, second = example.temperature_that_gives(a, b, x, y), example.temperature_that_gives(b, c, y, z)
    assert first == pytest.approx(3.97, abs=0.01) and second == pytest.approx(1.36, abs=0.01)
    p = example.softmax(np.array(example.LOGITS) / first)
    assert p[0] / p[1] == pytest.approx(a / b) and p[1] / p[2] < b / c / 100


def test_fact_8_a_sentence_of_8_words_holds_7_pairs():
    pairs = example.next_token_pairs(list("abcdefgh"))
    assert len(pairs) == 7 and pairs[0] == (["a"], "b") and pairs[-1] == (list("abcdefg"), "h")
    assert len(example.SENTENCE.split()) == 8


def test_fact_9_the_mean_of_gradients_is_the_gradient_of_the_mean_loss():
    random = np.random.default_rng(5)
    mean, whole = example.gradients(random.normal(size=(4, 3)), random.normal(size=(9, 4)), random.integers(0, 3, 9))
    np.testing.assert_allclose(mean, whole, rtol=0, atol=1e-15)
    assert abs(whole).max() > 0.01


def test_facts_6_to_9_are_printed():
    said = run("softmax_and_loss.py")
    for number in ("0.1131 0.0926 0.1865 0.2278 0.1527 0.1023 0.1250", "0.1824 0.1494 0.3008 0.3674 0.0000",
                   "1 : 0.1108 : 8.3e-08", "0.9002 0.0998 7.5e-08", "8 words holds 7 predictions", "uphill"):
        assert number in said
