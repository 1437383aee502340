"""Puts Layby's figures beside the limit of the same run."""

import json, pathlib, sys

layby, limit = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:3])
outside = layby["outside"]
layby["limit_bare_sql"] = limit
layby["share_of_limit"] = {
    "parks": round(outside["parks_per_second"] / limit["parks_per_second"], 2),
    "answers": round(outside["answers_carried_on_per_second"] / limit["answers_per_second"], 2),
}
print(json.dumps(layby, indent=2))
