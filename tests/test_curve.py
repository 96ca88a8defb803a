"""Curves and their files."""

import os
import stat
import sys

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaymodel import Curve
from relaymodel.curve import read_curves, write_curves

positive = st.floats(1e-300, 1e300)


@given(st.lists(st.tuples(positive, positive, st.floats(0, 1e300)), min_size=2, max_size=20, unique_by=lambda p: p[0]))
def test_files_lose_nothing(tmp_path_factory, points):
    folder = tmp_path_factory.mktemp("curves")
    t, distance, stderr = np.array(sorted(points)).T
    curve = Curve(t, distance, stderr, {"network": "tiny", "prompt": 64})
    assert Curve.from_csv(curve.to_csv(folder / "c.csv")) == curve
    assert Curve.from_npz(curve.to_npz(folder / "c.npz")) == curve


def test_curve_is_read_only_and_copied():
    t = np.array([1.0, 2.0])
    curve = Curve(t, [1, 2])
    t[0] = 5
    assert curve.t[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        curve.distance[0] = 3


def test_layers_are_told_apart(tmp_path):
    curves = {1: Curve([1, 2], [4, 3]), 5: Curve([1, 2, 3], [4, 3, 2])}
    path = write_curves(tmp_path / "c.csv", curves)
    assert read_curves(path) == curves
    assert Curve.from_csv(path, layer=5) == curves[5]
    with pytest.raises(ValueError, match=r"layer must be one of those in .*: 1, 5; none was chosen"):
        Curve.from_csv(path)
    with pytest.raises(ValueError, match=r"1, 5; got 2"):
        Curve.from_csv(path, layer=2)


@pytest.mark.parametrize(
    "text",
    [
        "t,distance\n1,4\n2,3.5\n",
        "t,distance\r\n1,4\r\n2,3.5\r\n",
        "\ufefft,distance\n1,4\n2,3.5\n",
        "t;distance\n1;4\n2;3.5\n",
        "t\tdistance\n1\t4\n2\t3.5\n",
        "# a: b\n\nDistance, T ,note\n4,1,x\n3.5,2,y\n\n",
        'distance,"t"\n"4","1"\n3.5,2',
        "\ufeff# a: b\r\nt;distance\r\n1;4\r\n2;3.5",
    ],
)
def test_dialects_are_read(tmp_path, text):
    path = tmp_path / "c.csv"
    path.write_bytes(text.encode())
    curve = Curve.from_csv(path)
    assert curve.t.tolist() == [1, 2]
    assert curve.distance.tolist() == [4, 3.5]
    assert dict(curve.provenance) == ({"a": "b"} if "# a" in text else {})


BAD_FILES = [
    ("", "got an empty file"),
    ("\n\n", "got an empty file"),
    ("# only: comments\n", "got an empty file"),
    ("1,4\n2,3\n", "line 1: the header must name the column t once"),
    ("t,layer\n1,4\n", "line 1: the header must name the column distance once"),
    ("t,t,distance\n1,1,4\n", "line 1: the header must name the column t once"),
    ("t,distance\n", "must hold rows of numbers below its header"),
    ("t,distance\n1,4\n", "t must have at least 2 values"),
    ("t,distance\n1,4\n2,x\n3,2\n", "line 3: distance must be a number, got '2,x'"),
    ("# k: v\nt,distance\n1,4\n\n2\n", "line 5: expected 2 columns, found 1, got '2'"),
    ("t,distance\n1,4,9\n", "line 2: expected 2 columns, found 3"),
    ("t,distance\n1,4\n2,nan\n", "line 3: distance must be finite and positive"),
    ("t,distance\n1,4\ninf,2\n", "line 3: t must be finite and positive"),
    ("t,distance\n1,4\n2,0\n", "line 3: distance must be finite and positive"),
    ("t,distance\n1,4\n2,-1\n", "line 3: distance must be finite and positive"),
    ("t,distance\n0,4\n2,1\n", "line 2: t must be finite and positive"),
    ("t,distance\n1,4\n1,3\n", "line 3: t must be strictly increasing (within a layer), got 1 after 1"),
    ("t,distance\n2,4\n1,3\n", "line 3: t must be strictly increasing"),
    ("t,distance,layer\n1,4,1\n2,3,1.5\n", "line 3: layer must be an integer"),
    ("t,distance,stderr\n1,4,.1\n2,3,-1\n", "line 3: stderr must be finite and at least 0"),
    ("t,distance,stderr\n1,4,.1\n2,3,\n", "stderr must be finite, got nan"),
    ("t;distance\n1;4,5\n2;3\n", "line 2: distance must be a number; write a decimal point"),
]


@pytest.mark.parametrize(("text", "message"), BAD_FILES, ids=[repr(text)[:40] for text, _ in BAD_FILES])
def test_bad_files_are_named_by_line(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError) as caught:
        Curve.from_csv(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value) or "layer" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_text(tmp_path):
    path = tmp_path / "c.csv"
    path.write_bytes(b"\xff\xfe\x00t")
    with pytest.raises(ValueError, match="must be UTF-8"):
        Curve.from_csv(path)
    with pytest.raises(FileNotFoundError):
        Curve.from_csv(tmp_path / "missing.csv")
    with pytest.raises(ValueError, match=r"c\.csv must be an NPZ file"):
        Curve.from_npz(path)
    np.savez(tmp_path / "c.npz", t=[1, 2])
    with pytest.raises(ValueError, match="must hold an array named distance, got t"):
        Curve.from_npz(tmp_path / "c.npz")


BAD = [
    (([2, 1], [1, 1]), "t must be strictly increasing, got 1.0 at index 1"),
    (([1, 1], [1, 1]), "t must be strictly increasing, got 1.0 at index 1"),
    (([0, 1], [1, 1]), "t must be positive, got 0.0 at index 0"),
    (([-1, 1], [1, 1]), "t must be positive, got -1.0 at index 0"),
    (([1, np.nan], [1, 1]), "t must be finite, got nan at index 1"),
    (([1, np.inf], [1, 1]), "t must be finite, got inf at index 1"),
    (([1, 2], [1, 0]), "distance must be positive, got 0.0 at index 1 (t = 2)"),
    (([1, 2], [1, -1]), "distance must be positive, got -1.0 at index 1"),
    (([1, 2], [np.nan, 1]), "distance must be finite, got nan at index 0"),
    (([1], [1]), "t must have at least 2 values, got 1"),
    (([], []), "t must have at least 2 values, got 0"),
    (([1, 2, 3], [1, 1]), "distance must have one value for each t, got 2 for 3"),
    (([[1, 2]], [1, 1]), "t must be one-dimensional, got shape (1, 2)"),
    (([1, 2], [1, 1], [0.1]), "stderr must have one value for each t"),
    (([1, 2], [1, 1], [0.1, -0.1]), "stderr must be at least 0, got -0.1 at index 1"),
    (([1, 2], [1, 1], [0.1, np.nan]), "stderr must be finite, got nan at index 1"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_curves_are_named(arguments, message):
    with pytest.raises(ValueError) as caught:
        Curve(*arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize("values", [["1", "2"], [True, False], [1j, 2], None, [None, 1], [object(), 1]])
def test_curves_hold_numbers(values):
    with pytest.raises(TypeError):
        Curve(values, [1, 2])


def test_window():
    curve = Curve([1, 2, 4, 8], [8, 4, 2, 1], [1, 1, 1, 1])
    assert curve.window(2, 4) == Curve([2, 4], [4, 2], [1, 1])
    with pytest.raises(ValueError, match="must hold at least 2 points, got 1; the curve runs from t = 1 to 8"):
        curve.window(5)


def test_nothing_is_overwritten(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match=r"c\.csv exists already"):
        Curve([1, 2], [2, 1]).to_csv(path)
    assert path.read_text() == "precious"
    Curve([1, 2], [2, 1]).to_csv(path, overwrite=True)
    assert len(Curve.from_csv(path)) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()
    assert os.listdir(tmp_path) == ["c.csv"]


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


class TestPairs:
    t = np.array([1.0, 2.0, 5.0])
    pairs = np.array([[4.0, 2.0, 1.0], [1.0, 0.5, 0.25]])
    mean = np.array([2.0, 1.0, 0.5])

    def curve(self, **options):
        return Curve(self.t, self.mean, **options, pairs=self.pairs)

    def test_files_windows_and_equality_keep_them(self, tmp_path):
        curve = self.curve(stderr=[0.1, 0.1, 0.1])
        for read in (
            Curve.from_csv(curve.to_csv(tmp_path / "c.csv")),
            Curve.from_npz(curve.to_npz(tmp_path / "c.npz")),
        ):
            assert read == curve
        assert curve.window(2).pairs.tolist() == self.pairs[:, 1:].tolist()
        assert curve != Curve(self.t, self.mean, [0.1, 0.1, 0.1])

    def test_layers_may_have_different_numbers_of_them(self, tmp_path):
        lone = Curve(self.t, self.mean)
        path = write_curves(tmp_path / "c.csv", {1: self.curve(), 2: lone})
        assert path.read_text().splitlines()[0] == "t,layer,distance,pair_1,pair_2"
        assert read_curves(path) == {1: self.curve(), 2: lone}

    @pytest.mark.parametrize(
        ("pairs", "message"),
        [
            ([[1, 2, 3]], "2 rows or more"),
            ([[1, 2], [3, 4]], "of 3 values"),
            ([[4, 2, 1], [1, 0.5, -0.25]], "pairs must be positive"),
            ([[4, 2, 1], [1, 0.5, np.inf]], "finite"),
            ([[4, 2, 1], [1, 0.6, 0.25]], "distance must be the geometric mean of the pairs, got 1.0 at index 1"),
        ],
    )
    def test_refused(self, pairs, message):
        with pytest.raises(ValueError, match=message):
            Curve(self.t, self.mean, pairs=pairs)


@pytest.mark.parametrize(
    "values",
    [
        np.ma.array([1.0, 9.0], mask=[False, True]),
        np.ma.array([1, 2], mask=True),
        [1.0, np.ma.masked],
    ],
)
def test_masks_are_not_dropped(values):
    for arguments in ((values, [1, 2]), ([1, 2], values), ([1, 2], [1, 2], values)):
        with pytest.raises(ValueError, match="must not have masked entries"):
            Curve(*arguments)


def test_an_empty_mask_is_none():
    assert Curve(np.ma.array([1.0, 2.0]), np.ma.array([2.0, 1.0], mask=False)).t.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,distance,stderr,stderr\n1,4,1,1\n", "line 1: the header must name the column stderr once"),
        ("t,distance,layer,layer\n1,4,1,1\n", "line 1: the header must name the column layer once"),
        ("t,distance,pair_1,pair_1\n1,4,1,1\n", "line 1: the header must name the column pair_1 once"),
        ("t,distance,influence\n1,4,4\n", "line 1: the header must name the column distance once (or influence"),
        *((f"t,distance\n1,4\n2,{odd}\n", "line 3: distance must be a number") for odd in ("1_000", "٣", "１", "0x1")),
        ("t,distance,layer\n1,4,١\n", "line 2: layer must be an integer"),
        ("t,distance\n1,4\n2,1e400\n", "line 3: distance must be finite and positive"),
        ("t,distance\n1,4\n" + "2" * 200_000 + ",3\n", "line 3: must be a row of CSV (field larger than field limit"),
        ('t,distance\n1,"4\n2,3\n', "line 2: must be a row of CSV"),
        ("t,distance\n9007199254740992,4\n9007199254740993,3\n", "as float64 they are equal"),
    ],
)
def test_what_would_be_misread_is_refused(tmp_path, text, message):
    path = tmp_path / "c.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError) as caught:
        Curve.from_csv(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_size_of_an_influence_is_a_distance(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("t,influence\n1,-4\n2,3\n")
    assert Curve.from_csv(path).distance.tolist() == [4, 3]
    path.write_text("t,influence\n1,0\n2,3\n")
    with pytest.raises(ValueError, match="line 2: influence must be finite and not 0"):
        Curve.from_csv(path)


def test_facts_stay_in_their_line(tmp_path):
    path = Curve([1, 2], [2, 1], provenance={"a\nt,distance": "b\n9,9\x1b[31m"}).to_csv(tmp_path / "c.csv")
    assert path.read_text().splitlines()[0] == "# a t,distance: b 9,9\\x1b[31m"
    assert len(Curve.from_csv(path)) == 2


def test_damaged_archives_are_named(tmp_path):
    path = Curve([1, 2, 4], [3, 2, 1]).to_npz(tmp_path / "c.npz")
    whole = path.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match=r"c\.npz must be an NPZ file"):
            Curve.from_npz(path)
    np.savez(path, t=[1, 2], distance=np.array([object()], dtype=object))
    with pytest.raises(ValueError, match=r"c\.npz must be an NPZ file that Curve.to_npz wrote, it is damaged"):
        Curve.from_npz(path)
    with pytest.raises(IsADirectoryError):
        Curve.from_npz(tmp_path)


T, D, E = [1.0, 2.0, 5.0], [4.0, 3.0, 0.1 + 0.2], [0.5, 0.25, 0.1]
CURVE = Curve(T, D, E)
COLUMNS = np.array([T, D, E]).T


@pytest.mark.parametrize(
    "write",
    [
        lambda path: np.savetxt(path, COLUMNS, header="t,distance,stderr", delimiter=",", fmt="%.17g"),
        lambda path: np.savetxt(path, COLUMNS, header="t distance stderr", fmt="%.17g"),
        lambda path: np.savetxt(path, COLUMNS, header="t, distance, stderr", delimiter="\t", fmt="%.17g"),
        lambda path: np.savetxt(path, COLUMNS, header="t,distance,stderr", delimiter=" ", fmt="%.17g"),
        lambda path: np.savetxt(path, COLUMNS, header="t distance stderr", comments="", fmt="%.17g"),
        lambda path: np.savez(path, t=T, distance=D, stderr=E),
        lambda path: path.write_bytes(CURVE.to_npz(path.with_suffix(".npz")).read_bytes()),
        lambda path: path.write_bytes(CURVE.to_csv(path.with_suffix(".tsv")).read_bytes()),
        lambda path: path.write_bytes(CURVE.to_csv(path.with_suffix(".parquet")).read_bytes()),
        lambda path: CURVE.to_dataframe().to_parquet(path),
    ],
)
def test_tables_of_every_kind_are_read(tmp_path, write):
    path = tmp_path / "curve.npz"  # what it holds decides, and not its name
    path.unlink(missing_ok=True)
    write(path)
    assert Curve.from_csv(path) == CURVE


def test_comments_that_are_no_header(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("# measured by hand\n# t: tokens\nt,distance\n1,4\n2,3\n")
    assert Curve.from_csv(path).provenance == {"t": "tokens"}
    path.write_text("# measured by hand\n1,4\n2,3\n")
    with pytest.raises(ValueError, match="line 1: the header must name the column t once"):
        Curve.from_csv(path)


def test_columns_have_any_name(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("tokens,dist,influence,t\n1,4,9,0\n2,3,9,0\n")
    names = {"t": "Tokens", "distance": "dist"}
    assert Curve.from_csv(path, columns=names) == Curve([1, 2], [4, 3])
    assert Curve.from_csv(path, columns={"t": "tokens"}).distance.tolist() == [9, 9]
    for columns, message in (
        ({"t": "time"}, r"columns must name those of .*c\.csv, tokens, dist, influence, t, got 'time'"),
        ({"error": "dist"}, "the key of columns must be one of 't', 'layer', 'distance', 'stderr', 'influence'"),
    ):
        with pytest.raises(ValueError, match=message):
            Curve.from_csv(path, columns=columns)


def test_layers_may_be_written_as_floats(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("t,layer,distance\n1,3.0,4\n2,3.00,3\n")
    assert list(read_curves(path)) == [3]


class TestFrames:
    def test_there_and_back(self):
        pairs = np.array([[4.0, 2.0], [1.0, 0.5]])
        curve = Curve([1, 2], [2, 1], [0.1, 0.2], {"source": "here"}, pairs)
        frame = curve.to_dataframe()
        assert list(frame) == ["t", "distance", "stderr", "pair_1", "pair_2"]
        assert Curve.from_dataframe(frame) == curve

    def test_layers_and_names(self):
        frame = pandas.DataFrame({"layer": [1, 1, 2, 2], "t": [1, 2, 1, 2], "d": [4, 3, 2, 1.0]})
        assert Curve.from_dataframe(frame, layer=2, columns={"distance": "d"}) == Curve([1, 2], [2, 1])
        with pytest.raises(ValueError, match="layer must be one of those in frame: 1, 2; none was chosen"):
            Curve.from_dataframe(frame, columns={"distance": "d"})

    def test_what_is_missing(self):
        frame = pandas.DataFrame({"t": [1, 2], "distance": [2.0, 1.0], "stderr": [np.nan, np.nan]})
        assert Curve.from_dataframe(frame) == Curve([1, 2], [2, 1])
        frame["distance"] = [2.0, np.nan]
        with pytest.raises(ValueError, match="frame, row 2: distance must be a number"):
            Curve.from_dataframe(frame)

    def test_without_pandas_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ImportError, match=r'pip install "\.\[data\]"'):
            CURVE.to_dataframe()


def test_damaged_parquet_is_named(tmp_path):
    path = CURVE.to_csv(tmp_path / "c.parquet")
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"c\.parquet must be a Parquet file, it is damaged"):
        Curve.from_csv(path)
    np.savez(tmp_path / "c.npz", t=[1, 2], distance=[1])
    with pytest.raises(ValueError, match=r"c\.npz must hold columns of one length"):
        Curve.from_csv(tmp_path / "c.npz")
