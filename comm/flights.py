"""Plans in flight: begun, and carried on whenever their rank has a moment.

A plan in flight needs its rank to come by between its rounds. So whoever waits on a rank carries on all that
is in flight on it, whichever group it belongs to: ranks may wait for different things first.
"""

import time


class Handle:
    """A collective that has begun. `done`; `test()` carries it on; `wait()` returns its result.

    The input must not be changed, nor `out` read, before it is done.
    """

    def __init__(self, flights, plan, finish):
        self._flights, self._plan, self._finish = flights, plan, finish
        self.done, self._result = False, None

    def test(self):
        """Go as far as is possible without waiting; is it done?"""
        if not self.done and self._plan.poll():
            self._result = self._finish()
            self.done = True
            self._flights.remove(self)
        return self.done

    def wait(self):
        """Finish, and return what the blocking call returns."""
        if self._flights.only(self):
            self._plan.wait()
        self._flights.carry_on(self.test)
        return self._result


class Flights(list):
    """Everything that is in flight on one rank: handles, and plans that were started.

    checked: ranks that wait for each other's calls carry theirs on. A list, so that asking whether it is empty, as
    every call does, costs next to nothing.
    """

    def __init__(self, checked=False):
        super().__init__()
        self._checked = checked

    def begin(self, plan, finish):
        handle = Handle(self, plan, finish)
        self.append(handle)
        plan.start()
        handle.test()
        return handle

    def only(self, handle):
        """May its rank wait for it alone, so that the transport sees who waits for whom? Not if more is in flight."""
        return not self._checked and self == [handle]

    def remove(self, handle):
        """It is done; what was done as soon as it was started never came here."""
        if handle in self:
            super().remove(handle)

    def progress(self):
        """Carry on everything a little; how much is still in flight?"""
        for handle in list(self):
            handle.test()
        return len(self)

    def run(self, plan):
        """plan.run(), while everything in flight goes on too."""
        if not self:
            plan.run()
            return
        plan.start()
        self.carry_on(plan.poll)

    def carry_on(self, is_done):
        """Until is_done(), carry on what is in flight, and leave the core to others in between."""
        while not is_done():
            self.progress()
            time.sleep(0)
