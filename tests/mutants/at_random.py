"""Faults that nobody thought of: small changes of the syntax trees, drawn with a seed."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.mutants.fault import PACKAGE, Fault, StaleFault, read_module

# Text for people: a fault in it breaks no promise about privacy.
_TALK = {
    "__repr__",
    "__str__",
    "__reduce__",
    "__deepcopy__",
    "_overdrawn",
    "_overdraft",
    "unproven_reason",
    "_absent",
}
_SWAPPED_OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip
_SWAPPED_COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_SWAPPED_CALLS = {"min": "max", "max": "min", "floor": "ceil", "ceil": "floor", "any": "all", "all": "any"}

# The tests that should notice, by module; of them the quickest are run, for as many seconds as are given.
_TESTS = {
    "privacy.ledger.chain": "privacy/test_ledger_fields privacy/test_ledger",
    "data.rows.fingerprint": "privacy/test_ledger",
    "privacy.ledger.check": "privacy/test_ledger_fields privacy/test_ledger",
    "privacy.ledger.entries": "privacy/test_ledger_fields privacy/test_ledger test_cli_budget",
    "privacy.ledger.store": "privacy/test_ledger_fields privacy/test_ledger privacy/test_ledger_processes",
    "privacy.accountant": "privacy/test_exact_costs privacy/test_accountant privacy/test_guarantee",
    "privacy.answers": "privacy/test_answers measure/test_answers_view",
    "privacy.costs.bagging": "privacy/test_bagging",
    "privacy.domains": "privacy/test_domains",
    "privacy.estimates": "privacy/test_estimates privacy/test_domains",
    "privacy.filters": "privacy/test_exact_costs privacy/test_filters privacy/test_ledger",
    "privacy.gradients": "privacy/test_gradients",
    "privacy.costs.group_privacy": "privacy/test_bagging privacy/test_oversampling",
    "privacy.guarantee": "privacy/test_exact_costs privacy/test_guarantee privacy/test_filters privacy/test_accountant",
    "privacy.signing.keys": "privacy/test_keys test_cli_keys",
    "privacy.kinds": "privacy/test_domains",
    "privacy.costs.kissing": "privacy/test_kissing",
    "privacy.ledger.ledger": "privacy/test_ledger_fields privacy/test_ledger protect/test_ledger",
    "privacy.signing.manifest": "privacy/test_manifest auditing/test_vouching",
    "privacy.meaning": "privacy/test_meaning auditing/test_vouching",
    "privacy.mechanisms": "privacy/test_exact_costs privacy/test_mechanisms",
    "privacy.noise": "privacy/test_gradients learn/test_objective",
    "privacy.costs.oversampling": "privacy/test_oversampling",
    "privacy.persons": "privacy/test_persons protect/test_histograms",
    "privacy.costs.published": "privacy/test_bagging privacy/test_oversampling",
    "privacy.signing.signature": "auditing/test_vouching privacy/test_manifest",
    "privacy.call_context": "privacy/test_call_context",
    "privacy.signing.vouching": "auditing/test_vouching test_cli_keys",
    "privacy.zcdp": "privacy/test_zcdp privacy/test_exact_costs privacy/test_accountant",
    "measure.answers": "measure/test_answers_view",
    "measure.classifiers": "measure/test_utility",
    "measure.epsilon": "measure/test_epsilon_ends measure/test_epsilon measure/test_claims",
    "measure.fidelity": "measure/test_fidelity",
    "measure.gain": "measure/test_claims",
    "measure.leakage": "measure/test_leakage",
    "measure.one_run": "measure/test_epsilon_ends measure/test_claims",
    "measure.outputs": "measure/test_claims",
    "measure.scores": "measure/test_scores",
    "measure.statistics": "measure/test_statistics",
    "measure.tradeoff": "measure/test_statistics",
    "measure.utility": "measure/test_utility",
    "auditing.verdict": "auditing/test_verdict auditing/test_verdict_limits",
}
TESTS = {module: tuple(f"tests/{file}.py" for file in files.split()) for module, files in _TESTS.items()}


@dataclass(frozen=True)
class RandomFault(Fault):
    """The change of one place of a syntax tree, addressed by its module, function, kind and number among these."""

    place: int = 0

    def apply(self, source: str) -> str:
        """Return a module's source with the fault; without comments."""
        tree = ast.parse(source)
        sites = list(_sites(tree))
        if not self.place < len(sites) or _address(sites, self.place) != self.name.partition("~")[2]:
            raise StaleFault(f"{self.name}: the source has changed; draw the faults again")
        sites[self.place].change()
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


@dataclass
class _Site:
    """Where something can be changed."""

    within: str
    kind: str
    told: str
    line: int
    change: Any


def _address(sites: list[_Site], place: int) -> str:
    site = sites[place]
    number = sum(other.within == site.within and other.kind == site.kind for other in sites[:place])
    return f"{site.within}~{site.kind}~{number}"


def modules() -> list[str]:
    """Return the modules that faults are drawn from: privacy, measure and the verdict."""
    files = [
        *(PACKAGE / "privacy").rglob("*.py"),
        *(PACKAGE / "measure").rglob("*.py"),
        PACKAGE / "auditing" / "verdict.py",
    ]
    names = (path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".") for path in files)
    return sorted(name for name in names if not name.endswith("__init__"))


def drawn(count: int, seed: int) -> list[RandomFault]:
    """Return some of all faults, the same for the same source and seed."""
    found = []
    for module in modules():
        sites = list(_sites(ast.parse(read_module(module.replace(".", "/") + ".py"))))
        for place, site in enumerate(sites):
            address = _address(sites, place)
            symbol = f"{module}:{site.within}"
            told = f"line {site.line}: {site.told}"
            found.append(
                RandomFault(f"{module}~{address}", symbol, told, "", "not known", TESTS[module], place)
            )
    chosen = random.Random(seed).sample(range(len(found)), min(count, len(found)))
    return [found[place] for place in sorted(chosen)]


def _sites(tree: ast.Module) -> Iterator[_Site]:
    yield from _in(tree, "")


def _in(node: ast.AST, within: str) -> Iterator[_Site]:
    """Yield the places in a node, in the order of the source; leave out annotations, texts and what is only told."""
    for name, value in ast.iter_fields(node):
        if name in (
            "annotation",
            "returns",
            "decorator_list",
            "type_params",
            "type_comment",
            "exc",
            "cause",
            "msg",
        ):
            continue
        for at, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or isinstance(
                child, ast.JoinedStr | ast.Import | ast.ImportFrom
            ):
                continue
            inner = within
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{within}.{child.name}".lstrip(".")
                if child.name in _TALK:
                    continue
            if _is_talk(child):
                continue
            yield from _at(node, name, at if isinstance(value, list) else None, child, inner)
            yield from _in(child, inner)


def _is_talk(node: ast.AST) -> bool:
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Constant):
            return True
        return ast.unparse(node.value).startswith(("warnings.", "self._report", "progress("))
    # Aliases of types.
    return isinstance(node, ast.Assign) and ast.unparse(node.value).startswith(("Literal[", "NDArray["))


def _at(parent: ast.AST, name: str, at: int | None, node: Any, within: str) -> Iterator[_Site]:
    def put(new: Any) -> Any:
        def change() -> None:
            if at is None:
                setattr(parent, name, new)
            else:
                getattr(parent, name)[at] = new

        return change

    def site(kind: str, new: Any) -> _Site:
        told = f"{ast.unparse(node)[:70]} -> {ast.unparse(new)[:70]}".replace("\n", " ")
        return _Site(within or "module", kind, told, node.lineno, put(ast.copy_location(new, node)))

    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SWAPPED_OPERATORS and not _is_text(
            node
        ):
            yield site("arithmetic", ast.BinOp(left, _SWAPPED_OPERATORS[type(op)](), right))
        case ast.Compare(left=left, ops=ops, comparators=others):
            for i, op in enumerate(ops):
                swapped = [*ops[:i], _SWAPPED_COMPARISONS[type(op)](), *ops[i + 1 :]]
                yield site("comparison", ast.Compare(left, swapped, others))
        case ast.BoolOp(op=op, values=values):
            yield site("boolean", ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield site("boolean", operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield site("arithmetic", operand)
        case ast.Constant(value=bool(value)):
            yield site("constant", ast.Constant(not value))
        case ast.Constant(value=int(value)):
            yield site("constant", ast.Constant(value + 1))
        case ast.Constant(value=float(value)):
            yield site("constant", ast.Constant(2 * value if value else 1.0))
        case ast.Call(func=ast.Name(id=called)) if called in _SWAPPED_CALLS:
            yield site(
                "call", ast.Call(ast.Name(_SWAPPED_CALLS[called], ast.Load()), node.args, node.keywords)
            )
        case ast.Call(func=ast.Attribute(value=of, attr=called)) if called in _SWAPPED_CALLS:
            swapped_call = ast.Attribute(of, _SWAPPED_CALLS[called], ast.Load())
            yield site("call", ast.Call(swapped_call, node.args, node.keywords))
        case ast.Raise() | ast.AugAssign() | ast.Expr(value=ast.Call()) if name in (
            "body",
            "orelse",
            "finalbody",
        ):
            yield site("dropped", ast.Pass())


def _is_text(node: ast.BinOp) -> bool:
    sides = [node.left, node.right]
    texts = ast.JoinedStr | ast.Constant
    return any(
        isinstance(s, texts) and not isinstance(getattr(s, "value", ""), int | float) for s in sides
    ) or any(isinstance(s, ast.BinOp) and _is_text(s) for s in sides)
