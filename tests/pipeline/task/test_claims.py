import json

from pipeline.task.claims import Report, at_least, at_most


def test_a_report_is_one_json_object_with_its_claims_and_a_table_of_named_cells() -> None:
    report = Report(
        bench="targeted",
        claims=(at_least("fewer errors", 0.6, 0.5), at_most("error", 0.2, 0.1)),
        columns=("arm", "errors"),
        rows=(("rl", 0.2), ("kl", 0.1)),
    )
    shown = json.loads(json.dumps(report.to_json()))
    assert shown["bench"] == "targeted"
    assert shown["claims"] == [
        {"claim": "fewer errors", "figure": 0.6, "bar": ">= 0.5", "holds": True},
        {"claim": "error", "figure": 0.2, "bar": "<= 0.1", "holds": False},
    ]
    assert shown["table"] == [{"arm": "rl", "errors": 0.2}, {"arm": "kl", "errors": 0.1}]
    assert shown["machine"]["cores"] >= 1
