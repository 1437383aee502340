"""Puts Layby's figures beside the limit of the same run."""

import json, pathlib, sys

layby, limit, timers = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:4])
outside = layby["outside"]
layby["limit_bare_sql"] = limit
layby["share_of_limit"] = {
    "parks": round(outside["parks_per_second"] / limit["parks_per_second"], 2),
    "answers": round(outside["answers_carried_on_per_second"] / limit["answers_per_second"], 2),
}
bare = timers["bare_skip_locked_loop_per_second"]
timers["share_of_bare_loop"] = round(timers["burst_100000"]["per_second"] / bare, 2)
layby["timers"] = timers
print(json.dumps(layby, indent=2))
