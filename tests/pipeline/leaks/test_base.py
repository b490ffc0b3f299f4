from pipeline.leaks.base import without_own_gaps
from pipeline.leaks.scan import Scanned, Unread


def test_what_was_broken_before_is_let_pass_and_what_was_not_reached_is_not():
    broken = Unread(path="/usr/share/test.zip", decoders=(), why="broken")
    late = Unread(path="/usr/share/words", decoders=(), why="time")
    scanned = Scanned(places=(), unread=(broken, late), num_files=2, num_bytes=9)
    assert without_own_gaps(scanned).unread == (late,)
