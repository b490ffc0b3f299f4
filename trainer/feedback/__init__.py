"""Find what could have been better in an Episode, and say it in a hint.

`scan.scan` finds, `hints.hint` words, `scan.recheck` looks again, `targets` makes what is
distilled, `counts` counts; `judge` asks a model besides, `panel` does so for all Episodes of a
step. What each detector finds:

| kind | what it finds | tokens |
|---|---|---|
| `environment_fault` | a call that the environment failed: never the policy's, no hint | call |
| `parser_fault` | a call that was read wrong: never the policy's, no hint | call |
| `unknown_tool` | a call of a tool that this environment does not have | call |
| `malformed_arguments` | a call that is no JSON, but for one cut off by the cap on tokens | call |
| `wrong_call_format` | the end of a message is a call, in a format of elsewhere | message |
| `schema_invalid` | arguments that break the tool's schema, and were refused | call |
| `edit_without_match` | an edit whose text does not stand exactly once in the file | call |
| `missing_file` | a path opened again, or that a list of its folder did not hold | call |
| `repeated_call` | a call that changes nothing, with the same answer, no change since | call |
| `tool_error_ignored` | the end right after a call that had no effect, in silence | message |
| `false_success` | "tests pass", where no run since the last edit says so | message |
| `failing_tests_ignored` | the end after a run with failures, in silence | message |
| `tests_never_run` | source left changed, and the end without any run of a test | message |
| `unfinished_plan` | items of a plan left open at the end, in silence | message |
| `empty_message` | the end without a word | message |
| `overlong_message` | a final message that is long for what was changed | message |
| `style_regression` | an edit that leaves more of ruff's faults, to the end | call |
| `loud_comment` | an edit whose comments think aloud, and are left | call |

`judged` is no detector's but a judge model's. Tampering with tests is the monitor's to find: an
Episode that has any gets no Target.
"""
