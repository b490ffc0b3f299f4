"""Plant marks in the syntax tree of a module: one where each stretch of its lines begins.

A stretch is one statement, with those before it in its block that cannot fail. Below a statement
with blocks each block has stretches of its own; the first lines of an `except` and a `case` count
with their bodies, a lambda, a comprehension, `a or b` and `a if b else c` with the statement around
them. Docstrings and `__future__` come before any mark. A mark stands on the line of what it marks,
so that line numbers, tracebacks and what a debugger shows stay.
"""

import ast
import sys

NAME = "__regrow_marks__"
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
MATCH = getattr(ast, "Match", ())
HARMLESS = (ast.Pass, ast.Global, ast.Nonlocal)


class Marker:
    """Owns the stretches of one module, in the order of their marks."""

    def __init__(self):
        self.stretches = []  # [kind, qualname, line of the definition, [first, last, first, …]]
        self.numbers = []  # the node that holds the number of each mark

    def mark_module(self, tree):
        """Plant marks that are numbered from 0."""
        self.mark_body(tree, "", "module", 1)

    def number(self, first):
        """Renumber the marks, once it is known which numbers are free."""
        for node in self.numbers:
            node.value += first

    def mark_body(self, node, qualname, kind, line):
        """Mark the body of a module, class or function."""
        start = count_leading(node.body)
        self.mark_block(node.body, qualname, kind=kind, line=line, start=start)

    def mark_block(self, body, qualname, kind="rest", line=0, start=0, header=()):
        """Mark a block, in place.

        `kind` and `line` are of what its first stretch begins, `start` is how many statements come
        before any mark, `header` holds the lines above the block that count with it.
        """
        stretch = self.open_stretch(kind, qualname, line)
        marked = body[:start]
        marked.append(self.make_mark(body[min(start, len(body) - 1)] if body else None))
        cover(stretch, *header)
        for statement in body[:start]:
            cover(stretch, statement.lineno, statement.end_lineno)
        for statement in body[start:]:
            if stretch is None:
                stretch = self.open_stretch("rest", qualname, 0)
                marked.append(self.make_mark(statement))
            marked.append(statement)
            cover(stretch, first_line(statement), last_line(statement))
            self.mark_below(statement, qualname)
            if not cannot_fail(statement):
                stretch = None
        body[:] = marked

    def mark_below(self, node, qualname):
        """Mark the blocks below a statement."""
        if isinstance(node, SCOPES):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            name = "%s.%s" % (qualname, node.name) if qualname else node.name
            self.mark_body(node, name, kind, node.lineno)
            return
        for part in getattr(node, "handlers", []) + getattr(node, "cases", []):
            first = getattr(part, "lineno", 0) or part.pattern.lineno
            header = (first, max(first, first_line(part.body[0]) - 1))
            self.mark_block(part.body, qualname, header=header)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if block:
                self.mark_block(block, qualname)

    def open_stretch(self, kind, qualname, line):
        lines = []
        self.stretches.append([kind, qualname, line, lines])
        return lines

    def make_mark(self, anchor):
        """Return `__regrow_marks__[n] = 1`, on the line where a statement begins."""
        at = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
        if anchor is not None:
            first = min([anchor, *getattr(anchor, "decorator_list", ())], key=line_of)
            at["lineno"] = at["end_lineno"] = first.lineno
            at["col_offset"] = at["end_col_offset"] = first.col_offset
        number = ast.Constant(len(self.numbers), None, **at)
        self.numbers.append(number)
        index = number if sys.version_info >= (3, 9) else ast.Index(number)
        target = ast.Subscript(ast.Name(NAME, ast.Load(), **at), index, ast.Store(), **at)
        return ast.Assign([target], ast.Constant(1, None, **at), None, **at)


def cannot_fail(statement):
    """Tell whether what follows a statement is sure to be reached."""
    if isinstance(statement, ast.Assign):
        names = all(isinstance(target, ast.Name) for target in statement.targets)
        return names and isinstance(statement.value, ast.Constant)
    return isinstance(statement, HARMLESS)


def cover(lines, first=0, last=0):
    """Add lines to a stretch; they come in order."""
    if lines and first <= lines[-1] + 1:
        lines[-1] = max(last, lines[-1])
    elif first:
        lines += [first, last]


def count_leading(body):
    """Return how many statements a mark must not come before: docstring, then `__future__`."""
    is_text = body and isinstance(body[0], ast.Expr)
    is_text = is_text and isinstance(getattr(body[0].value, "value", None), str)
    count = 1 if is_text else 0
    while count < len(body) and getattr(body[count], "module", "") == "__future__":
        count += 1
    return count


def line_of(node):
    return node.lineno


def first_line(statement):
    """Return the first line of a statement or of its decorators."""
    return min(map(line_of, [statement, *getattr(statement, "decorator_list", ())]))


def last_line(statement):
    """Return the last line of a statement, or of what stands above its first block."""
    if isinstance(statement, MATCH):
        below = statement.cases[0].pattern.lineno
    elif hasattr(statement, "body"):
        below = first_line(statement.body[0])
    else:
        return statement.end_lineno
    return max(statement.lineno, below - 1)
