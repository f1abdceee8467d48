"""How several ranks train one model."""

import comm
from autograd.backend import CommDevice, device

if device != "cpu":
    comm.device.register(CommDevice())          # so that gradients of the device can be summed over ranks
