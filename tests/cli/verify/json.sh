need python3
"$PX" --json sandbox verify --only etc_readonly,G1_host,dns --net host >report.json
python3 - <<'END'
import json
report = json.load(open("report.json"))
print([key for key in report if key != "checks"])
print(report["schema"], report["preset"], report["base"], report["runtime"], report["tier"])
for check in report["checks"]:
    print(list(check) == ["name", "category", "held_by", "result", "proof", "reason", "seconds"],
          check["name"], check["category"], check["result"], *[check["reason"]] * (check["result"] == "skipped"))
print([row["name"] for row in report["differs"]], report["passed"], report["failed"], report["skipped"])
END
