"""The house rules: who may import whom, what loads when, what is public."""

import ast
import fnmatch
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import relaymodel

PACKAGE = Path(relaymodel.__file__).parent

# each module imports only modules above it
ORDER = [
    "checks",
    "memory",
    "files",
    "display",
    "progress",
    "tasks",
    "model",
    "curve",
    "exact",
    "derivation",
    "simulation",
    "bounds",
    "inference",
    "control",
    "many",
    "networks.texts",
    "networks.transformer",
    "networks.protocol",
    "networks.huggingface",
    "networks.calibration",
    "networks.training",
    "certificate",
    "plotting",
    "explore",
    "report",
    "cli",
    "__main__",
]
ONLY_IMPORTER = {
    "sympy": {"derivation"},
    "matplotlib": {"plotting"},
    "torch": {"networks.huggingface", "networks.training"},
    "transformers": {"networks.huggingface", "networks.training"},
    "cyclopts": {"cli"},
}


def stub():
    """The imports of the stub, which names what is public."""
    tree = ast.parse(Path(relaymodel.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.ImportFrom)]


def module_of(dotted):
    """The entry of ORDER that a dotted module name (without `relaymodel.`) belongs to."""
    return next((name for name in ORDER if dotted == name or dotted.startswith(name + ".")), None)


def sources():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        dotted = ".".join(part for part in parts if part != "__init__")
        if dotted and dotted != "networks":
            yield dotted, ast.parse(path.read_text(encoding="utf-8"))


def name_of(path):
    """The dotted name of a module, `relaymodel` included."""
    return ".".join(part for part in path.relative_to(PACKAGE.parent).with_suffix("").parts if part != "__init__")


def executed(tree):
    """The nodes of a tree, without what is imported for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"):
            yield node
            yield from executed(node)


def imports(tree):
    for node in executed(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield node.module
            if node.module == "relaymodel":
                yield from (f"relaymodel.{alias.name}" for alias in node.names)


def test_every_module_has_its_place():
    assert {dotted for dotted, _ in sources() if module_of(dotted) is None} == set()


@pytest.mark.slow
def test_modules_import_only_what_stands_above_them():
    homes = {alias.name: node.module for node in stub() for alias in node.names}
    wrong = []
    for dotted, tree in sources():
        place = ORDER.index(module_of(dotted))
        for name in imports(tree):
            if name.startswith("relaymodel."):
                inner = name.removeprefix("relaymodel.")
                target = module_of(inner) or homes.get(inner) or ("checks" if inner.startswith("__") else None)
                assert target is not None, f"{dotted} imports {name}, which is unknown"
                if ORDER.index(target) > place:
                    wrong.append(f"{dotted} imports {name}")
    assert wrong == []


@pytest.mark.slow
def test_no_module_imports_itself_by_a_detour():
    """No circle of imports, inside packages either; what a function imports when it is called counts as well."""
    trees = {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    homes = {alias.name: f"relaymodel.{node.module}" for node in stub() for alias in node.names}
    after = {}
    for dotted, tree in trees.items():
        after[dotted] = set()
        for node in executed(tree):
            if isinstance(node, ast.ImportFrom) and node.module in trees:
                names = {f"{node.module}.{alias.name}": alias.name for alias in node.names}
                home = homes if node.module == "relaymodel" else {}
                after[dotted] |= {
                    full if full in trees else home.get(name, node.module) for full, name in names.items()
                }
            elif isinstance(node, ast.Import):
                after[dotted] |= {alias.name for alias in node.names if alias.name in trees}
        after[dotted] -= {dotted}
    assert sum(map(len, after.values())) > 300
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c"]
    assert circle(after) == []


def circle(after):
    """Return a circle of a graph {node: set of nodes}, [] if there is none."""
    done, path = set(), []

    def go(node):
        if node in path:
            return path[path.index(node) :]
        if node in done:
            return []
        path.append(node)
        found = next((way for other in sorted(after[node]) if (way := go(other))), [])
        path.pop()
        done.add(node)
        return found

    return next((way for node in sorted(after) if (way := go(node))), [])


def names_in(target):
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from names_in(element)


def test_numbers_have_a_reason():
    """A constant with a number in it derives from another, or has a comment or a docstring beside it."""
    bare = []
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        lines, body = text.splitlines(), ast.parse(text).body
        for node, after in zip(body, [*body[1:], None], strict=True):
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            names = [name for target in targets for name in names_in(target)]
            if not names or not all(name.isupper() for name in names) or node.value is None:
                continue
            parts = list(ast.walk(node.value))
            derived = any(isinstance(part, ast.Name) and part.id.isupper() for part in parts)
            number = any(isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in parts)
            told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            told |= (
                lines[node.lineno - 2].startswith("#") or "  # " in lines[node.lineno - 1] + lines[node.end_lineno - 1]
            )
            if number and not derived and not told:
                bare.append(f"{path}:{node.lineno} {names}")
    assert [line for line in bare if "/report/" not in line] == []  # a claim says its numbers in words


def test_no_name_stands_for_two_things():
    """Classes and constants: each is defined in one module; another that needs it imports it from there."""
    homes = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            names = {name for target in targets for name in names_in(target) if name.isupper()}
            for name in {node.name} if isinstance(node, ast.ClassDef) else names:
                homes.setdefault(name, []).append(name_of(path))
    assert len(homes) > 300
    assert {name: sorted(places) for name, places in homes.items() if len(places) > 1} == {}


@pytest.mark.slow
def test_heavy_libraries_have_one_importer():
    wrong = [
        f"{dotted} imports {name}"
        for dotted, tree in sources()
        for name in imports(tree)
        for library, allowed in ONLY_IMPORTER.items()
        if name.split(".")[0] == library and module_of(dotted) not in allowed
    ]
    assert wrong == []


def test_import_is_light():
    code = "import json, sys; import relaymodel; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    tops = {name.split(".")[0] for name in loaded}
    assert tops & {"sympy", "scipy", "matplotlib", "torch", "transformers", "flint", "cyclopts", "mpmath"} == set()
    assert {name for name in loaded if name.startswith("relaymodel.")} == set()


@pytest.mark.parametrize("name", relaymodel.__all__)
def test_public_names_are_documented_with_an_example(name):
    value = getattr(relaymodel, name)
    assert value.__doc__, name
    assert ">>>" in value.__doc__, f"{name} has no example"


def test_public_names_resolve():
    assert len(relaymodel.__all__) == sum(len(node.names) for node in stub())
    assert set(relaymodel.__all__) <= set(dir(relaymodel))
    with pytest.raises(AttributeError, match="nonsense"):
        relaymodel.nonsense  # noqa: B018


def test_files_stay_short():
    long = {
        str(path.relative_to(PACKAGE)): count
        for path in PACKAGE.rglob("*.py")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > 450
    }
    assert long == {}


def test_the_wheel_has_the_stub_that_names_what_is_public():
    """`relaymodel/__init__.py` reads it when it is imported."""
    build = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    wheel = build["targets"]["wheel"]
    assert wheel["packages"] == ["relaymodel"]
    assert not {"exclude", "include", "only-include"} & (set(wheel) | set(build))
    ignored = (PACKAGE.parent / ".gitignore").read_text(encoding="utf-8").split()  # hatchling leaves out what git does
    assert not any(fnmatch.fnmatch(name, pattern) for name in ("__init__.pyi", "py.typed") for pattern in ignored)


def test_citation_names_the_version():
    assert relaymodel.__version__ in relaymodel.__bibtex__
    assert relaymodel.__bibtex__.count("{") == relaymodel.__bibtex__.count("}")
