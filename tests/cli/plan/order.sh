# What must come before what: attributes and mounts before the pivot, everything before exec, the filter last.
need jq
"$PX" exec --plan -v /etc:/x -- true | jq -r '.steps[].op' | awk '
{ at[$1] = NR; if (!($1 in first)) first[$1] = NR }
END {
    if (!(at["bind"] < at["pivot"] && at["proc"] < at["pivot"] && at["seal-root"] < at["pivot"])) print "mounts after the pivot"
    if (!(at["pivot"] < at["privileges-bound"] && at["privileges-bound"] < first["ids"])) print "privileges before the root is done"
    if (!(at["ids"] < at["landlock-enforce"] && at["landlock-enforce"] < at["seccomp"] && at["seccomp"] < at["exec"])) print "restrictions out of order"
    if (!(at["close-descriptors"] < at["exec"] && at["seccomp"] == at["exec"] - 1)) print "something between the filter and exec"
    print "checked"
}'
