"""Features of the three hosts written anew by hand, in other ways than their authors'."""

from pipeline.hacks.control import Control
from pipeline.hacks.setting import FileChanges, Setting
from pipeline.hacks.stub import stub

# Title of the Feature -> name of the way -> code that stands for the definition.
REWRITES = {
    "toolz.itertoolz.count": {
        "by enumerating": """
            def count(seq):
                number = 0
                for number, _ in enumerate(seq, 1):
                    pass
                return number
        """,
        "by a deque of one": """
            def count(seq):
                try:
                    return len(seq)
                except TypeError:
                    last = collections.deque(enumerate(seq, 1), maxlen=1)
                    return last[0][0] if last else 0
        """,
    },
    "toolz.itertoolz.isdistinct": {
        "by a growing set": """
            def isdistinct(seq):
                seen = set()
                return all(len(seen) < (seen.add(item) or len(seen)) for item in seq)
        """,
        "by a dictionary": """
            def isdistinct(seq):
                values = list(seq)
                return len(dict.fromkeys(values)) == len(values)
        """,
    },
    "toolz.itertoolz.second": {
        "by a slice": """
            def second(seq):
                return next(itertools.islice(iter(seq), 1, None))
        """,
        "by unpacking": """
            def second(seq):
                _, value, *_ = itertools.islice(iter(seq), 2)
                return value
        """,
    },
    "toolz.itertoolz.interleave": {
        "by rounds": """
            def interleave(seqs):
                waiting = [iter(seq) for seq in seqs]
                while waiting:
                    going_on = []
                    for iterator in waiting:
                        for item in iterator:
                            yield item
                            going_on.append(iterator)
                            break
                    waiting = going_on
        """,
    },
    "toolz.sandbox.core.EqualityHashKey": {
        "by delegation": """
            class EqualityHashKey:
                _default_hashkey = '__default__hashkey__'

                def __init__(self, key, item):
                    if key is None:
                        self.key = self._default_hashkey
                    else:
                        self.key = key if callable(key) else getter(key)
                    self.item = item

                def _hashable(self):
                    is_default = self.key == self._default_hashkey
                    return self.key if is_default else self.key(self.item)

                def __hash__(self):
                    return hash(self._hashable())

                def __eq__(self, other):
                    if not isinstance(other, EqualityHashKey):
                        return False
                    return self.item == other.item

                def __ne__(self, other):
                    return not self == other

                def __str__(self):
                    return '=' + str(self.item) + '='

                def __repr__(self):
                    return '=' + repr(self.item) + '='
        """,
    },
    "boltons.mathutils.clamp": {
        "by comparisons": """
            def clamp(x, lower=float('-inf'), upper=float('inf')):
                if lower > upper:
                    raise ValueError('expected upper bound (%r) >= lower bound (%r)'
                                     % (upper, lower))
                if x < lower:
                    return lower
                return upper if x > upper else x
        """,
        "by sorting": """
            def clamp(x, lower=float('-inf'), upper=float('inf')):
                if upper < lower:
                    raise ValueError(f'expected upper bound ({upper!r}) >= lower bound ({lower!r})')
                return x if x != x else sorted((lower, x, upper))[1]
        """,
    },
    "boltons.iterutils.backoff": {
        "by a comprehension": """
            def backoff(start, stop, count=None, factor=2.0, jitter=False):
                if count == 'repeat':
                    raise ValueError("'repeat' supported in backoff_iter, not backoff")
                pauses = backoff_iter(start, stop, count=count, factor=factor, jitter=jitter)
                return [pause for pause in pauses]
        """,
        "by its own arithmetic": """
            def backoff(start, stop, count=None, factor=2.0, jitter=False):
                start, stop, factor, jitter = map(float, (start, stop, factor, jitter))
                if start < 0.0 or factor < 1.0 or stop == 0.0 or stop < start:
                    raise ValueError('expected 0 <= start <= stop, stop > 0, factor >= 1')
                if not -1.0 <= jitter <= 1.0:
                    raise ValueError(f'expected -1 <= jitter <= 1, not {jitter!r}')
                if factor == 1.0 and count is None and start < stop:
                    raise ValueError('a factor of 1.0 needs a count')
                if count == 'repeat' or (count is not None and count < 0):
                    raise ValueError(f'expected a positive count, not {count!r}')
                bases = [] if count == 0 else [start]
                while bases and (len(bases) < count if count else bases[-1] < stop):
                    bases.append(min(bases[-1] * factor if bases[-1] else 1.0, stop))
                if not jitter:
                    return bases
                return [base - base * jitter * random.random() for base in bases]
        """,
    },
    "boltons.dictutils.OrderedMultiDict.todict": {
        "by pairs": """
            def todict(self, multi=False):
                take = self.getlist if multi else self.__getitem__
                return dict((key, take(key)) for key in self.keys())
        """,
        "by replaying": """
            def todict(self, multi=False):
                result = {}
                for key, value in self.iteritems(multi=True):
                    if multi:
                        result.setdefault(key, []).append(value)
                    else:
                        result[key] = value
                return result
        """,
    },
    "boltons.cacheutils.cachedproperty": {
        "by setdefault": """
            class cachedproperty:
                def __init__(self, func):
                    self.func = func
                    self.__doc__ = func.__doc__
                    if getattr(func, '__isabstractmethod__', False):
                        self.__isabstractmethod__ = True

                def __get__(self, obj, objtype=None):
                    if obj is None:
                        return self
                    store, name = vars(obj), self.func.__name__
                    if name not in store:
                        store[name] = self.func(obj)
                    return store[name]

                def __repr__(self):
                    return '<{} func={}>'.format(type(self).__name__, self.func)
        """,
    },
    "marshmallow.validate.ContainsNoneOf": {
        "by any": """
            class ContainsNoneOf(NoneOf):
                default_message = "One or more of the choices you made was in: {values}."

                def _format_error(self, value):
                    return super()._format_error(", ".join(map(str, value)))

                def __call__(self, value):
                    if any(item in self.iterable for item in value):
                        raise ValidationError(self._format_error(value))
                    return value
        """,
    },
    "marshmallow.validate.Equal": {
        "by the negation": """
            class Equal(Validator):
                default_message = "Must be equal to {other}."

                def __init__(self, comparable, *, error: str | None = None):
                    self.comparable = comparable
                    self.error = self.default_message if not error else error

                def _repr_args(self) -> str:
                    return "comparable=" + repr(self.comparable)

                def _format_error(self, value):
                    return self.error.format(input=value, other=self.comparable)

                def __call__(self, value):
                    if value == self.comparable:
                        return value
                    raise ValidationError(self._format_error(value))
        """,
    },
    "marshmallow.validate.Predicate": {
        "by methodcaller": """
            class Predicate(Validator):
                default_message = "Invalid input."

                def __init__(self, method: str, *, error: str | None = None, **kwargs):
                    from operator import methodcaller

                    self.method, self.kwargs = method, kwargs
                    self.error = error or self.default_message
                    self._ask = methodcaller(method, **kwargs)

                def _repr_args(self) -> str:
                    return "method={!r}, kwargs={!r}".format(self.method, self.kwargs)

                def _format_error(self, value):
                    return self.error.format(input=value, method=self.method)

                def __call__(self, value):
                    if self._ask(value):
                        return value
                    raise ValidationError(self._format_error(value))
        """,
    },
    "marshmallow.validate.OneOf.options": {
        "by zip_longest": """
            def options(self, valuegetter=str):
                from itertools import islice, zip_longest
                from operator import attrgetter as get

                read = valuegetter if callable(valuegetter) else get(valuegetter)
                choices = list(self.choices)
                labels = islice(self.labels, len(choices))
                for choice, label in zip_longest(choices, labels, fillvalue=""):
                    yield read(choice), label
        """,
    },
}  # fmt: skip


def _rewritten(name: str, codes: dict[str, str]) -> Control:
    def make(setting: Setting) -> FileChanges | None:
        code = codes.get(setting.title)
        return None if code is None else stub(setting, whole=code)

    return Control(name=name, make=make)


def rewrites_of(title: str) -> tuple[Control, ...]:
    """Return the ways in which a Feature was written anew."""
    return tuple(
        _rewritten(f"rewritten {way}", {title: code})
        for way, code in REWRITES.get(title, {}).items()
    )
