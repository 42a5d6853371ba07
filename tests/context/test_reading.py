"""Bytes become the text they mean, or a reason; and no byte outside the root is read."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laguna_context import confined
from laguna_context.confined import Refused, open_beneath
from laguna_context.encodings import Undecodable
from laguna_context.listing import Entry, list_files
from laguna_context.reading import Document, Limits, Skip, decode, probe, read_file, to_document
from support.repositories import git, repository, write


def entry_of(root: Path, path: str) -> Entry:
    return next(entry for entry in list_files(root).entries if entry.path == path)


def read(root: Path, path: str, limits: Limits | None = None) -> Document | Skip:
    return read_file(root, entry_of(root, path), limits or Limits())


PHRASES = {
    "cp932": ["// こんにちは\n", "日本語のコメント", "# 設定を取得する関数です\n", "値が無い場合はエラーを返す"],
    "euc_jp": ["// こんにちは\n", "# 設定を取得する関数です\n", "データを読み込む"],
    "gb18030": ["// 你好，世界\n", "# 返回用户的名字\n", "/* 这个函数用来计算两个数的和 */"],
    "big5": ["// 你好，世界\n", "# 這個函數用來計算兩個數的和\n", "如果檔案不存在就返回錯誤"],
    "cp949": ["// 안녕하세요\n", "# 이 함수는 두 수의 합을 반환합니다\n", "설정 파일을 읽는다"],
    "cp1252": ["# café\n", "déjà vu, naïve façade", "Müller & Söhne", "“¡Hola, señor!” — 5 °C", "ação não é fácil"],
    "cp1251": ["// привет мир\n", "# Функция возвращает значение\n", "Если файл не найден"],
    "koi8_r": ["// привет мир\n", "# Функция возвращает значение\n"],
    "cp1250": ["Zażółć gęślą jaźń", "příliš žluťoučký kůň"],
    "iso8859_2": ["Zażółć gęślą jaźń", "příliš žluťoučký kůň"],
    "cp1253": ["καλημέρα κόσμε", "η συνάρτηση επιστρέφει τιμή"],
    "cp1254": ["şu ağaç ışık"],
    "iso2022_jp": ["// こんにちは\n"],
    "utf-16-le": ["plain text\n"],
    "utf-16-be": ["plain é text\n"],
}


@pytest.mark.parametrize(("encoding", "text"), [(name, text) for name, texts in PHRASES.items() for text in texts])
def test_encodings_are_told_from_the_text(tmp_path: Path, encoding: str, text: str) -> None:
    root = repository(tmp_path, {"f.txt": text.encode(encoding)})
    found = read(root, "f.txt")
    assert isinstance(found, Document)
    assert (found.text, found.encoding) == (text, encoding)
    assert found.text.encode(found.encoding) == (root / "f.txt").read_bytes()


WORDS = {
    "cp932": ["日本", "語", "設定", "です", "値", "ファイル", "高い", "鬱", "薔薇", "ｶﾅ", "終了", "髙橋"],
    "euc_jp": ["日本", "語", "設定", "です", "値", "ファイル", "高い", "鬱", "薔薇", "終了"],
    "gb18030": ["你", "好", "世界", "函数", "错误", "饕餮", "龙", "配置", "啊", "镕", "龘"],
    "big5": ["你", "好", "世界", "函數", "錯誤", "饕餮", "龍", "設定", "啊"],
    "cp949": ["안녕", "설정", "값", "함수", "뷁", "오류", "漢字", "똠", "파일"],
    "cp1252": ["café", "naïve", "Müller", "señor", "Ångström", "“x”", "€5", "à", "©", "°", "œuvre"],
    "cp1250": ["się", "żółć", "kůň", "őr", "ţară", "Łukasz", "ulubiony", "é"],
    "cp1251": ["привет", "мир", "Функция", "Ё", "значение", "і", "їжак", "ЯЗЫК"],
    "koi8_r": ["привет", "мир", "Функция", "значение", "ЯЗЫК"],
    "cp1254": ["ağaç", "ışık", "İstanbul", "şu", "ö"],
    "cp1253": ["καλημέρα", "κόσμε", "Η", "ΤΙΜΗ", "ά"],
}


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_a_legacy_text_is_decoded_right_or_refused(data: st.DataObject) -> None:
    """Four different words or more of a language, in ASCII surroundings: never another text than was written."""
    encoding = data.draw(st.sampled_from(sorted(WORDS)))
    words = data.draw(
        st.lists(st.sampled_from([*WORDS[encoding], "int", "x = 1;", "\n"]), min_size=4, max_size=12, unique=True)
    )
    text = " ".join(words)
    raw = text.encode(encoding, "ignore")
    expected = raw.decode(encoding)
    found = decode(raw)
    if raw.isascii() or not isinstance(found, Undecodable):
        assert isinstance(found, tuple)
        assert found[0].encode(found[1]) == raw
        if sum(char > "\x7f" for char in expected) >= 8:
            assert found[0] == expected


@given(st.text())
def test_utf8_is_itself(text: str) -> None:
    raw = text.replace("\0", "").replace("\x1b", "").encode("utf-8", "ignore")
    if not raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        assert decode(raw) == (raw.decode(), "utf-8", False)


@given(st.binary(max_size=200))
def test_any_bytes_are_text_that_gives_them_back_or_refused(raw: bytes) -> None:
    found = decode(raw)
    if isinstance(found, Undecodable):
        assert found.reason in ("binary", "encoding")
        assert found.detail
    else:
        text, encoding, bom = found
        body = text.encode(encoding)
        assert raw.endswith(body)
        assert (len(raw) > len(body)) == bom


def test_a_character_across_a_probe_boundary_is_text(tmp_path: Path) -> None:
    text = "#" * 1023 + "é = 1"
    root = repository(tmp_path, {"f.py": text})
    found = read(root, "f.py")
    assert isinstance(found, Document)
    assert (found.text, found.encoding) == (text, "utf-8")


def test_a_long_single_line_is_read_whole(tmp_path: Path) -> None:
    text = "var a=1;" * 14_400
    found = read(repository(tmp_path, {"bundle.min.js": text}), "bundle.min.js")
    assert isinstance(found, Document)
    assert found.text == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_byte_order_marks(tmp_path: Path, encoding: str) -> None:
    raw = "\ufeffa\r\nb\r\n".encode(encoding)
    found = read(repository(tmp_path, {"f": raw}), "f")
    assert isinstance(found, Document)
    assert (found.text, found.encoding, found.bom, found.newline) == ("a\r\nb\r\n", encoding, True, "\r\n")
    assert found.size == len(raw)


@pytest.mark.parametrize(
    ("text", "newline"), [("a", "\n"), ("a\nb\n", "\n"), ("a\r\nb\r\n", "\r\n"), ("a\rb", "\r"), ("a\r\nb\n", "mixed")]
)
def test_line_ends_are_told_and_kept(text: str, newline: str) -> None:
    found = to_document("f", text.encode())
    assert isinstance(found, Document)
    assert (found.text, found.newline) == (text, newline)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "empty"),
        (b"\x7fELF\0\0\1", "binary"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(1, 200)), "binary"),
        ("grün ".encode() * 20 + b"\xff", "encoding"),
        (b"\xff\xfea", "encoding"),
        (b"\x81\x8d\x8f\x90\x9d", "encoding"),
    ],
)
def test_what_is_no_text_has_a_reason(raw: bytes, reason: str) -> None:
    found = to_document("f", raw)
    assert isinstance(found, Skip)
    assert (found.path, found.reason) == ("f", reason)
    assert found.detail


def test_size_caps(tmp_path: Path) -> None:
    root = repository(tmp_path, {"f": "x" * 101, "g": "x" * 100})
    assert isinstance(read(root, "g", Limits(size=100)), Document)
    found = read(root, "f", Limits(size=100))
    assert isinstance(found, Skip)
    assert (found.reason, found.detail) == ("too large", "101 bytes, over the cap of 100")


def test_a_file_that_grew_past_the_cap_since_it_was_listed(tmp_path: Path) -> None:
    root = repository(tmp_path, {"f": "x" * 10})
    entry = entry_of(root, "f")
    write(root, {"f": "x" * 1000})
    found = read_file(root, entry, Limits(size=100))
    assert isinstance(found, Skip)
    assert found.reason == "too large"


def test_a_file_that_changed_since_it_was_listed_is_not_settled(tmp_path: Path) -> None:
    root = repository(tmp_path, {"f": "one"})
    entry = entry_of(root, "f")
    first = read_file(root, entry)
    assert isinstance(first, Document)
    assert first.settled
    write(root, {"f": "two"})
    os.utime(root / "f", ns=(entry.mtime_ns, entry.mtime_ns))
    again = read_file(root, entry)
    assert isinstance(again, Document)
    assert (again.text, again.settled) == ("two", False)


NOTEBOOK = {
    "cells": [
        {
            "cell_type": "markdown",
            "metadata": {},
            "source": ["# Títle\n"],
            "attachments": {"a.png": {"image/png": "QUFB"}},
        },
        {
            "cell_type": "code",
            "execution_count": 7,
            "metadata": {},
            "outputs": [{"output_type": "stream", "name": "stdout", "text": ["secret output\n"]}],
            "source": ['print("hi")\n', "x = 1"],
        },
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_notebooks_come_without_outputs(tmp_path: Path) -> None:
    raw = json.dumps(NOTEBOOK, indent=1, ensure_ascii=False) + "\n"
    found = read(repository(tmp_path, {"n.ipynb": raw}), "n.ipynb", Limits(size=len(raw) - 50))
    assert isinstance(found, Document)
    assert "secret output" not in found.text
    assert "QUFB" not in found.text
    assert found.note == "outputs and attachments of 2 cells left out"
    kept = [line for line in raw.splitlines() if "print" in line or "x = 1" in line or "Títle" in line]
    assert len(kept) == 3
    assert all(line in found.text.splitlines() for line in kept)
    assert json.loads(found.text)["cells"][1]["source"] == NOTEBOOK["cells"][1]["source"]


@pytest.mark.parametrize("text", ["not json", "[1, 2]", '{"cells": 3}', '{"cells": [1]}', "[" * 100_000])
def test_what_is_no_notebook_stays_as_it_is(text: str) -> None:
    found = to_document("n.ipynb", text.encode())
    assert isinstance(found, Document)
    assert (found.text, found.note) == (text, "")


def test_links_pipes_and_repositories_are_skipped(tmp_path: Path) -> None:
    root = repository(tmp_path, {"pipe": "x", "socket": "x"}, commit=True)
    (root / "out.txt").symlink_to("/etc/hostname")
    git(root, "add", "out.txt")
    git(root, "commit", "-qm", "link")
    (root / "pipe").unlink()
    os.mkfifo(root / "pipe")
    repository(root / "nested", {"f": "x"}, commit=True)
    reasons = {e.path: found.reason for e in list_files(root).entries if isinstance(found := read_file(root, e), Skip)}
    assert reasons == {"out.txt": "symlink", "pipe": "fifo", "nested": "nested"}


def test_a_pipe_put_in_place_of_a_listed_file_does_not_block(tmp_path: Path) -> None:
    root = repository(tmp_path, {"f": "x"})
    entry = entry_of(root, "f")
    (root / "f").unlink()
    os.mkfifo(root / "f")
    found = read_file(root, entry)
    assert isinstance(found, Skip)
    assert found.reason == "fifo"


def test_a_device_is_not_read() -> None:
    entry = Entry("null", "file", 0, 0, 0, 0, 0o100644, True, None)
    found = read_file(Path("/dev"), entry)
    assert isinstance(found, Skip)
    assert found.reason == "device"


def test_gone_and_folder(tmp_path: Path) -> None:
    root = repository(tmp_path, {"f": "x", "g": "x"})
    f, g = list_files(root).entries
    (root / "f").unlink()
    (root / "g").unlink()
    (root / "g").mkdir()
    assert [found.reason for e in (f, g) if isinstance(found := read_file(root, e), Skip)] == ["missing", "folder"]


SECRET = "outside"
STEPS = st.lists(st.sampled_from(["a", "b", "..", ".", "up", "abs", "dir", "", "f", "etc"]), min_size=1, max_size=6)


@pytest.fixture(params=["one step", "step by step"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "step by step":
        monkeypatch.setattr(confined, "_has_openat2", lambda: False)
    return str(request.param)


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root full of links that lead out."""
    base = tmp_path_factory.mktemp("trapped")
    root = base / "root"
    write(base, {"f": SECRET, "etc/f": SECRET, "dir/f": SECRET})
    write(root, {"f": "inside", "a/f": "inside", "a/b/f": "inside", "dir/f": "inside"})
    for place in (root, root / "a", root / "a/b"):
        (place / "up").symlink_to("..")
        (place / "abs").symlink_to(base)
    (root / "etc").symlink_to(base / "etc")
    (root / "b").symlink_to("../f")
    return root


def test_no_path_reads_a_byte_outside_the_root(trapped: Path, way: str) -> None:
    assert way

    @settings(max_examples=300, deadline=None)
    @given(STEPS)
    def check(steps: list[str]) -> None:
        path = "/".join(steps)
        entry = Entry(path, "file", 7, 0, 0, 0, 0o100644, True, None)
        found = read_file(trapped, entry)
        real = trapped.joinpath(*steps)
        plain = "up" not in steps and ".." not in steps and "." not in steps and "" not in steps
        if plain and real.is_file() and real.resolve() == real:
            assert isinstance(found, Document)
            assert found.text == "inside"
        else:
            assert isinstance(found, Skip), (path, found)

    check()


@pytest.mark.parametrize(
    "path", ["../f", "/etc/hostname", "a/../../f", "a//f", "./f", "up/f", "abs/f", "b", "etc/f", "\0", ""]
)
def test_leaving_paths_are_refused(trapped: Path, way: str, path: str) -> None:
    assert way
    with pytest.raises(Refused):
        os.close(open_beneath(trapped, path))


def test_a_folder_swapped_for_a_link_while_reading(tmp_path: Path, way: str) -> None:
    """Someone keeps exchanging a folder for a link that leads out: what is read is ours or nothing."""
    assert way
    root = repository(tmp_path / "root", {"d/f": "inside"})
    write(tmp_path, {"out/f": SECRET})
    (root / "link").symlink_to(tmp_path / "out")
    entry = entry_of(root, "d/f")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for source, target in (("d", "real"), ("link", "d"), ("d", "link"), ("real", "d")):
                (root / source).rename(root / target)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        found = [read_file(root, entry) for _ in range(3000)]
    finally:
        done.set()
        swapper.join()
    assert {document.text for document in found if isinstance(document, Document)} <= {"inside"}
    assert {skip.reason for skip in found if isinstance(skip, Skip)} <= {"outside", "missing"}


def test_an_entry_with_another_kind_is_never_opened(tmp_path: Path) -> None:
    root = repository(tmp_path, {"f": "x"})
    for kind in ("symlink", "submodule", "nested"):
        found = read_file(root, entry_of(root, "f")._replace(kind=kind))
        assert isinstance(found, Skip)
        assert found.reason == kind


def test_a_probe_tells_from_the_first_block_what_reading_would(tmp_path: Path) -> None:
    files = {
        "text.py": b"a = 1\n" * 2000,
        "straddling.txt": b"#" * 4095 + "é".encode() * 9,
        "wide.txt": "wide text\n".encode("utf-16"),
        "picture.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0" * 400,
        "empty.txt": b"",
    }
    for name, raw in files.items():
        (tmp_path / name).write_bytes(raw)
    (tmp_path / "link").symlink_to("text.py")
    for entry in list_files(tmp_path).entries:
        told, found = read_file(tmp_path, entry), probe(tmp_path, entry)
        assert (found.reason if found else None) == (told.reason if isinstance(told, Skip) else None), entry.path
