# Passed on; the command's own end is the end.
word=$(unique)
"$PX" exec -c "echo up; sleep $word" >"$TMP/out" & px=$!
until_filled "$TMP/out"
kill -TERM $px
try wait $px
until_gone "$word"
