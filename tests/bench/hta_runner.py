"""Run by the Python of HolisticTraceAnalysis' own environment: its critical path of the trace in a directory.

Usage: ``python hta_runner.py DIRECTORY``; prints the seconds of the analysis alone (the trace is loaded before) and
how many edges its graph has, as JSON.
"""

import json
import sys
import time

from hta.trace_analysis import TraceAnalysis

analysis = TraceAnalysis(trace_dir=sys.argv[1])
begin = time.perf_counter()
graph, succeeded = analysis.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=0)
seconds = time.perf_counter() - begin
assert succeeded, "HolisticTraceAnalysis found no critical path"
print(json.dumps({"seconds": seconds, "edges": graph.number_of_edges()}))
