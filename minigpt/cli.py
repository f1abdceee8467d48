"""The command `minigpt`.

BLAS reads how many threads it may use when NumPy loads, so nothing that imports NumPy is imported above `main`.
"""

import argparse
import errno
import os
import signal
import sys
import time

from minigpt.errors import UserError
from minigpt.launch import STOP_SIGNALS, THREADS, cores

LOCAL_SIZE = "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"
RANK = "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"
NO_MEMORY = ("the memory does not suffice ({}): a smaller data.batch_size, model.context, model.d_model or "
             "model.n_layers needs less, and train.accumulate makes up for small batches; how much is predicted stands "
             "above")
WAIT = 1.0                  # seconds in which rank 0 may say what every rank has to say


def main(argv=None):
    """Run one command; returns its exit code. What the user can mend ends with one message and status 2."""
    prepare_output()
    arguments = parser().parse_args(argv)
    if arguments.run is not launch:             # which shares the cores out among the ranks that it starts
        set_threads(os.environ)
    try:
        return arguments.run(arguments) or 0
    except BrokenPipeError:                     # minigpt generate ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (UserError, OSError) as error:       # OSError: no permission, no space
        complain(NO_MEMORY.format(error) if getattr(error, "errno", 0) == errno.ENOMEM else error)
        sys.exit(2)                             # looked up now: while MPI runs, it also ends the other ranks
    except MemoryError as error:
        complain(NO_MEMORY.format(error))
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def prepare_output():
    """A sample may hold characters that the terminal cannot show, and there may be no terminal or file at all: a run
    does not end for that."""
    for name in "stdout", "stderr":
        stream = getattr(sys, name)
        if stream is None:                      # minigpt train ... >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  for good
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace" if name == "stderr" else "replace")


def complain(error):
    """Print the message of a UserError. Under mpirun, where every rank often has the same one, let rank 0 say it."""
    rank = first_of(RANK, os.environ)
    if rank not in (None, "0"):
        time.sleep(WAIT)
    where = "" if rank in (None, "0") else f" (rank {rank})"
    print(f"minigpt{where}: {error}", file=sys.stderr, flush=True)


def set_threads(environment):
    """One BLAS thread for each core that this rank has to itself, unless the user has set another number."""
    ranks = int(first_of(LOCAL_SIZE, environment) or 1)
    for name in THREADS:
        environment.setdefault(name, str(max(1, cores() // ranks)))


def first_of(names, environment):
    return next((environment[name] for name in names if name in environment), None)


def choose_device():
    """Load the array module that MINIGPT_DEVICE names; UserError if there is none."""
    try:
        import autograd.backend  # noqa: F401  chosen when it loads
    except (ValueError, RuntimeError) as error:
        raise UserError(str(error)) from None


# ------------------------------------------------------------------------------------ commands

def train(arguments):
    from minigpt import config
    settings = config.load(arguments.config, arguments.changes)
    stop = StopRequest().install()
    choose_device()
    import comm
    from minigpt.train.run import Run
    words = [arguments.config, *arguments.changes]
    Run(settings, comm.world(), words, arguments.resume, stop).go()


def evaluate(arguments):
    choose_device()
    import comm
    from minigpt.train.report import evaluate_checkpoint
    evaluate_checkpoint(arguments.checkpoint, comm.world(), arguments.corpus)


def generate(arguments):
    if first_of(RANK, os.environ) not in (None, "0"):
        return                                  # under mpirun one text is enough
    choose_device()
    from minigpt.config import Sample
    from minigpt.generate import load_model, stream_text
    settings = Sample(arguments.prompt, arguments.tokens, arguments.temperature, arguments.top_k, arguments.seed)
    model, tokenizer = load_model(arguments.checkpoint)
    for piece in stream_text(model, tokenizer, arguments.prompt, settings):
        print(piece, end="", flush=True)
    print()


def launch(arguments):
    from minigpt import launch
    return launch.main(arguments.words)


def doctor(arguments):
    from minigpt import doctor
    return doctor.main(arguments.words)


def bench(arguments):
    from minigpt import bench
    return bench.main(arguments.words)


class StopRequest:
    """Whether somebody asked this process to stop: `request()`; true after the first SIGINT, SIGTERM or SIGUSR1.

    SIGUSR1 is how mpirun's supervisor tells the ranks (minigpt/supervise.py). The second Ctrl-C ends the process
    at once. Handlers do nothing but set the flag: the run saves when its step is done.
    """

    def __init__(self):
        self.asked = False

    def install(self):
        """Listen, which Python allows in the main thread only."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._ask)
        return self

    def _ask(self, number, frame):
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True

    def __call__(self):
        return self.asked


# ------------------------------------------------------------------------------------ words

TRAIN = """examples:
  minigpt train examples/configs/python-docs.toml
  minigpt train examples/configs/python-docs.toml train.max_steps=100 model.d_model=64
  mpirun -n 4 minigpt train examples/configs/shakespeare.toml train.max_steps=500 model.n_layers=4
  minigpt train examples/configs/python-docs.toml --resume
  minigpt train examples/configs/python-docs.toml data.corpus=~/novel.txt data.tokenizer=bpe

Every key stands, with its meaning and default, in minigpt/config.py. Ctrl-C saves and stops; --resume goes on, and
the losses are the same as without the interruption.
"""

GENERATE = """examples:
  minigpt generate --checkpoint runs/python-docs --prompt "The import statement"
  minigpt generate --checkpoint runs/python-docs --prompt "def " --temperature 0.8 --top-k 40 --tokens 200 --seed 1
  minigpt generate --checkpoint runs/python-docs --temperature 0
"""

EVALUATE = """examples:
  minigpt evaluate --checkpoint runs/python-docs
  mpirun -n 2 minigpt evaluate --checkpoint runs/python-docs/checkpoints/step-00000500
  minigpt evaluate --checkpoint runs/python-docs --corpus some-other-text.txt
"""

COMMANDS = """commands, each with --help:
  minigpt train examples/configs/python-docs.toml     train a GPT
  minigpt generate --checkpoint runs/python-docs      let it write
  minigpt evaluate --checkpoint runs/python-docs      its loss on the validation text
  minigpt launch -n 2 minigpt train CONFIG            start ranks with every needed setting
  minigpt doctor                                      what this machine has
  minigpt bench                                       speed, beside PyTorch where it is installed
"""


def parser():
    root = argparse.ArgumentParser(prog="minigpt", epilog=COMMANDS, formatter_class=Formatter,
                                   description="A GPT from the tape to the bytes on the wire.")
    commands = root.add_subparsers(required=True, metavar="COMMAND")

    def command(name, run, about, examples):
        made = commands.add_parser(name, help=about, description=about, epilog=examples, formatter_class=Formatter)
        made.set_defaults(run=run)
        return made

    each = command("train", train, "train a GPT as a configuration says", TRAIN)
    each.add_argument("config", metavar="CONFIG", help="a TOML file, such as those in examples/configs")
    each.add_argument("changes", nargs="*", metavar="section.key=value", help="change a value of the configuration")
    each.add_argument("--resume", action="store_true", help="go on from the newest checkpoint of this run")

    each = command("generate", generate, "let a trained model write", GENERATE)
    checkpoint_of(each)
    each.add_argument("--prompt", default="", help="what the text begins with (default: a new line)")
    each.add_argument("--tokens", type=int, default=200, help="how many to write (default 200)")
    each.add_argument("--temperature", type=float, default=0.8, help="0: always the likeliest token (default 0.8)")
    each.add_argument("--top-k", type=int, default=0, help="only the k likeliest tokens may come (default: all)")
    each.add_argument("--seed", type=int, default=1, help="another seed, another text (default 1)")

    each = command("evaluate", evaluate, "loss on validation text, beside what counting reaches", EVALUATE)
    checkpoint_of(each)
    each.add_argument("--corpus", help="another text than the one it was trained on: a name, a file or a folder")

    for name, run, about in (("launch", launch, "start ranks with every needed setting"),
                             ("doctor", doctor, "what this machine has"),
                             ("bench", bench, "speed, beside PyTorch where it is installed")):
        each = commands.add_parser(name, help=about, add_help=False, prefix_chars="\0")
        each.add_argument("words", nargs=argparse.REMAINDER)
        each.set_defaults(run=run)
    return root


def checkpoint_of(command):
    command.add_argument("--checkpoint", required=True, metavar="PATH",
                         help="the folder of a run, such as runs/python-docs, or one of its checkpoints")


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Examples stay as they are written."""


if __name__ == "__main__":
    sys.exit(main())
