"""The influence as a user could ask SymPy for it: `python nested_sums.py DEPTH WAY` prints one JSON object.

Layer l behind the prompt is x_l(n) = x_{l-1}(n) + lambda/n [P X_{l-1} + sum_{s=P+1}^n x_{l-1}(s)], X_l = (1+lambda)^l.
"""

import json
import sys
import time

import sympy

from relaymodel.derivation import P, derive, t

relay = derive(1).relay[0]


def doit(term, s, n):
    return sympy.Sum(term, (s, P + 1, n)).doit()


def summation(term, s, n):
    return sympy.summation(term, (s, P + 1, n))


def difference(term, s, n):
    """Term by term and from 1 on, for SymPy knows the sum of 1/s from 1 to a symbol, but not from one to another."""
    parts = sympy.Add.make_args(sympy.expand(term))
    return sympy.Add(*(sympy.summation(part, (s, 1, n)) - sympy.summation(part, (s, 1, P)) for part in parts))


def nested(depth, add_up):
    x, X = sympy.Integer(0), sympy.Integer(1)
    # each sum has an index of its own: to substitute one for another would capture it
    indices = sympy.symbols(f"s:{depth + 1}", integer=True, positive=True)
    for s, n in zip(indices, indices[1:], strict=False):  # noqa: RUF007
        x = x.subs(s, n) + relay / n * (P * X + add_up(x, s, n))
        X *= 1 + relay
    return sympy.expand(x).subs(indices[-1], P + t)


def main(depth, way):
    begin = time.process_time()
    result = derive(depth).harmonic_form if way == "derive" else nested(depth, globals()[way])
    seconds = time.process_time() - begin
    value = result.subs({P: 2, t: 3, relay: 1}).doit()
    print(json.dumps({"seconds": seconds, "sums left": len(result.atoms(sympy.Sum)), "at P=2, t=3": str(value)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
