"""python -m data: list the corpora, download them, prepare one."""

import argparse
import os
import sys

from data import baselines, cache, corpus, digits, sources

EXAMPLES = """examples:
  python -m data list
  python -m data get shakespeare
  python -m data get mnist
  python -m data prepare python-docs
  python -m data prepare python-stdlib --tokenizer bpe --vocab-size 512
  python -m data prepare letters.txt --encoding cp1251 --validation 0.2
  python -m data prepare ~/notes --tokenizer bytes

Files go to $MINIGPT_CACHE, or without it to your cache folder; `list` names it.
"""


def main(arguments=None):
    options = parser().parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:                     # python -m data list | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (OSError, ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what was complete stays in the cache", file=sys.stderr)
        return 130
    return 0


def parser():
    top = argparse.ArgumentParser("python -m data", description=__doc__, epilog=EXAMPLES,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(required=True, metavar="list | get | prepare")

    def command(name, run, text):
        made = commands.add_parser(name, help=text, description=text, epilog=EXAMPLES,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
        made.set_defaults(run=run)
        made.add_argument("--cache", metavar="FOLDER", help="instead of $MINIGPT_CACHE")
        return made

    command("list", list_corpora, "Show the named corpora, and what is in the cache.")
    get = command("get", get_download, "Download a corpus or the digits, and check them.")
    get.add_argument("name", choices=[*sources.NAMED, "mnist"])
    prepare = command("prepare", prepare_corpus, "Turn a corpus, a file or a folder into token ids.")
    prepare.add_argument("name", help="a corpus of `list`, or the path of a text file or a folder of them")
    prepare.add_argument("--tokenizer", choices=["chars", "bytes", "bpe"], default="chars")
    prepare.add_argument("--vocab-size", type=int, metavar="V",
                         help=f"tokens that bpe learns, {corpus.DEFAULT_BPE_SIZE} unless told")
    prepare.add_argument("--encoding", help="of the files; otherwise by byte order mark, or UTF-8")
    prepare.add_argument("--validation", type=float, default=0.1, metavar="SHARE",
                         help="of the text, cut from its end, 0.1 unless told")
    return top


def list_corpora(options):
    folder = cache.folder(options.cache)
    for name, (_, text) in sources.NAMED.items():
        print(f"{name:14} {text}")
    print(f"{'mnist':14} 70,000 handwritten digits of 28 x 28, for data.digits, 11 MB, a download")
    present = sorted(path for path in folder.rglob("*")
                     if path.is_file() and path.suffix not in (".lock", ".part"))
    print(f"\n{folder} holds " + (f"{len(present)} files:" if present else "nothing yet."))
    for path in present:
        print(f"{path.stat().st_size:14,} bytes  {path.relative_to(folder)}")


def get_download(options):
    if options.name == "mnist":
        print(f"MNIST is in {digits.get(options.cache, say)}")
    else:
        source = sources.find(options.name, None, cache.folder(options.cache), say)
        print(f"{source.name} is there, SHA-256 {source.digest()}")


def prepare_corpus(options):
    made = corpus.prepare(options.name, options.tokenizer, validation=options.validation,
                          encoding=options.encoding, vocab_size=options.vocab_size, cache=options.cache,
                          progress=say)
    print(f"{made.describe()}\n{made.path}")
    print(f"begins with {made.tokenizer.decode(made.train[:60])!r}")
    if len(made.validation) > 1:
        losses = [measure(made.train, made.validation, made.vocab_size)
                  for measure in (baselines.unigram, baselines.bigram)]
        print("to beat: {:.4f} nats a token by counting tokens, {:.4f} by counting pairs".format(*losses))


def say(line):
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
