"""The text of a run, on every rank."""

from data import corpus as corpora
from minigpt.errors import UserError


def prepare_corpus(config, group, say, tokenizer=None):
    """The Corpus that a `minigpt.config.Data` names, on every rank. Rank 0 prepares it, the others wait.

    tokenizer: one to use instead of the configured kind, such as a checkpoint's.
    """
    def prepare(say):
        size = None if tokenizer else config.vocab_size or None
        return corpora.prepare(config.corpus, tokenizer or config.tokenizer, validation=config.validation,
                               encoding=config.encoding or None, vocab_size=size, progress=say)
    try:
        first = prepare(say) if group.rank == 0 else None
        group.barrier()
        return first or prepare(lambda line: None)
    except (ValueError, OSError) as error:
        raise UserError(f"cannot prepare data.corpus={config.corpus!r}: {error}") from None
