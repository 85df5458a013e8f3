"""A kernel's disk cache is stale as soon as any kernel of the package changes."""

import analytics.critical_path.jit as jit
from analytics.critical_path.sweep import sweep_windows
from analytics.critical_path.timeline import _lay_out


def test_every_kernel_carries_the_stamp_of_the_whole_package():
    for kernel in (sweep_windows, _lay_out):
        assert kernel._cache._cache_file._source_stamp == jit._STAMP


def test_the_stamp_changes_with_the_text_of_any_file(tmp_path, monkeypatch):
    (tmp_path / "jit.py").write_text("a = 1\n")
    (tmp_path / "counts.py").write_text("b = 1\n")
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    before = jit._package_stamp()
    (tmp_path / "counts.py").write_text("b = 2\n")
    assert jit._package_stamp() != before
