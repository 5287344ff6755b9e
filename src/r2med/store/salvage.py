"""Read the rows of a damaged SQLite file without SQLite, which refuses the whole file for one bad page.

Every page is looked at on its own (https://www.sqlite.org/fileformat.html): what decodes to a row of blobs is yielded,
what does not is passed over. Whether a row is sound is for its checksum to say.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from pathlib import Path

_MAGIC = b"SQLite format 3\0"
_DEFAULT_PAGE = 4096
_TABLE_LEAF = 0x0D
_WAL_HEADER, _FRAME_HEADER = 32, 24

Page = Callable[[int], bytes]


def blob_rows(path: Path) -> Iterator[tuple[bytes, ...]]:
    """Yield the rows of blobs in a SQLite file and then those of its write-ahead log: the newest comes last."""
    content = _content(path)
    size = _page_size(content)

    def stored(number: int) -> bytes:
        return content[(number - 1) * size : number * size]

    for number in range(1, len(content) // size + 1):
        yield from _rows_of(number, stored, size, len(content))
    newer = _logged_pages(path.with_name(f"{path.name}-wal"), size)

    def latest(number: int) -> bytes:
        return newer.get(number) or stored(number)

    for number in newer:
        yield from _rows_of(number, latest, size, len(content) + size * len(newer))


def _content(path: Path) -> mmap.mmap | bytes:
    with path.open("rb") as file:
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file cannot be mapped
            return b""


def _page_size(content: mmap.mmap | bytes) -> int:
    size = int.from_bytes(content[16:18], "big") if content[:16] == _MAGIC else 0
    return size if size >= 512 and size & (size - 1) == 0 else _DEFAULT_PAGE


def _logged_pages(log: Path, size: int) -> dict[int, bytes]:
    """Return the pages of the log's last round; frames of earlier rounds bear another salt."""
    if not log.exists():
        return {}
    content = log.read_bytes()
    salt = content[16:24]
    pages = {}
    for start in range(_WAL_HEADER, len(content) - size - _FRAME_HEADER + 1, size + _FRAME_HEADER):
        if content[start + 8 : start + 16] != salt:
            break
        body = start + _FRAME_HEADER
        pages[int.from_bytes(content[start : start + 4], "big")] = content[body : body + size]
    return pages


def _rows_of(number: int, page: Page, size: int, most: int) -> Iterator[tuple[bytes, ...]]:
    """Yield the rows of a page if it is a leaf of a table; `most` bounds the bytes of a row."""
    content = page(number)
    header = 100 if number == 1 else 0  # the first page begins with the header of the file
    if len(content) < size or content[header] != _TABLE_LEAF:
        return
    for cell in range(_number(content, header + 3, 2)):
        try:
            start = _number(content, header + 8 + 2 * cell, 2)
            if (row := _row(_payload(content, start, page, size, most))) is not None:
                yield row
        except IndexError:
            continue


def _payload(content: bytes, start: int, page: Page, size: int, most: int) -> bytes:
    """Return a row's bytes: the first on its page, the rest in a chain of overflow pages."""
    length, start = _varint(content, start)
    _, start = _varint(content, start)  # the row's number
    if length > most:
        raise IndexError
    here = _bytes_on_leaf(length, size)
    payload = content[start : start + here]
    following = _number(content, start + here, 4) if here < length else 0
    while following and len(payload) < length:
        overflow = page(following)
        payload += overflow[4:size]
        following = _number(overflow, 0, 4)
    if len(payload) < length:
        raise IndexError
    return payload[:length]


def _bytes_on_leaf(length: int, size: int) -> int:
    if length <= size - 35:
        return length
    least = (size - 12) * 32 // 255 - 23
    fitting = least + (length - least) % (size - 4)
    return fitting if fitting <= size - 35 else least


def _row(payload: bytes) -> tuple[bytes, ...] | None:
    """Return the columns of a row that has nothing but blobs."""
    end, start = _varint(payload, 0)
    lengths = []
    while start < end:
        kind, start = _varint(payload, start)
        if kind < 12 or kind % 2:  # numbers, NULL and text
            return None
        lengths.append((kind - 12) // 2)
    if end + sum(lengths) != len(payload):
        return None
    columns = []
    for length in lengths:
        columns.append(payload[end : end + length])
        end += length
    return tuple(columns)


def _number(content: bytes, start: int, width: int) -> int:
    if start + width > len(content):
        raise IndexError
    return int.from_bytes(content[start : start + width], "big")


def _varint(content: bytes, start: int) -> tuple[int, int]:
    """Return a number of one to nine bytes and where it ends."""
    value = 0
    for index in range(start, start + 8):
        value = value << 7 | content[index] & 0x7F
        if content[index] < 0x80:
            return value, index + 1
    return value << 8 | content[start + 8], start + 9
