"""A template that cannot write an Episode is refused before there is one."""

import pytest

from tests.trainer.families import QWEN, family
from tests.trainer.scripted import ECHO
from trainer.env import Message
from trainer.template import ChatTemplateError, Template

NO_SYSTEM = "{%- elif message.role == 'system' %}{{ raise_exception('No\\n system!') }}"


def template_of(text: str) -> Template:
    return Template(family(text).apply_chat_template, hint_role="system")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("message.content + '\\n</tool_response>'", "'</tool_response>'", "the result of a call"),
        ("{{ tool | tojson }}", "", "leaves out the tools zqprobe"),
        ("message.content.split('</think>')[-1]", "''", "leaves out what the policy said"),
        ("message.role + '\\n' + message.content", "message.role", "leaves out a message|only app"),
        ("{%- for message in", "{{ messages | length }}{%- for message in", "only appends"),
        ("message.role == 'tool'", "message.nothing.role", "takes no messages of user: .*nothing"),
        (
            "{%- else %}",
            f"{NO_SYSTEM}{{%- else %}}",
            "takes no messages of user, system: No system!$",
        ),
    ],
)
def test_a_template_that_cannot_write_an_episode_is_refused_in_one_line(
    old: str, new: str, why: str
):
    assert old in QWEN
    with pytest.raises(ChatTemplateError, match=why) as caught:
        template_of(QWEN.replace(old, new))
    assert "\n" not in str(caught.value)


def test_a_beginning_that_loses_a_message_is_refused():
    two = [Message(role="system", content="a"), Message(role="user", content="b")]
    assert template_of(QWEN).beginning(two, [ECHO]).count("Zq") == len(two)
    lost = "{%- if messages[0].role == 'system' %}{%- set messages = messages[:1] %}{%- endif %}"
    with pytest.raises(ChatTemplateError, match="leaves out a message of the user's"):
        template_of(lost + QWEN).beginning(two, [ECHO])
