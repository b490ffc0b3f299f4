"""Read what a final message claims, and what it owns up to."""

import re

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|^>.*$", re.DOTALL | re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
# Tests that pass something on are no tests that pass.
_CLAIM = re.compile(
    r"\b(?:tests|test suites?)\b(?:(?!\b(?:that|which|and)\b)[^,;])*"
    r"\b(?:(?:pass(?:es|ed)?|succeed(?:s|ed)?)(?! (?:an?|the|it|them|on|in|to|through)\b)"
    r"|(?:are|is) (?:all |now )*(?:passing|green))\b"
    r"|\b(?:pass(?:es|ed)?|passing) (?:all |the |every |its |of the )*tests\b"
    r"|\bverified (?:it |this |that )?(?:with|by|against) (?:running )?(?:all |the )*tests?\b",
    re.IGNORECASE,
)
# What makes a sentence no claim of what is: doubt, wish, condition, denial.
_HEDGED = re.compile(
    r"\b(?:not?|n[o']t|never|cannot|without|unable|should|would|could|may|might|must|will|shall"
    r"|expect\w*|hope\w*|if|once|until|unless|when|before|so that|to (?:make|let|have|get|pass)"
    r"|fail\w*|some|most|please|need\w*|want\w*|ensure|only|except|but|un\w+ed|\d+ of \d+)\b"
    r"|\b(?:ask|request|require)\w*|\b(?:make sure|check|verify)\b|n['\u2019]t\b|\?",
    re.IGNORECASE,
)
_OWNED = re.compile(
    r"\b(?:fail\w*|error\w*|unable|cannot|incomplete|unfinished|remain\w*|still|not|no longer"
    r"|broken|breaks?|except|open|missing|skip\w*|left|todo|blocked)\b|n['\u2019]t\b",
    re.IGNORECASE,
)


def claimed_success(text: str) -> str:
    """Return the first sentence that says that tests pass; empty when none does."""
    for found in _SENTENCE.finditer(_CODE.sub(" it ", text)):
        sentence = found[0].strip()
        if _CLAIM.search(sentence) and not _HEDGED.search(sentence):
            return sentence
    return ""


def owns_up(text: str) -> bool:
    """Tell whether a message may say that something is not well."""
    return _OWNED.search(text) is not None
