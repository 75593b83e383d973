from __future__ import annotations

from pathlib import Path

from airflow_pipelines.streams.python_environment.contents import Fingerprint, copy_to, files_below


def _digest(path: Path) -> str:
    found = Fingerprint()
    found.path(path)
    return found.digest()


def _package(folder: Path) -> Path:
    (folder / "inner").mkdir(parents=True)
    (folder / "a.py").write_text("A = 1\n")
    (folder / "inner" / "b.py").write_text("B = 1\n")
    return folder


def test_the_same_files_elsewhere_have_the_same_fingerprint(tmp_path: Path) -> None:
    one, two = _package(tmp_path / "one"), _package(tmp_path / "two")
    (two / "__pycache__").mkdir()
    (two / "__pycache__" / "a.pyc").write_bytes(b"compiled")
    assert _digest(one) == _digest(two)


def test_every_difference_is_seen(tmp_path: Path) -> None:
    digests = {_digest(_package(tmp_path / "0"))}
    changed = _package(tmp_path / "1")
    (changed / "inner" / "b.py").write_text("B = 2\n")
    moved = _package(tmp_path / "2")
    (moved / "inner" / "b.py").rename(moved / "b.py")
    executable = _package(tmp_path / "3")
    (executable / "a.py").chmod(0o755)
    cut = _package(tmp_path / "4")
    (cut / "a.py").write_text("A = 1\nb.py")
    digests |= {_digest(folder) for folder in (changed, moved, executable, cut)}
    (tmp_path / "a").write_text("")
    (tmp_path / "b").write_text("")
    assert len(digests | {_digest(tmp_path / "a"), _digest(tmp_path / "b")}) == 7


def test_texts_are_told_apart_by_their_borders() -> None:
    digests = set()
    for texts in (["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""]):
        found = Fingerprint()
        for text in texts:
            found.text(text)
        digests.add(found.digest())
    assert len(digests) == 4


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    package = _package(tmp_path / "package")
    (package / "inner" / "again").symlink_to(package)
    (package / "linked").symlink_to(_package(tmp_path / "other"))
    assert [place for place, _ in files_below(package)] == ["a.py", "inner/b.py", "linked/a.py", "linked/inner/b.py"]
    copy_to(package, tmp_path / "copy")
    assert (tmp_path / "copy" / "linked" / "inner" / "b.py").read_text() == "B = 1\n"
    assert not (tmp_path / "copy" / "linked").is_symlink()
