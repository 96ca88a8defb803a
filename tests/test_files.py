"""Output is written whole or not at all."""

import io
import os

import pytest

from relaymodel import files


def test_interrupted_file_leaves_the_old_one(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fill(temporary):
        temporary.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write(path, fill, overwrite=True)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_interrupted_folder_leaves_the_old_one(tmp_path):
    target = tmp_path / "report"
    target.mkdir()
    (target / "index.html").write_text("old")
    with pytest.raises(KeyboardInterrupt), files.folder(target, overwrite=True) as folder:
        (folder / "index.html").write_text("half")
        raise KeyboardInterrupt
    assert (target / "index.html").read_text() == "old"
    assert os.listdir(tmp_path) == ["report"]


def test_folder_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "report"
    for word in ("first", "second"):
        with files.folder(target, overwrite=True) as folder:
            (folder / word).write_text(word)
    assert os.listdir(target) == ["second"]
    assert os.listdir(tmp_path) == ["report"]


def test_empty_folder_may_be_filled(tmp_path):
    target = tmp_path / "report"
    target.mkdir()
    with files.folder(target) as folder:
        (folder / "a").write_text("a")
    assert os.listdir(target) == ["a"]


def test_what_is_there_is_refused(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("")
    with pytest.raises(FileExistsError, match="full exists already"), files.folder(tmp_path / "full"):
        pass
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotADirectoryError, match="name a folder"), files.folder(tmp_path / "file", overwrite=True):
        pass
    with pytest.raises(IsADirectoryError, match="name a file"):
        files.write_text(tmp_path / "full", "x", overwrite=True)
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        files.write_text(tmp_path / "file" / "x", "x")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        files.write_text(tmp_path / "no" / "x", "x")
    with pytest.raises(OSError, match="cannot write"):
        files.write_text("/proc/x", "x")


@pytest.mark.parametrize("linked", [False, True])
def test_what_is_not_a_file_is_never_replaced(tmp_path, linked):
    """A pipe stands for every special file: moving a result over a device would take the device away."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path = tmp_path / "link" if linked else pipe
    if linked:
        path.symlink_to(pipe)
    before = sorted(os.listdir(tmp_path))
    for write in (lambda: files.write_text(path, "x", overwrite=True), lambda: files.claim(path, overwrite=True)):
        with pytest.raises(OSError, match="is neither a file nor a folder .* name an ordinary file"):
            write()
    assert pipe.is_fifo()
    assert path.is_symlink() == linked
    assert sorted(os.listdir(tmp_path)) == before


def test_a_full_disk_is_named(tmp_path):
    def fill(temporary):
        raise OSError(28, "No space left on device", str(temporary))

    with pytest.raises(OSError, match=r"cannot write .*out\.txt: No space left on device"):
        files.write(tmp_path / "out.txt", fill)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"a": NaN}', b"[" * 100_000])
def test_damaged_json_is_named(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.json must be"):
        files.read_json(path)


def test_json_goes_there_and_back(tmp_path):
    value = {"a": [1, 0.1, None, "ü"]}
    assert files.read_json(files.write_json(tmp_path / "a.json", value)) == value
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(tmp_path / "b.json", {"a": float("nan")})


def test_tables_go_there_and_back(tmp_path):
    columns = {"name": ['a, "b"', "#c"], "x": [0.1, None], "n": [10**30, 2]}
    path = files.write_table(tmp_path / "a.csv", columns, {"source": "here: or there"})
    table = files.read_table(path, "x")
    assert table.facts == {"source": "here: or there"}
    assert [fields for _, fields in table] == [['a, "b"', "0.1", str(10**30)], ["#c", "", "2"]]
    with pytest.raises(ValueError, match="finite numbers, got nan"):
        files.write_table(tmp_path / "b.csv", {"x": [float("nan")]}, {})


def test_standard_streams_that_take_text_alone(monkeypatch):
    """As a notebook's, or a test's."""
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    files.write(files.STDIO, lambda path: path.write_text("α,β\n", encoding="utf-8"))
    assert out.getvalue() == "α,β\n"
    with pytest.raises(ValueError, match="takes text only"):
        files.write(files.STDIO, lambda path: path.write_bytes(b"\x89PNG\xff"))
    monkeypatch.setattr("sys.stdin", io.StringIO("t,distance\n1,2\n"))
    assert files.read_bytes("-") == b"t,distance\n1,2\n"
