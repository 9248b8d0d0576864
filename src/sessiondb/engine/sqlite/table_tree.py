"""The tree of a table's pages, read from a copy of the file.

Where the last page of a table is lost, SQL cannot tell its last row number, and each
number that is tried in vain costs a failed statement. The pages that lead there tell
which rows are before the lost ones.

Format: https://www.sqlite.org/fileformat2.html#b_tree_pages. A page above the leaves
has cells of a child and the largest row number in it, and one more child after them.
"""

from __future__ import annotations

from pathlib import Path

_INTERIOR, _LEAF = 0x05, 0x0D
#: More levels than any file has: the pages of a damaged one may form a circle.
_MOST_LEVELS = 20


def last_readable_row(path: Path, root: int, page_size: int) -> int:
    """Return an upper bound of the row numbers that can be read of a table; 0 for none.

    *path* is a database that is not open, and *root* the first page of the table.
    """
    last, number = 0, root
    with path.open("rb") as file:
        for _ in range(_MOST_LEVELS):
            file.seek((number - 1) * page_size)
            page = file.read(page_size)
            kind = page[0] if len(page) == page_size else None
            if kind == _LEAF:
                return max(last, _largest_row(page, 8))
            # All rows after the last one are below this page.
            if kind != _INTERIOR:
                break
            last = max(last, _largest_row(page, 12))
            number = int.from_bytes(page[8:12])

    return last


def _largest_row(page: bytes, head: int) -> int:
    """Return the largest row number in the cells of a page with a head of that size."""
    largest = 0
    cells = int.from_bytes(page[3:5])
    for pointer in range(head, head + 2 * cells, 2):
        place = int.from_bytes(page[pointer : pointer + 2])
        # Before the key, a cell has the size of its row, or the number of its child.
        if page[0] == _LEAF:
            _, place = _varint(page, place)
        else:
            place += 4
        key, _ = _varint(page, place)
        largest = max(largest, key)

    return largest


def _varint(page: bytes, place: int) -> tuple[int, int]:
    """Return the integer at *place*, and where it ends: 7 bits of each byte.

    The ninth byte, which no row number of ours needs, has 8.
    """
    value = 0
    for end, byte in enumerate(page[place : place + 9], place + 1):
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, end
    return value, place + 9
