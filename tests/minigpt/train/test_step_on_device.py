"""A step of training leaves its values on the device: nothing in it waits."""
import pytest

import comm
from autograd.backend import CommDevice
from minigpt.train.trainer import Trainer
from tests.minigpt import tiny


@pytest.mark.strict
@pytest.mark.parametrize("words", [(), ("model.dropout=0.2", "train.accumulate=2"), ("optim.name=sgd",)], ids=str)
def test_a_step_of_training_never_waits_for_the_device(words):
    from autograd.strict import no_synchronization
    comm.device.register(CommDevice())
    trainer = Trainer(tiny.config(*words), tiny.corpus(), comm.world())
    with no_synchronization():
        loss, norm = trainer.train_step()
    assert float(loss) > 0 and float(norm) > 0
