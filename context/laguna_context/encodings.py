"""Which text bytes mean: exact where they say so, judged where they do not, refused where it would be a guess."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass

from .alphabets import CYRILLIC_AND_GREEK, EAST_ASIAN, LATIN, LETTERS, SYMBOLS

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 4_000
_ACCENTS = frozenset("άέήίόύώΐΰ")
_WORD = re.compile(r"[^\W\d_]+")
_UTF8_SEQUENCE = re.compile(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SYMBOL_IN_WORD = re.compile(r"[^\W\d_][“”„‚•€£¥¢©®™§¶«»‹›¿¡±×÷µ²³¹½¼¾][^\W\d_]|[^\W\d_](?<!m)[±¿¶¼¾£¹³]")
_NEUTRAL = re.compile(r"[\u3000-\u3020\uff01-\uff5e·—…“”‘’]")

Decoded = tuple[str, str, bool]


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Why bytes are no text: `reason` is "binary" or "encoding"."""

    reason: str
    detail: str


def decode_text(raw: bytes) -> Decoded | Undecodable:
    """Text, encoding's name (Python's), and whether a byte order mark was taken off.

    Encoding the text again with that name, the mark put back, gives the same bytes.
    """
    if raw[:4].startswith(_FIRST_BYTES):
        for mark, name in _MARKS:
            if raw.startswith(mark):
                return _marked(raw, mark, name)
    if b"\0" in raw:
        return _wide(raw)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return _legacy(raw, error.start)
    if "\x1b$" in text or "\x1b(" in text:
        return _switched(raw) or (text, "utf-8", False)
    return text, "utf-8", False


_FIRST_BYTES = tuple(mark[:2] for mark, _ in _MARKS)


def _marked(raw: bytes, mark: bytes, name: str) -> Decoded | Undecodable:
    try:
        text = raw[len(mark) :].decode(name)
    except UnicodeDecodeError as error:
        return Undecodable("encoding", f"marked as {name}, but invalid at byte {error.start + len(mark)}")
    if "\0" in text:
        return Undecodable("binary", "holds a zero character")
    return text, name, True


def _wide(raw: bytes) -> Decoded | Undecodable:
    """UTF-16 without a mark: the zero bytes of its ASCII characters all stand at odd, or all at even places."""
    binary = Undecodable("binary", "holds a zero byte")
    sample = raw[: 2 * _SAMPLE]
    low, high = sample[0::2].count(0), sample[1::2].count(0)
    if len(raw) % 2 or min(low, high) or max(low, high) < len(sample) * 0.3:
        return binary
    name = "utf-16-le" if high else "utf-16-be"
    try:
        text = raw.decode(name)
    except UnicodeDecodeError:
        return binary
    return binary if _CONTROLS.search(text) else (text, name, False)


def _switched(raw: bytes) -> Decoded | None:
    """ISO-2022-JP, whose bytes are all ASCII."""
    try:
        text = raw.decode("iso2022_jp")
    except UnicodeDecodeError:
        return None
    if text.isascii() or text.encode("iso2022_jp") != raw:
        return None
    return text, "iso2022_jp", False


def _legacy(raw: bytes, first_bad: int) -> Decoded | Undecodable:
    where = f"not UTF-8 at byte {first_bad}"
    beyond_ascii = len(raw) - len(raw.translate(None, _HIGH))
    in_sequences = sum(map(len, _UTF8_SEQUENCE.findall(raw)))
    if in_sequences >= 0.8 * beyond_ascii:
        return Undecodable("encoding", f"UTF-8 with invalid bytes, the first at {first_bad}")
    controls = len(raw) - len(raw.translate(None, _CONTROL_BYTES))
    if controls > 0.02 * len(raw) + 1:
        return Undecodable("binary", f"{where}, with {controls} control characters")
    names = _east_asian(raw) or _alphabetic(raw) or _latin(raw)
    if len(names) != 1:
        told = f"could be {' or '.join(sorted(names))}" if names else "in no encoding that is certain"
        return Undecodable("encoding", f"{where}, and {told}")
    (name,) = names
    return raw.decode(name), name, False


_HIGH = bytes(range(0x80, 0x100))
_CONTROL_BYTES = bytes([*range(9), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])


def _try(raw: bytes, name: str) -> str | None:
    try:
        text = raw.decode(name)
        return text if text.encode(name) == raw else None
    except UnicodeError:
        return None


def _beyond_ascii(text: str) -> str:
    return "".join(char for char in text if char > "\x7f")[:_SAMPLE]


def _east_asian(raw: bytes) -> set[str]:
    """Codecs whose reading consists of its language's common characters; more than one if none is clearly ahead."""
    scores: dict[str, float] = {}
    for name, common in EAST_ASIAN:
        text = _try(raw, name)
        if text is None:
            continue
        written = _NEUTRAL.sub("", _beyond_ascii(text))
        hits = sum(char in common for char in written)
        if hits >= 2 or (hits == 1 and hits == len(written)):
            scores[name] = hits / len(written) * min(1.0, hits / 2)
    best = max(scores.values(), default=0.0)
    if best < 0.4:
        return set()
    close = {name for name, score in scores.items() if score > best / 1.7}
    single = _alphabetic(raw) | _latin(raw) if best < 0.6 else set()
    return close | single


def _alphabetic(raw: bytes) -> set[str]:
    """Codecs that give words wholly of a small alphabet, shaped as words are, with its frequent letters frequent."""
    readings = _alphabetic_readings(raw).values()
    most = max((share for _, share in readings), default=0.0)
    return {name for name, share in readings if share > 0.6 * most} if most > 0.35 else set()


def _alphabetic_readings(raw: bytes) -> dict[str, tuple[str, float]]:
    """By text: its codec, and the share of frequent letters. Greek counts only where a word has its accent."""
    readings: dict[str, tuple[str, float]] = {}
    for name, alphabet, frequent in CYRILLIC_AND_GREEK:
        text = _try(raw, name)
        if text is None or text in readings:
            continue
        words = [word for word in _WORD.findall(text) if not word.isascii()]
        rest = set(_beyond_ascii(text)) - set("".join(words)) - SYMBOLS - {"№"}
        if words and not rest and all(_is_word(word, alphabet) for word in words):
            sure = [word for word in words if name != "cp1253" or word.isupper() or _ACCENTS.intersection(word)]
            # KOI8 and Windows-1251 swap capitals and small letters, so capitals are half the evidence.
            hits = sum((char in frequent) + (char.lower() in frequent) for word in sure for char in word) / 2
            readings[text] = (name, hits / max(10, sum(map(len, words))))
    return readings


def _is_word(word: str, alphabet: frozenset[str]) -> bool:
    shaped = word.islower() or word.isupper() or word.istitle()
    return shaped and alphabet.issuperset(word.lower())


def _latin(raw: bytes) -> set[str]:
    """The codec in whose reading every letter beyond ASCII belongs to one language, else to one family of languages."""
    texts = {name: text for name, _ in LATIN if (text := _try(raw, name)) is not None}
    fitting = [name for name, languages in LATIN if any(_fits(texts.get(name), one) for one in languages)]
    if not fitting:
        fitting = [name for name, languages in LATIN if _fits(texts.get(name), "".join(languages))]
    # Of codecs that read the same text, the first stands; those that read another make it a guess ("siê" or "się").
    readings = {texts[name]: name for name in reversed(fitting)}
    return set(readings.values())


def _fits(text: str | None, letters: Iterable[str]) -> bool:
    if text is None:
        return False
    alphabet = set(letters)
    alphabet |= {letter.upper() for letter in alphabet}
    for word in _WORD.findall(text):
        foreign = [char for char in word if char > "\x7f"]
        if foreign and not (alphabet | SYMBOLS).issuperset(foreign):
            return False
        if len(foreign) > 1 and not LETTERS.intersection(word):
            return False
    symbols = set(_beyond_ascii(text)) - alphabet
    return symbols <= SYMBOLS and not _SYMBOL_IN_WORD.search(text)
