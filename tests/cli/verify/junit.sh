need python3
try "$PX" sandbox verify -q --only etc_readonly,exit_code,dns --without read-only --junit report.xml >said
cat said | tail -n 1
python3 - <<'END'
import xml.etree.ElementTree as tree
suite = tree.parse("report.xml").getroot()[0]
print(suite.tag, [suite.get(key) for key in ("tests", "failures", "errors", "skipped")])
for case in suite.iter("testcase"):
    print(case.get("classname"), case.get("name"), [child.tag for child in case])
END
ls
# Where it cannot be written that is said, and the exit status says it too.
try "$PX" sandbox verify -q --only exit_code --junit no/such/report.xml
