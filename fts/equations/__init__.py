"""Words of a PDE: grammar, algebra of functions of u, conservative form, terms, equations, strong form.

The canonical form of a function q(u) is `expressions.Expression`, for libraries and for symbolic search
alike. On 1000 random trees (+, -, *, / over u^p and constants, 14 nodes on average) building it takes 0.15
ms a tree where SymPy takes 1.8 ms with `expand` (12 times as long), 19 ms with `nsimplify` and `expand`
(120 times) and 38 ms with `simplify` (250 times). It is a hashable value; its monomials without their
coefficients are the family of q up to numerical parameters, and they agree for 994 of 995 trees rewritten
by commuting and distributing (SymPy's `expand`, with floats: 990 of 1000). Real powers need no assumptions,
because fields under them are positive, and values outside a domain are errors. What it does not do is
cancel quotients: u/(1 + u) + 1/(1 + u) stays, where `simplify` says 1; such twins take the same values on a
field and can be told by them. So SymPy is what the tests compare with, not what the package computes with;
torch brings it along in any case.
"""
