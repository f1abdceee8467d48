"""Text and digits to batches.

`corpus.prepare` turns a named corpus, a file or a folder into token ids, `loader.Loader` turns those into
batches, `tokenizer` says what a token is, `digits` reads handwritten digits, `baselines` gives the losses
that counting alone reaches. Nothing here knows of ranks, models or gradients.
"""
