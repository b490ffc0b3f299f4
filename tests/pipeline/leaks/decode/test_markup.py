"""Code comes out of the markup that reports and documentation put around it."""

import html
import subprocess
import sys
from pathlib import Path

from tests.pipeline.leaks.planted import SECRET, texts_of, verdict_on, ways_to_body


def test_a_coverage_report_gives_the_source(tmp_path: Path) -> None:
    (tmp_path / "units.py").write_bytes(SECRET)
    command = [sys.executable, "-c", REPORT]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert ("html",) in ways_to_body(verdict_on((tmp_path / "units.html").read_bytes()))


# The markup of coverage's report, made from tokens as it does.
REPORT = """
import html, io, keyword, tokenize
lines = open("units.py").read().splitlines()
marked = [[] for _ in lines]
at = [0] * len(lines)
for token in tokenize.generate_tokens(io.StringIO("\\n".join(lines)).readline):
    row, column = token.start
    if token.string.strip() and token.end[0] == row:
        space = html.escape(lines[row - 1][at[row - 1]:column]).replace("  ", "&nbsp; ")
        kind = "key" if keyword.iskeyword(token.string) else "var"
        marked[row - 1].append(f'{space}<span class="{kind}">{html.escape(token.string)}</span>')
        at[row - 1] = token.end[1]
body = "\\n".join(
    f'<p id="t{n}" class="run"><span class="n"><a id="t{n}" href="#t{n}">{n}</a></span>'
    f'<span class="t">{"".join(parts)}&nbsp;</span><span class="r"></span></p>'
    for n, parts in enumerate(marked, 1)
)
head = "<!DOCTYPE html><html><head><style>p {}</style></head><body><main>"
open("units.html", "w").write(f"{head}{body}</main></body></html>")
"""


def test_a_listing_in_a_table_is_read_in_lines() -> None:
    rows = "".join(
        f'<tr><td class="linenos">{number}</td><td class="code">{html.escape(line)}</td></tr>'
        for number, line in enumerate(SECRET.decode().splitlines(), 1)
    )
    data = f"<html><body><table>{rows}</table></body></html>".encode()
    assert ("html",) in ways_to_body(verdict_on(data))


def test_numbers_in_the_code_stay() -> None:
    data = b'<pre><span class="k">return</span> <span class="mi">42</span></pre><p></p><p></p>'
    assert any(b"return 42" in text for text in texts_of(data)[1:])


def test_comments_and_scripts_without_end_take_no_time() -> None:
    data = b"<p></p>" * 9 + b"<!--<script><style>" * 100_000
    assert len(texts_of(data)) == 2


def test_what_hardly_has_a_tag_is_no_document() -> None:
    assert len(texts_of(b'x = "<b>bold</b>"\n')) == 1
