"""Networks that do not do what they should."""


class Wrapped:
    """A network that does with the states or the bias of another one what a test wants."""

    def __init__(self, inner, change=lambda layer, states: states, bias=lambda b: b, precision=None, window=None):
        self.inner, self.change, self.rebias = inner, change, bias
        self.precision = inner.precision if precision is None else precision
        self.window = window
        self.calls = 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def observe(self, tokens, visit, *, bias=None, final_norm=False, **rows):
        self.calls += 1
        self.inner.observe(
            tokens,
            lambda layer, states: visit(layer, self.change(layer, states)),
            bias=None if bias is None else self.rebias(bias),
            final_norm=final_norm,
            **rows,
        )
