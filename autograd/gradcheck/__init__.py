"""Is this gradient right?  Is this op, this layer, a good citizen?

    gradcheck(function, inputs)         gradients against differences, in float64, aware of kinks
    check_adjoint(function, x)          <f(x), w> = <x, f*(w)> for a linear function, exact
    check_op(op, inputs, reference)     the contract that every op keeps, for someone who writes a new one
    check_layer(layer, inputs)          the same for a layer and its parameters

    @op
    def cube(x):
        return x * x * x, lambda dy: 3 * x * x * dy

    check_op(cube, [numpy.random.standard_normal((3, 4))], reference=lambda x: x**3, empty=[numpy.zeros((0, 4))])

Each raises GradientError or ContractError, both AssertionErrors, and names input, numbers and remedy.
"""

from autograd.gradcheck.contract import ContractError, check_op
from autograd.gradcheck.difference import GradientError, Unchecked, check_adjoint, gradcheck
from autograd.gradcheck.layer import check_layer

__all__ = ["ContractError", "GradientError", "Unchecked", "check_adjoint", "check_layer", "check_op", "gradcheck"]
