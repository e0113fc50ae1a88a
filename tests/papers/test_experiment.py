from papers.experiment import FinishedUnits, fingerprint

RECORDS = [{"method": "a", "error": 1.25}]


def test_finished_units_are_found_again(tmp_path):
    path = tmp_path / "units.jsonl"
    FinishedUnits(path).add("a/1", "print", RECORDS)
    again = FinishedUnits(path)
    assert again.records("a/1", "print") == RECORDS
    assert again.records("a/2", "print") is None


def test_another_fingerprint_is_another_unit(tmp_path):
    path = tmp_path / "units.jsonl"
    FinishedUnits(path).add("a/1", "print", RECORDS)
    assert FinishedUnits(path).records("a/1", "other") is None


def test_a_line_cut_off_is_dropped_and_the_file_goes_on(tmp_path):
    path = tmp_path / "units.jsonl"
    finished = FinishedUnits(path)
    finished.add("a/1", "print", RECORDS)
    finished.add("a/2", "print", RECORDS)
    path.write_bytes(path.read_bytes()[:-9])
    cut = FinishedUnits(path)
    assert cut.records("a/1", "print") == RECORDS
    assert cut.records("a/2", "print") is None
    cut.add("a/3", "print", RECORDS)
    assert FinishedUnits(path).records("a/3", "print") == RECORDS


def test_starting_anew_forgets(tmp_path):
    path = tmp_path / "units.jsonl"
    FinishedUnits(path).add("a/1", "print", RECORDS)
    assert FinishedUnits(path, resume=False).records("a/1", "print") is None
    assert FinishedUnits(path).records("a/1", "print") is None


def test_fingerprints():
    assert fingerprint({"a": 1, "b": (2, 3)}) == fingerprint({"b": [2, 3], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
