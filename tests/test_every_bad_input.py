"""Every bad input and fault that has a promised answer, with the test that holds it to it.

Fifty-four rows, each with its test.
"""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
FIT, FILES, TABLE = "test_bad_inputs.py", "tables/test_reading.py", "tables/test_tabular.py"
SWEEP, EXITS, STAGING = "experiments/test_sweep.py", "cli/test_exits.py", "test_staging.py"
SCAN = "scanning/test_scan.py"

ROWS = {
    # values
    "NaN, infinite, too large": (FIT, "test_nan_inf_and_overflow_raise_with_the_column"),
    "pd.NA": (FIT, "test_pd_na_raises_with_the_column"),
    "constant column": (FIT, "test_a_constant_column_is_an_isolated_node"),
    "duplicated, collinear": (FIT, "test_dependent_columns_are_named_and_the_result_is_a_dag"),
    "n < d": (FIT, "test_fewer_rows_than_columns_warn_and_run"),
    "n = 0, n = 1": (FIT, "test_no_row_and_one_row_raise"),
    "d = 0, d = 1": (FIT, "test_no_column_raises_and_one_column_is_the_empty_graph"),
    "all data scaled": (FIT, "test_all_data_scaled_give_the_same_graph_when_standardised"),
    "one column scaled": (FIT, "test_one_column_scaled_warns"),
    "one huge cell": (FIT, "test_one_huge_cell_is_said_and_its_row_listed"),
    "small types": (FIT, "test_small_types_are_float64_before_any_arithmetic"),
    "integers above 2^53": (FIT, "test_integers_beyond_float64_warn"),
    "denormals": (FIT, "test_denormals_do_not_crash"),
    "empty result, large correlations": (
        FIT,
        "test_an_empty_graph_over_large_correlations_is_said",
    ),
    # containers
    "text, dates, objects, sparse, ragged, masked": (TABLE, "test_containers_refused"),
    "strides and orders": (FIT, "test_layouts_give_the_same_result_and_stay_untouched"),
    "memory maps": (FIT, "test_a_memory_map_gives_the_same_result"),
    "odd index, polars, arrow": (TABLE, "test_same_values_from_every_container"),
    "hostile names in messages": (TABLE, "test_hostile_names_are_escaped_in_messages"),
    "hostile names in graph files": (
        "graph/test_io.py",
        "test_what_was_written_reads_back_exactly",
    ),
    "formulas as names": (
        "reports/test_files.py",
        "test_no_name_is_a_formula_in_any_csv_file_and_all_read_back",
    ),
    "empty names": (FILES, "test_an_empty_name_is_refused_at_the_door"),
    # files
    "delimiter, header, index column, encoding, empty": (FILES, "test_files_refused"),
    "missing file": (FILES, "test_missing"),
    "a directory": (FILES, "test_a_directory"),
    "no permission": (FILES, "test_no_permission"),
    "truncated gz": (FILES, "test_damaged_gz"),
    "truncated parquet": (FILES, "test_truncated_parquet"),
    "bombs": (FILES, "test_a_packed_file_that_would_fill_the_memory_is_refused"),
    "messy files, one pass": (
        "tables/test_messy.py",
        "test_fit_itself_says_all_that_is_wrong_and_what_to_paste",
    ),
    # parameters
    "tau": (FIT, "test_tau_outside_its_range_raises_at_fit"),
    "tau = 1": (FIT, "test_tau_one_equals_the_plain_learner_exactly"),
    "rows at the ceiling": (FIT, "test_too_few_rows_at_the_ceiling_warn"),
    "sample_weight": (FIT, "test_bad_sample_weights_raise"),
    "a zero weight": (FIT, "test_a_zero_weight_equals_deleting_the_row"),
    "parameters of learners": (FIT, "test_bad_learner_parameters_raise_at_fit"),
    "knowledge that contradicts itself": (FIT, "test_contradicting_knowledge_raises"),
    "the same seed": (FIT, "test_the_same_seed_gives_the_same_bits"),
    # faults
    "kill -9 and Ctrl-C": (
        SWEEP,
        "test_a_sweep_stopped_in_the_middle_loses_and_corrupts_nothing",
    ),
    "Ctrl-C is 130": (EXITS, "test_ctrl_c_is_exit_code_130_and_writes_nothing"),
    "disk full": (EXITS, "test_a_full_disk_is_reported"),
    "two sweeps in a folder": (
        SWEEP,
        "test_two_sweeps_in_one_folder_end_with_every_record_once",
    ),
    "a fit that hangs": (SWEEP, "test_the_limit_stops_a_step_that_never_ends"),
    "a trial that always crashes": (
        SWEEP,
        "test_a_trial_that_ends_its_process_is_set_aside_and_the_others_go_on",
    ),
    "worker and scheduler die": (
        "experiments/test_cluster.py",
        "test_a_worker_and_then_the_scheduler_die_and_nothing_is_lost",
    ),
    "another version of the library": (SWEEP, "test_the_key_changes_with_every_part"),
    "damaged records": (
        SWEEP,
        "test_packing_never_removes_a_file_with_an_unread_line_and_names_it",
    ),
    "a crash while saving": (
        STAGING,
        "test_a_crash_after_the_commit_is_made_good_by_whoever_reads",
    ),
    # rows read in passes
    "large files are streamed in bounded memory": (
        SCAN,
        "test_memory_decides_how_many_threads_read",
    ),
    "parquet parts with different schemas": (SCAN, "test_a_bad_part_is_named"),
    "a file that changes between passes": (
        SCAN,
        "test_a_file_that_changes_between_passes_is_named",
    ),
    "several partitions give the same": (
        SCAN,
        "test_any_partitioning_gives_the_same_to_the_last_bit",
    ),
    # numerics
    "overflow, negative h": ("test_acyclicity.py", "test_overflow_is_not_finite_rather_than_wrong"),
    "no convergence, cycles cut": (
        FIT,
        "test_no_convergence_is_a_warning_and_a_status_and_still_a_dag",
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_test_of_the_row_is_there(row):
    file, name = ROWS[row]
    assert f"\ndef {name}(" in (HERE / file).read_text(encoding="utf-8")


def test_the_count_is_true():
    assert len(ROWS) == 54
    assert "Fifty-four rows, each with its test" in str(__doc__)
