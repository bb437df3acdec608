import rescore as rs


def test_compare_adds_the_table_and_the_sentence(cli, data, truth):
    result = cli(
        "fit", data, "--learner", "linear", "--compare", "--resamples", 3, "--truth", truth
    )
    assert result.exit_code == 0, result.output
    for words in ("effective of", "Does reweighting help?", "neural", "random", "No gain"):
        assert words in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if "gain" not in line)


def test_json_holds_what_compare_finds(cli_json, data, table):
    found = cli_json(
        "fit", data, "--learner", "linear", "--compare", "--resamples", 3, "--seed", 4,
        "--tau", 0.3,
    )["comparison"]  # fmt: skip
    expected = rs.compare(table, rs.Linear(), tau=0.3, resamples=3, random_state=4)
    assert found["answer"] == expected.answer
    rows = {row["method"]: row for row in found["table"]}
    assert list(rows) == list(expected.table.index)
    for method, row in expected.table.drop(columns="cpu_seconds").iterrows():
        assert {k: rows[method][k] for k in row.index} == row.to_dict()


def test_without_the_option_nothing_is_compared(cli_json, data):
    assert "comparison" not in cli_json("fit", data, "--learner", "linear")


def test_one_resample_is_refused(cli, data):
    result = cli("fit", data, "--learner", "linear", "--compare", "--resamples", 1)
    assert result.exit_code == 2
    assert "resamples must be a whole number of at least 2" in result.stderr
