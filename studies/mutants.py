"""Small faults to plant in a source file: one operator, constant or condition changed each."""

import ast
from dataclasses import dataclass

RELATIONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
OPERATORS |= {
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {"min": "max", "minimum": "maximum", "floor": "ceil", "any": "all", "argmin": "argmax", "lower": "upper"}
NAMES |= {new: old for old, new in NAMES.items()}
SILENT = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)  # what is said is not what is done


@dataclass(frozen=True)
class Mutant:
    """One fault: the place, the code there before and after, and where to put it (1-based line, 0-based bytes)."""

    path: str
    function: str
    before: str
    after: str
    start: tuple[int, int]
    end: tuple[int, int]

    def apply(self, source: str) -> str:
        """Return the source with the fault."""
        lines = source.encode().splitlines(keepends=True)
        (first, begin), (last, stop) = self.start, self.end
        head, tail = lines[first - 1][:begin], lines[last - 1][stop:]
        lines[first - 1 : last] = [head + self.after.encode() + tail]
        return b"".join(lines).decode()


def changed(node: ast.AST) -> list[ast.AST]:
    """Return what a node may be replaced by."""
    match node:
        case ast.Compare(left, [op], right) if type(op) in RELATIONS:
            return [ast.Compare(left, [other()], right) for other in RELATIONS[type(op)]]
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            return [ast.BinOp(left, OPERATORS[type(op)](), right)]
        case ast.AugAssign(target, op, value) if type(op) in OPERATORS:
            return [ast.AugAssign(target, OPERATORS[type(op)](), value)]
        case ast.UnaryOp(ast.USub() | ast.Not(), operand) if not isinstance(operand, ast.Constant):
            return [operand]
        case ast.BoolOp(op, values):
            return [ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)]
        case ast.Constant(bool(value)):
            return [ast.Constant(not value)]
        case ast.Constant(int(value) | float(value)):
            return [ast.Constant(value + 1)]
        case ast.Name(name, ast.Load()) if name in NAMES:
            return [ast.Name(NAMES[name], ast.Load())]
        case ast.Attribute(value, name, ast.Load()) if name in NAMES:
            return [ast.Attribute(value, NAMES[name], ast.Load())]
    return []


def conditions(node: ast.AST) -> list[ast.expr]:
    """Return conditions of a node that no other fault turns round."""
    found = [node.test] if isinstance(node, (ast.If, ast.IfExp, ast.While)) else getattr(node, "ifs", [])
    return [test for test in found if not isinstance(test, (ast.Compare, ast.BoolOp, ast.UnaryOp))]


def mutants(path: str, source: str) -> list[Mutant]:
    """Return every fault of one file, in its order."""
    found: list[Mutant] = []

    def add(node: ast.AST, new: ast.AST, function: str) -> None:
        before = ast.get_source_segment(source, node) or ""
        code = ast.unparse(ast.fix_missing_locations(new))
        after = code if isinstance(new, (ast.AugAssign, ast.Name, ast.Attribute, ast.Constant)) else f"({code})"
        place = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
        found.append(Mutant(path, function, " ".join(before.split()), after, *place))

    def walk(node: ast.AST, function: str) -> None:
        if isinstance(node, SILENT) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            return
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            function = f"{function}.{node.name}".lstrip(".")
        for new in changed(node):
            add(node, new, function)
        for test in conditions(node):
            add(test, ast.UnaryOp(ast.Not(), test), function)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    walk(child, function)

    walk(ast.parse(source), "")
    return found
