from papers.experiment import FinishedUnits

RECORDS = [{"method": "a", "error": 1.25}]


def test_finished_units_are_found_again(tmp_path):
    path = tmp_path / "units.jsonl"
    finished = FinishedUnits(path)
    finished.add("a/1", "print", RECORDS)
    finished.add("a/2", "print", RECORDS)
    path.write_bytes(path.read_bytes()[:-9])
    cut = FinishedUnits(path)
    assert cut.records("a/1", "print") == RECORDS
    assert cut.records("a/1", "other") is None
    assert cut.records("a/2", "print") is None  # a line that was cut off is dropped
    cut.add("a/3", "print", RECORDS)
    assert FinishedUnits(path).records("a/3", "print") == RECORDS
    assert FinishedUnits(path, resume=False).records("a/1", "print") is None
    assert FinishedUnits(path).records("a/1", "print") is None
