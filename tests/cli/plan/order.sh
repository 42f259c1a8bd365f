# What must come before what: in pid 1 mounts before the pivot and privileges given up after it; in the payload ids, then
# Landlock, then the filter, and nothing between the filter and exec.
need jq
"$PX" exec --plan -v /etc:/x -- true | jq -r '.steps[] | "\(.stage) \(.op)"' | awk '
{ at[$1, $2] = NR }
END {
    if (!(at[1, "bind"] < at[1, "pivot"] && at[1, "proc"] < at[1, "pivot"] && at[1, "seal-root"] < at[1, "pivot"])) print "mounts after the pivot"
    if (!at[1, "pivot"]) print "no pivot"
    if (!(at[2, "ids"] && at[2, "ids"] < at[2, "landlock-enforce"] && at[2, "landlock-enforce"] < at[2, "seccomp"])) print "restrictions out of order"
    if (!(at[2, "close-descriptors"] && at[2, "close-descriptors"] < at[2, "exec"])) print "descriptors are not closed"
    if (!(at[2, "seccomp"] && at[2, "seccomp"] == at[2, "exec"] - 1)) print "something between the filter and exec"
    print "checked"
}'
